"""Endpoints: what takes an invocation and gives back how it ended."""

from collections.abc import Coroutine
from typing import Any, Protocol

from hocket.host import Host
from hocket.records import Completed, Failed, Invocation, Live


class Endpoint(Protocol):
    """`execute` carries out one attempt. Cancelling it cancels the attempt; it ends when the handler has ended."""

    def offers(self, executor_type: str) -> bool: ...

    def execute(self, invocation: Invocation, live: Live) -> Coroutine[Any, Any, Completed | Failed]: ...


class LocalEndpoint:
    """Executors of this process."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def offers(self, executor_type: str) -> bool:
        return executor_type in self._host.executors

    def execute(self, invocation: Invocation, live: Live) -> Coroutine[Any, Any, Completed | Failed]:
        return self._host.handle(invocation, live)
