"""Tells the config center what a mesh serves: model versions and node groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from braid.config.v1 import config_pb2 as config
from braid.config.v1.config_pb2_grpc import ConfigServiceStub
from braid.inference.v1 import inference_pb2 as inference
from services.cli.mesh_failure import NothingToServe
from services.cli.model_store import StoredVersion, version_order
from services.cli.names import paradigm_name

TIMEOUT_S = 60.0


async def record_versions(
    center: ConfigServiceStub, stored: Sequence[StoredVersion]
) -> tuple[config.ModelVersion, ...]:
    """Records the versions that are not recorded yet; returns the records of all ``stored``."""
    answer = await center.ListModels(config.ListModelsRequest(), timeout=TIMEOUT_S)
    known = {(record.model, record.version): record for record in answer.model_versions}
    return tuple(
        [known.get((one.model, one.version)) or await _record(center, one) for one in stored]
    )


async def _record(center: ConfigServiceStub, stored: StoredVersion) -> config.ModelVersion:
    request = config.RegisterModelRequest(
        model=stored.model, version=stored.version, uri=stored.folder.as_uri()
    )
    answer = await center.RegisterModel(request, timeout=TIMEOUT_S)
    record: config.ModelVersion = answer.model_version
    return record


async def assign_groups(
    center: ConfigServiceStub,
    records: Sequence[config.ModelVersion],
    groups: Mapping[str, inference.Paradigm],
) -> dict[str, config.Group]:
    """What each group serves: as stored, else the newest version of its paradigm, now stored."""
    answer = await center.ListGroups(config.ListGroupsRequest(), timeout=TIMEOUT_S)
    stored = {group.group: group for group in answer.groups}
    assigned = {}
    for name, paradigm in groups.items():
        group = stored.get(name, config.Group(group=name))
        if not group.model:
            newest = newest_of(records, paradigm)
            group.model, group.version = newest.model, newest.version
            await center.PutGroup(config.PutGroupRequest(group=group), timeout=TIMEOUT_S)
        assigned[name] = group
    return assigned


def newest_of(
    records: Sequence[config.ModelVersion], paradigm: inference.Paradigm
) -> config.ModelVersion:
    """Newest version of the first model that generates so. Raises NothingToServe."""
    fitting = [record for record in records if record.paradigm == paradigm]
    if not fitting:
        raise NothingToServe(f"the store holds no {paradigm_name(paradigm)} model")
    model = min(record.model for record in fitting)
    versions = [record for record in fitting if record.model == model]
    return max(versions, key=lambda record: version_order(record.version))
