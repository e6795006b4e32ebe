"""Puts the files of examples/guide, and what they print, into the pages that show them: python -m tests.docs.include

`<!-- examples/guide/hello.py -->` stands above a block that is this file. `<!-- output -->` stands above a block that is
what the file before it prints.
"""

import contextlib
import io
import re
import runpy
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "examples" / "guide"
PAGES = (ROOT / "README.md", ROOT / "docs" / "graph.md")
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]+) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


def rendered(page: str) -> str:
    """The page with each marked block as it has to be."""
    shown = ""

    def fill(block: re.Match[str]) -> str:
        nonlocal shown
        mark, text = block["mark"], block["text"]
        if mark == "output":
            text = output_of(shown)
        elif mark is not None:
            shown = mark
            text = (ROOT / mark).read_text("utf-8")
        else:
            return block[0]
        return f"<!-- {mark} -->\n```{block['language']}\n{text.strip()}\n```"

    return BLOCK.sub(fill, page)


@cache
def output_of(name: str) -> str:
    """What a file of the guide prints when it is run."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(ROOT / name), run_name="__main__")
    return printed.getvalue()


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(rendered(path.read_text("utf-8")), "utf-8")
