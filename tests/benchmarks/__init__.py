"""Hocket beside its peers: `python -m tests.benchmarks`. See docs/benchmarks.md."""
