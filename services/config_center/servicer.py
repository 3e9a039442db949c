"""ConfigService: checks what comes in, leaves the writing to the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import structlog
from google.protobuf.struct_pb2 import Struct

from braid.config.v1 import config_pb2, config_pb2_grpc
from services.chassis import keys
from services.chassis.errors import InvalidRequest, NotFound
from services.chassis.group_record import check_group
from services.chassis.security.admin_guard import AdminGuard
from services.config_center import validation
from services.config_center.authorship import Reasoned, author_of
from services.config_center.callers import CallerStore
from services.config_center.change import ANONYMOUS, Author
from services.config_center.documents import GROUP, MODEL_VERSION, POLICY, SHARES
from services.config_center.history import KEPT, History
from services.config_center.retirement import Retirement
from services.config_center.rollback import Prober, Rollback
from services.config_center.rollout.rollouts import Rollouts
from services.config_center.store import ABSENT, Store, Stored
from services.config_center.version_folder import (
    VersionFolder,
    differences,
    read_version,
)
from services.router.builtin_policy import builtin_policy

Context = Any

Found = Stored[config_pb2.Rollout]
Move = Callable[[Found, Author], Awaitable[Found]]

_LISTED = 100
"""Changes listed where the caller names no number."""

log = structlog.get_logger()


class ConfigServicer(config_pb2_grpc.ConfigServiceServicer):
    """Models, policy, traffic, groups and callers in etcd."""

    def __init__(self, store: Store, history: History, guard: AdminGuard, prober: Prober) -> None:
        self._store = store
        self._callers = CallerStore(store)
        self._history = history
        self._guard = guard
        self._rollouts = Rollouts(store)
        self._retirement = Retirement(store)
        self._rollback = Rollback(store, history, prober)

    def _author(self, request: Reasoned, context: Context) -> Author:
        return author_of(request, self._guard.who(context) or ANONYMOUS)

    async def RegisterModel(
        self, request: config_pb2.RegisterModelRequest, context: Context
    ) -> config_pb2.RegisterModelResponse:
        """Records a version; hashing runs in a thread so that other calls go on."""
        validation.check_version(request.model, request.version)
        validation.check_parents(request.parents)
        author = self._author(request, context)
        free = await self._retirement.check_free(request.model, request.version)
        await self._retirement.check_parents(request.parents)
        folder = await asyncio.to_thread(read_version, request.uri)
        if request.expected_files:
            _check_files(folder, list(request.expected_files))
        record = _record(request, folder)
        key = keys.model_key(request.model, request.version)
        revision = await self._store.create(key, MODEL_VERSION, record, author, (free,))
        log.info(
            "model_registered", model=request.model, version=request.version, revision=revision
        )
        return config_pb2.RegisterModelResponse(model_version=record, revision=revision)

    async def ListModels(
        self, request: config_pb2.ListModelsRequest, context: Context
    ) -> config_pb2.ListModelsResponse:
        """The recorded versions, by model and version."""
        prefix = keys.model_prefix(request.model) if request.model else keys.MODELS
        records, revision = await self._store.list(prefix, MODEL_VERSION)
        return config_pb2.ListModelsResponse(model_versions=records, revision=revision)

    async def GetModel(
        self, request: config_pb2.GetModelRequest, context: Context
    ) -> config_pb2.GetModelResponse:
        """One record."""
        key = keys.model_key(request.model, request.version)
        stored = await self._store.read(key, MODEL_VERSION)
        if stored is None:
            raise NotFound(f"model {request.model} has no version {request.version}")
        return config_pb2.GetModelResponse(model_version=stored.value, revision=stored.revision)

    async def RetireModel(
        self, request: config_pb2.RetireModelRequest, context: Context
    ) -> config_pb2.RetireModelResponse:
        """Takes a version's record away, unless it is in use."""
        author = self._author(request, context)
        revision = await self._retirement.retire(request.model, request.version, author)
        log.info("model_retired", model=request.model, version=request.version, revision=revision)
        return config_pb2.RetireModelResponse(revision=revision)

    async def PutPolicy(
        self, request: config_pb2.PutPolicyRequest, context: Context
    ) -> config_pb2.PutPolicyResponse:
        """Replaces the policy as a whole."""
        warnings = validation.check_policy(request.policy)
        expected = _expected(request)
        revision = await self._store.replace(
            keys.POLICY, POLICY, request.policy, expected, self._author(request, context)
        )
        log.info("policy_replaced", rules=len(request.policy.rules), revision=revision)
        return config_pb2.PutPolicyResponse(revision=revision, warnings=warnings)

    async def GetPolicy(
        self, request: config_pb2.GetPolicyRequest, context: Context
    ) -> config_pb2.GetPolicyResponse:
        """The stored policy, or what routers use without one."""
        stored = await self._store.read(keys.POLICY, POLICY)
        if stored is None:
            return config_pb2.GetPolicyResponse(policy=builtin_policy(), revision=ABSENT)
        return config_pb2.GetPolicyResponse(policy=stored.value, revision=stored.revision)

    async def SetTraffic(
        self, request: config_pb2.SetTrafficRequest, context: Context
    ) -> config_pb2.SetTrafficResponse:
        """Replaces a model's shares; each version must be recorded."""
        validation.check_ids(model=request.model)
        shares = dict(request.shares)
        validation.check_shares(shares)
        await self._check_recorded(request.model, shares)
        expected = _expected(request)
        key = keys.traffic_key(request.model)
        revision = await self._store.replace(
            key, SHARES, shares, expected, self._author(request, context)
        )
        log.info("traffic_set", model=request.model, shares=shares, revision=revision)
        return config_pb2.SetTrafficResponse(revision=revision)

    async def _check_recorded(self, model: str, shares: dict[str, int]) -> None:
        records, _ = await self._store.list(keys.model_prefix(model), MODEL_VERSION)
        missing = sorted(shares.keys() - {record.version for record in records})
        if missing:
            raise InvalidRequest.field("shares", f"not recorded versions of {model}: {missing}")

    async def GetTraffic(
        self, request: config_pb2.GetTrafficRequest, context: Context
    ) -> config_pb2.GetTrafficResponse:
        """A model's shares; none stored means that node weights decide."""
        stored = await self._store.read(keys.traffic_key(request.model), SHARES)
        if stored is None:
            return config_pb2.GetTrafficResponse(revision=ABSENT)
        return config_pb2.GetTrafficResponse(shares=stored.value, revision=stored.revision)

    async def PutGroup(
        self, request: config_pb2.PutGroupRequest, context: Context
    ) -> config_pb2.PutGroupResponse:
        """Replaces a group's parameters; a version it names must be recorded."""
        group = request.group
        check_group(group)
        if group.version:
            await self._check_recorded(group.model, {group.version: 1})
        expected = _expected(request)
        revision = await self._store.replace(
            keys.group_key(group.group), GROUP, group, expected, self._author(request, context)
        )
        log.info("group_replaced", group=group.group, revision=revision)
        return config_pb2.PutGroupResponse(revision=revision)

    async def GetGroup(
        self, request: config_pb2.GetGroupRequest, context: Context
    ) -> config_pb2.GetGroupResponse:
        """One group's parameters."""
        stored = await self._store.read(keys.group_key(request.group), GROUP)
        if stored is None:
            raise NotFound(f"group {request.group} has no parameters stored")
        return config_pb2.GetGroupResponse(group=stored.value, revision=stored.revision)

    async def ListGroups(
        self, request: config_pb2.ListGroupsRequest, context: Context
    ) -> config_pb2.ListGroupsResponse:
        """All groups with parameters, by name."""
        groups, revision = await self._store.list(keys.GROUPS, GROUP)
        return config_pb2.ListGroupsResponse(groups=groups, revision=revision)

    async def PutCaller(
        self, request: config_pb2.PutCallerRequest, context: Context
    ) -> config_pb2.PutCallerResponse:
        """Creates or replaces a caller; a key it makes is in this answer alone."""
        answer = await self._callers.put(request, self._author(request, context))
        await self._guard.caught_up(answer.revision)
        return answer

    async def ListCallers(
        self, request: config_pb2.ListCallersRequest, context: Context
    ) -> config_pb2.ListCallersResponse:
        """All callers, by id."""
        return await self._callers.list()

    async def DeleteCaller(
        self, request: config_pb2.DeleteCallerRequest, context: Context
    ) -> config_pb2.DeleteCallerResponse:
        """Removes a caller with all its keys."""
        answer = await self._callers.delete(request.caller_id, self._author(request, context))
        await self._guard.caught_up(answer.revision)
        return answer

    async def StartRollout(
        self, request: config_pb2.StartRolloutRequest, context: Context
    ) -> config_pb2.StartRolloutResponse:
        """Begins with smoke tests; both versions must be recorded."""
        validation.check_ids(model=request.model, candidate=request.candidate)
        named = [request.candidate, *([request.stable] if request.stable else [])]
        await self._check_recorded(request.model, dict.fromkeys(named, 1))
        found = await self._rollouts.start(request, self._author(request, context))
        return config_pb2.StartRolloutResponse(rollout=found.value, revision=found.revision)

    async def GetRollout(
        self, request: config_pb2.GetRolloutRequest, context: Context
    ) -> config_pb2.GetRolloutResponse:
        """A model's latest."""
        found = await self._rollouts.get(request.model)
        return config_pb2.GetRolloutResponse(rollout=found.value, revision=found.revision)

    async def ListRollouts(
        self, request: config_pb2.ListRolloutsRequest, context: Context
    ) -> config_pb2.ListRolloutsResponse:
        """The latest of each model."""
        found, revision = await self._rollouts.list()
        return config_pb2.ListRolloutsResponse(
            rollouts=[it.value for it in found], revision=revision
        )

    async def PromoteRollout(
        self, request: config_pb2.PromoteRolloutRequest, context: Context
    ) -> config_pb2.PromoteRolloutResponse:
        """One step further, whatever the evidence."""
        moved = await self._moved(request, context, self._rollouts.promote)
        return config_pb2.PromoteRolloutResponse(rollout=moved.value, revision=moved.revision)

    async def PauseRollout(
        self, request: config_pb2.PauseRolloutRequest, context: Context
    ) -> config_pb2.PauseRolloutResponse:
        """Stays where it is."""
        moved = await self._moved(request, context, self._rollouts.pause)
        return config_pb2.PauseRolloutResponse(rollout=moved.value, revision=moved.revision)

    async def ResumeRollout(
        self, request: config_pb2.ResumeRolloutRequest, context: Context
    ) -> config_pb2.ResumeRolloutResponse:
        """Goes on after a pause."""
        moved = await self._moved(request, context, self._rollouts.resume)
        return config_pb2.ResumeRolloutResponse(rollout=moved.value, revision=moved.revision)

    async def AbortRollout(
        self, request: config_pb2.AbortRolloutRequest, context: Context
    ) -> config_pb2.AbortRolloutResponse:
        """Puts the old shares back."""
        moved = await self._moved(request, context, self._rollouts.abort)
        return config_pb2.AbortRolloutResponse(rollout=moved.value, revision=moved.revision)

    async def _moved(self, request: Any, context: Context, move: Move) -> Found:
        found = await self._rollouts.get(request.model, _expected(request))
        return await move(found, self._author(request, context))

    async def Rollback(
        self, request: config_pb2.RollbackRequest, context: Context
    ) -> config_pb2.RollbackResponse:
        """Back to the version that last served well, checked first."""
        return await self._rollback.roll_back(request, self._author(request, context))

    async def ListChanges(
        self, request: config_pb2.ListChangesRequest, context: Context
    ) -> config_pb2.ListChangesResponse:
        """The newest changes."""
        validation.check_limit("limit", request.limit, KEPT)
        limit = request.limit or _LISTED
        return await self._history.list(request.after_revision, limit, request.key_prefix)

    async def WatchChanges(
        self, request: config_pb2.WatchChangesRequest, context: Context
    ) -> AsyncIterator[config_pb2.WatchChangesResponse]:
        """Changes as they come; ends UNAVAILABLE where etcd does, to be taken up again."""
        async for change in self._history.watch(request.after_revision):
            yield config_pb2.WatchChangesResponse(change=change)


def _expected(request: Any) -> int | None:
    return request.expected_revision if request.HasField("expected_revision") else None


def _check_files(folder: VersionFolder, expected: list[config_pb2.ModelFile]) -> None:
    lines = differences(folder.files, expected)
    if lines:
        raise InvalidRequest.field("expected_files", "; ".join(lines))


def _record(
    request: config_pb2.RegisterModelRequest, folder: VersionFolder
) -> config_pb2.ModelVersion:
    defaults = Struct()
    defaults.update(folder.defaults)
    return config_pb2.ModelVersion(
        model=request.model,
        version=request.version,
        uri=request.uri,
        files=folder.files,
        family=folder.family,
        paradigm=folder.paradigm,
        parameters_total=folder.parameters_total,
        parameters_active=folder.parameters_active,
        max_context=folder.max_context,
        defaults=defaults,
        parents=request.parents,
    )
