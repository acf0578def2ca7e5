"""Reading labels of every format, their names and their hierarchy."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from micol import Label, LabelSpace, MicolError
from micol.errors import UsageError

LABELS = [
    Label("l1", ("Web", "WWW"), "The web."),
    Label("l2", ("Webgraph", "web graph"), "", ("l1",)),
    Label("l3", ("Crawler",), "A robot.", ("l1",)),
    Label("l4", ("Focused crawler",), "", ("l3", "l2")),
]
RECORDS = [
    {"id": label.id, "names": label.names, "description": label.description, "parents": label.parents}
    for label in LABELS
]


def written(path, content):
    path = Path(path)
    if isinstance(content, list):
        content = "".join(json.dumps(record) + "\n" for record in content)
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def message_of(path):
    with pytest.raises(MicolError) as caught:
        LabelSpace.read(path)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(f"{Path(path).parent}/", "")


# --- what a label space is ------------------------------------------------------------------------------


def test_labels_come_out_as_they_went_in():
    space = LabelSpace.from_labels(LABELS)
    assert len(space) == 4
    assert list(space) == LABELS
    assert [space[n] for n in range(4)] == LABELS
    assert space[-1] == LABELS[3]
    assert space.ids == ["l1", "l2", "l3", "l4"]
    assert space.names == [label.names for label in LABELS]
    assert space.texts() == [label.text for label in LABELS]
    assert space.texts()[0] == "Web. The web."
    assert space.position("l3") == 2
    assert not space.warnings
    assert not space.skipped
    with pytest.raises(IndexError):
        space[4]
    with pytest.raises(MicolError, match="no label has the id 'x'"):
        space.position("x")


def test_parents_are_positions_and_branches_go_down():
    space = LabelSpace.from_labels(LABELS)
    assert space.parents == [(), (0,), (0,), (2, 1)]
    assert space.branch("l1") == {0, 1, 2, 3}
    assert space.branch("l3") == {2, 3}
    assert space.branch("l4") == {3}
    with pytest.raises(MicolError, match="no label has the id"):
        space.branch("x")


def test_an_empty_label_space():
    space = LabelSpace.from_labels([])
    assert (len(space), space.ids, space.texts(), space.names, space.parents) == (0, [], [], [], [])


@given(st.lists(st.sets(st.integers(0, 11), max_size=3), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_branches_are_what_walking_up_finds_be_there_circles_or_not(parents):
    n = len(parents)
    labels = [
        Label(f"l{child}", (f"name {child}",), "", tuple(f"l{parent}" for parent in above if parent < n))
        for child, above in enumerate(parents)
    ]
    space = LabelSpace.from_labels(labels)

    def ancestors(label):
        found, waiting = {label}, [label]
        while waiting:
            above = {parent for parent in parents[waiting.pop()] if parent < n} - found
            found |= above
            waiting += above
        return found

    for top in range(n):
        assert space.branch(f"l{top}") == {label for label in range(n) if top in ancestors(label)}


def test_names_are_trimmed_and_parents_must_be_labels():
    space = LabelSpace.from_labels(
        [
            Label("a", (" Web ", "", "Web", "www\t"), " d ", ("a", "b", "x", "y")),
            Label("b", ("\u00a0Graph",), "", ("b", "b")),
        ]
    )
    assert space[0] == Label("a", ("Web", "www"), "d", ("b",))
    assert space[1] == Label("b", ("Graph",))
    assert space.warnings == [
        "2 labels are their own parents (such as 'a'); that was left out",
        "2 parents are not in the label space (such as 'x'); left out",
    ]


def test_a_preferred_name_of_several_labels_is_a_warning():
    labels = [Label("a", ("Web", "x")), Label("b", ("web",)), Label("c", ("x",)), Label("d", ("WEB",))]
    assert LabelSpace.from_labels(labels).warnings == ["the name 'web' stands for 3 labels: a, b, d"]
    many = [Label(f"{n}", (f"name {n // 10}",)) for n in range(300)]
    warnings = LabelSpace.from_labels(many).warnings
    assert len(warnings) == 21
    assert warnings[0] == "the name 'name 0' stands for 10 labels: 0, 1, 2, 3, 4 and 5 more"
    assert warnings[-1] == "10 more names stand for several labels"


def test_labels_in_memory_are_checked_alike():
    with pytest.raises(
        MicolError, match=r"^mine, label 2: the label 'b' has no name; give every label at least"
    ):
        LabelSpace.from_labels([Label("a", ("x",)), Label("b", (" ",))], source="mine")
    with pytest.raises(
        MicolError, match=r"^labels, label 2: the id 'a' was already given at labels, label 1"
    ):
        LabelSpace.from_labels([Label("a", ("x",)), Label("a", ("y",))])


# --- our files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["l.jsonl", "l.jsonl.gz", "l.jsonl.zst", "l.parquet"])
def test_a_label_space_written_and_read_is_the_same(tmp_path, name):
    space = LabelSpace.from_labels(LABELS)
    space.write(tmp_path / name)
    again = LabelSpace.read(tmp_path / name)
    assert list(again) == LABELS
    assert again.fingerprint == space.fingerprint
    assert again.source == str(tmp_path / name)
    assert LabelSpace.from_labels(LABELS[::-1]).fingerprint != space.fingerprint


def test_writing_needs_a_format_it_knows(tmp_path):
    with pytest.raises(UsageError, match="cannot tell the format"):
        LabelSpace.from_labels(LABELS).write(tmp_path / "labels.txt")


def test_scalars_and_single_names_in_json(tmp_path):
    records = [{"id": 1, "names": "Only"}, {"id": "2", "name": "Other", "parents": 1, "level": 3}]
    space = LabelSpace.read(written(tmp_path / "l.jsonl", records))
    assert list(space) == [Label("1", ("Only",)), Label("2", ("Other",), "", ("1",))]


def test_the_original_release_is_read_as_it_is(tmp_path):
    record = {
        "label": "27",
        "name": ["webgraph", "web graph"],
        "definition": "A graph.",
        "combined_text": "…",
    }
    space = LabelSpace.read(
        written(tmp_path / "labels.json", [record, record | {"label": "28", "name": "hub"}])
    )
    assert list(space) == [
        Label("27", ("webgraph", "web graph"), "A graph."),
        Label("28", ("hub",), "A graph."),
    ]


BAD_LINES = [
    (b'{"id": "x"}', "the label 'x' has no name; give every label at least one name"),
    (b'{"id": "x", "names": [" "]}', "the label 'x' has no name; give every label at least one name"),
    (b'{"names": ["x"]}', 'the label has no "id"; give every label an id of its own'),
    (
        b'{"id": "l1", "names": ["x"]}',
        "the id 'l1' was already given at labels.jsonl:1; give every label an id",
    ),
    (
        b'{"id": "x", "names": [{}]}',
        '"names" must be a string or a list of strings, got an object in its list',
    ),
    (b'{"id": "x", "names": ["x"], "description": 1}', '"description" must be a string, got the number 1'),
    (b"x", "not valid JSON (Expecting value at character 1); correct the line"),
    (b'{"id": "\xff"}', "byte 9 of the line is not UTF-8; convert it to UTF-8"),
]


@pytest.mark.parametrize(("line", "expected"), BAD_LINES, ids=lambda part: repr(part)[:30])
def test_bad_lines_stop_with_one_sentence_or_are_listed(tmp_path, line, expected):
    first, *others = [json.dumps(record).encode() + b"\n" for record in RECORDS]
    path = written(tmp_path / "labels.jsonl", first + line + b"\n" + b"".join(others))
    assert message_of(path).startswith(f"labels.jsonl:2: {expected}")
    assert message_of(path).endswith(", or leave bad records out with --skip-bad")
    space = LabelSpace.read(path, skip_bad=True)
    assert list(space) == LABELS
    skipped = space.skipped[0].replace(f"{tmp_path}/", "")
    assert skipped.startswith(f"labels.jsonl:2: {expected.split(';')[0]}")


def test_a_file_without_labels(tmp_path):
    for name in ("l.jsonl", "l.csv", "l.tsv"):
        assert message_of(written(tmp_path / name, b"")).startswith(f"{name}: no labels in it; expected one")
    assert message_of(tmp_path / "none.csv") == "none.csv: no such file; check the path"
    nameless = written(tmp_path / "l.jsonl", [{"id": "a"}, {"id": "b"}])
    with pytest.raises(MicolError, match=r"none of its 2 records can be used, the first because of this"):
        LabelSpace.read(nameless, skip_bad=True)


def test_a_parquet_file_with_a_nameless_label(tmp_path):
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "names": [["x"], []]}), path)
    assert message_of(path).startswith("labels.parquet, label 2: the label 'b' has no name")


# --- CSV and TSV ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "labels.csv.gz"])
def test_our_table(tmp_path, name):
    text = (
        "\ufeffID,names,description,parents,level\n"
        'l1,Web|WWW,"The ""web"", wide.",,1\n'
        "\n"
        "l2, Webgraph | web graph ,,l1|x9,2\n"
        "l3,Crawler\n"
    )
    if ".tsv" in name:
        text = (
            text.replace('"The ""web"", wide."', "THE")
            .replace(",", "\t")
            .replace("THE", '"The ""web"", wide."')
        )
    space = LabelSpace.read(written(tmp_path / name, text))
    assert list(space) == [
        Label("l1", ("Web", "WWW"), 'The "web", wide.'),
        Label("l2", ("Webgraph", "web graph"), "", ("l1",)),
        Label("l3", ("Crawler",)),
    ]
    assert space.warnings == ["1 parents are not in the label space (such as 'x9'); left out"]


def test_a_preferred_name_and_others_in_a_table(tmp_path):
    space = LabelSpace.read(written(tmp_path / "l.csv", "id,name,names\na,Web,WWW|Web\nb,Graph,\n"))
    assert space.names == [("Web", "WWW"), ("Graph",)]


def test_annif_tsv(tmp_path):
    text = "<http://example.org/s1>\tfirst subject\n<http://example.org/s2>\tsecond\t2.1\n\n"
    space = LabelSpace.read(written(tmp_path / "subjects.tsv", text))
    assert list(space) == [
        Label("http://example.org/s1", ("first subject",)),
        Label("http://example.org/s2", ("second",)),
    ]


def test_annif_csv(tmp_path):
    text = "uri,notation,label_fi,label_en\n<http://e.org/1>,1.1,yksi,one\nhttp://e.org/2,,kaksi,two\n"
    space = LabelSpace.read(written(tmp_path / "subjects.csv", text))
    assert list(space) == [Label("http://e.org/1", ("one",)), Label("http://e.org/2", ("two",))]
    text = "uri,label_fi,label_sv\nhttp://e.org/1,yksi,ett\n"
    assert LabelSpace.read(written(tmp_path / "subjects.csv", text)).names == [("yksi",)]


def test_bad_tables(tmp_path):
    path = written(tmp_path / "l.csv", "key,word\na,b\n")
    assert message_of(path) == (
        "l.csv:1: expected the columns id, name or names (separated by |), description, parents "
        "(separated by |), or Annif's uri, label_en, got key, word; name the columns in the first line"
    )
    path = written(tmp_path / "l.csv", "id,name\na,Web\nb,\na,Graph\n")
    assert message_of(path).startswith("l.csv:3: the label 'b' has no name")
    space = LabelSpace.read(path, skip_bad=True)
    assert space.ids == ["a"]
    assert [message.split(":")[1] for message in space.skipped] == ["3", "4"]
    path = written(tmp_path / "l.csv", b"id,name\na,Web\nb,caf\xe9\n")
    assert "not UTF-8; convert the file to UTF-8" in message_of(path)
    path = written(tmp_path / "l.csv", b"id,name\na," + b"x" * 200_000 + b"\n")
    assert message_of(path).startswith("l.csv:2: not a table that can be read (field larger than field limit")


# --- formats of others ----------------------------------------------------------------------------------


def test_graphs_and_trees_are_handed_to_their_readers(tmp_path, monkeypatch):
    from micol.formats import mesh, skos

    monkeypatch.setattr(mesh, "labels", lambda path: iter([Label("mesh", (Path(path).name,))]))
    monkeypatch.setattr(skos, "labels", lambda path: iter([Label("skos", (Path(path).name,))]))
    rdf = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'></rdf:RDF>"
    descriptors = "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'b'>]><!-- c --><DescriptorRecordSet/>"
    for name, content, reader in [
        ("a.ttl", "", "skos"),
        ("a.nt", "", "skos"),
        ("a.jsonld", "", "skos"),
        ("a.rdf", rdf, "skos"),
        ("a.xml", rdf, "skos"),
        ("desc.xml", descriptors, "mesh"),
        ("desc.xml.gz", descriptors, "mesh"),
    ]:
        space = LabelSpace.read(written(tmp_path / name, content))
        assert list(space) == [Label(reader, (name,))]


def test_xml_that_is_none(tmp_path):
    assert message_of(written(tmp_path / "a.xml", b"")).startswith("a.xml: not well-formed XML (")
    assert message_of(written(tmp_path / "a.xml", b"just words")).startswith("a.xml: not well-formed XML (")
    path = written(tmp_path / "a.xml.gz", b"<DescriptorRecordSet>" + b"<a/>" * 10_000)
    path.write_bytes(path.read_bytes()[:20])
    assert message_of(path).startswith("a.xml.gz: ")


@given(
    name=st.sampled_from(["l.jsonl", "l.csv", "l.tsv", "l.csv.gz", "l.parquet", "l.xml"]),
    content=st.one_of(
        st.binary(max_size=100),
        st.text(max_size=60).map(lambda text: ("id,name,parents\n" + text).encode("utf-8", "replace")),
        st.text(max_size=60).map(lambda text: ("<u>\t" + text).encode("utf-8", "replace")),
    ),
    skip_bad=st.booleans(),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_make_a_label_space_or_one_clear_error(tmp_path, name, content, skip_bad):
    path = tmp_path / name
    path.write_bytes(content)
    try:
        assert isinstance(LabelSpace.read(path, skip_bad=skip_bad), LabelSpace)
    except MicolError as error:
        assert_one_line(error)


def assert_one_line(error):
    assert "\n" not in str(error)


def test_many_labels_fit_and_branches_are_quick():
    n = 100_000
    space = LabelSpace.from_labels(
        Label(f"l{child}", (f"name {child}",), "", (f"l{(child - 1) // 10}",) if child else ())
        for child in range(n)
    )
    assert space.table.nbytes < 10_000_000
    assert len(space.branch("l0")) == n
    assert len(space.branch("l1")) == sum(1 for child in range(n) if below(child, 1))
    assert space[n - 1].parents == (f"l{(n - 2) // 10}",)


def below(child, top):
    while child > top:
        child = (child - 1) // 10
    return child == top
