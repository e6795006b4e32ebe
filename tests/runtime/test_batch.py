"""Inputs that come together are taken in one pass of the driver, and each still sees what the one before it caused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Never

import pytest

from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import RunCancelledError
from hocket.executor import Executor, handler
from hocket.records import Cancel
from tests.runtime.conftest import Stage


class Passing(Executor):
    """Waits to be let on, then sends what it was given."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.begun, self.gate = asyncio.Event(), asyncio.Event()

    @handler
    async def take(self, text: str, ctx: WorkflowContext[str]) -> None:
        self.begun.set()
        await self.gate.wait()
        await ctx.send_message(text)


class Endless(Executor):
    def __init__(self, id: str, began: list[str]) -> None:
        super().__init__(id)
        self.began = began

    @handler
    async def take(self, text: str, ctx: WorkflowContext[Never, Any]) -> None:
        self.began.append(self.id)
        await asyncio.Event().wait()


@pytest.mark.parametrize("names", [["one"], ["one", "two"]])
async def test_g33_a_cancel_beside_the_completion_that_opens_a_superstep_reaches_it(
    stage: Stage, names: Sequence[str]
) -> None:
    """What the first input hands out and the second abandons never begins, and its end is not waited for in vain."""
    began: list[str] = []
    start, first, second = Passing("start"), Passing("first"), Passing("second")
    builder = WorkflowBuilder(start).add_fan_out_edges(start, [first, second])
    for name in names:
        builder.add_edge(first, Endless(name, began))
    start.gate.set()
    running = asyncio.create_task(builder.build().run("x", mesh=stage.mesh, run_id="run"))
    await first.begun.wait()
    await second.begun.wait()
    second.gate.set()
    for _ in range(5):
        await asyncio.sleep(0)
    driver = stage.mesh.embedded.runs.driver("run")
    assert driver is not None
    first.gate.set()
    await asyncio.sleep(0)  # its completion is in the inbox, and the driver has not looked yet
    driver.deliver(Cancel("enough"))
    with pytest.raises(RunCancelledError, match="enough"):
        async with asyncio.timeout(2.0):
            await running
    assert began == []
    kinds = await stage.kinds("run")
    assert kinds[-1] == "run_ended"
    assert kinds.count("invocation_started") - kinds.count("invocation_completed") == kinds.count("invocation_failed")
