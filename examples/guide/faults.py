from hocket import Case, DefinitionError, WorkflowBuilder, executor


@executor
async def read(text: str) -> int:
    return len(text)


@executor
async def show(text: str) -> None:
    print(text)


@executor
async def check(number: int) -> None:
    print(number)


builder = (
    WorkflowBuilder(read)
    .add_edge(read, show)
    .add_edge(read, "publish")
    .add_switch_case_edge_group(read, [Case("mesage > 1", check)])
)
try:
    builder.build()
except DefinitionError as error:
    print(error)
