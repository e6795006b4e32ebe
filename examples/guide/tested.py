import asyncio
from typing import Never

from hocket import Executor, WorkflowBuilder, WorkflowContext, handler
from hocket.testing import canonical, run_handler


class Greeter(Executor):
    @handler
    async def greet(self, name: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.set_state("last", name)
        await ctx.yield_output(f"Hello, {name}!")


async def main() -> None:
    collected = await run_handler(Greeter("greeter"), "Ada")
    print(collected.outputs, collected.state_writes)

    workflow = WorkflowBuilder(Greeter("greeter")).build()
    one, two = await workflow.run("Ada"), await workflow.run("Ada")
    print(canonical(one.events) == canonical(two.events))


asyncio.run(main())
