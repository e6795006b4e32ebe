import asyncio

from hocket import Mesh, WorkflowBuilder, WorkflowContext, executor


@executor
async def measure(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.set_state("limit", 3)
    await ctx.send_message(text)


@executor
async def cut(text: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(text[: ctx.get_state("limit")])


workflow = WorkflowBuilder(measure).add_edge(measure, cut).build()


async def main() -> None:
    async with Mesh() as mesh:
        result = await workflow.run("marmalade", mesh=mesh)
        checkpoints = await mesh.list_checkpoints(result.run_id)
        print(result.get_outputs(), [checkpoint.superstep for checkpoint in checkpoints])
        other = await workflow.run(checkpoint_id=checkpoints[1].checkpoint_id, state={"limit": 5}, mesh=mesh)
        print(other.get_outputs(), other.run_id != result.run_id)


asyncio.run(main())
