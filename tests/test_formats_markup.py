"""XML is read safely: nothing expanded, nothing opened, nothing kept."""

from __future__ import annotations

import io
import itertools
import time
import types
from contextlib import suppress

import pytest

from micol.errors import MicolError
from micol.formats.markup import flat, records
from micol.layout import Problems


def texts(content: str, skip_bad: bool = False) -> list[str]:
    problems = Problems("x.xml", skip_bad)
    return [flat(element) for element in records(io.BytesIO(content.encode()), ["r"], problems)]


def test_records_come_one_by_one_and_go():
    stream = io.BytesIO(b"<s>" + b"<a/><r>one</r>" * 50 + b"</s>")
    for element in records(stream, ["r"], Problems("x", False)):
        # Of all that came before, only the last record and what stood behind it are still there.
        assert element.getparent().index(element) <= 2


def test_markup_is_flattened():
    assert texts("<s><r> a<b>b <c>c</c></b>\n d<!-- no --><?pi no?></r></s>") == ["ab c d"]


def test_an_entity_of_a_dtd_that_is_not_loaded():
    assert texts('<!DOCTYPE s SYSTEM "x.dtd"><s><r>&alpha;&nosuchthing;</r></s>') == ["α&nosuchthing;"]


def test_own_entities_are_not_expanded():
    assert texts('<!DOCTYPE s [<!ENTITY e "secret">]><s><r>&e;</r></s>') == ["&e;"]


def test_no_file_is_opened(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    content = f'<!DOCTYPE s [<!ENTITY e SYSTEM "{secret.as_uri()}">]><s><r>&e;</r></s>'
    assert "secret" not in texts(content)[0]


@pytest.mark.parametrize("place", ["<r>{}</r>", '<r a="{}"/>'])
def test_entities_that_multiply_do_no_harm(place):
    doubling = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    content = f'<!DOCTYPE s [<!ENTITY e0 "lol">{doubling}]><s>{place.format("&e9;")}</s>'
    start = time.perf_counter()
    with suppress(MicolError):
        assert sum(map(len, texts(content))) < 100
    assert time.perf_counter() - start < 5


def test_another_root_is_refused_at_once():
    endless = itertools.chain([b"<other>"], itertools.repeat(b"<a/>" * 1000))
    stream = types.SimpleNamespace(read=lambda size: next(endless))
    with pytest.raises(MicolError, match=r"x\.xml: expected <s>, got <other>"):
        list(records(stream, ["r"], Problems("x.xml", False), roots=["s"]))


@pytest.mark.parametrize("content", [b"", b" ", b"{}", b"<!-- nothing -->"])
def test_no_xml_at_all(content):
    with pytest.raises(MicolError, match=r"x\.xml:1: not well-formed XML"):
        list(records(io.BytesIO(content), ["r"], Problems("x.xml", False), roots=["s"]))


def test_deep_nesting_is_refused():
    with pytest.raises(MicolError, match=r"x\.xml:1: not well-formed XML"):
        texts("<s>" + "<r>" * 5000)
