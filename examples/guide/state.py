import asyncio

from hocket import Executor, WorkflowBuilder, WorkflowContext, executor, handler


@executor
async def split(words: list[str], ctx: WorkflowContext[str]) -> None:
    for word in words:
        await ctx.send_message(word)


class Reader(Executor):
    @handler
    async def read(self, word: str, ctx: WorkflowContext) -> None:
        await ctx.set_state("seen", word)
        await ctx.set_state("letters", len(word))
        await ctx.set_state("last", word)


workflow = (
    WorkflowBuilder(split, state={"seen": "append", "letters": "sum", "last": "last_writer"})
    .add_edge(split, Reader("reader", concurrency=4))
    .build()
)
print(asyncio.run(workflow.run(["one", "three", "five"])).state)
