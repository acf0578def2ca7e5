"""Opening, naming and replacing files."""

import gzip
import os
import stat
from contextlib import suppress

import pyarrow as pa
import pytest

from micol.errors import MicolError
from micol.files import open_bytes, reading, replacing, suffixes, writing_bytes

CONTENT = b"first line\nsecond line\n"


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.zst"])
def test_what_is_written_can_be_read(tmp_path, name):
    path = tmp_path / "new folder" / name
    with writing_bytes(path) as stream:
        stream.write(CONTENT)
    assert (path.read_bytes() == CONTENT) == (name == "a.txt")
    with open_bytes(path) as stream:
        assert list(stream) == CONTENT.splitlines(keepends=True)
    with reading(str(path)) as stream:
        assert stream.read() == CONTENT


def test_compressed_files_may_have_several_parts(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    with reading(path) as stream:
        assert stream.read() == b"one\ntwo\n"


@pytest.mark.parametrize("name", ["a", "a.gz", "a.zst"])
def test_what_cannot_be_opened(tmp_path, name):
    with pytest.raises(MicolError, match=f"{name}: no such file; check the path"):
        open_bytes(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(MicolError, match=f"{name}: is a folder, but a file was expected"):
        open_bytes(tmp_path / name)
    with pytest.raises(MicolError, match="no such file"):
        open_bytes(tmp_path / name / "file" / "below")


@pytest.mark.parametrize("name", ["a.gz", "a.zst"])
def test_a_damaged_file_is_said_to_be_so(tmp_path, name):
    path = tmp_path / name
    with writing_bytes(path) as stream:
        stream.write(os.urandom(5000))
    path.write_bytes(path.read_bytes()[:-10])
    with (
        pytest.raises(MicolError, match=f"{name}: cut short or damaged .*; copy, download or compress"),
        reading(path) as stream,
    ):
        stream.read()


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "result.txt"
    path.write_text("old")
    with suppress(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    for durable in (True, False):
        with replacing(path, durable=durable) as temporary:
            temporary.write_text(f"new {durable}")
            assert path.read_text() != f"new {durable}"
        assert path.read_text() == f"new {durable}"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_stream_leaves_nothing(tmp_path):
    with suppress(RuntimeError), writing_bytes(tmp_path / "a.gz") as stream:
        stream.write(CONTENT)
        raise RuntimeError
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["taken", "file/below"])
def test_what_cannot_be_written_is_told_by_its_own_name(tmp_path, place):
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OSError, match=place) as told, replacing(tmp_path / place) as temporary:
        temporary.write_text("new")
    assert told.value.filename == str(tmp_path / place)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_result_has_the_rights_of_an_ordinary_file(tmp_path):
    (tmp_path / "ordinary").touch()
    with replacing(tmp_path / "result") as temporary:
        temporary.touch()
    rights = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ordinary", "result")]
    assert rights[0] == rights[1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("docs.jsonl", (".jsonl", "")),
        ("docs.JSONL.GZ", (".jsonl", ".gz")),
        ("a.b/docs.parquet.zst", (".parquet", ".zst")),
        ("docs", ("", "")),
        ("docs.gz", ("", ".gz")),
        ("-", ("", "")),
    ],
)
def test_the_extension_tells_format_and_compression(name, expected):
    assert suffixes(name) == expected


def test_zstandard_is_what_others_write(tmp_path):
    path = tmp_path / "a.zst"
    path.write_bytes(pa.compress(CONTENT, codec="zstd", asbytes=True))
    with reading(path) as stream:
        assert stream.readline() == b"first line\n"
