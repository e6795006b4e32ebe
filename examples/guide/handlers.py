import asyncio
from dataclasses import dataclass
from typing import Any, Never

from hocket import Executor, WorkflowBuilder, WorkflowContext, executor, handler


@dataclass
class Event:
    name: str


@dataclass
class Alarm(Event):
    level: int


class Desk(Executor):
    @handler
    async def on_event(self, event: Event, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"noted {event.name}")

    @handler
    def on_alarm(self, alarm: Alarm, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"alarm {alarm.name}, level {alarm.level}")

    @handler(input=Any, workflow_output=str)
    async def on_rest(self, value, ctx):  # type: ignore[no-untyped-def]  # the decorator has the types
        await ctx.yield_output(f"what is {value!r}?")


@executor
async def source(names: list[str], ctx: WorkflowContext[Event | Alarm | int]) -> None:
    await ctx.send_message(Alarm(names[0], level=3))
    await ctx.send_message(Event(names[1]))
    await ctx.send_message(7)


workflow = WorkflowBuilder(source).add_edge(source, Desk("desk")).build()
print("\n".join(asyncio.run(workflow.run(["smoke", "visitor"])).get_outputs()))
