"""Processes that fetch one version, as a worker does before it loads it."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from google.protobuf import json_format

from braid.config.v1.config_pb2 import ModelVersion
from services.generation.weights import FetchStopped, WeightCache, WeightsUnavailable
from tests.generation.weights.policy import POLICY

STOPPED = 7
REFUSED = 8

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__])


def start(cache: Path, record: ModelVersion, largest_file: int = -1) -> ForkServerProcess:
    """Starts one; its exit code is 0 once the version is there and verified.

    The disk refuses what lies beyond ``largest_file`` bytes of a file.
    """
    text = json_format.MessageToJson(record)
    process = _processes.Process(target=_fetch, args=(cache, text, largest_file))
    process.start()
    return process


def _fetch(folder: Path, text: str, largest_file: int) -> None:
    """SIGTERM stops it as it stops a worker."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    cache = WeightCache(folder, POLICY)
    signal.signal(signal.SIGTERM, lambda *_: cache.stop())
    record = json_format.Parse(text, ModelVersion())
    try:
        cache.verify(record, cache.fetch(record))
    except FetchStopped:
        sys.exit(STOPPED)
    except WeightsUnavailable as error:
        print(error)
        sys.exit(REFUSED)
