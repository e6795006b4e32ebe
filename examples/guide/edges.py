import asyncio

from hocket import WorkflowBuilder, WorkflowContext, executor


@executor
async def split(text: str, ctx: WorkflowContext[str]) -> None:
    for word in text.split():
        await ctx.send_message(word)


@executor
async def shout(word: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(word.upper())


@executor
async def whisper(word: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(f"({word})")


workflow = (
    WorkflowBuilder(split)
    .add_fan_out_edges(
        split,
        [shout, whisper],
        selection="message.startsWith('h') ? targets : ['whisper']",
    )
    .build()
)
print(asyncio.run(workflow.run("hey you")).get_outputs())
