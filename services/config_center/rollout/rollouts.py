"""Rollouts in etcd: each transition is one transaction that sets the shares as well."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import structlog

from braid.config.v1 import config_pb2
from services.chassis import keys
from services.chassis.errors import InvalidRequest, NotFound, WrongState
from services.chassis.transaction import Unchanged
from services.config_center.change import Author
from services.config_center.documents import ROLLOUT, SHARES
from services.config_center.rollout import steps
from services.config_center.rollout.record import check_rollout, whole_plan
from services.config_center.rollout.steps import (
    ABORTED,
    ACTIVE,
    DONE,
    PAUSED,
    SMOKE,
    WHOLE,
    shares_of,
)
from services.config_center.store import ABSENT, Store, Stored, write

Clock = Callable[[], float]
Found = Stored[config_pb2.Rollout]

log = structlog.get_logger()


class Rollouts:
    """Reads and moves rollouts, for operators and for the controller alike."""

    def __init__(self, store: Store, clock: Clock = time.time) -> None:
        self._store = store
        self._clock = clock

    async def get(self, model: str, expected: int | None = None) -> Found:
        """A model's latest; raises NotFound, and RevisionConflict where it is not as expected."""
        found = await self._store.read(keys.rollout_key(model), ROLLOUT)
        if found is None:
            raise NotFound(f"model {model} has no rollout")
        if expected is not None and expected != found.revision:
            raise await self._store.conflict(keys.rollout_key(model))
        return found

    async def list(self) -> tuple[Sequence[Found], int]:
        """The latest of each model, and the revision read."""
        return await self._store.list_stored(keys.ROLLOUTS, ROLLOUT)

    async def start(self, request: config_pb2.StartRolloutRequest, author: Author) -> Found:
        """Begins with the smoke tests; raises WrongState where one is under way."""
        key, traffic = keys.rollout_key(request.model), keys.traffic_key(request.model)
        former = await self._store.read(key, ROLLOUT)
        if former and former.value.state in ACTIVE:
            raise WrongState(f"a rollout of {request.model} {former.value.candidate} is under way")
        shares = await self._store.read(traffic, SHARES)
        rollout = _rollout(request, shares.value if shares else {}, self._clock())
        check_rollout(rollout)
        writes = [
            write(key, ROLLOUT, rollout, former.revision if former else ABSENT),
            write(traffic, SHARES, shares_of(rollout), shares.revision if shares else ABSENT),
        ]
        revision = await self._store.commit(writes, author)
        log.info("rollout_started", model=request.model, version=request.candidate)
        return Stored(rollout, revision)

    async def promote(self, found: Found, author: Author) -> Found:
        """One step further, whatever the evidence."""
        _require_active(found.value)
        reason = author.reason or "promoted by hand"
        moved = steps.advanced(found.value, reason, self._clock(), config_pb2.VersionSample())
        return await self.move(found, moved, author)

    async def pause(self, found: Found, author: Author) -> Found:
        """Stays where it is."""
        return await self._put_in(found, PAUSED, author, "paused by hand")

    async def resume(self, found: Found, author: Author) -> Found:
        """Goes on after a pause."""
        if found.value.state != PAUSED:
            raise WrongState(f"the rollout of {found.value.model} is not paused")
        reason = author.reason or "resumed by hand"
        return await self.move(found, steps.resumed(found.value, reason, self._clock()), author)

    async def abort(self, found: Found, author: Author) -> Found:
        """Puts the old shares back."""
        return await self._put_in(found, ABORTED, author, "aborted by hand")

    async def _put_in(
        self, found: Found, state: config_pb2.RolloutState, author: Author, reason: str
    ) -> Found:
        _require_active(found.value)
        moved = steps.in_state(found.value, state, author.reason or reason, self._clock())
        return await self.move(found, moved, author)

    async def shares_kept(self, found: Found) -> bool:
        """Whether the shares are still those that the last transition set with itself."""
        shares = await self._store.read(keys.traffic_key(found.value.model), SHARES)
        return shares is not None and shares.revision == found.revision

    async def stop(
        self,
        found: Found,
        moved: config_pb2.Rollout,
        author: Author,
        unchanged: Sequence[Unchanged] = (),
    ) -> Found:
        """Changes the record and leaves the shares to whoever changed them."""
        key = keys.rollout_key(moved.model)
        one = write(key, ROLLOUT, moved, found.revision)
        return Stored(moved, await self._store.commit([one], author, unchanged))

    async def move(
        self,
        found: Found,
        moved: config_pb2.Rollout,
        author: Author,
        unchanged: Sequence[Unchanged] = (),
    ) -> Found:
        """Makes a transition, unless the record is no longer at the revision it was read at."""
        model = moved.model
        writes = [
            write(keys.rollout_key(model), ROLLOUT, moved, found.revision),
            write(keys.traffic_key(model), SHARES, shares_of(moved)),
        ]
        revision = await self._store.commit(writes, author, unchanged)
        log.info(
            "rollout_moved",
            model=model,
            version=moved.candidate,
            state=config_pb2.RolloutState.Name(moved.state),
            step=moved.step,
            reason=moved.reason,
            revision=revision,
        )
        return Stored(moved, revision)


def _require_active(rollout: config_pb2.Rollout) -> None:
    if rollout.state not in ACTIVE:
        word = "done" if rollout.state == DONE else "aborted"
        raise WrongState(f"the rollout of {rollout.model} {rollout.candidate} is {word}")


def _rollout(
    request: config_pb2.StartRolloutRequest, shares: Mapping[str, int], now_s: float
) -> config_pb2.Rollout:
    if shares.get(request.candidate):
        raise InvalidRequest.field("candidate", "has a share of the traffic already")
    stable = request.stable or max(sorted(shares), key=lambda it: shares[it], default="")
    if not stable:
        raise InvalidRequest.field("stable", "must be set where no shares are stored")
    old = dict(shares) if any(shares.values()) else {stable: WHOLE}
    if not old.get(stable):
        raise InvalidRequest.field("stable", "has no share of the traffic")
    return config_pb2.Rollout(
        model=request.model,
        candidate=request.candidate,
        stable=stable,
        plan=whole_plan(request.plan),
        state=SMOKE,
        step_started=steps.timestamp(now_s),
        started=steps.timestamp(now_s),
        old_shares={**old, request.candidate: 0},
        reason="started",
    )
