"""Tells readers what happened: a cursor on the log, not a queue, so that a slow reader costs a run nothing.

Durable events come from the store, strictly after the cursor, in sequence. Live signs (progress) are kept for a reader only
as far as it keeps up: the oldest are dropped first, and counted (`Reader.dropped`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from hocket import v1
from hocket_server.core.run import TERMINAL
from hocket_server.store.protocol import Store

BATCH = 1000
MAX_LIVE = 1000
SETTLED = TERMINAL | {v1.RUN_STATE_WAITING}
ENDS_ATTEMPT = frozenset({"invocation_completed", "invocation_failed", "invocation_suspended"})


class Reader:
    """Reads one run. It gets live signs from when it is attached until it is closed."""

    def __init__(self, feed: Feed, run_id: str) -> None:
        self.ready = asyncio.Event()
        self.live: deque[v1.Event] = deque()
        self.dropped = 0
        self._feed = feed
        self._run_id = run_id

    async def batches(self, after: int = 0, *, stops_when_waiting: bool = False) -> AsyncIterator[list[v1.Event]]:
        """Events until the stretch in progress has ended, or when asked to until the run waits for people, and all of it was
        given.

        Raises NotFoundError, and CursorExpiredError for a cursor before what is kept. Live events have sequence 0; each
        comes before the end of its attempt.
        """
        store, run_id = self._feed.store, self._run_id
        last = SETTLED if stops_when_waiting else TERMINAL
        while True:
            self.ready.clear()
            is_over = await store.state(run_id) in last
            log = await store.log(run_id, after, BATCH)
            after += len(log)
            events = [v1.Event.FromString(encoded) for encoded in log]
            # Up to the end of the log every attempt that gave a sign has begun.
            batch = _merged(events, self.live, is_caught_up=len(log) < BATCH)
            if batch:
                yield batch
            elif is_over:
                return
            else:
                await self.ready.wait()

    def close(self) -> None:
        self._feed.detach(self._run_id, self)


def _merged(events: list[v1.Event], live: deque[v1.Event], *, is_caught_up: bool) -> list[v1.Event]:
    """Take the signs of attempts that ended in `events` before their end, and all others at the end of the log."""
    if not live:
        return events
    merged: list[v1.Event] = []
    for event in events:
        if event.WhichOneof("kind") in ENDS_ATTEMPT:
            own = [sign for sign in live if _attempt(sign) == _attempt(event)]
            merged += own
            for sign in own:
                live.remove(sign)
        merged.append(event)
    if is_caught_up:
        merged += live
        live.clear()
    return merged


def _attempt(event: v1.Event) -> tuple[str, int]:
    return event.invocation_id, event.attempt


class Feed:
    def __init__(self, store: Store) -> None:
        self.store = store
        self._readers: dict[str, set[Reader]] = {}

    def ring(self, run_id: str) -> None:
        """Something durable is new."""
        readers = self._readers.get(run_id)
        if readers:
            for reader in readers:
                reader.ready.set()

    def live(self, event: v1.Event) -> None:
        for reader in self._readers.get(event.run_id, ()):
            if len(reader.live) >= MAX_LIVE:
                reader.live.popleft()
                reader.dropped += 1
            reader.live.append(event)
            reader.ready.set()

    def attach(self, run_id: str) -> Reader:
        """A reader of a run, which need not have begun. It must be closed."""
        reader = Reader(self, run_id)
        self._readers.setdefault(run_id, set()).add(reader)
        return reader

    def detach(self, run_id: str, reader: Reader) -> None:
        readers = self._readers.get(run_id)
        if readers is not None:
            readers.discard(reader)
            if not readers:
                del self._readers[run_id]

    async def watch(self, run_id: str, after: int = 0) -> AsyncIterator[list[v1.Event]]:
        """A reader's batches, for as long as this is iterated."""
        reader = self.attach(run_id)
        try:
            async for batch in reader.batches(after):
                yield batch
        finally:
            reader.close()
