"""Hocket's server: schedulers decide, the dispatcher does, stores remember, the feed tells."""
