"""Compiled with numba: walks along meta-paths, and draws from what they reach."""
