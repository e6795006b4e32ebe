"""The schedulers and what they stand on: pure, deterministic, without I/O."""
