"""The smallest workflow, for tests that need any."""

from typing import Never

from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.executor import Executor, handler
from hocket.workflow import Workflow


class Upper(Executor):
    @handler
    async def process(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text.upper())


class Reverse(Executor):
    @handler
    async def process(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(text[::-1])


def upper_reverse() -> Workflow:
    upper = Upper("upper")
    return WorkflowBuilder(upper).add_edge(upper, Reverse("reverse")).build()
