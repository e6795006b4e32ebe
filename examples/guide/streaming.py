import asyncio
from typing import Never

from hocket import Executor, WorkflowBuilder, WorkflowContext, handler


class Writer(Executor):
    @handler
    async def write(self, words: list[str], ctx: WorkflowContext[Never, str]) -> None:
        for position, word in enumerate(words, start=1):
            await ctx.report(position / len(words), word=word)
            await asyncio.sleep(0)
        await ctx.yield_output(" ".join(words))


workflow = WorkflowBuilder(Writer("writer")).build()


async def main() -> None:
    stream = workflow.run(["slowly", "but", "surely"], stream=True)
    async for event in stream:
        print(event.sequence, event.WhichOneof("kind"))
    print((await stream.result()).get_outputs())


asyncio.run(main())
