"""Names of spans and attributes, in one place, and the W3C context that messages carry.

The OpenTelemetry API is loaded only by who hands in a tracer: without one there is not a single tracing call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hocket import v1

if TYPE_CHECKING:
    from opentelemetry.context import Context

RUN_SPAN: Final = "invoke_workflow"
EXECUTOR_SPAN: Final = "executor.process"

OPERATION: Final = "gen_ai.operation.name"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
RUN_ID: Final = "hocket.run.id"
SUPERSTEP: Final = "hocket.superstep"
ATTEMPT: Final = "hocket.attempt"
INVOCATION_ID: Final = "hocket.invocation.id"
NODE_ID: Final = "hocket.node.id"
RUN_STATE: Final = "hocket.run.state"


def current_context() -> v1.TraceContext | None:
    """The span that is current now, None when there is none."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    if "traceparent" not in carrier:
        return None
    return v1.TraceContext(traceparent=carrier["traceparent"], tracestate=carrier.get("tracestate", ""))


def parent_from(trace: v1.TraceContext | None) -> Context | None:
    """The context to begin a span in; None leaves the current one."""
    if trace is None or not trace.traceparent:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {"traceparent": trace.traceparent, "tracestate": trace.tracestate}
    return TraceContextTextMapPropagator().extract(carrier)
