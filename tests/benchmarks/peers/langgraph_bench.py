"""The workloads on langgraph: a StateGraph over a state of one short string, run by `ainvoke`.

Compiled without a checkpointer, which is its default and its fastest form; the `-checkpointed` variants use its
InMemorySaver, for information. The self-loop hands itself on by `Command(goto=)`: of the three forms that its
documentation gives it ran fastest (5,900 rounds/s; a conditional edge 4,200 with an async path function, 2,900 with
a plain one).
"""

from __future__ import annotations

import gc
import time
from contextlib import suppress
from itertools import count, pairwise
from typing import Any, Literal, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from tests.benchmarks.worker import PAYLOAD, BuildClock, Sample, Tally, expect, main, refuses, timed

tally = Tally()
thread = count()


class State(TypedDict):
    text: str


async def hand_on(state: State) -> State:
    tally.count += 1
    return {"text": state["text"]}


async def count_down(state: State) -> Command[Literal["node", "__end__"]]:
    tally.count += 1
    left = int(state["text"]) - 1
    if left:
        return Command(update={"text": str(left)}, goto="node")
    return Command(update={"text": PAYLOAD}, goto=END)


def chained(n: int) -> StateGraph[State]:
    graph = StateGraph(State)
    names = [f"node{i}" for i in range(n)]
    for name in names:
        graph.add_node(name, hand_on)
    graph.add_edge(START, names[0])
    for source, target in pairwise(names):
        graph.add_edge(source, target)
    graph.add_edge(names[-1], END)
    return graph


def looped() -> StateGraph[State]:
    graph = StateGraph(State)
    graph.add_node("node", count_down)
    graph.add_edge(START, "node")
    return graph


async def run(
    graph: StateGraph[State], text: str, final: str, n: int, repeat: int, saver: InMemorySaver | None = None
) -> Sample:
    compiled = graph.compile(checkpointer=saver)

    async def once() -> Any:
        config: dict[str, Any] = {"recursion_limit": n + 1}
        if saver is not None:
            config["configurable"] = {"thread_id": str(next(thread))}
        return await compiled.ainvoke({"text": text}, config)

    def check(result: Any) -> None:
        expect("final state", result, {"text": final})
        expect("node calls, one a superstep", tally.take(), n)
        if saver is not None:
            _, namespaces = saver.storage.popitem()
            expect("checkpoints", len(namespaces[""]) >= n, True)

    return await timed(tally, repeat, n, once, check)


async def chain(n: int, repeat: int) -> Sample:
    return await run(chained(n), PAYLOAD, PAYLOAD, n, repeat)


async def chain_checkpointed(n: int, repeat: int) -> Sample:
    return await run(chained(n), PAYLOAD, PAYLOAD, n, repeat, InMemorySaver())


async def loop(n: int, repeat: int) -> Sample:
    return await run(looped(), str(n), PAYLOAD, n, repeat)


async def loop_checkpointed(n: int, repeat: int) -> Sample:
    return await run(looped(), str(n), PAYLOAD, n, repeat, InMemorySaver())


async def build(n: int, repeat: int) -> Sample:
    def broken() -> None:
        chained(5).add_edge("node0", "nobody").compile()

    refuses(broken)
    chained(100).compile()
    clock = BuildClock()
    for _ in range(repeat):
        gc.collect()
        started = time.perf_counter()
        graph = chained(n)
        authored = time.perf_counter()
        compiled = graph.compile()
        done = time.perf_counter()
        with suppress(GraphRecursionError):
            await compiled.ainvoke({"text": PAYLOAD}, {"recursion_limit": 1})
        clock.first += time.perf_counter() - done
        clock.compile += done - authored
        clock.author += authored - started
        expect("nodes", len(compiled.nodes), n + 1)  # and START
        expect("node calls", tally.take(), 1)
    return clock.sample(n, repeat)


if __name__ == "__main__":
    main(
        "langgraph",
        {
            "chain": chain,
            "chain-checkpointed": chain_checkpointed,
            "loop": loop,
            "loop-checkpointed": loop_checkpointed,
            "build": build,
        },
    )
