"""What a run looks like while it runs: a line for each node in a terminal, a line for each superstep elsewhere."""

import shutil
import time
from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from hocket import v1

_FRAME = 0.05


@dataclass
class Node:
    id: str
    started: int = 0
    ended: int = 0
    sent: int = 0
    note: str = ""

    @property
    def running(self) -> int:
        return self.started - self.ended


class Progress:
    """A fold over a run's events, and the drawing of it. `stream` is where it is drawn."""

    def __init__(self, node_ids: Sequence[str], stream: TextIO) -> None:
        self.nodes = {id: Node(id) for id in node_ids}
        self.superstep = 0
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._begin = time.monotonic()
        self._drawn_at = 0.0
        self._lines = 0
        self._before: dict[str, int] = {}

    async def follow(self, events: AsyncIterable[v1.Event]) -> None:
        try:
            async for event in events:
                self._take(event)
                if self._is_terminal and time.monotonic() - self._drawn_at >= _FRAME:
                    self._draw()
        finally:
            if self._is_terminal:
                self._draw()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._begin

    def _take(self, event: v1.Event) -> None:
        match event.WhichOneof("kind"):
            case "superstep_started":
                self.superstep = event.superstep_started.superstep
                self._before = {node.id: node.ended for node in self.nodes.values()}
            case "superstep_completed" if not self._is_terminal:
                self._print_superstep()
            case "invocation_started":
                self.nodes[event.invocation_started.node_id].started += 1
            case "invocation_completed":
                completed = event.invocation_completed
                node = self.nodes[completed.node_id]
                node.ended += 1
                node.sent += len(completed.messages) + completed.messages_left_out
                node.note = ""
            case "invocation_failed":
                node = self.nodes[event.invocation_failed.node_id]
                node.ended += 1
                node.note = f"failed: {event.invocation_failed.failure.type}"
            case "progress":
                self._note(event)
            case _:
                pass

    def _note(self, event: v1.Event) -> None:
        node = next((node for node in self.nodes.values() if f"/{node.id}" in event.invocation_id), None)
        if node is not None and node.running:
            node.note = event.progress.details.data.decode("utf-8", "replace")

    def _print_superstep(self) -> None:
        done = [
            f"{node.id} {node.ended - self._before.get(node.id, 0)}"
            for node in self.nodes.values()
            if node.ended > self._before.get(node.id, 0)
        ]
        print(f"superstep {self.superstep}  {self.elapsed:5.2f} s  {', '.join(done)}", file=self._stream, flush=True)

    def _draw(self) -> None:
        """Over what was drawn before; cut to the width, since a wrapped line could not be drawn over."""
        width = shutil.get_terminal_size().columns - 1
        lines = [f"superstep {self.superstep}  {self.elapsed:.1f} s", *map(_node_line, self.nodes.values())]
        up = f"\x1b[{self._lines}F" if self._lines else ""
        self._stream.write(up + "".join(f"\x1b[2K{line[:width]}\n" for line in lines))
        self._stream.flush()
        self._lines = len(lines)
        self._drawn_at = time.monotonic()


def _node_line(node: Node) -> str:
    mark = "▸" if node.running else "✓" if node.ended else "·"
    text = f"{mark} {node.id:<11}{node.ended:>5} done"
    text += f"{node.running:>4} running" if node.running else " " * 12
    return f"{text}{node.sent:>6} sent  {node.note}".rstrip()
