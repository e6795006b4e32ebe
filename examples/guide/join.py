import asyncio
from typing import Never

from hocket import WorkflowBuilder, WorkflowContext, executor


@executor
async def split(text: str) -> str:
    return text


@executor
async def count(text: str) -> str:
    return f"{len(text)} letters"


@executor
async def translate(text: str) -> str:
    return {"hello": "bonjour"}.get(text, text)


@executor
async def review(text: str) -> str:
    return f"{text}, reviewed"


@executor
async def publish(parts: list[str], ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(" | ".join(parts))


workflow = (
    WorkflowBuilder(split)
    .add_fan_out_edges(split, [count, translate])
    .add_edge(translate, review, "message != 'unknown'")
    .add_fan_in_edges([count, review], publish, wait_for="reachable")
    .build()
)


async def main() -> None:
    for text in ("hello", "unknown"):
        print((await workflow.run(text)).get_outputs())


asyncio.run(main())
