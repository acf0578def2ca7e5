"""The wheel, the container, the release files: what reaches a user who never sees the repository."""

from __future__ import annotations

import email
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import micol
from micol.cli import VERBS, cli
from micol.cli.doctor import EXTRAS
from micol.cli.serve import command as serve_command
from pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))


def instructions() -> list[tuple[str, str]]:
    """Of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    return [tuple(line.split(maxsplit=1)) for line in lines if line and not line.startswith("#")]  # type: ignore[misc]


def copied() -> list[str]:
    """The files and folders that the image is built from."""
    values = [value for key, value in instructions() if key == "COPY" and "--from=" not in value]
    return [source for value in values for source in value.split()[:-1]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from what the Dockerfile copies, by the command that it runs."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    (command,) = [value for key, value in instructions() if key == "RUN" and value.startswith("pip wheel")]
    words = command.replace("/wheels", str(folder)).split()
    # What builds it is installed here already; the image fetches it.
    program = [sys.executable, "-m", *words, "--no-build-isolation", "--quiet"]
    subprocess.run(program, cwd=source, check=True, capture_output=True)
    (found,) = folder.glob("micol-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files alone, as an installer unpacks them."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_the_wheel_holds_what_is_needed_and_no_more(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    needed = {"py.typed", "cli/push.py", "data/debian/docs.jsonl.zst", "data/debian/labels.jsonl"}
    assert {f"micol/{name}" for name in needed} <= names
    assert any(name.startswith("micol/server/page/") and name.endswith(".html") for name in names)
    assert all(name.startswith(("micol/", "micol-")) for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith((".nbi", ".nbc"))]
    assert wheel.stat().st_size < 10 << 20


def test_the_wheel_runs_without_the_repository(installed: Path, tmp_path: Path) -> None:
    code = "import micol, sys; [getattr(micol, n) for n in micol.__all__]; print(micol.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    for program in (["-c", code], ["-m", "micol.cli", "--help"], ["-m", "micol.cli", "import", "--help"]):
        done = subprocess.run(
            [sys.executable, *program],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith((str(installed), "Usage:"))


def test_what_is_heavy_is_an_extra(installed: Path) -> None:
    (folder,) = installed.glob("micol-*.dist-info")
    described = email.message_from_string((folder / "METADATA").read_text(encoding="utf-8"))
    base = {
        re.match(r"[\w-]+", need)[0]  # type: ignore[index]
        for need in described.get_all("Requires-Dist", [])
        if "extra ==" not in need
    }
    assert not base & {"fastapi", "uvicorn", "gensim", "tensorboard", "pyspark", "onnxruntime", "openvino"}
    assert not base & {"sentence-transformers", "mkdocs-material", "pytest"}
    assert set(described.get_all("Provides-Extra", [])) == set(PROJECT["project"]["optional-dependencies"])


def test_the_doctor_knows_every_extra() -> None:
    assert set(EXTRAS) == set(PROJECT["project"]["optional-dependencies"])


def test_every_dependency_is_explained() -> None:
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    needs = [*PROJECT["project"]["dependencies"]]
    for extra in PROJECT["project"]["optional-dependencies"].values():
        needs += extra
    for need in needs:
        name = re.match(r"[\w-]+", need)[0]  # type: ignore[index]
        assert name in page, f"docs/dependencies.md does not say why {name} is there"


def test_what_is_exported_has_types() -> None:
    """`py.typed` promises them; what `__getattr__` returns has none."""
    source = Path(micol.__file__).read_text(encoding="utf-8")
    typed = dict(reversed(found) for found in re.findall(r"    from (micol\.\w+) import (\w+) as \2", source))
    assert typed == micol._EXPORTS
    assert (Path(micol.__file__).parent / "py.typed").exists()


def test_one_version() -> None:
    assert PROJECT["project"]["version"] == micol.__version__


def test_pythons_that_are_promised_are_tested() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert re.findall(r'"(3\.\d+)"', workflow.split("matrix:")[1].split("steps:")[0]) == PYTHONS
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"
    for target in re.findall(r"run: make ([\w-]+)", workflow):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


# The container


def last(name: str) -> str:
    return [value for key, value in instructions() if key == name][-1]


def runs() -> list[str]:
    return [value for key, value in instructions() if key == "RUN"]


def test_what_is_copied_into_the_image_is_there_and_not_ignored() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for source in copied():
        assert (ROOT / source).exists(), source
        assert source in kept, f".dockerignore leaves {source} out"


def test_the_image_installs_extras_that_exist() -> None:
    (extras,) = re.findall(
        r"\.whl\)\[([\w,]+)\]", " ".join(value for key, value in instructions() if key == "RUN")
    )
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    for _, value in (entry for entry in instructions() if entry[0] == "FROM"):
        version = re.search(r"python:(3\.\d+)", value)
        assert version
        assert version[1] in PYTHONS


def test_the_image_does_not_run_as_root() -> None:
    user = last("USER")
    assert user not in ("root", "0")
    assert any(
        key == "RUN" and "useradd" in value and value.endswith(f" {user}") for key, value in instructions()
    )


def test_the_image_serves_where_it_says() -> None:
    (port,) = [option.default for option in serve_command.params if option.name == "port"]
    assert last("EXPOSE") == str(port)
    health = last("HEALTHCHECK")
    assert f"127.0.0.1:{port}/health" in health
    program = json.loads(health[health.index("[") :])
    compile(program[2], "HEALTHCHECK", "exec")
    assert json.loads(last("ENTRYPOINT")) == list(PROJECT["project"]["scripts"])
    verb, *arguments = json.loads(last("CMD"))
    assert verb in VERBS
    with serve_command.make_context("serve", arguments) as context:
        assert context.params["model_folder"] == "/model"
        assert context.params["host"] == "0.0.0.0"


def test_the_health_of_a_server_is_where_the_image_asks() -> None:
    routes = (Path(micol.__file__).parent / "server/app.py").read_text(encoding="utf-8")
    assert '"/health"' in routes


# Commands


def test_a_mistyped_command_is_guessed() -> None:
    runner = CliRunner()
    assert "did you mean train?" in runner.invoke(cli, ["trian"]).output
    assert "there are inspect, pairs," in runner.invoke(cli, ["zzz"]).output
    assert "did you mean remove?" in runner.invoke(cli, ["labels", "model", "remvoe"]).output


# Shell completion


def completed(words: str, shell: str = "bash") -> list[str]:
    environment = {
        **os.environ,
        "_MICOL_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    code = "import sys; sys.argv = ['micol']; from micol.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_commands_and_options_are_completed() -> None:
    assert completed("micol su") == ["suggest"]
    assert set(completed("micol ")) == set(VERBS)
    assert {"--limit"} == set(completed("micol suggest --li"))
    assert completed("micol train --arch") == ["--architecture"]
    assert set(completed("micol import o")) == {"openalex"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_calls_micol(shell: str) -> None:
    from processes import invoked

    script = invoked(cli, "completion", shell).output
    assert f"_MICOL_COMPLETE={shell}_complete" in script
    if shell == "bash":
        subprocess.run(["bash", "-n", "-c", script], check=True)


def test_every_verb_has_help_of_a_sentence() -> None:
    context = click.Context(cli)
    for verb in VERBS:
        command = cli.get_command(context, verb)
        assert command is not None
        assert re.match(r"[A-Z].*[.:]", (command.help or "").strip(), re.DOTALL), verb


def test_hooks_before_a_commit_run_what_the_tests_run() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = [shlex.split(entry)[0] for entry in re.findall(r"entry: (.*)", hooks)]
    assert {Path(entry).name for entry in entries} == {"ruff", "mypy"}
