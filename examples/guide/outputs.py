import asyncio
from typing import Never

from hocket import WorkflowBuilder, WorkflowContext, executor


@executor
async def draft(topic: str, ctx: WorkflowContext[str, str]) -> None:
    text = f"{topic} is fine"
    await ctx.yield_output(text)
    await ctx.send_message(text)


@executor
async def polish(text: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(text.capitalize() + ".")


workflow = (
    WorkflowBuilder(draft, output_from=[polish], intermediate_output_from=[draft]).add_edge(draft, polish).build()
)
result = asyncio.run(workflow.run("the weather"))
print(result.get_outputs(), result.get_intermediate_outputs())
