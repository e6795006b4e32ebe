"""The same workloads on other engines, each run by the Python of an environment of its own."""
