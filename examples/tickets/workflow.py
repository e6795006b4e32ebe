"""The workflow.

read ─┬─> classify ─switch─> incident | billing | account | product | front_desk ─┐
      ├─> extract ────────────────────────────────────────────────────────────────┤ join ─> report
      ├─> listen ─────────────────────────────────────────────────────────────────┤
      └─ broken records, total ───────────────────────────────────────────────────┘

The join waits for "reachable": a desk that no ticket goes to never sends, and the branches differ in length. It fires once
nothing in flight can reach it any more.
"""

from datetime import timedelta
from pathlib import Path
from typing import Never

from examples.tickets import rules
from examples.tickets.model import (
    Broken,
    Classified,
    Facts,
    Finding,
    Job,
    Routed,
    Summary,
    Ticket,
    Tone,
    Total,
)
from examples.tickets.reading import broken, read_records
from examples.tickets.report import Report, write_reports
from hocket import (
    Case,
    Default,
    Executor,
    PayloadError,
    PayloadTooLargeError,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)

PARALLEL = 8
_REPORT_EVERY = 50


class Reader(Executor):
    """Sends one message for each record of the file, and how many there were.

    It is a plain function, so it runs in a thread: reading a file would hold up everybody else.
    """

    @handler
    def read(self, job: Job, ctx: WorkflowContext[Ticket | Broken | Total]) -> None:
        ctx.set_state("out", job.out)
        ctx.set_state("input", Path(job.path).name)
        records = 0
        first_use: dict[str, int] = {}
        for record in read_records(Path(job.path)):
            records += 1
            if isinstance(record, Broken):
                ctx.send_message(record)
            elif record.id in first_use:
                detail = f"the id is that of record {first_use[record.id]} already"
                ctx.send_message(broken(record.record, record.line, "duplicate_id", detail, record.id))
            else:
                self._send(record, ctx)
                first_use[record.id] = record.record
            if records % _REPORT_EVERY == 0:
                ctx.report(records=records)
        ctx.send_message(Total(0, records))

    def _send(self, ticket: Ticket, ctx: WorkflowContext[Ticket | Broken | Total]) -> None:
        """What cannot travel is refused here, at once and with its path, so it can be reported instead."""
        try:
            ctx.send_message(ticket)
        except PayloadTooLargeError as error:
            ctx.send_message(broken(ticket.record, ticket.line, "too_long", str(error), ticket.text))
        except PayloadError as error:
            ctx.send_message(broken(ticket.record, ticket.line, "bad_text", str(error), ticket.text))


class Classifier(Executor):
    @handler
    def classify(self, ticket: Ticket, ctx: WorkflowContext[Classified]) -> None:
        text = rules.normal(f"{ticket.subject}\n{ticket.text}")
        category = rules.category_of(text)
        ctx.send_message(
            Classified(
                ticket.record,
                ticket.id,
                ticket.created_at,
                ticket.channel,
                ticket.subject,
                category,
                rules.priority_of(category, text),
            )
        )


class Extractor(Executor):
    @handler
    def extract(self, ticket: Ticket, ctx: WorkflowContext[Facts]) -> None:
        text = f"{ticket.subject}\n{ticket.text}"
        ctx.send_message(
            Facts(ticket.record, rules.orders_in(text), rules.emails_in(text), rules.amounts_in(text)),
        )


class Listener(Executor):
    @handler
    def listen(self, ticket: Ticket, ctx: WorkflowContext[Tone]) -> None:
        text = rules.normal(f"{ticket.subject}\n{ticket.text}")
        ctx.send_message(Tone(ticket.record, rules.language_of(text), rules.mood_of(text)))


class Desk(Executor):
    """Five of them; the id says which."""

    @handler
    async def take(self, ticket: Classified, ctx: WorkflowContext[Routed]) -> None:
        hours: int = rules.RULES["hours"][ticket.priority]
        due = ticket.created_at + timedelta(hours=hours)
        await ctx.send_message(Routed(ticket.record, ticket, self.id, due, rules.RULES["first_steps"][self.id]))


class Reporter(Executor):
    @handler
    def report(self, findings: list[Finding], ctx: WorkflowContext[Never, Summary]) -> None:
        report = Report(ctx.get_state("input"), findings)
        files = write_reports(report, Path(ctx.get_state("out")))
        ctx.yield_output(
            Summary(
                report.records, len(report.results), len(report.broken), report.counts, [str(file) for file in files]
            )
        )


def build() -> Workflow:
    reader = Reader("read")
    classify = Classifier("classify", concurrency=PARALLEL)
    extract = Extractor("extract", concurrency=PARALLEL)
    listen = Listener("listen", concurrency=PARALLEL)
    incident, billing, account, product, front_desk = desks = [
        Desk(id) for id in ("incident", "billing", "account", "product", "front_desk")
    ]
    report = Reporter("report", state_reads=["input", "out"])
    return (
        WorkflowBuilder(reader, name="tickets", description="Support tickets from a file to a report")
        .add_fan_out_edges(reader, [classify, extract, listen])
        .add_switch_case_edge_group(
            classify,
            [
                Case("message.category == 'outage' || message.priority == 'urgent'", incident),
                Case("message.category == 'billing'", billing),
                Case("message.category == 'account'", account),
                Case("message.category == 'feature'", product),
                Default(front_desk),
            ],
        )
        .add_fan_in_edges([reader, *desks, extract, listen], report, wait_for="reachable")
        .build()
    )
