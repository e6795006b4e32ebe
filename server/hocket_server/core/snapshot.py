"""A superstep scheduler's saved self: `put_graph` writes it, `restored_graph` makes a scheduler of it.

Ids are saved as positions, without the run's id, so that the snapshot of one run can begin another: a fork is restored under
a new prefix, its attempts counted anew. What can be worked out from the definition and the rest (queues, indexes) is not
saved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hocket import v1
from hocket.records import Delivery
from hocket.wire import (
    delivery_from,
    effects_from,
    graph_position_from,
    message_from,
    put_delivery,
    put_effects,
    put_graph_position,
    put_message,
    put_payloads,
    put_state_writes,
    put_time,
    state_writes_from,
    time_from,
)
from hocket_server.core.ledger import Work
from hocket_server.core.retry import Budget
from hocket_server.core.routing import Buffer
from hocket_server.core.scheduler import SNAPSHOT_FORMAT, Outcome, RunInfo
from hocket_server.core.superstep import SuperstepScheduler
from hocket_server.core.topology import Topology

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer


def put_graph(scheduler: SuperstepScheduler, out: v1.GraphSnapshot) -> None:
    prefix = scheduler.prefix
    out.superstep, out.max_supersteps, out.open = scheduler.superstep, scheduler.max_supersteps, scheduler.is_open
    put_payloads(scheduler.state, out.state)
    put_payloads(scheduler.private_state, out.private_state)
    for work in scheduler.ledger.works.values():
        _put_work(work, prefix, out.work.add())
    for work in scheduler.suspended.values():
        _put_work(work, prefix, out.suspended.add())
    if scheduler.ready:
        waiting = list(scheduler.suspended)
        out.ready.extend(waiting.index(work.invocation_id) for work in scheduler.ready)
    for invocation_id, child in scheduler.children.items():
        held = scheduler.ledger.works.get(invocation_id) or scheduler.suspended[invocation_id]
        added = out.children.add()
        put_graph_position(held.position, added.position)
        added.snapshot.format = SNAPSHOT_FORMAT
        if child.outcome is not None:
            added.snapshot.state = child.outcome.state
        put_graph(child, added.snapshot.graph)
    for index, buffer in sorted(scheduler.buffers.items()):
        _put_buffer(scheduler.topology, index, buffer, out)
    for index, deliveries in scheduler.pending.items():
        node = out.pending.add()
        node.node_id = scheduler.topology.nodes[index].id
        _put_deliveries(deliveries, prefix, node.deliveries)
    for question_id, question in scheduler.questions.open.items():
        opened = out.questions.add()
        opened.question.CopyFrom(question)
        opened.question.question_id = question_id.removeprefix(prefix)
        if question_id in scheduler.questions.expiries:
            put_time(scheduler.questions.expiries[question_id], opened.expire_time)
    for question_id, digest in scheduler.questions.closed.items():
        out.closed_questions.add(question_id=question_id.removeprefix(prefix), answer_digest=digest)
    out.has_output = scheduler.has_output
    out.outputs.extend(scheduler.outputs)
    put_state_writes(scheduler.signal_writes, out.signal_writes)
    if scheduler.failure is not None:
        out.failure.CopyFrom(scheduler.failure)
    out.ending, out.ending_reason = scheduler.ending, scheduler.reason


def restored_graph(
    topology: Topology,
    info: RunInfo,
    snapshot: v1.GraphSnapshot,
    *,
    prefix: str,
    path: tuple[str, ...] = (),
    is_fork: bool = False,
) -> SuperstepScheduler:
    scheduler = SuperstepScheduler(topology, info, prefix=prefix, path=path)
    _restore(scheduler, snapshot, is_fork)
    return scheduler


def _restore(scheduler: SuperstepScheduler, snapshot: v1.GraphSnapshot, is_fork: bool) -> None:
    prefix, topology = scheduler.prefix, scheduler.topology
    scheduler.superstep = snapshot.superstep
    scheduler.max_supersteps = snapshot.max_supersteps
    scheduler.is_open = snapshot.open
    scheduler.state = dict(snapshot.state)
    scheduler.private_state = dict(snapshot.private_state)
    for message in snapshot.work:
        work = _work_from(message, scheduler, is_fork)
        scheduler.ledger.restore(work)
    for work in scheduler.by_position():
        if work.position.superstep < scheduler.superstep:
            scheduler.shared.add(work.position.node_id)
        if work.state == v1.WORK_STATE_QUEUED:
            node = topology.by_id[work.position.node_id]
            scheduler.queues.setdefault(node.index, deque()).append(work)
    for message in snapshot.suspended:
        work = _work_from(message, scheduler, is_fork)
        scheduler.suspended[work.invocation_id] = work
    waiting = list(scheduler.suspended.values())
    scheduler.ready = [waiting[place] for place in snapshot.ready]
    for held in snapshot.children:
        position = graph_position_from(held.position)
        invocation_id = scheduler.invocation_id(position)
        work = scheduler.ledger.works.get(invocation_id) or scheduler.suspended[invocation_id]
        child = scheduler.child(topology.by_id[position.node_id], work)
        _restore(child, held.snapshot.graph, is_fork)
        if held.snapshot.state:
            child.outcome = Outcome(held.snapshot.state, child.reason, child.failure)
    by_group = {join.id: join for join in topology.joins}
    for saved in snapshot.joins:
        buffer = Buffer(fired=saved.fired)
        for held_message in saved.messages:
            source = topology.by_id[held_message.source_node_id]
            buffer.messages.setdefault(source.index, []).append(message_from(held_message))
        scheduler.buffers[by_group[saved.edge_group_id].index] = buffer
    for pending in snapshot.pending:
        index = topology.by_id[pending.node_id].index
        scheduler.pending[index] = _deliveries_from(pending.deliveries, prefix)
    for opened in snapshot.questions:
        question = v1.Question()
        question.CopyFrom(opened.question)
        question.question_id = prefix + opened.question.question_id
        scheduler.questions.open[question.question_id] = question
        if opened.HasField("expire_time"):
            scheduler.questions.expiries[question.question_id] = time_from(opened.expire_time)
    scheduler.questions.closed = {prefix + each.question_id: each.answer_digest for each in snapshot.closed_questions}
    scheduler.has_output = snapshot.has_output
    scheduler.outputs = list(snapshot.outputs)
    scheduler.signal_writes = state_writes_from(snapshot.signal_writes)
    scheduler.failure = snapshot.failure if snapshot.HasField("failure") else None
    scheduler.ending, scheduler.reason = snapshot.ending, snapshot.ending_reason


def _put_work(work: Work, prefix: str, out: v1.Work) -> None:
    put_graph_position(work.position, out.position)
    _put_deliveries(work.deliveries, prefix, out.deliveries)
    out.state, out.attempt = work.state, work.attempt
    if work.budget is not None:
        out.failures, out.redeliveries = work.budget.failures, work.budget.redeliveries
    if work.last_failure is not None:
        out.last_failure.CopyFrom(work.last_failure)
    if work.last_progress is not None:
        out.last_progress.CopyFrom(work.last_progress)
    if work.effects is not None:
        put_effects(work.effects, out.effects)
    if work.state == v1.WORK_STATE_BACKOFF:
        put_time(work.retry_time, out.retry_time)
    if work.continuation is not None:
        out.continuation.CopyFrom(work.continuation)
    _put_deliveries(work.answers, prefix, out.answers)
    out.waits_for.extend(question_id.removeprefix(prefix) for question_id in work.waits_for)


def _work_from(message: v1.Work, scheduler: SuperstepScheduler, is_fork: bool) -> Work:
    position = graph_position_from(message.position)
    work = Work(
        position,
        scheduler.invocation_id(position),
        scheduler.topology.by_id[position.node_id].policy,
        _deliveries_from(message.deliveries, scheduler.prefix),
        state=message.state,
        effects=effects_from(message.effects) if message.HasField("effects") else None,
        continuation=message.continuation if message.HasField("continuation") else None,
        answers=_deliveries_from(message.answers, scheduler.prefix),
        waits_for=[scheduler.prefix + question_id for question_id in message.waits_for],
    )
    if not is_fork:
        work.attempt = message.attempt
        work.budget = Budget(message.failures, message.redeliveries)
        work.last_failure = message.last_failure if message.HasField("last_failure") else None
        work.last_progress = message.last_progress if message.HasField("last_progress") else None
        work.retry_time = time_from(message.retry_time)
    return work


def _put_buffer(topology: Topology, index: int, buffer: Buffer, out: v1.GraphSnapshot) -> None:
    if not buffer.messages and not buffer.fired:
        return
    join = topology.groups[index]
    saved = out.joins.add(edge_group_id=join.id, fired=buffer.fired)
    for source in join.sources:
        for message in buffer.messages.get(source.index, ()):
            put_message(message, saved.messages.add())


def _put_deliveries(
    deliveries: Iterable[Delivery], prefix: str, out: RepeatedCompositeFieldContainer[v1.Delivery]
) -> None:
    for delivery in deliveries:
        added = out.add()
        put_delivery(delivery, added)
        for message in added.messages:
            if message.question_id:
                message.question_id = message.question_id.removeprefix(prefix)


def _deliveries_from(deliveries: Iterable[v1.Delivery], prefix: str) -> list[Delivery]:
    restored = [delivery_from(delivery) for delivery in deliveries]
    for delivery in restored:
        for message in delivery.messages:
            if message.question_id:
                message.question_id = prefix + message.question_id
    return restored
