"""The code that README and guide show is the code in examples/guide, and it prints what they say it prints."""

import re
from pathlib import Path

import pytest

from tests.docs.include import BLOCK, GUIDE, PAGES, ROOT, output_of, rendered

FILES = sorted(path.relative_to(ROOT).as_posix() for path in GUIDE.glob("*.py"))
MARKDOWN = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])


@pytest.mark.parametrize("name", FILES)
def test_every_file_of_the_guide_runs_and_says_something(name: str) -> None:
    assert output_of(name).strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_block_is_a_file_and_is_followed_by_its_output(page: Path) -> None:
    blocks = list(BLOCK.finditer(page.read_text("utf-8")))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block["language"] != "python":
            continue
        assert block["mark"] in FILES, f"unmarked, or no file: {block['text'][:200]}"
        assert following is not None, f"no output after {block['mark']}"
        assert following["mark"] == "output", f"no output after {block['mark']}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_are_what_the_files_say_and_print(page: Path) -> None:
    """`python -m tests.docs.include` puts it right."""
    text = page.read_text("utf-8")
    assert rendered(text) == text


def test_every_file_of_the_guide_is_shown() -> None:
    shown = {block["mark"] for page in PAGES for block in BLOCK.finditer(page.read_text("utf-8"))}
    assert set(FILES) <= shown


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text("utf-8"))
    for target in re.findall(r"\]\((?!https?:)([^)\s]*)\)", text):
        name, _, heading = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        if heading and path.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
            assert heading in [_anchor(each) for each in headings], target


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
