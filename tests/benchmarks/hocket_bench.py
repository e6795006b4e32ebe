"""The workloads on Hocket: memory store, events and checkpoints as they come, one Workflow object for all runs."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any, Never

from hocket import Executor, WorkflowBuilder, WorkflowContext, handler
from tests.benchmarks.worker import (
    LAST,
    PAYLOAD,
    WARM_RUNS,
    BuildClock,
    Sample,
    Tally,
    expect,
    imports,
    main,
    refuses,
    timed,
    timed_at_once,
)

tally = Tally()


class Pass(Executor):
    @handler
    async def take(self, text: str, ctx: WorkflowContext[str]) -> None:
        tally.count += 1
        await ctx.send_message(text)


class End(Executor):
    @handler
    async def take(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        tally.count += 1
        await ctx.yield_output(text)


class Countdown(Executor):
    @handler
    async def take(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        tally.count += 1
        left = int(text) - 1
        if left:
            await ctx.send_message(str(left))
        else:
            await ctx.yield_output(PAYLOAD)


class Join(Executor):
    @handler
    async def take(self, texts: list[str], ctx: WorkflowContext[Never, int]) -> None:
        tally.count += 1
        await ctx.yield_output(len(texts))


class Burst(Executor):
    @handler
    async def take(self, size: int, ctx: WorkflowContext[str]) -> None:
        tally.count += 1
        for _ in range(size - 1):
            await ctx.send_message(PAYLOAD)
        await ctx.send_message(LAST)


class Sink(Executor):
    @handler
    async def take(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        tally.count += 1
        if text == LAST:
            await ctx.yield_output(text)


def nodes(n: int) -> list[Executor]:
    return [*(Pass(id=f"node{i}") for i in range(n - 1)), End(id=f"node{n - 1}")]


def chained(executors: list[Executor], limit: int) -> WorkflowBuilder:
    return WorkflowBuilder(start_executor=executors[0], max_supersteps=limit).add_chain(executors)


def check(result: Any, *, outputs: list[object], supersteps: int, calls: int) -> None:
    expect("outputs", result.get_outputs(), outputs)
    expect("supersteps", sum(event.WhichOneof("kind") == "superstep_completed" for event in result.events), supersteps)
    expect("handler calls", tally.take(), calls)


async def chain(n: int, repeat: int) -> Sample:
    workflow = chained(nodes(n), n).build()
    return await timed(
        tally, repeat, n, lambda: workflow.run(PAYLOAD), lambda r: check(r, outputs=[PAYLOAD], supersteps=n, calls=n)
    )


async def loop(n: int, repeat: int) -> Sample:
    node = Countdown(id="node")
    workflow = WorkflowBuilder(start_executor=node, max_supersteps=n).add_edge(node, node).build()
    return await timed(
        tally, repeat, n, lambda: workflow.run(str(n)), lambda r: check(r, outputs=[PAYLOAD], supersteps=n, calls=n)
    )


async def fan(n: int, repeat: int) -> Sample:
    source, join = Pass(id="source"), Join(id="join")
    branches: list[Executor] = [Pass(id=f"branch{i}") for i in range(n)]
    workflow = (
        WorkflowBuilder(start_executor=source)
        .add_fan_out_edges(source, branches)
        .add_fan_in_edges(branches, join)
        .build()
    )
    return await timed(
        tally, repeat, 2 * n, lambda: workflow.run(PAYLOAD), lambda r: check(r, outputs=[n], supersteps=3, calls=n + 2)
    )


async def burst(n: int, repeat: int) -> Sample:
    source, sink = Burst(id="source"), Sink(id="sink")
    workflow = WorkflowBuilder(start_executor=source).add_edge(source, sink).build()
    return await timed(
        tally, repeat, n, lambda: workflow.run(n), lambda r: check(r, outputs=[LAST], supersteps=2, calls=n + 1)
    )


async def many(n: int, repeat: int) -> Sample:
    length = 5
    workflow = chained(nodes(length), length).build()

    async def at_once(runs: int) -> list[Any]:
        return list(await asyncio.gather(*(workflow.run(PAYLOAD) for _ in range(runs))))

    def check_all(results: list[Any]) -> None:
        expect("handler calls", tally.take(), length * len(results))
        expect("different runs", len({result.run_id for result in results}), len(results))
        for result in results:
            check(result, outputs=[PAYLOAD], supersteps=length, calls=0)

    return await timed_at_once(repeat, n, lambda: at_once(WARM_RUNS), lambda: at_once(n), check_all)


async def build(n: int, repeat: int) -> Sample:
    def broken() -> None:
        chained(nodes(5), 6).add_edge(Pass(id="unreachable"), End(id="end")).build()

    refuses(broken)
    chained(nodes(100), 100).build()
    clock = BuildClock()
    for _ in range(repeat):
        gc.collect()
        started = time.perf_counter()
        builder = chained(nodes(n), 1)
        authored = time.perf_counter()
        workflow = builder.build()
        done = time.perf_counter()
        try:
            await workflow.run(PAYLOAD)  # the limit of one superstep ends it there
        except Exception as error:  # noqa: BLE001 - checked by name, and only one is right
            expect("the end of the first superstep", type(error).__name__, "LimitReached")
        clock.first += time.perf_counter() - done
        clock.compile += done - authored
        clock.author += authored - started
        expect("handler calls", tally.take(), 1)
    return clock.sample(n, repeat)


if __name__ == "__main__":
    main(
        "hocket",
        {"chain": chain, "loop": loop, "fan": fan, "burst": burst, "many": many, "build": build}
        | dict(imports("hocket")),
    )
