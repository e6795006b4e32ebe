import asyncio
from typing import Never

from hocket import Executor, WorkflowBuilder, WorkflowContext, handler


class UpperCase(Executor):
    @handler
    async def process(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text.upper())


class Reverse(Executor):
    @handler
    async def process(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(text[::-1])


upper = UpperCase("upper")
workflow = WorkflowBuilder(upper).add_edge(upper, Reverse("reverse")).build()
print(asyncio.run(workflow.run("hello")).get_outputs())
