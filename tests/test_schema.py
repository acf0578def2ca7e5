"""Letters and fields, and the file they may be written in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from micol import MicolError, Schema
from micol.schema import DEFAULT_SCHEMA


def test_the_default_is_the_papers():
    assert dict(DEFAULT_SCHEMA.nodes) == {"A": "authors", "V": "venue"}
    assert dict(DEFAULT_SCHEMA.links) == {"P": "references"}
    assert DEFAULT_SCHEMA.document == "P"
    assert DEFAULT_SCHEMA.fields == ("authors", "venue", "references")


def test_a_field_under_two_letters_is_one_field():
    assert Schema(nodes={"A": "people", "B": "people"}, links={}).fields == ("people",)


def test_a_schema_is_read_from_toml(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text('document = "D"\n[nodes]\nU = "user"\nH = "hashtags"\n[links]\nR = "replies_to"\n')
    schema = Schema.read(path)
    assert schema == Schema({"U": "user", "H": "hashtags"}, {"R": "replies_to"}, "D")
    path.write_text('[links]\nR = "replies_to"\n')
    assert Schema.read(str(path)) == Schema({}, {"R": "replies_to"}, "R")
    path.write_text('[nodes]\nU = "user"\n')
    assert Schema.read(path) == Schema({"U": "user"}, {}, "P")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (({"AB": "authors"}, {}), "'AB' must be a single letter"),
        (({"1": "authors"}, {}), "'1' must be a single letter"),
        (({"A": "authors"}, {"A": "references"}), "the letter 'A' stands for two things"),
        (({"P": "authors"}, {}), "the letter 'P' stands for two things"),
        (({"A": "labels"}, {}), "'labels' is not metadata"),
        (({"A": "authors"}, {"P": "citations"}), "'citations' is not metadata"),
    ],
)
def test_a_schema_that_makes_no_sense(arguments, expected):
    with pytest.raises(MicolError, match=expected):
        Schema(*arguments)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[nodes\n", r"not valid TOML \(.*\); expected \[nodes\] with lines like"),
        ('[node]\nA = "authors"\n', r"unknown entry 'node'; expected \[nodes\], \[links\] or document"),
        ("[nodes]\nA = 3\n", 'A must name a field, as in A = "authors", got 3'),
        ('[nodes]\nA = ""\n', "A must name a field"),
        ('[nodes]\nAuthors = "authors"\n', "'Authors' must be a single letter"),
        ('nodes = "authors"\n', r"\[nodes\] must be a table"),
        ('document = 5\n[nodes]\nA = "authors"\n', "5 must be a single letter"),
        ("", r"no field at all"),
    ],
)
def test_a_schema_file_with_a_mistake_is_named(tmp_path, content, expected):
    path = tmp_path / "schema.toml"
    path.write_text(content)
    with pytest.raises(MicolError, match=expected) as caught:
        Schema.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_schema_file_that_cannot_be_read(tmp_path):
    with pytest.raises(MicolError, match=r"none.toml: no such file; check the path"):
        Schema.read(tmp_path / "none.toml")
    path = tmp_path / "schema.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(MicolError, match="not UTF-8"):
        Schema.read(path)


@given(
    st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
)
def test_any_bytes_make_a_schema_or_a_clear_error(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(content)
    try:
        assert isinstance(Schema.read(path), Schema)
    except MicolError as error:
        assert str(error).startswith(f"{path}: ")  # noqa: PT017
