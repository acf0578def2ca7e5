"""Lets apt fetch the lists of a Debian suite into a folder of their own; nothing on the system changes."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from micol.errors import MicolError
from micol.progress import say


@contextmanager
def fetched(suite: str) -> Iterator[tuple[Path, Path]]:
    """A folder with Packages, Sources and Translation-en of the suite, and the debtags vocabulary.

    They come from the mirror that this machine's apt uses, whose signatures apt checks.
    """
    with tempfile.TemporaryDirectory(prefix="micol-debian-") as name:
        folder = Path(name)
        # apt drops its rights while downloading, and must still reach its files.
        folder.chmod(0o755)
        for needed in ("lists/partial", "cache/archives/partial"):
            (folder / needed).mkdir(parents=True)
        mirror = configured_mirror()
        entries = "".join(f"{kind} {mirror} {suite} main\n" for kind in ("deb", "deb-src"))
        (folder / "sources.list").write_text(entries, encoding="utf-8")
        settings = [
            f"Dir::State::Lists={folder}/lists",
            f"Dir::Cache={folder}/cache",
            f"Dir::Etc::SourceList={folder}/sources.list",
            "Dir::Etc::SourceParts=/dev/null",
            "Acquire::Languages=en",
        ]
        options = [word for setting in settings for word in ("-o", setting)]
        say(f"fetching the lists of {suite}")
        run(["apt-get", *options, "update"], folder)
        run(["apt-get", *options, "download", "debtags"], folder)
        run(["dpkg-deb", "-x", str(next(folder.glob("debtags_*.deb"))), str(folder / "debtags")], folder)
        yield folder / "lists", folder / "debtags/usr/share/debtags/vocabulary"


def configured_mirror() -> str:
    """The address that apt on this machine fetches Debian itself from."""
    asked = ["apt-get", "indextargets", "--format", "$(SITE)", "Origin: Debian", "Label: Debian"]
    sites = run(asked, Path.cwd()).split()
    if not sites:
        raise MicolError("apt knows no Debian mirror here; run `apt-get update` on a Debian system first")
    return sites[0]


def run(command: Sequence[str], folder: Path) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise MicolError(f"{command[0]}: no such command; --fetch needs a Debian system") from None
    except subprocess.CalledProcessError as error:
        words = " ".join((error.stderr or error.stdout).split())
        raise MicolError(
            f"`{command[0]} … {command[-1]}` failed ({words[:300]}); check apt's sources"
        ) from None
    return done.stdout
