import asyncio
from typing import Never

from hocket import Executor, WorkflowBuilder, WorkflowContext, handler


class Booking(Executor):
    @handler
    async def book(self, city: str, ctx: WorkflowContext[Never, str]) -> None:
        print(f"attempt {ctx.attempt}")
        nights = ctx.ask(f"How many nights in {city}?", int)
        await ctx.yield_output(f"{nights} nights in {city}")


workflow = WorkflowBuilder(Booking("booking")).build()


async def main() -> None:
    result = await workflow.run("Leeds")
    result = await workflow.run(responses={result.questions[0].question_id: 3})
    print(result.get_outputs())


asyncio.run(main())
