from hocket import Case, Default, WorkflowBuilder, executor


@executor
async def triage(text: str) -> str:
    return text


@executor
async def answer(text: str) -> str:
    return text


@executor
async def pass_on(text: str) -> str:
    return text


@executor
async def close(texts: list[str]) -> None:
    print(texts)


workflow = (
    WorkflowBuilder(triage)
    .add_switch_case_edge_group(triage, [Case("message.endsWith('?')", answer), Default(pass_on)])
    .add_fan_in_edges([answer, pass_on], close, wait_for="any")
    .build()
)
print(workflow.as_mermaid())
