"""A mesh whose clock is turned by hand, and handlers that do as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from hocket import v1
from hocket.mesh import Mesh
from hocket.testing import FakeClock


@dataclass
class Stage:
    clock: FakeClock
    mesh: Mesh
    tasks: set[asyncio.Task[object]] = field(default_factory=set)

    async def kinds(self, run_id: str) -> list[str]:
        return [event.WhichOneof("kind") or "" for event in await self.mesh.list_events(run_id)]

    async def started(self, run_id: str) -> list[tuple[str, int]]:
        return [
            (event.invocation_started.node_id, event.attempt)
            for event in await self.mesh.list_events(run_id)
            if event.HasField("invocation_started")
        ]

    async def failures(self, run_id: str) -> list[v1.Event]:
        return [event for event in await self.mesh.list_events(run_id) if event.HasField("invocation_failed")]

    def own_tasks(self) -> set[asyncio.Task[object]]:
        """Tasks that the test did not start."""
        return {task for task in asyncio.all_tasks() - self.tasks if task is not asyncio.current_task()}


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    before = asyncio.all_tasks()
    clock = FakeClock()
    stage = Stage(clock, Mesh(clock=clock), set(before))
    yield stage
    await stage.mesh.close()
    await clock.settle()
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, f"tasks are left: {left}"
    assert not clock.pending, "timers are left"
