"""Each peer lives in an environment of its own under `.bench/`, made once from the pinned list in `peers/`.

A copy of the list inside the environment says what it was made from: as long as the two are equal nothing is installed,
so a second time needs no network. The interpreter is the one that runs the harness, so every engine gets the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".bench"
PINS = Path(__file__).parent / "peers"


def python_of(peer: str) -> Path:
    """The Python whose environment holds the peer `agent_framework` or `langgraph`; installs what is not there yet."""
    pins = (PINS / f"{peer}.txt").read_text()
    home = HOME / peer
    made_from = home / "pins.txt"
    python = home / "bin" / "python"
    if made_from.exists() and made_from.read_text() == pins and _version(python) == _version(Path(sys.executable)):
        return python
    print(f"installing {peer} into its own environment ...", file=sys.stderr)
    shutil.rmtree(home, ignore_errors=True)
    HOME.mkdir(exist_ok=True)
    (HOME / ".gitignore").write_text("*\n")
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    pip = (str(python), "-m", "pip", "--disable-pip-version-check", "--quiet")
    subprocess.run([*pip, "install", "-r", str(PINS / f"{peer}.txt")], check=True)
    made_from.write_text(pins)
    return python


def variables() -> dict[str, str]:
    """What a worker sees: the caller's environment, with nothing sent anywhere. Engines are as they come from PyPI."""
    return os.environ | {
        "LANGSMITH_TRACING": "false",
        "LANGCHAIN_TRACING_V2": "false",
        "OTEL_SDK_DISABLED": "true",
    }


def _version(python: Path) -> str:
    try:
        return subprocess.run([python, "--version"], check=True, capture_output=True, text=True).stdout
    except OSError:
        return ""  # an environment whose interpreter is gone is made anew
