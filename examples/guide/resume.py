import asyncio
from typing import Never

from hocket import Mesh, WorkflowBuilder, WorkflowContext, executor

shelves: dict[str, int] = {}


@executor
async def count(item: str) -> str:
    print(f"counted {item}")
    return item


@executor
async def look_up(item: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(f"{item}: shelf {shelves[item]}")


workflow = WorkflowBuilder(count).add_edge(count, look_up).build()


async def main() -> None:
    async with Mesh() as mesh:
        try:
            await workflow.run("jam", run_id="stock-7", mesh=mesh)
        except KeyError as error:
            print(f"failed: {error!r}")
        shelves["jam"] = 4
        print((await mesh.resume("stock-7")).get_outputs())


asyncio.run(main())
