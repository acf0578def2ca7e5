"""SKOS vocabularies."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import rdflib

from micol.errors import MicolError
from micol.formats import skos
from micol.labels import LabelSpace

VOCABULARY = Path(__file__).parent / "data/skos/vocabulary.ttl"
SYNTAX = {".rdf": "xml", ".nt": "nt", ".jsonld": "json-ld", ".ttl": "turtle"}


def labels(path=VOCABULARY, language="en"):
    found = list(skos.labels(path, language))
    return {label.id.removeprefix("http://example.org/"): label for label in found}


def test_names_in_english_first():
    found = labels()
    assert found["cs"].names == ("computer science", "CS", "computr science", "informatics")
    assert found["net"].names == ("networking",)
    # Without a language, and in the first language there is.
    assert found["ip"].names == ("Internet Protocol", "IP")
    assert found["sv"].names == ("verkko", "verkosto")


def test_names_in_another_language():
    found = labels(language="fi")
    assert found["cs"].names == ("tietojenkäsittely", "tietotekniikka")
    assert labels(language="sv")["sv"].names == ("nätverk", "nät")
    # There is no Finnish definition; an English one is better than none.
    assert found["cs"].description == "The study of computation."


def test_definition_before_scope_note():
    found = labels()
    assert found["cs"].description == "The study of computation."
    assert found["net"].description == "Computers that talk."
    assert found["ip"].description == ""


def test_broader_and_the_inverse_of_narrower():
    found = labels()
    assert found["net"].parents == ("http://example.org/cs",)
    # ex:elsewhere is not in the vocabulary.
    assert found["ip"].parents == ("http://example.org/cs", "http://example.org/net")


def test_deprecated_and_nameless_concepts_are_left_out():
    assert sorted(labels()) == ["cs", "ip", "net", "sv"]


@pytest.mark.parametrize("extension", SYNTAX)
def test_every_syntax_gives_the_same(tmp_path, extension):
    path = tmp_path / f"vocabulary{extension}"
    rdflib.Graph().parse(VOCABULARY).serialize(path, format=SYNTAX[extension])
    assert labels(path) == labels()
    assert LabelSpace.read(path).ids == [label.id for label in labels().values()]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ttl", "<a> <b> "),
        ("a.ttl", "\x00"),
        ("a.nt", "nothing"),
        ("a.rdf", "<rdf"),
        ("a.rdf", ""),
        ("a.jsonld", "{"),
        ("a.jsonld", '{"@context": 3}'),
    ],
)
def test_a_broken_file_is_named(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(MicolError, match=rf"{name}:.* not (valid|well-formed) "):
        list(skos.labels(path))


def test_an_unknown_extension(tmp_path):
    path = tmp_path / "a.doc"
    path.write_text("")
    with pytest.raises(MicolError, match="does not tell its RDF syntax"):
        list(skos.labels(path))


@pytest.mark.parametrize(
    "content",
    [
        '{"@context": "http://127.0.0.1:9/context"}',
        '{"@context": [{"a": "urn:a"}, "http://127.0.0.1:9/context"]}',
        '[{"@graph": [{"@context": {"@import": "http://127.0.0.1:9/context"}}]}]',
        '{"@context": {"a": {"@id": "urn:a", "@context": "context.jsonld"}}}',
    ],
)
def test_no_address_is_opened(tmp_path, content):
    path = tmp_path / "a.jsonld"
    path.write_text(content)
    with pytest.raises(MicolError, match="lies outside the file and is not fetched"):
        list(skos.labels(path))


def rdf(entities: str, name: str) -> str:
    return (
        f'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [{entities}]>\n'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="&skos;">'
        f'<skos:Concept rdf:about="urn:a"><skos:prefLabel>{name}</skos:prefLabel></skos:Concept></rdf:RDF>'
    )


SHORT = '<!ENTITY skos "http://www.w3.org/2004/02/skos/core#">'


def test_entities_that_stand_for_addresses(tmp_path):
    path = tmp_path / "a.rdf"
    path.write_text(rdf(SHORT, "one"))
    assert [label.names for label in skos.labels(path)] == [("one",)]


def test_no_file_is_opened(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    path = tmp_path / "a.rdf"
    path.write_text(rdf(f'{SHORT}<!ENTITY e SYSTEM "{tmp_path.as_uri()}/secret.txt">', "one &e;"))
    with suppress(MicolError):
        assert "secret" not in str(list(skos.labels(path)))


def test_entities_that_multiply_are_refused(tmp_path):
    nested = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    path = tmp_path / "a.rdf"
    for entities, name in [
        (f'<!ENTITY e0 "lol">{nested}', "&e9;"),
        (f'<!ENTITY e "{"x" * 999}">', "&e;" * 999),
    ]:
        path.write_text(rdf(SHORT + entities, name))
        with pytest.raises(MicolError, match=r"could fill the memory|amplification"):
            list(skos.labels(path))


def test_relative_uris_mean_the_same_everywhere(tmp_path, monkeypatch):
    path = tmp_path / "a.ttl"
    path.write_text('<c1> <http://www.w3.org/2004/02/skos/core#prefLabel> "one" .')
    first = list(skos.labels(path))
    monkeypatch.chdir("/")
    assert list(skos.labels(path)) == first
