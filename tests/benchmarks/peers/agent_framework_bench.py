"""The workloads on agent-framework-core: executors and edges as its own documentation writes them.

Events come as they come (`workflow.run` collects every one), and so does its instrumentation, without an exporter. One
Workflow object refuses concurrent runs, so the many-runs workload builds one object a run, outside the clock.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from typing import Never

from agent_framework import Executor, Workflow, WorkflowBuilder, WorkflowContext, WorkflowRunResult, handler

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

logging.getLogger("agent_framework").setLevel(logging.ERROR)  # it warns of every self-loop and end node
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
    return WorkflowBuilder(start_executor=executors[0], max_iterations=limit).add_chain(executors)


def check(result: WorkflowRunResult, *, outputs: list[object], supersteps: int, calls: int) -> None:
    expect("outputs", result.get_outputs(), outputs)
    expect("supersteps", sum(event.type == "superstep_completed" for event in result), supersteps)
    expect("handler calls", tally.take(), calls)


async def chain(n: int, repeat: int) -> Sample:
    workflow = chained(nodes(n), n + 1).build()
    return await timed(
        tally, repeat, n, lambda: workflow.run(PAYLOAD), lambda r: check(r, outputs=[PAYLOAD], supersteps=n, calls=n)
    )


async def loop(n: int, repeat: int) -> Sample:
    node = Countdown(id="node")
    workflow = WorkflowBuilder(start_executor=node, max_iterations=n + 1).add_edge(node, node).build()
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

    def ready(count: int) -> list[Workflow]:
        return [chained(nodes(length), length + 1).build() for _ in range(count)]

    async def at_once(workflows: list[Workflow]) -> list[WorkflowRunResult]:
        return await asyncio.gather(*(workflow.run(PAYLOAD) for workflow in workflows))

    def check_all(results: list[WorkflowRunResult]) -> None:
        expect("handler calls", tally.take(), length * len(results))
        for result in results:
            check(result, outputs=[PAYLOAD], supersteps=length, calls=0)

    few, all_of_them = ready(WARM_RUNS), ready(n)
    return await timed_at_once(repeat, n, lambda: at_once(few), lambda: at_once(all_of_them), check_all)


async def build(n: int, repeat: int) -> Sample:
    def broken() -> None:
        chained(nodes(5), 6).add_edge(Pass(id="unreachable"), End(id="end")).build()

    refuses(broken)
    chained(nodes(100), 101).build()
    clock = BuildClock()
    for _ in range(repeat):
        gc.collect()
        started = time.perf_counter()
        builder = chained(nodes(n), n)
        authored = time.perf_counter()
        workflow = builder.build()
        clock.compile += time.perf_counter() - authored
        clock.author += authored - started
        expect("executors", len(workflow.get_executors_list()), n)
    return clock.sample(n, repeat)


if __name__ == "__main__":
    main(
        "agent-framework",
        {"chain": chain, "loop": loop, "fan": fan, "burst": burst, "many": many, "build": build}
        | dict(imports("agent_framework")),
    )
