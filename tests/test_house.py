"""The house keeps its floors: who loads what, who may write what where.

import-linter (in pyproject.toml) reads who imports whom. Here is what it cannot say: what a fresh process
has loaded in the end, what is forbidden inside a module, and rules about parts of foreign packages.
"""

import ast
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
SDK = ROOT / "client/python/hocket"
SERVER = ROOT / "server/hocket_server"
CORE = SERVER / "core"
GENERATED = SDK / "v1"

HEAVY = {"grpc", "opentelemetry", "prometheus_client", "pydantic", "temporalio"}
NOT_IN_CORE = HEAVY | {"asyncio", "threading", "time", "datetime", "random", "uuid", "os", "logging"}
CORE_MAY_USE_OF_SDK = ("hocket.v1", "hocket.errors", "hocket.records", "hocket.wire")
LONGEST_FILE = 600
EMPTY_NAMES = {"utils", "util", "helpers", "common", "base", "manager", "impl"}


# What a fresh process has loaded


def loaded_by(*modules: str) -> set[str]:
    """The names of all modules that a new interpreter has loaded after it imported these."""
    program = (
        "import sys, json, importlib\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def roots(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.process
def test_a_fresh_process_sees_what_is_loaded() -> None:
    assert "grpc" in roots(loaded_by("grpc"))
    assert "grpc" not in roots(loaded_by("json"))


@pytest.mark.process
def test_import_hocket_loads_nothing() -> None:
    assert (SDK / "__init__.py").is_file()
    loaded = loaded_by("hocket")
    assert not roots(loaded) & (HEAVY | {"hocket_server", "google"})
    assert {name for name in loaded if name.startswith("hocket.")} == set()


@pytest.mark.process
def test_the_messages_load_no_grpc() -> None:
    assert not roots(loaded_by("hocket.v1")) & (HEAVY | {"asyncio", "hocket_server"})


@pytest.mark.process
def test_the_ground_floor_loads_no_grpc_and_no_server() -> None:
    ground = [f"hocket.{name}" for name in ("errors", "records", "wire", "payload")]
    assert not roots(loaded_by(*ground)) & (HEAVY | {"hocket_server"})


@pytest.mark.process
def test_the_core_loads_nothing_of_the_world() -> None:
    loaded = loaded_by(*(module_name(path) for path in core_files()))
    assert not roots(loaded) & (HEAVY | {"asyncio"})
    floors = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("hocket_server.")}
    assert floors == {"hocket_server.core"}
    of_sdk = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("hocket.")}
    # errors and wire may lean on their own floor; nothing above it.
    assert of_sdk <= {*CORE_MAY_USE_OF_SDK, "hocket.payload"}


# What stands in the files


def module_name(path: Path) -> str:
    for top in (ROOT / "client/python", ROOT / "server", ROOT):
        if path.is_relative_to(top):
            parts = path.relative_to(top).with_suffix("").parts
            return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    raise AssertionError(f"{path} is not in this repository")


def core_files() -> list[Path]:
    files = sorted(CORE.rglob("*.py"))
    assert files, f"nothing to look at in {CORE}"
    return files


