"""Makes the development sets: starting weights are settled on them, so that no reported set is used for it.

    python benchmarks/development_sets.py [NAME …] -o FOLDER [--mesh LABELS] [--gcloud FOLDER]

wordnet    glosses of WordNet's nouns; labels are the general nouns above them and their topics
meshnotes  scope notes of MeSH headings; labels are the headings above them (--mesh: any file of MeSH labels)
foldoc     entries of the Free On-line Dictionary of Computing; labels are its subject categories
gcloud     help texts of the Google Cloud CLI; labels are its groups and verbs (--gcloud: its folder)
npm        readmes of npm packages; labels are their authors' keywords
pypi       descriptions of PyPI packages; labels are their authors' keywords (no weight is settled on it)

Each becomes FOLDER/NAME with docs.jsonl.gz, labels.jsonl.gz and test_ids.txt. WordNet and FOLDOC come as
Debian packages, which apt fetches into FOLDER/downloads; packages of npm and PyPI come one by one, for a
quarter and half of an hour. A second run finds them there.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from development.common import Made, write
from development.foldoc import foldoc
from development.gcloud import gcloud
from development.mesh import meshnotes
from development.npm import npm
from development.pypi import pypi
from development.wordnet import wordnet
from micol.errors import MicolError
from micol.progress import say

NEEDS = {"wordnet": None, "meshnotes": "mesh", "foldoc": None, "gcloud": "gcloud", "npm": None, "pypi": None}
FETCHED = {"wordnet": wordnet, "foldoc": foldoc, "npm": npm, "pypi": pypi}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NEEDS)}; all by default")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--mesh", type=Path, help="MeSH labels as JSON Lines, or MeSH descriptor XML")
    parser.add_argument("--gcloud", type=Path, help="the folder of an installed Google Cloud CLI")
    given = parser.parse_args()
    if unknown := set(given.names) - set(NEEDS):
        parser.error(f"no set is named {', '.join(sorted(unknown))}; choose from {', '.join(NEEDS)}")
    for name in given.names or NEEDS:
        source = NEEDS[name] and getattr(given, NEEDS[name])
        if NEEDS[name] and not source:
            say(f"{name} is left out: it needs --{NEEDS[name]}")
        else:
            write(made(name, given.output / "downloads", source), given.output / name)


def made(name: str, downloads: Path, source: Path) -> Made:
    if name == "meshnotes":
        return meshnotes(source)
    if name == "gcloud":
        return gcloud(source)
    return FETCHED[name](downloads)


if __name__ == "__main__":
    try:
        main()
    except MicolError as error:
        sys.exit(f"error: {error}")
