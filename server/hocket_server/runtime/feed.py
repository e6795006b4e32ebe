"""Tells readers what happened: a cursor on the log, not a queue, so that a slow reader costs a run nothing.

Durable events come from the store, strictly after the cursor, in sequence. Live signs (progress) are kept for a reader only
as far as it keeps up: the oldest are dropped first, and the number of the dropped is told before the next.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from hocket import v1
from hocket_server.core.run import TERMINAL
from hocket_server.store.protocol import Store

BATCH = 1000
MAX_LIVE = 1000


class _Reader:
    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.live: deque[v1.Event] = deque()
        self.dropped = 0


class Feed:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._readers: dict[str, set[_Reader]] = {}

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

    async def watch(self, run_id: str, after: int = 0) -> AsyncIterator[list[v1.Event]]:
        """Batches of events until the stretch in progress has ended and all of it was given.

        Raises NotFoundError, and CursorExpiredError for a cursor before what is kept. Live events have sequence 0.
        """
        reader = _Reader()
        self._readers.setdefault(run_id, set()).add(reader)
        try:
            while True:
                reader.ready.clear()
                is_over = (await self._store.run(run_id)).state in TERMINAL
                events = await self._store.events(run_id, after, BATCH)
                if events:
                    after = events[-1].sequence
                    yield events
                    continue
                if is_over:
                    return
                if reader.live:
                    batch = list(reader.live)
                    reader.live.clear()
                    yield batch
                    continue
                await reader.ready.wait()
        finally:
            readers = self._readers[run_id]
            readers.discard(reader)
            if not readers:
                del self._readers[run_id]
