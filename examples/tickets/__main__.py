"""python -m examples.tickets [--input FILE] [--out DIR] [--quiet]

Exit codes: 0 done, 1 the run failed, 2 usage, 3 the input is not there, 130 interrupted.
"""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from examples.tickets.model import Job, Summary
from examples.tickets.progress import Progress
from examples.tickets.workflow import build
from hocket import HocketError

_DATA = Path(__file__).parent / "data" / "tickets.jsonl"
_SHOWN = ("category", "priority", "language", "broken")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tickets", description="Reads support tickets and writes a report of them.")
    parser.add_argument("--input", default=str(_DATA), metavar="FILE", help="JSON Lines, or CSV by its name (.csv)")
    parser.add_argument("--out", default="build/tickets", metavar="DIR", help="for report.md and report.json")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    options = parser.parse_args(arguments)
    job = Job(options.input, options.out)
    try:
        asyncio.run(_run(job, quiet=options.quiet))
    except BrokenPipeError:
        # Whoever read the progress has left; nothing more can be said there, not at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not Path(job.path).exists():
            return _fail(f"there is no file {job.path!r}; give --input a file of tickets", 3)
        return _fail(f"{error.filename or job.path}: {error.strerror or error}", 1)
    except (ValueError, HocketError) as error:
        return _fail(f"{job.path}: {error}", 1)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    return 0


async def _run(job: Job, *, quiet: bool) -> None:
    workflow = build()
    if quiet:
        await workflow.run(job)
        return
    print(f"tickets: {job.path}\n", flush=True)
    progress = Progress([node.id for node in workflow.definition.graph.nodes], sys.stdout)
    stream = workflow.run(job, stream=True)
    await progress.follow(stream)
    result = await stream.result()
    (summary,) = result.get_outputs()
    print(_told(summary, progress))


def _told(summary: Summary, progress: Progress) -> str:
    lines = [
        "",
        f"{summary.records} records in {progress.superstep} supersteps and {progress.elapsed:.2f} s: "
        f"{summary.tickets} tickets, {summary.broken} broken",
        "",
    ]
    for name in _SHOWN:
        counts = [f"{value} {count}" for value, count in summary.counts[name].items() if count]
        lines.append(f"  {name:<10}{'  '.join(counts) or 'none'}")
    lines += ["", *(f"wrote {file}" for file in summary.files)]
    return "\n".join(lines)


def _fail(message: str, code: int) -> int:
    print(f"tickets: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
