import asyncio
from typing import Never

from google.protobuf import json_format

from hocket import Workflow, WorkflowBuilder, WorkflowContext, executor, v1


@executor
async def read(text: str) -> str:
    return text


@executor
async def show(text: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(text)


workflow = WorkflowBuilder(read).add_edge(read, show, "size(message) > 2").build()
text = json_format.MessageToJson(workflow.definition)

definition = json_format.Parse(text, v1.Definition())
restored = Workflow(definition, {"read": read, "show": show}, {})
print(restored.signature == workflow.signature, asyncio.run(restored.run("hello")).get_outputs())
