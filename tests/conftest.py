"""Fixtures that tests of every package share."""

from hypothesis import settings

pytest_plugins = ["tests.etcd", "tests.checkpoints"]

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("braid", deadline=None)
settings.load_profile("braid")
