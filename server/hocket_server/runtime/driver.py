"""Drives one run: takes what the world says, asks the scheduler, makes it durable, then acts on it. In this order, always:
step, commit, ring, answer who asked, abandon, dispatch, arm timers. All inputs that are queued share a commit.

A driver is carried by one task at a time, its carrier. With a single invocation to dispatch and none in flight, the carrier
runs that attempt itself: a chain of nodes then costs no task, no wait and no wake-up. When an input comes in the meantime
(an answer, a cancellation, a fence), another carrier takes the driver over, and the first is left with its attempt, whose
end it delivers like any other. A run that waits for people has no carrier at all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from hocket import v1
from hocket.errors import HocketError, RefusedError
from hocket.records import Completed, Effects, Failed, Input, Invocation
from hocket.wire import put_time
from hocket_server.core.run import TERMINAL, RunScheduler
from hocket_server.core.scheduler import Decision, Timer
from hocket_server.runtime.clock import Clock
from hocket_server.runtime.dispatcher import Dispatcher, unwanted
from hocket_server.runtime.feed import Feed
from hocket_server.store.protocol import Entry, Store

# A snapshot is taken when replaying the inputs since the last one would cost more than it: after so many boundaries, or
# when so many messages were journaled.
BOUNDARIES_PER_SNAPSHOT = 64
MESSAGES_PER_SNAPSHOT = 20_000
# How many attempts a carrier runs by itself before it lets others have the loop.
TURNS_PER_YIELD = 64
MAX_REPORTED = 10_000


@dataclass(slots=True)
class Report:
    """A run as it was parked: who awaits it has this, whatever the store forgets meanwhile. `log` is its newest events."""

    run: v1.Run
    log: list[bytes]


class Owner(Protocol):
    """Whose the drivers are (`runs.Runs`)."""

    def arm(self, run_id: str, timer: Timer) -> None:
        """Set a timer; it comes back through `deliver`."""
        ...

    def park(self, driver: Driver) -> None:
        """The driver has nothing to do and nothing in flight: the run has ended, waits for answers, or it broke."""
        ...


class Driver:
    """Drives one run for its owner. With `keeps_report` it has the run as it was when it was parked."""

    __slots__ = (
        "__weakref__",
        "_asked",
        "_boundaries",
        "_carrier",
        "_clock",
        "_dispatcher",
        "_feed",
        "_grace",
        "_in_flight",
        "_inbox",
        "_is_lent",
        "_keeps_report",
        "_messages",
        "_owner",
        "_sequence",
        "_stamp",
        "_stamp_time",
        "_store",
        "_tasks",
        "_unstarted",
        "_waiters",
        "_wake",
        "failure",
        "is_parked",
        "report",
        "run_id",
        "scheduler",
    )

    def __init__(
        self,
        run_id: str,
        scheduler: RunScheduler,
        store: Store,
        dispatcher: Dispatcher,
        feed: Feed,
        clock: Clock,
        *,
        sequence: int = 0,
        owner: Owner,
        keeps_report: bool = False,
    ) -> None:
        self.run_id = run_id
        self.scheduler = scheduler
        self._store = store
        self._dispatcher = dispatcher
        self._feed = feed
        self._clock = clock
        self._sequence = sequence
        # What all events of a turn are stamped with. Encodings that are joined are merged: protobuf's own rule.
        self._stamp = v1.Event(run_id=run_id)
        self._stamp_time = self._stamp.time
        self._owner = owner
        self._inbox: deque[tuple[Input, asyncio.Future[None] | None]] = deque()
        self._carrier: asyncio.Task[None] | None = None
        self._is_lent = False
        self._wake: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # Who asked for what is being made durable.
        self._asked: list[asyncio.Future[None]] = []
        self._in_flight = 0
        # Handed out, and not yet with the dispatcher.
        self._unstarted: set[str] = set()
        self._boundaries = 0
        self._messages = 0
        self._grace: float | None = None
        self.is_parked = False
        self._waiters: list[asyncio.Future[None]] | None = None
        self._keeps_report = keeps_report
        self.report: Report | None = None
        self.failure: BaseException | None = None

    def deliver(self, record: Input, reply: asyncio.Future[None] | None = None, *, grace: float | None = None) -> None:
        """Take an input. `reply` is done when the input is durable, or has the error it was refused with."""
        if self.failure is not None:
            # Its scheduler may be ahead of the log: nothing more is written by it.
            if reply is not None:
                reply.set_exception(self.failure)
            return
        if grace is not None:
            self._grace = grace
        self._inbox.append((record, reply))
        if self._wake is not None:
            if not self._wake.done():
                self._wake.set_result(None)
        elif self._carrier is None or self._is_lent:
            self._is_lent = False
            self._carry_on()

    def _carry_on(self) -> None:
        self._carrier = asyncio.get_running_loop().create_task(self._carry(), name=self.run_id)
        self._tasks.add(self._carrier)

    async def _carry(self) -> None:
        """One that does not end by itself leaves the run without anybody: who waits is told."""
        me = self._carrier
        if me is None:
            raise RuntimeError("a driver is carried by a task of its own")
        try:
            await self._drive(me)
        except asyncio.CancelledError:
            self._break(self._interrupted())
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, who waits is told
            self._break(error)
        finally:
            self._tasks.discard(me)
            if self._carrier is me:
                self._carrier = None

    def _interrupted(self) -> RefusedError:
        return RefusedError(f"run {self.run_id!r} was interrupted: its task was cancelled; it can be gone on with")

    def _break(self, error: BaseException) -> None:
        """The driver itself failed: nobody may wait for ever. What is in the store stays as it is."""
        if self.failure is not None:
            return
        self.failure = error
        asked = [*self._asked, *(reply for _, reply in self._inbox if reply is not None)]
        self._inbox.clear()
        for reply in asked:
            if not reply.done():
                reply.set_exception(error)
        for task in self._tasks:
            task.cancel()
        self._put_aside()

    def _put_aside(self) -> None:
        self._owner.park(self)
        self.is_parked = True
        for waiter in self._waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    async def settled(self) -> None:
        """Return when the run has ended or waits for people. Raises what broke the driver."""
        if not self.is_parked:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters = [*(self._waiters or ()), waiter]
            await waiter
        if self.failure is not None:
            raise self.failure

    async def _drive(self, me: asyncio.Task[None]) -> None:
        turns = 0
        while True:
            alone: Invocation | None = None
            if self._inbox:
                alone = await self._turn()
            if alone is not None:
                self._is_lent = True
                ended = await self._dispatcher.attempt(alone, me, self._fenced, self._sign)
                if self._carrier is not me:
                    if ended is not None:
                        self._ended(ended)
                    return
                self._is_lent = False
                if ended is not None:
                    self._in_flight -= 1
                    self._inbox.append((ended, None))
                turns += 1
                if turns % TURNS_PER_YIELD == 0:
                    await asyncio.sleep(0)
            elif self._inbox:
                continue
            elif self._in_flight:
                self._wake = asyncio.get_running_loop().create_future()
                try:
                    await self._wake
                finally:
                    self._wake = None
            else:
                if self._keeps_report:
                    self.report = await self.read_report()
                    if self._inbox:
                        continue
                self._carrier = None
                self._put_aside()
                return

    async def read_report(self) -> Report:
        run = await self._store.run(self.run_id)
        log = await self._store.log(self.run_id, max(0, run.last_sequence - MAX_REPORTED), MAX_REPORTED)
        return Report(run, log)

    async def _turn(self) -> Invocation | None:
        """One pass over what is queued; the one invocation that the carrier should run itself, if there is just one."""
        entries: list[Entry] = []
        decisions: list[Decision] = []
        inbox, scheduler = self._inbox, self.scheduler
        now = self._clock.now()
        sequence = self._sequence
        put_time(now, self._stamp_time)
        stamped = self._stamp.SerializeToString()
        while inbox:
            record, reply = inbox.popleft()
            if reply is not None:
                self._asked.append(reply)
            record.time = now
            if isinstance(record, Failed):
                record.jitter = self._clock.jitter()
            try:
                decision = scheduler.step(record)
            except HocketError as error:
                if reply is None:
                    raise
                self._asked.remove(reply)
                if not reply.done():
                    reply.set_exception(error)
                continue
            log = []
            for event in decision.events:
                sequence += 1
                event.sequence = sequence
                log.append(event.SerializeToString() + stamped)
            snapshot = self._snapshot(record) if decision.checkpoint_id else None
            decisions.append(decision)
            entries.append(Entry(record, log, decision.outputs, decision.checkpoint_id, snapshot))
        self._sequence = sequence
        if entries:
            await self._store.commit(self.run_id, entries, scheduler.standing())
            self._feed.ring(self.run_id)
        if self._asked:
            for reply in self._asked:
                if not reply.done():
                    reply.set_result(None)
            self._asked.clear()
        return self._act(decisions)

    def _snapshot(self, record: Input) -> v1.Snapshot | None:
        self._boundaries += 1
        if isinstance(record, Completed) and isinstance(record.outcome, Effects):
            self._messages += len(record.outcome.messages)
        if self._boundaries < BOUNDARIES_PER_SNAPSHOT and self._messages < MESSAGES_PER_SNAPSHOT:
            return None
        self._boundaries = self._messages = 0
        return self.scheduler.snapshot()

    def _act(self, decisions: list[Decision]) -> Invocation | None:
        invocations = [invocation for decision in decisions for invocation in decision.invocations]
        is_alone = len(decisions) == 1 and len(invocations) == 1 and not self._in_flight and not self._inbox
        for decision in decisions:
            for invocation_id in decision.abandoned:
                if invocation_id in self._unstarted:
                    self._unstarted.discard(invocation_id)
                else:
                    self._dispatcher.cancel(invocation_id, self._grace)
            for timer in decision.timers:
                self._owner.arm(self.run_id, timer)
            if not is_alone:
                self._unstarted.update([invocation.invocation_id for invocation in decision.invocations])
        self._in_flight += len(invocations)
        if is_alone:
            return invocations[0]
        if not invocations:
            return None
        create_task = asyncio.get_running_loop().create_task
        for invocation in invocations:
            # The attempt is told its task this way, since asking for the current one costs a system call.
            holder: list[asyncio.Task[None]] = []
            task = create_task(self._attempt(invocation, holder))
            holder.append(task)
            self._tasks.add(task)
        return None

    async def _attempt(self, invocation: Invocation, holder: list[asyncio.Task[None]]) -> None:
        task = holder.pop()
        if invocation.invocation_id not in self._unstarted:
            # Abandoned before it began: by an input of the same pass, or of one right after.
            self._tasks.discard(task)
            self._ended(Failed(invocation.invocation_id, invocation.attempt, unwanted()))
            return
        self._unstarted.discard(invocation.invocation_id)
        try:
            ended = await self._dispatcher.attempt(invocation, task, self._fenced, self._sign)
        except asyncio.CancelledError:
            self._tasks.discard(task)
            self._break(self._interrupted())
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, who waits is told
            self._tasks.discard(task)
            self._break(error)
            return
        self._tasks.discard(task)
        if ended is not None:
            self._ended(ended)

    def _ended(self, ended: Completed | Failed) -> None:
        self._in_flight -= 1
        self.deliver(ended)

    def _fenced(self, ended: Completed | Failed) -> None:
        self._ended(ended)

    def _sign(self, invocation: Invocation, sign: v1.Progress | v1.LiveEvent) -> None:
        event = v1.Event(
            run_id=self.run_id,
            invocation_id=invocation.invocation_id,
            attempt=invocation.attempt,
            path=invocation.path,
        )
        put_time(self._clock.now(), event.time)
        if isinstance(sign, v1.Progress):
            event.progress.CopyFrom(sign)
        else:
            event.live.CopyFrom(sign)
        self._feed.live(event)

    @property
    def is_over(self) -> bool:
        return self.scheduler.state in TERMINAL

    async def close(self, error: BaseException) -> None:
        """Stop at once; who waits gets `error`. What is in flight is cancelled and awaited, and ends as lost when the run
        is loaded again."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        self._break(error)
        await asyncio.gather(*tasks, return_exceptions=True)
