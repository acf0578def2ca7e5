"""The machine that numbers come from, for results files."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def machine(*libraries: str) -> dict[str, str]:
    """Processor, cores, Python, the graphics processor in use, and versions of libraries."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor()
    found = {"cpu": cpu, "cores": str(os.cpu_count()), "python": platform.python_version()}
    # Whoever has not loaded torch has not used a graphics processor either.
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found | {name: installed_version(name) for name in libraries}


def installed_version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
