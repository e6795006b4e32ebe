import asyncio
from typing import Never

from hocket import WorkflowBuilder, WorkflowContext, executor


@executor
async def upper(text: str) -> str:
    return text.upper()


@executor
async def reverse(text: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(text[::-1])


workflow = WorkflowBuilder(upper).add_edge(upper, reverse).build()
print(asyncio.run(workflow.run("hello")).get_outputs())
