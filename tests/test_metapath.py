"""The notation: what it accepts, how it is written back, and how mistakes are shown."""

from __future__ import annotations

import doctest
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from micol.errors import MicolError, UsageError
from micol.metapath import PAPER_PATHS, Hop, MetaPath, MetaPathError, Shared
from micol.schema import DEFAULT_SCHEMA, Schema

letters = st.sampled_from("PAVRé")
groups = st.text("PAVR", min_size=1, max_size=4)
blanks = st.sampled_from(["", " ", "\t", "  \n"])


@st.composite
def chains(draw):
    """Text of a chain that the grammar allows, with blanks anywhere."""
    parts = [draw(letters)]
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            joins = st.sampled_from(["", "-", "->", "<-", "→", "←", "- >", "< -"])
            parts += [draw(joins), draw(letters)]
        else:
            joins = draw(st.sampled_from([["", "-"], ["->", "<-", "→", "←"]]))
            join = st.sampled_from(joins)
            parts += [draw(join), "(", *draw(groups), ")", draw(join), draw(letters)]
    return "".join(part + draw(blanks) for part in parts)


texts = st.lists(chains(), min_size=1, max_size=3).map("|".join)


@given(texts)
def test_what_is_written_back_means_the_same(text):
    path = MetaPath(text)
    again = MetaPath(str(path))
    assert again == path
    assert str(again) == str(path)
    assert hash(again) == hash(path)
    assert not any(character.isspace() or character in "→←" for character in str(path))


@given(st.text("PAV()-<>→←| \n1é", max_size=14) | st.text(max_size=8))
def test_any_text_is_a_path_or_an_error_that_points_into_it(text):
    mistake = mistake_in(text)
    if mistake is None:
        assert MetaPath(str(MetaPath(text))) == MetaPath(text)
        return
    first, shown, caret, example = str(mistake).splitlines()[-4:]
    assert first.startswith("meta-path ")
    assert 0 <= mistake.place <= len(text)
    assert caret == " " * (2 + mistake.place) + "^"
    assert len(shown) == len(text) + 2
    MetaPath(example.removeprefix("a valid example: "))


def mistake_in(text):
    try:
        MetaPath(text)
    except MetaPathError as mistake:
        return mistake
    return None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("P-A-P", "PAP"),
        ("P → P ← P", "P->P<-P"),
        ("P(VA)P", "P(AV)P"),
        ("P(A)P", "PAP"),
        ("P->(P)<-P", "P->P<-P"),
        ("PAP|P->P", "P->P|PAP"),
        ("PAP | PAP", "PAP"),
        ("P-(AA)-P", "P(AA)P"),
    ],
)
def test_ways_to_write_the_same(one, other):
    assert MetaPath(one) == MetaPath(other)
    assert str(MetaPath(one)) == other


def test_what_differs():
    assert MetaPath("PAP") != MetaPath("P(AA)P")
    assert MetaPath("P->P") != MetaPath("P<-P")
    assert MetaPath("PAP") != "PAP"
    assert len({MetaPath("PAP"), MetaPath("P-A-P"), MetaPath("PVP")}) == 2


def test_the_ten_of_the_paper():
    assert [str(path) for path in PAPER_PATHS] == [
        "P->P", "P<-P", "PAP", "PVP", "P->P<-P", "P<-P->P", "P(AA)P", "P(AV)P", "P->(PP)<-P", "P<-(PP)->P",
    ]  # fmt: skip
    for path in PAPER_PATHS:
        path.bind(DEFAULT_SCHEMA)


def test_a_path_survives_pickling():
    assert pickle.loads(pickle.dumps(MetaPath("P(AA)P|PVP"))) == MetaPath("P(AA)P|PVP")


def test_representation():
    assert repr(MetaPath("P - A - P")) == "MetaPath('PAP')"


MALFORMED = [
    ("", "it is empty", 0),
    ("   ", "it is empty", 3),
    ("P", "one end only", 0),
    ("PAP|", "ends where a letter is expected", 4),
    ("|PAP", "ends where a letter is expected", 0),
    ("P->", "ends where a letter is expected", 3),
    ("P(AAP", "opened here is never closed", 1),
    ("P(AA|PAP", "opened here is never closed", 1),
    ("PA)P", "was never opened", 2),
    ("P(A(A))P", "cannot stand inside", 3),
    ("P()P", "hold no letter", 1),
    ("(AA)P", "begins and ends with a single letter", 0),
    ("P (AA)", "begins and ends with a single letter", 2),
    ("P(AA)(VV)P", "between two single letters", 5),
    ("P->(PP)P", "both sides or on neither", 3),
    ("P(PP)<-P", "both sides or on neither", 1),
    ("P>P", "an arrow is written", 1),
    ("P<P", "an arrow is written", 1),
    ("P--P", "a letter is expected, not '-'", 2),
    ("P A 1", "a letter is expected, not '1'", 4),
    (f"P({'A' * 1001})P", "more than 1,000 letters", 1),
]


@pytest.mark.parametrize(("text", "why", "place"), MALFORMED)
def test_malformed_paths_are_shown_with_the_place_and_the_reason(text, why, place):
    with pytest.raises(MetaPathError) as caught:
        MetaPath(text)
    assert why in str(caught.value)
    assert caught.value.place == place


