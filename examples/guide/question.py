import asyncio
from dataclasses import dataclass
from typing import Never

from hocket import Executor, WorkflowBuilder, WorkflowContext, handler, response_handler


@dataclass
class Approval:
    amount: int


class Payout(Executor):
    @handler
    async def request(self, amount: int, ctx: WorkflowContext[Never, str]) -> None:
        if amount > 100:
            await ctx.request_info(Approval(amount), bool)
        else:
            await ctx.yield_output(f"paid {amount}")

    @response_handler
    async def answered(self, question: Approval, answer: bool, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"paid {question.amount}" if answer else "refused")


workflow = WorkflowBuilder(Payout("payout")).build()


async def main() -> None:
    result = await workflow.run(250)
    print(result.outcome, [result.decode(question.payload) for question in result.questions])
    result = await workflow.run(responses={result.questions[0].question_id: True})
    print(result.outcome, result.get_outputs())


asyncio.run(main())
