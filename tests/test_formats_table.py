"""Tables of documents: columns become fields, cells become values."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from micol.errors import MicolError, UsageError
from micol.formats import table
from micol.formats.base import Options, Record


def imported(path: Path, **options: object) -> tuple[list[Record], Options]:
    given = Options(**options)  # type: ignore[arg-type]
    return list(table.read([path], given).documents), given


def written(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_are_named_or_keep_their_names(tmp_path: Path) -> None:
    path = written(tmp_path, "key,title,who,tags\nd1,A title,Ann | Bob|Ann,x\nd2,Other,,\n")
    documents, _ = imported(path, columns={"id": "key", "authors": "who"})
    assert documents == [
        {"id": "d1", "title": "A title", "authors": ["Ann", "Bob"], "tags": ["x"], "labels": []},
        {"id": "d2", "title": "Other", "labels": []},
    ]


def test_a_field_that_is_asked_for_hides_a_column_of_its_name(tmp_path: Path) -> None:
    path = written(tmp_path, "id,title,headline\nd1,no,yes\n")
    documents, _ = imported(path, columns={"title": "headline"})
    assert documents[0]["title"] == "yes"


def test_rows_without_an_id_are_called_by_their_lines(tmp_path: Path) -> None:
    documents, _ = imported(written(tmp_path, 'text\n"one\ntwo"\nthree\n'))
    assert [document["id"] for document in documents] == ["table.csv:2", "table.csv:4"]
    assert documents[0]["text"] == "one two"


@pytest.mark.parametrize(("name", "mark"), [("t.csv", ";"), ("t.tsv", "\t"), ("t.csv", ",")])
def test_columns_may_be_separated_otherwise(tmp_path: Path, name: str, mark: str) -> None:
    documents, _ = imported(written(tmp_path, f"id{mark}text\nd1{mark}hello\n", name))
    assert documents == [{"id": "d1", "text": "hello", "labels": []}]


def test_a_document_does_not_refer_to_itself(tmp_path: Path) -> None:
    documents, _ = imported(written(tmp_path, "id,text,references\nd1,a,d1|d2\n"))
    assert documents[0]["references"] == ["d2"]


def test_labels_are_found_by_id_and_by_name(tmp_path: Path) -> None:
    labels = written(tmp_path, "id,names\nl1,Web graph|webgraph\nl2,Web\n", "labels.csv")
    path = written(tmp_path, "id,text,labels\nd1,a,l2|WEBGRAPH|Nonsense\n")
    documents, options = imported(path, labels=str(labels))
    assert documents[0]["labels"] == ["l2", "l1"]
    assert options.notes == ["1 labels, such as 'Nonsense', are not in the vocabulary: left out"]


def test_without_a_vocabulary_labels_are_gathered(tmp_path: Path) -> None:
    result = table.read([written(tmp_path, "id,text,labels\nd1,a,x|y\nd2,b,x\n")], Options())
    assert len(list(result.documents)) == 2
    assert [label.id for label in result.labels] == ["x", "y"]


def test_another_separator_is_suspected(tmp_path: Path) -> None:
    path = written(tmp_path, "id,text,authors\nd1,a,Ann; Bob\nd2,b,Cy; Di\n")
    _, options = imported(path)
    assert "--separator ';'" in options.notes[0]
    documents, options = imported(path, separator=";")
    assert documents[0]["authors"] == ["Ann", "Bob"]
    assert not options.notes


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("id,text\nd1,a\n", {"columns": {"title": "head"}}, "no column 'head' for --column title=head"),
        ("key,what\nd1,a\n", {}, "say which one has the text, such as --column text=NAME"),
        ("id,text\nd1,a\n", {"separator": ""}, "--separator must not be empty"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_request_is_told(
    tmp_path: Path, text: str, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        imported(written(tmp_path, text), **options)


def test_a_file_that_is_no_table_is_told(tmp_path: Path) -> None:
    with pytest.raises(MicolError, match=r"ends in .csv or .tsv; save a spreadsheet as CSV first"):
        imported(written(tmp_path, "PK", "books.xlsx"))


def test_what_is_wrong_with_a_row_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, "id,text\nd1,a,b\nd2,c\n")
    with pytest.raises(MicolError, match=r"table.csv:2: the row has more fields than the header"):
        imported(path)
    documents, options = imported(path, skip_bad=True)
    assert [document["id"] for document in documents] == ["d2"]
    assert len(options.skipped) == 1


words = st.text(st.characters(codec="utf-8", exclude_characters="|\0"), max_size=12)


@given(st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=8))
def test_whatever_is_in_the_cells_comes_back(
    tmp_path_factory: pytest.TempPathFactory, cells: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "authors"])
        for number, values in enumerate(cells):
            writer.writerow([f"d{number}", "a text", "|".join(values)])
    documents, _ = imported(path)
    assert len(documents) == len(cells)
    for document, values in zip(documents, cells, strict=True):
        expected = [value.strip() for value in dict.fromkeys(map(str.strip, values)) if value.strip()]
        assert document.get("authors", []) == expected
