import asyncio
from typing import Never

from hocket import Executor, RetryPolicy, WorkflowBuilder, WorkflowContext, handler


class Flaky(Executor):
    @handler
    async def call(self, url: str, ctx: WorkflowContext[Never, str]) -> None:
        if ctx.attempt < 3:
            raise ConnectionError(f"attempt {ctx.attempt}")
        await ctx.yield_output(f"{url}: attempt {ctx.attempt}, after {ctx.last_failure and ctx.last_failure.message!r}")


policy = RetryPolicy(initial_interval=0.01, max_attempts=5, non_retryable=[ValueError])
workflow = WorkflowBuilder(Flaky("flaky", retry=policy, timeout=30)).build()
print(asyncio.run(workflow.run("example.com")).get_outputs())