def our_files() -> list[Path]:
    """Every Python file that a person wrote."""
    folders = (SDK, SERVER, ROOT / "tests", ROOT / "examples", ROOT / "scripts")
    files = {path for folder in folders for path in folder.rglob("*.py") if GENERATED not in path.parents}
    assert Path(__file__).resolve() in files
    return sorted(files)


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of each thing imported, at any depth; `from a import b` is both `a` and `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            yield node.lineno, source
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)


def is_inside(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def core_may_use(name: str) -> bool:
    match name.partition(".")[0]:
        case "hocket" | "hocket_server" if "." in name:
            return any(is_inside(name, part) for part in (*CORE_MAY_USE_OF_SDK, "hocket_server.core"))
        case root:  # relative imports have an empty root
            return root != "" and root not in NOT_IN_CORE


def core_offences(source: str) -> list[str]:
    """What a file of the core may not have: async code, the world's modules, I/O, ignored type errors."""
    tree = ast.parse(source)
    found: list[tuple[int, str]] = []
    for line, name in imports(tree):
        if not core_may_use(name):
            found.append((line, f"import of {name}"))
    for node in ast.walk(tree):
        match node:
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                found.append((node.lineno, "async code"))
            case ast.Call(func=ast.Name(id="open" | "print" | "__import__" as name)):
                found.append((node.lineno, f"call of {name}"))
            case _:
                pass
    for line, text in enumerate(source.splitlines(), start=1):
        if "# type: ignore" in text or "# pyright: ignore" in text:
            found.append((line, "ignored type error"))
    return sorted({f"line {line}: {what}" for line, what in found})


@pytest.mark.parametrize(
    ("source", "offence"),
    [
        ("async def f(): pass", "async code"),
        ("import time", "import of time"),
        ("def f():\n    from os import path", "import of os"),
        ("import asyncio.queues", "import of asyncio.queues"),
        ("from hocket import payload", "import of hocket.payload"),
        ("import hocket.context", "import of hocket.context"),
        ("from hocket import Executor", "import of hocket.Executor"),
        ("from hocket_server.store import memory", "import of hocket_server.store"),
        ("from . import routing", "import of ."),
        ("open('x')", "call of open"),
        ("x: int = 'a'  # type: ignore[assignment]", "ignored type error"),
    ],
)
def test_the_watch_on_the_core_sees(source: str, offence: str) -> None:
    assert any(offence in found for found in core_offences(source))


@pytest.mark.parametrize(
    "source",
    [
        "import re\nfrom hocket import errors, records, v1, wire\nfrom hocket.records import Delivery",
        "from hocket_server import core\nfrom hocket_server.core import routing\nfrom collections import abc",
    ],
)
def test_the_watch_on_the_core_lets_pass(source: str) -> None:
    assert core_offences(source) == []


def test_the_core_has_no_async_code_and_no_forbidden_import() -> None:
    offences = {module_name(path): core_offences(path.read_text()) for path in core_files()}
    assert {name: found for name, found in offences.items() if found} == {}


def importers_of(package: str, files: list[Path]) -> set[str]:
    return {
        module_name(path)
        for path in files
        if any(is_inside(name, package) for _, name in imports(ast.parse(path.read_text())))
    }


def shipped_files() -> list[Path]:
    return [path for path in our_files() if path.is_relative_to(SDK) or path.is_relative_to(SERVER)]


def test_rpc_alone_imports_the_stubs() -> None:
    stubs = [f"hocket.v1.{path.stem}" for path in GENERATED.glob("*_pb2_grpc.py")]
    assert stubs
    for stub in stubs:
        assert importers_of(stub, shipped_files()) <= {"hocket.rpc"}


def test_messages_are_imported_from_v1_alone() -> None:
    """Not from the module of the file that declares them: a message that moves must not touch the code."""
    modules = [f"hocket.v1.{path.stem}" for path in GENERATED.glob("*_pb2.py")]
    assert modules
    for module in modules:
        assert importers_of(module, shipped_files()) == set()


def test_the_sdk_of_opentelemetry_is_in_telemetry_alone() -> None:
    for name in importers_of("opentelemetry.sdk", shipped_files()):
        assert is_inside(name, "hocket_server.telemetry")


def test_v1_exports_messages_enums_and_their_values_only() -> None:
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
    from google.protobuf.message import Message

    from hocket import v1

    assert v1.__all__
    for name in v1.__all__:
        value = getattr(v1, name)
        assert isinstance(value, EnumTypeWrapper | int) or issubclass(value, Message), name
    others = {name for name in vars(v1) if not name.startswith("_")} - set(v1.__all__)
    assert {name for name in others if not isinstance(getattr(v1, name), ModuleType)} == set()


def test_no_file_is_too_long() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in our_files()}
    assert {name: length for name, length in lengths.items() if length >= LONGEST_FILE} == {}


def test_modules_are_named_for_what_they_hold() -> None:
    assert {module_name(path) for path in our_files() if path.stem in EMPTY_NAMES} == set()


# What is shipped


@pytest.mark.process
def test_the_wheel_holds_both_packages(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)],
        cwd=ROOT,
        check=True,
        timeout=60,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    [wheel] = tmp_path.glob("hocket-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for package, folder in (("hocket", SDK), ("hocket_server", SERVER)):
        wanted = {f"{package}/{path.relative_to(folder)}" for path in folder.rglob("*.py*") if path.suffix != ".pyc"}
        assert f"{package}/py.typed" in names
        assert f"{package}/__init__.py" in names
        assert wanted <= names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"hocket", "hocket_server"}
