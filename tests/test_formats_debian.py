"""Debian's package lists and debtags."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from micol.errors import MicolError
from micol.formats import deb822, debian, debian_fetch, debtags
from micol.formats.base import Options
from micol.formats.deb822 import paragraphs
from micol.layout import Problems

DATA = Path(__file__).parent / "data/debian"
VOCABULARY = DATA / "vocabulary"


def imported(*sources, **options):
    options.setdefault("labels", str(VOCABULARY))
    result = debian.read(sources or [DATA], Options(**options))
    documents = {record["id"]: record for record in result.documents}
    return documents, {label.id: label for label in result.labels}


def test_a_package_becomes_a_document():
    documents, _ = imported()
    assert documents["apage"] == {
        "id": "apage",
        "title": "show pages of text",
        "abstract": "Apage shows a text on the terminal, one screen at a time, forwards and backwards.\n"
        "It also searches.",
        "authors": ["ada lovelace", "grace hopper"],
        "venue": "text",
        "references": ["libc6", "zview"],
        "labels": ["use::viewing", "works-with-format::pdf", "works-with-format::zip", "works-with::text"],
    }


def test_parts_of_one_source_are_one_document_and_transitional_packages_none():
    documents, _ = imported()
    assert sorted(documents) == ["apage", "libc6", "zview"]
    # zview suggests apage; apage needs zview or a mail viewer, which zview provides.
    assert documents["zview"]["references"] == ["apage"]


def test_teams_are_no_authors():
    documents, _ = imported()
    assert documents["libc6"]["authors"] == []
    assert debian.people('"Ada Lovelace (al)" <a@x>, Debian QA Group <q@x>, Ivo Maintz <i@x>') == {
        "ada lovelace",
        "ivo maintz",
    }


def test_what_everything_depends_on_is_no_reference(monkeypatch):
    monkeypatch.setattr(debian, "MAX_DEPENDENTS", 0)
    documents, _ = imported()
    assert not any(record["references"] for record in documents.values())


def test_tags_become_labels_with_names_and_their_facet():
    _, labels = imported()
    assert list(labels) == [
        "use::viewing",
        "works-with::mail",
        "works-with::text",
        "works-with-format::pdf",
        "works-with-format::zip",
    ]
    assert labels["works-with-format::zip"].names == ("Zip Archives", "ZIP")
    assert labels["works-with-format::zip"].description == (
        "Supports Format: Which data formats are supported. Files that hold files."
    )
    assert labels["works-with::text"].description == (
        "Works with: What kind of data the package can work with."
    )


@pytest.mark.parametrize(
    ("tag", "title", "names"),
    [
        ("accessibility::ocr", "Text Recognition (OCR)", ("Text Recognition", "OCR")),
        ("devel::lang:c++", "C++ Development", ("C++ Development", "C++")),
        ("devel::lang:r", "GNU R Development", ("GNU R Development", "GNU R", "R")),
        ("protocol::ssl", "SSL/TLS", ("SSL/TLS", "SSL", "TLS")),
        ("protocol::oscar", "OSCAR (AIM/ICQ)", ("OSCAR", "AIM", "ICQ")),
        (
            "works-with-format::gif",
            "GIF, Graphics Interchange",
            ("GIF, Graphics Interchange", "GIF", "Graphics Interchange"),
        ),
        ("works-with::calendar", "Calendars, dates or times", ("Calendars, dates or times", "calendar")),
        ("hardware::joystick", "Joystick (legacy)", ("Joystick",)),
        ("hardware::hobby:lego", "LEGO™", ("LEGO",)),
        ("admin::file-distribution", "File Distribution", ("File Distribution",)),
        ("x::y", "", ("y",)),
    ],
)
def test_the_names_of_a_tag(tag, title, names):
    assert debtags.names(tag, title) == names


@pytest.mark.parametrize(
    ("extension", "pack"),
    [
        (".gz", gzip.compress),
        (".xz", lzma.compress),
        (".bz2", bz2.compress),
        (".lz4", lambda data: pa.compress(data, "lz4", asbytes=True)),
        (".zst", lambda data: pa.compress(data, "zstd", asbytes=True)),
    ],
)
def test_lists_as_apt_packs_and_names_them(tmp_path, extension, pack):
    for name in ("Packages", "Sources", "Translation-en"):
        packed = tmp_path / f"mirror.example.org_debian_dists_stable_main_{name}{extension}"
        packed.write_bytes(pack((DATA / name).read_bytes()))
    assert imported(tmp_path) == imported()
    (tmp_path / packed.name).write_bytes(packed.read_bytes()[:-30])
    with pytest.raises(MicolError, match="cut short or damaged"):
        imported(tmp_path)


def test_what_is_missing_is_told(tmp_path):
    shutil.copy(DATA / "Packages", tmp_path)
    options = Options(labels=str(VOCABULARY))
    documents = {record["id"]: record for record in debian.read([tmp_path / "Packages"], options).documents}
    assert documents["apage"]["abstract"] == ""
    assert documents["apage"]["authors"] == []
    assert [note.split(",")[0] for note in options.notes] == [
        "no Translation-en among the lists",
        "no Sources among the lists",
    ]


def test_a_folder_without_lists(tmp_path):
    with pytest.raises(MicolError, match="no file named Packages; run `apt-get update`"):
        imported(tmp_path)


def test_a_missing_vocabulary(monkeypatch, tmp_path):
    monkeypatch.setattr(debtags, "PLACES", (tmp_path / "vocabulary",))
    with pytest.raises(MicolError, match="no debtags vocabulary here; run `apt-get install debtags`"):
        debian.read([DATA], Options())
    with pytest.raises(MicolError, match="no such file"):
        imported(labels=str(tmp_path / "none"))


def test_broken_stanzas_are_named_or_left_out(tmp_path):
    path = tmp_path / "Packages"
    path.write_bytes(b"Package: a\nno colon\nSection: x\n\n\xff: y\nPackage: b\n continued\n")
    with pytest.raises(MicolError, match=r"Packages:2: expected `Field: value`, got 'no colon'"):
        list(deb822.stanzas(path, {"Package"}, Problems(str(path), False)))
    problems = Problems(str(path), True)
    found = list(deb822.stanzas(path, {"Package", "Section"}, problems))
    assert found == [{"Package": "a", "Section": "x"}, {"Package": "b\n continued"}]
    assert len(problems.skipped) == 2


def test_paragraphs_of_a_description():
    assert paragraphs("title\n one\n  two\n .\n .\n three\u00a0four") == ("title", "one two\nthree\u00a0four")
    assert paragraphs("title") == ("title", "")


def test_fetching_needs_apt(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MicolError, match="apt-get: no such command; --fetch needs a Debian system"):
        imported(fetch="bookworm")


def test_apts_own_words_when_it_fails(tmp_path):
    with pytest.raises(MicolError, match=r"`dpkg-deb … \S+` failed \(.*none\.deb.*\); check apt's sources"):
        debian_fetch.run(["dpkg-deb", "-x", str(tmp_path / "none.deb"), str(tmp_path)], tmp_path)
