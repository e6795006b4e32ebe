import asyncio

from hocket import Executor, RunCancelledError, WorkflowBuilder, WorkflowContext, handler


class Sleeper(Executor):
    @handler
    async def sleep(self, seconds: int, ctx: WorkflowContext) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            print("cleaned up")


workflow = WorkflowBuilder(Sleeper("sleeper")).build()


async def main() -> None:
    stream = workflow.run(3600, stream=True)
    async for event in stream:
        if event.HasField("invocation_started"):
            await stream.cancel("not needed any more", grace=5)
    try:
        await stream.result()
    except RunCancelledError as error:
        print(str(error).partition(" was ")[2])


asyncio.run(main())
