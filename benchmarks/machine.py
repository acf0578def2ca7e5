"""The machine that numbers come from, for results files."""

from __future__ import annotations

from micol.machine import machine

__all__ = ["machine"]
