import asyncio

from hocket import Executor, WorkflowBuilder, WorkflowContext, handler


class Countdown(Executor):
    @handler
    async def count(self, number: int, ctx: WorkflowContext[int, str]) -> None:
        calls = ctx.get_private(0) + 1
        await ctx.set_private(calls)
        if number > 1:
            await ctx.send_message(number - 1)
        else:
            await ctx.yield_output(f"called {calls} times")


countdown = Countdown("countdown")
workflow = WorkflowBuilder(countdown).add_edge(countdown, countdown, "message > 0").build()


async def main() -> None:
    results = await asyncio.gather(workflow.run(3), workflow.run(5))
    print([result.get_outputs() for result in results])


asyncio.run(main())
