"""Fixtures that tests of every package share."""

pytest_plugins = ["tests.etcd", "tests.checkpoints"]
