"""What was read is kept, and read again only if it has changed."""

import os

import pytest

from document_files import RECORDS, message_of, written
from micol import Corpus, Schema, cache, jsonl


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("MICOL_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def cached(monkeypatch):
    """Files of any size are kept."""
    monkeypatch.setattr(cache, "SMALLEST_SOURCE", 0)


def kept():
    return sorted(cache.folder().glob("*")) if cache.folder().exists() else []


@pytest.mark.usefixtures("cached")
def test_a_second_read_comes_from_the_cache(tmp_path, monkeypatch):
    path = written(tmp_path / "docs.jsonl", RECORDS)
    first = Corpus.read(path)
    assert len(kept()) == 1
    monkeypatch.setattr(jsonl, "read", None)  # no reading any more
    again = Corpus.read(path)
    assert again.table.equals(first.table)
    assert again.fingerprint == first.fingerprint
    assert again.select([1]).ids == ["d2"]
    with pytest.raises(TypeError):
        Corpus.read(path, cache=False)


def test_small_files_are_not_kept(tmp_path):
    Corpus.read(written(tmp_path / "docs.jsonl", RECORDS))
    assert not kept()


@pytest.mark.usefixtures("cached")
def test_texts_that_were_kept_serve_a_read_without_them(tmp_path, monkeypatch):
    path = written(tmp_path / "docs.jsonl", RECORDS)
    unread = Corpus.read(path, text=False, cache=False)
    Corpus.read(path)
    monkeypatch.setattr(jsonl, "read", None)
    assert Corpus.read(path, text=False).table.equals(unread.table)


@pytest.mark.usefixtures("cached")
def test_a_record_left_out_for_its_text_is_there_without_texts(tmp_path):
    path = written(tmp_path / "docs.jsonl", [*RECORDS, {"id": "d4", "title": 12}])
    assert len(Corpus.read(path, skip_bad=True)) == 3
    assert len(Corpus.read(path, text=False)) == 4


@pytest.mark.usefixtures("cached")
def test_schema_and_texts_are_kept_apart(tmp_path):
    path = written(tmp_path / "docs.jsonl", RECORDS)
    assert Corpus.read(path, text=False).texts() == [""] * 3
    assert Corpus.read(path).texts()[1] == "Two"
    other = Schema(nodes={"V": "venue"}, links={})
    assert "authors" not in Corpus.read(path, other).table.column_names
    assert len(kept()) == 3


@pytest.mark.usefixtures("cached")
def test_a_changed_file_is_read_again_and_its_old_table_dropped(tmp_path):
    path = written(tmp_path / "docs.jsonl", RECORDS)
    other = written(tmp_path / "other.jsonl", RECORDS)
    Corpus.read(path, text=False)
    Corpus.read(path)
    Corpus.read(other)
    assert len(kept()) == 3
    written(path, RECORDS[:2])
    assert Corpus.read(path).ids == ["d1", "d2"]
    assert len(kept()) == 2


@pytest.mark.usefixtures("cached")
def test_what_was_skipped_is_kept_along(tmp_path):
    path = written(tmp_path / "docs.jsonl", [*RECORDS, {"id": "d1"}])
    first = Corpus.read(path, skip_bad=True)
    again = Corpus.read(path, skip_bad=True)
    assert again.skipped == first.skipped
    assert len(again.skipped) == 1
    assert "already given" in message_of(path)


@pytest.mark.usefixtures("cached")
@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "flipped"])
def test_a_damaged_cache_is_read_again(tmp_path, damage):
    path = written(tmp_path / "docs.jsonl", RECORDS)
    first = Corpus.read(path)
    (file,) = kept()
    data = bytearray(file.read_bytes())
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "noise":
        data = bytearray(b"\xa5" * len(data))
    elif damage == "empty":
        data = bytearray()
    else:
        # Offsets and text in the middle of the file, not only its ends.
        data[len(data) // 4 : 3 * len(data) // 4] = b"\xff" * (len(data) // 2)
    file.unlink()
    file.write_bytes(data)
    assert Corpus.read(path).table.equals(first.table)
    assert len(kept()) == 1
    assert Corpus.read(path).table.equals(first.table)


@pytest.mark.usefixtures("cached")
def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    occupied = written(tmp_path / "occupied", b"a file, no folder")
    monkeypatch.setenv("MICOL_CACHE", str(occupied))
    assert len(Corpus.read(written(tmp_path / "docs.jsonl", RECORDS))) == 3


@pytest.mark.usefixtures("cached")
def test_the_oldest_tables_make_room(tmp_path, monkeypatch):
    paths = [written(tmp_path / f"{n}.jsonl", RECORDS) for n in range(4)]
    for age, path in enumerate(paths[:3]):
        before = set(kept())
        Corpus.read(path)
        (new,) = set(kept()) - before
        os.utime(new, (1000 + age, 1000 + age))
    oldest, second, third = sorted(kept(), key=lambda file: file.stat().st_mtime)
    Corpus.read(paths[0])  # used again: no longer the oldest
    monkeypatch.setattr(cache, "LARGEST_CACHE", 3 * oldest.stat().st_size + 100)
    Corpus.read(paths[3])
    assert oldest.exists()
    assert third.exists()
    assert not second.exists()
    leftover = written(cache.folder() / ".x.arrow.abc.tmp", b"half")
    os.utime(leftover, (1000, 1000))
    Corpus.read(paths[1])
    assert not leftover.exists()


def test_where_the_cache_lies(monkeypatch, tmp_path):
    monkeypatch.setenv("MICOL_CACHE", str(tmp_path / "own"))
    assert cache.folder() == tmp_path / "own" / "tables"
    monkeypatch.delenv("MICOL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert cache.folder() == tmp_path / "shared" / "micol" / "tables"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.folder() == tmp_path / "home" / ".cache" / "micol" / "tables"
