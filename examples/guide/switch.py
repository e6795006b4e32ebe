import asyncio
from dataclasses import dataclass
from typing import Never

from hocket import Case, Default, Executor, WorkflowBuilder, WorkflowContext, executor, handler


@dataclass
class Order:
    customer: str
    total: int


@executor
async def intake(order: Order) -> Order:
    return order


class Desk(Executor):
    @handler
    async def take(self, order: Order, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"{self.id}: {order.customer}")


workflow = (
    WorkflowBuilder(intake)
    .add_switch_case_edge_group(
        intake,
        [
            Case("message.total >= 10000", Desk("credit_check")),
            Case("message.customer in ['ada', 'grace']", Desk("key_account")),
            Default(Desk("shipping")),
        ],
    )
    .build()
)


async def main() -> None:
    for order in (Order("ada", 20_000), Order("ada", 20), Order("bob", 20)):
        print((await workflow.run(order)).get_outputs())


asyncio.run(main())
