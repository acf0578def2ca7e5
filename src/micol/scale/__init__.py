"""Pair mining and tagging on engines that people run on many machines."""
