"""Pictures of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from micol.files import replacing


def plot_losses(log: Sequence[dict[str, Any]], path: Path) -> None:
    """The training loss, and the validation loss where there is one, over steps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for key, name in (("loss", "training"), ("eval_loss", "validation")):
        points = [(entry["step"], entry[key]) for entry in log if key in entry]
        if points:
            axes.plot(*zip(*points, strict=True), label=name, marker="." if len(points) < 20 else None)
    axes.set(xlabel="step", ylabel="contrastive loss", title="Training")
    axes.grid(alpha=0.3)
    axes.legend()
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=150)
