"""Time as a parameter: the driver's only clock, so that tests turn it by hand."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Protocol


class Handle(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> int:
        """Nanoseconds since the epoch, UTC."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Handle: ...

    def jitter(self) -> float:
        """From 0 to 1."""
        ...


class SystemClock:
    def now(self) -> int:
        return time.time_ns()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Handle:
        return asyncio.get_running_loop().call_later(seconds, callback)

    def jitter(self) -> float:
        return random.random()  # spreads retries; no secret
