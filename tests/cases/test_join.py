"""G17: what a fan-in collects is what its target's list handler takes, and no more."""

from dataclasses import dataclass
from typing import Any, Never

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.executor import Executor, executor, handler
from tests.cases.conftest import World


@dataclass
class Invoice:
    number: int


@dataclass
class Receipt:
    number: int


@dataclass
class Note:
    text: str


@executor
async def split(text: str, ctx: WorkflowContext[Invoice | Receipt | Note]) -> None:
    await ctx.send_message(Invoice(1))
    await ctx.send_message(Note("not for the books"))


@executor
async def pay(invoice: Invoice) -> Receipt:
    return Receipt(invoice.number)


@executor
async def books(entries: list[Invoice | Receipt], ctx: WorkflowContext[Never, list[Any]]) -> None:
    await ctx.yield_output(entries)


async def test_g17_a_join_of_a_union_holds_the_members_of_the_union_only(world: World) -> None:
    workflow = (
        WorkflowBuilder(split).add_edge(split, pay).add_fan_in_edges([split, pay], books, wait_for="reachable").build()
    )
    result = await world.run(workflow, "x")
    assert result.get_outputs() == [[Invoice(1), Receipt(1)]]
    [dropped] = [event.message_dropped for event in result.events if event.HasField("message_dropped")]
    assert (dropped.source_node_id, dropped.reason) == ("split", v1.DROP_REASON_NO_HANDLER)


def test_g17_elements_are_named_where_the_name_of_the_list_does_not_say_them() -> None:
    class Plain(Executor):
        @handler
        async def take(self, numbers: list[int], ctx: WorkflowContext) -> None: ...

    class Mixed(Executor):
        @handler
        async def take(self, values: list[int | str], ctx: WorkflowContext) -> None: ...

    class Open(Executor):
        @handler
        async def take(self, values: list[int | str] | list[Any], ctx: WorkflowContext) -> None: ...

    assert list(Plain("plain").types.element_types) == []
    assert list(Mixed("mixed").types.element_types) == ["int", "string"]
    assert "*" in Mixed("mixed").types.input_types or "list<any>" in Mixed("mixed").types.input_types
    assert "*" in Open("open").types.element_types
