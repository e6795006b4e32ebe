"""The transcripts, each played as it stands and once more through a saved scheduler and a journal after every input."""

import re
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.core.transcript import Block, Player, read, written

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))

# Transcripts that say what the rules ask for and the code does not do yet.
DEVIATIONS: dict[str, str] = {}
RESTORED_DEVIATIONS: dict[str, str] = {}


def parameter(path: Path, deviations: dict[str, str]) -> ParameterSet:
    reason = deviations.get(path.stem)
    marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", [parameter(path, DEVIATIONS) for path in TRANSCRIPTS])
def test_transcript(path: Path, rewrites: bool) -> None:
    sentence, blocks = read(path)
    player = Player()
    played = [Block(block.lines, player.play(block.lines)) for block in blocks]
    if rewrites and path.stem not in DEVIATIONS:
        path.write_text(written(sentence, played))
    else:
        assert written(sentence, played) == written(sentence, blocks)


@pytest.mark.parametrize("path", [parameter(path, DEVIATIONS | RESTORED_DEVIATIONS) for path in TRANSCRIPTS])
def test_restored_equals_uninterrupted(path: Path) -> None:
    """Law (c), at every input."""
    sentence, blocks = read(path)
    player = Player(restores=True)
    played = [Block(block.lines, player.play(block.lines)) for block in blocks]
    assert written(sentence, played) == written(sentence, blocks)


def test_there_are_transcripts_and_each_says_its_rule() -> None:
    sentences = [read(path)[0] for path in TRANSCRIPTS]
    assert len(sentences) >= 32
    assert [each for each in sentences if not re.match(r"# (G\d|Architecture|Contract)", each)] == []
