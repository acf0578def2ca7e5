"""How the house is built: imports point one way, the command starts at once, nothing is pickled."""

from __future__ import annotations

import ast
import graphlib
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import micol
from micol.cli import VERBS

ROOT = Path(micol.__file__).parent
HEAVY = {"torch", "transformers", "pyarrow", "numba", "scipy", "numpy", "lxml", "rdflib", "matplotlib"}
# What runs a model; everything else must work, and start, without it.
MODEL_PARTS = (
    "micol.rank",
    "micol.classify",
    "micol.training",
    "micol.explain",
    "micol.demo",
    "micol.baselines.match_model",
    "micol.baselines.back_translation",
)
MODEL_LIBRARIES = {"torch", "transformers", "tokenizers", "safetensors", "accelerate"}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")}


def imports(tree: ast.AST, *, at_start: bool) -> Iterator[str]:
    """What a module imports: when it is loaded, or at any time."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "relative imports hide where things come from"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module
        elif not (at_start and runs_later(node)):
            yield from imports(node, at_start=at_start)


def runs_later(node: ast.AST) -> bool:
    """The body of a function, and what only a type checker reads."""
    return isinstance(node, ast.FunctionDef) or (
        isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )


def is_of(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def test_no_module_needs_itself() -> None:
    graph = {
        module: {name for name in imports(tree, at_start=True) if name in MODULES and name != "micol"}
        for module, tree in MODULES.items()
    }
    assert list(graphlib.TopologicalSorter(graph).static_order())
    assert "micol.errors" in graph["micol.corpus"]
    assert "micol.network" not in graph["micol.corpus"]


def test_nothing_imports_the_command() -> None:
    for module, tree in MODULES.items():
        if not module.startswith("micol.cli"):
            assert not [name for name in imports(tree, at_start=False) if name.startswith("micol.cli")], (
                module
            )


def test_only_the_model_parts_run_models() -> None:
    for module, tree in MODULES.items():
        if is_of(module, MODEL_PARTS):
            continue
        used = set(imports(tree, at_start=True))
        assert not {name for name in used if name.split(".")[0] in MODEL_LIBRARIES}, module
        assert not {name for name in used if is_of(name, MODEL_PARTS)}, module
    for module in ("micol.corpus", "micol.labels", "micol.network", "micol.pairs", "micol.evaluation"):
        used = set(imports(MODULES[module], at_start=False))
        assert not {name for name in used if is_of(name, MODEL_PARTS)}, module


def test_nothing_is_pickled() -> None:
    for module, tree in MODULES.items():
        names = {name.split(".")[0] for name in imports(tree, at_start=False)}
        assert not names & {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}, module
        calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert not calls & {"torch.load", "torch.save"}, module


HELP = """
import sys
from micol.cli import cli
try:
    cli({arguments!r})
except SystemExit as stop:
    assert stop.code == 0
heavy = {heavy!r} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.mark.parametrize("arguments", [["--help"], *([verb, "--help"] for verb in VERBS)])
def test_help_comes_at_once(arguments: list[str]) -> None:
    code = HELP.format(arguments=arguments, heavy=HEAVY)
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith("Usage:")
        # Of the processor, not of the clock, which other programs make run on.
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if seconds[-1] < 0.5:
            return
    assert min(seconds) < 0.5
