"""Random small corpora and random meta-paths for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from micol.corpus import Corpus
from micol.schema import Schema

# R is a second link field: a path may follow it instead of the references.
SCHEMA = Schema({"A": "authors", "V": "venue"}, {"P": "references", "R": "replies"})

PAPER_STEPS = {
    "P->P": [("link", "P", "->")],
    "P<-P": [("link", "P", "<-")],
    "PAP": [("node", "A")],
    "PVP": [("node", "V")],
    "P->P<-P": [("link", "P", "->"), ("link", "P", "<-")],
    "P<-P->P": [("link", "P", "<-"), ("link", "P", "->")],
    "P(AA)P": [("nodes", "AA")],
    "P(AV)P": [("nodes", "AV")],
    "P->(PP)<-P": [("links", "PP", "->", "<-")],
    "P<-(PP)->P": [("links", "PP", "<-", "->")],
}


@st.composite
def records(draw, max_documents=8):
    """Documents with few authors and venues, so that they share them, and links in and out of the corpus."""
    ids = [f"d{number}" for number in range(draw(st.integers(1, max_documents)))]
    linked = st.lists(st.sampled_from([*ids, "x0", "x1", "x2"]), max_size=5)
    made = []
    for id in ids:
        record = {"id": id, "title": id}
        record["authors"] = draw(st.lists(st.sampled_from("abcd"), max_size=4))
        record["venue"] = draw(st.lists(st.sampled_from(["v", "w"]), max_size=2))
        for field in ("references", "replies", "citations"):
            # Readers refuse a link of a document to itself.
            record[field] = [other for other in draw(linked) if other != id]
        made.append(record)
    return made


arrows = st.sampled_from(["->", "<-"])
steps = st.one_of(
    st.tuples(st.just("node"), st.sampled_from("AV")),
    st.tuples(st.just("link"), st.just("P"), arrows),
    st.tuples(st.just("nodes"), st.text("AV", min_size=2, max_size=4)),
    st.tuples(st.just("links"), st.text("PR", min_size=2, max_size=3), arrows, arrows),
)
chains = st.lists(steps, min_size=1, max_size=4)
paths = st.lists(chains, min_size=1, max_size=3)


def text_of(path) -> str:
    return "|".join("P" + "".join(text_of_step(step) for step in chain) for chain in path)


def text_of_step(step) -> str:
    kind, letters, *around = step
    if kind == "node":
        return f"{letters}P"
    if kind == "link":
        return f"{around[0]}P"
    return f"{around[0] if around else ''}({letters}){around[1] if around else ''}P"


def network_of(made, schema=SCHEMA):
    return Corpus.from_records(made, schema).network()
