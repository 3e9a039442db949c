"""The client of etcd, and the only file that knows it.

Every call has a timeout and asks the member for a leader. Calls share one
connection; each ``follow`` has its own, so that a dead link costs only itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio
from etcd3 import etcdrpc

from services.chassis import etcd_answers as answers
from services.chassis import registry_faults as faults
from services.chassis.blocking_channel import BlockingChannel
from services.chassis.entries import Entry, Listing, News, Pulse, TimeToLive
from services.chassis.etcd_endpoints import Endpoints
from services.chassis.registry_faults import WatchEnded
from services.chassis.settings import EtcdSettings
from services.chassis.transaction import Delete, Operation, Put, TxnResult, Unchanged
from services.chassis.watch_stream import PULSE_S, responses

Metadata = tuple[tuple[str, str], ...]
Method = Callable[..., Awaitable[Any]]


class Registry:
    """Keys, transactions, leases and news of etcd; belongs to the event loop that entered it.

    Raises RegistryUnavailable where etcd does not answer (a write may then have been
    made all the same) and RegistryRefused where it answers that a write is too large.
    With ``blocking`` calls hold up their loop, which must be a thread's own, and
    ``follow`` cannot be used.
    """

    def __init__(
        self, settings: EtcdSettings, *, timeout_s: float = 3.0, blocking: bool = False
    ) -> None:
        self.settings = settings
        self._timeout_s = timeout_s
        self._endpoints = Endpoints(settings, blocking=blocking)
        self._link: _Link | None = None
        self._token = ""

    async def __aenter__(self) -> Self:
        self._link = self._open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._link:
            await self._link.channel.close()
        self._link = None

    async def get(self, key: str) -> Entry | None:
        """The key as stored now, or None."""
        answer = await self._call(lambda link: link.kv.Range, _range(key))
        return answers.entry(answer.kvs[0]) if answer.kvs else None

    async def list(self, prefix: str) -> Listing:
        """All keys under ``prefix``, which ends in a slash."""
        answer = await self._call(lambda link: link.kv.Range, _range(prefix, _end(prefix)))
        return answers.listing(answer)

    async def put(self, key: str, value: bytes, *, lease: int = 0) -> int:
        """Stores the value whatever was there; the revision of the write."""
        return (await self.transact((), (Put(key, value, lease),))).revision

    async def delete(self, key: str) -> int:
        """Removes the key if it is there; the revision after that."""
        return (await self.transact((), (Delete(key),))).revision

    async def transact(
        self, conditions: Sequence[Unchanged], operations: Sequence[Operation]
    ) -> TxnResult:
        """Makes all writes under one revision if every condition holds, else none."""
        request = etcdrpc.TxnRequest(
            compare=[_compare(condition) for condition in conditions],
            success=[_operation(operation) for operation in operations],
        )
        answer = await self._call(lambda link: link.kv.Txn, request)
        return TxnResult(answer.succeeded, answer.header.revision)

    async def grant(self, ttl_s: int) -> int:
        """A new lease, by its id."""
        request = etcdrpc.LeaseGrantRequest(TTL=ttl_s)
        return int((await self._call(lambda link: link.lease.LeaseGrant, request)).ID)

    async def keep_alive(self, lease: int) -> int:
        """Renews the lease; its life in seconds, 0 where it is gone."""
        request = etcdrpc.LeaseKeepAliveRequest(ID=lease)
        return int((await self._call(lambda link: link.renew, request)).TTL)

    async def time_to_live(self, lease: int) -> TimeToLive:
        """How long the lease has yet to live."""
        request = etcdrpc.LeaseTimeToLiveRequest(ID=lease)
        answer = await self._call(lambda link: link.lease.LeaseTimeToLive, request)
        return TimeToLive(answer.TTL, answer.grantedTTL)

    async def revoke(self, lease: int) -> None:
        """Ends the lease and removes its keys; no fault where it is gone."""
        request = etcdrpc.LeaseRevokeRequest(ID=lease)
        await self._call(lambda link: link.revoke, request)

    async def follow(self, prefix: str) -> AsyncGenerator[News, None]:
        """The list under ``prefix``, then a Batch for each later revision, none missed.

        Comes with a Pulse at least each PULSE_S, and ends only by an error: the
        consumer then follows anew, which lists anew.
        """
        link = self._open()
        try:
            request = _range(prefix, _end(prefix))
            listing = answers.listing(await self._authorized(link, link.kv.Range, request))
            yield listing
            async for news in self._watch(link, prefix, listing):
                yield news
        except grpc.RpcError as error:
            self._endpoints.leave(link.address)
            raise faults.fault(error, link.address) from None
        except WatchEnded:
            self._endpoints.leave(link.address)
            raise
        finally:
            await link.channel.close()

    async def _watch(self, link: _Link, prefix: str, listing: Listing) -> AsyncIterator[News]:
        requests = _watch_requests(prefix, listing.revision + 1)
        async for response in responses(link.watch.Watch(requests, metadata=self._metadata())):
            answers.check(response, listing)
            yield Pulse()
            for batch in answers.batches(response):
                yield batch

    def _open(self) -> _Link:
        address = self._endpoints.current
        return _Link(address, self._endpoints.open(address))

    async def _call(self, method: Callable[[_Link], Method], request: Any) -> Any:
        """Makes the call, at another member where this one cannot have received it."""
        for left in reversed(range(len(self._endpoints))):
            async with self._use_link() as link:
                try:
                    return await self._authorized(link, method(link), request)
                except grpc.RpcError as error:
                    if faults.is_link_fault(error) and link is self._link:
                        self._endpoints.leave(link.address)
                        self._link = self._open()
                    if not (left and faults.was_never_sent(error)):
                        raise faults.fault(error, link.address) from None
        raise AssertionError("there is at least one endpoint")

    @asynccontextmanager
    async def _use_link(self) -> AsyncIterator[_Link]:
        """The shared link; one that was replaced meanwhile closes with its last call."""
        link = self._link
        if link is None:
            raise RuntimeError("the registry is not open: enter it first")
        link.calls += 1
        try:
            yield link
        finally:
            link.calls -= 1
            if link is not self._link and not link.calls:
                await link.channel.close()

    async def _authorized(self, link: _Link, method: Method, request: Any) -> Any:
        """Makes the call, with a new token if etcd no longer takes the old one."""
        token = self._token
        try:
            return await method(request, timeout=self._timeout_s, metadata=self._metadata())
        except grpc.RpcError as error:
            if not (self.settings.etcd_user and faults.is_token_fault(error)):
                raise
        if token == self._token:
            await self._log_in(link)
        return await method(request, timeout=self._timeout_s, metadata=self._metadata())

    async def _log_in(self, link: _Link) -> None:
        password = self.settings.etcd_password
        request = etcdrpc.AuthenticateRequest(
            name=self.settings.etcd_user, password=password.get_secret_value() if password else ""
        )
        answer = await link.auth.Authenticate(request, timeout=self._timeout_s)
        self._token = answer.token

    def _metadata(self) -> Metadata:
        leader = ("hasleader", "true")
        return (leader, ("token", self._token)) if self._token else (leader,)


class _Link:
    """One connection to one member and the calls on it."""

    def __init__(self, address: str, channel: grpc.aio.Channel | BlockingChannel) -> None:
        self.address = address
        self.channel = channel
        self.calls = 0
        self.kv = etcdrpc.KVStub(channel)
        self.lease = etcdrpc.LeaseStub(channel)
        self.watch = etcdrpc.WatchStub(channel)
        self.auth = etcdrpc.AuthStub(channel)

    async def renew(self, request: Any, timeout: float, metadata: Metadata) -> Any:
        """One heartbeat; etcd has only a stream for it."""
        call = self.lease.LeaseKeepAlive(timeout=timeout, metadata=metadata)
        try:
            await call.write(request)
            answer = await call.read()
        except grpc.RpcError as error:
            if not faults.is_lease_lost(error):
                raise
            answer = grpc.aio.EOF
        finally:
            call.cancel()
        return etcdrpc.LeaseKeepAliveResponse() if answer is grpc.aio.EOF else answer

    async def revoke(self, request: Any, timeout: float, metadata: Metadata) -> None:
        """Ends a lease, or finds that it has ended."""
        try:
            await self.lease.LeaseRevoke(request, timeout=timeout, metadata=metadata)
        except grpc.RpcError as error:
            if not faults.is_lease_lost(error):
                raise


async def _watch_requests(prefix: str, revision: int) -> AsyncIterator[Any]:
    create = etcdrpc.WatchCreateRequest(
        key=prefix.encode(),
        range_end=_end(prefix),
        start_revision=revision,
        progress_notify=True,
    )
    yield etcdrpc.WatchRequest(create_request=create)
    while True:
        await asyncio.sleep(PULSE_S)
        yield etcdrpc.WatchRequest(progress_request=etcdrpc.WatchProgressRequest())


def _range(key: str, end: bytes = b"") -> Any:
    return etcdrpc.RangeRequest(key=key.encode(), range_end=end)


def _end(prefix: str) -> bytes:
    """The end of the range that holds exactly the keys below ``prefix``."""
    if not prefix.endswith("/"):
        raise ValueError(f"prefix {prefix!r} must end in a slash, or it finds longer names as well")
    return prefix[:-1].encode() + b"0"  # the byte after the slash


def _compare(condition: Unchanged) -> Any:
    return etcdrpc.Compare(
        key=condition.key.encode(),
        target=etcdrpc.Compare.MOD,
        result=etcdrpc.Compare.EQUAL,
        mod_revision=condition.mod_revision,
    )


def _operation(operation: Operation) -> Any:
    key = operation.key.encode()
    if isinstance(operation, Put):
        put = etcdrpc.PutRequest(key=key, value=operation.value, lease=operation.lease)
        return etcdrpc.RequestOp(request_put=put)
    return etcdrpc.RequestOp(request_delete_range=etcdrpc.DeleteRangeRequest(key=key))
