"""The machine that numbers come from, for results files."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path


def machine(*libraries: str) -> dict[str, str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor()
    versions = {name: version(name) for name in libraries}
    return {"cpu": cpu, "cores": str(os.cpu_count()), "python": platform.python_version(), **versions}
