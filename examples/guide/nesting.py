import asyncio
from typing import Never

from hocket import WorkflowBuilder, WorkflowContext, executor


@executor
async def trim(text: str) -> str:
    return text.strip()


@executor
async def lower(text: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(text.lower())


@executor
async def read(text: str) -> str:
    return text


@executor
async def show(text: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(f"<{text}>")


clean = WorkflowBuilder(trim, name="clean").add_edge(trim, lower).build()
workflow = WorkflowBuilder(read, name="page").add_chain([read, clean, show]).build()


async def main() -> None:
    result = await workflow.run("  Hello ")
    print(result.get_outputs())
    print(sorted({"/".join(event.path) for event in result.events}))


asyncio.run(main())