def test_the_error_in_full():
    with pytest.raises(UsageError) as caught:
        MetaPath("P\t(AAP")
    assert str(caught.value) == (
        "meta-path 'P\\t(AAP': the bracket opened here is never closed\n"
        "  P (AAP\n"
        "    ^\n"
        "a valid example: P(AA)P"
    )


TWO_LINKS = Schema({"A": "authors"}, {"P": "references", "R": "replies", "S": "sources"})
UNBINDABLE = [
    ("PXP", DEFAULT_SCHEMA, "no letter 'X'; it has A (authors), V (venue), P (references)", 1),
    ("P(AX)P", DEFAULT_SCHEMA, "no letter 'X'", 3),
    ("PAP|PaP", DEFAULT_SCHEMA, "no letter 'a'", 5),
    ("AP", DEFAULT_SCHEMA, "must begin at a document (P)", 0),
    ("PA", DEFAULT_SCHEMA, "must end at a document (P)", 1),
    ("PP", DEFAULT_SCHEMA, "say which way the link goes: P->P or P<-P", 1),
    ("P(PP)P", DEFAULT_SCHEMA, "say which way the link goes", 3),
    ("PAVP", DEFAULT_SCHEMA, "A and V are joined only through documents", 2),
    ("P->A<-P", DEFAULT_SCHEMA, "A is no link and takes no arrow", 3),
    ("P->(AP)<-P", DEFAULT_SCHEMA, "A is no link and takes no arrow", 4),
    ("PA(VV)P", DEFAULT_SCHEMA, "brackets stand between two documents", 2),
    ("P->R->S", TWO_LINKS, "one step cannot follow two link fields, R and S", 6),
    ("D->D", Schema({"A": "authors"}, {"R": "replies"}, "D"), "no link field for D", 3),
    ("DXD", Schema({}, {"R": "replies"}, "D"), "it has R (replies), D (document)", 1),
    ("DXD", Schema({}, {}, "D"), "it has D (document)", 1),
]


@pytest.mark.parametrize(("text", "schema", "why", "place"), UNBINDABLE)
def test_paths_that_do_not_fit_a_schema(text, schema, why, place):
    path = MetaPath(text)
    with pytest.raises(MetaPathError) as caught:
        path.bind(schema)
    assert why in str(caught.value)
    assert caught.value.place == place


@pytest.mark.parametrize("schema", [DEFAULT_SCHEMA, TWO_LINKS, Schema({}, {"R": "replies"}, "D")])
def test_the_example_of_an_error_fits_the_schema(schema):
    with pytest.raises(MetaPathError) as caught:
        MetaPath("PXP").bind(schema)
    example = str(caught.value).rpartition("a valid example: ")[2]
    MetaPath(example).bind(schema)


def test_a_path_is_bound_to_hops_and_branches():
    assert MetaPath("PAP").bind(DEFAULT_SCHEMA) == ((Hop("A", True), Hop("A", False)),)
    assert MetaPath("P<-P").bind(DEFAULT_SCHEMA) == ((Hop("P", False),),)
    assert MetaPath("P(AAV)P").bind(DEFAULT_SCHEMA) == (
        ((Shared(Hop("A", True), Hop("A", False), 2), Shared(Hop("V", True), Hop("V", False), 1)),),
    )


def test_a_step_follows_the_link_letter_that_is_not_the_document():
    assert MetaPath("P->R").bind(TWO_LINKS) == ((Hop("R", True),),)
    assert MetaPath("P->R<-P").bind(TWO_LINKS) == ((Hop("R", True), Hop("R", False)),)
    assert MetaPath("P<-R->P->P").bind(TWO_LINKS) == ((Hop("R", False), Hop("R", True), Hop("P", True)),)
    assert MetaPath("R->R").bind(TWO_LINKS) == ((Hop("R", True),),)
    assert MetaPath("P->(PR)<-P").bind(TWO_LINKS) == (
        ((Shared(Hop("P", True), Hop("P", False), 1), Shared(Hop("R", True), Hop("R", False), 1)),),
    )


def test_the_letters_that_a_path_follows():
    assert MetaPath("P(AV)P->P|PVP").letters(DEFAULT_SCHEMA) == {"A", "V", "P"}
    assert MetaPath("P->R").letters(TWO_LINKS) == {"R"}


def test_mistakes_in_paths_are_told_as_any_other_mistake():
    assert issubclass(MetaPathError, UsageError)
    assert issubclass(UsageError, MicolError)


PAGE = (Path(__file__).parent.parent / "docs" / "notation.md").read_text(encoding="utf-8")


def test_the_examples_of_the_documentation_hold():
    examples = "".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, "notation.md", None, None)
    result = doctest.DocTestRunner().run(test)
    assert result.attempted > 10
    assert result.failed == 0


def test_the_mistake_of_the_documentation_is_shown_so():
    with pytest.raises(MetaPathError) as caught:
        MetaPath("P(AAP")
    assert f"micol: {caught.value}\n" in PAGE


def test_every_path_of_the_documentation_is_valid():
    table = PAGE.partition("These ten are the paper's")[0]
    paths = [MetaPath(text) for text in re.findall(r"`(P[^`]+)`", table)]
    assert set(paths) == set(PAPER_PATHS)
    notation = PAGE.partition("## Notation")[2].partition("## What a path reaches")[0]
    for text in re.findall(r"`(P[^`= ]+)`", notation):
        MetaPath(text).bind(TWO_LINKS_AND_VENUE)


TWO_LINKS_AND_VENUE = Schema({"A": "authors", "V": "venue"}, {"P": "references", "R": "replies"})
