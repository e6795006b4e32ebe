"""Generate the Python code of the contract, or check that the committed code is what the protos give.

The proto package is the Python package, so protoc's own imports are right and nothing is rewritten.
`hocket/v1/__init__.py` gives the messages, the enums and their values only: the gRPC stubs would bring grpc
into the core.
"""

import filecmp
import shutil
import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("hocket/v1")
GENERATED = ("__init__.py", "*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb2_grpc.pyi")


def main() -> int:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed code, change nothing")
    parser.add_argument("--protos", type=Path, default=ROOT / "protos", metavar="DIR")
    parser.add_argument("--out", type=Path, default=ROOT / "client/python", metavar="DIR")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        generate(options.protos.resolve(), fresh)
        if options.check:
            return report(stale(fresh / PACKAGE, options.out / PACKAGE))
        replace(fresh / PACKAGE, options.out / PACKAGE)
    return 0


def generate(protos: Path, out: Path) -> None:
    sources = sorted(str(path.relative_to(protos)) for path in (protos / PACKAGE).glob("*.proto"))
    if not sources:
        sys.exit(f"generate: no .proto file in {protos / PACKAGE}")
    tools = Path(grpc_tools.__file__).parent
    scripts = Path(sys.executable).parent
    image = out / "image.binpb"
    status = protoc.main(
        [
            "protoc",
            f"-I{protos}",
            f"-I{tools / '_proto'}",
            f"--plugin=protoc-gen-mypy={scripts / 'protoc-gen-mypy'}",
            f"--plugin=protoc-gen-mypy_grpc={scripts / 'protoc-gen-mypy_grpc'}",
            f"--python_out={out}",
            f"--mypy_out=quiet:{out}",
            f"--grpc_python_out={out}",
            f"--mypy_grpc_out=quiet,only_async:{out}",
            f"--descriptor_set_out={image}",
            *sources,
        ]
    )
    if status:
        sys.exit(f"generate: protoc failed with status {status}")
    files = FileDescriptorSet.FromString(image.read_bytes()).file
    remove_empty_stubs(files, out)
    (out / PACKAGE / "__init__.py").write_text(exports(files))


def remove_empty_stubs(files: Iterable[FileDescriptorProto], out: Path) -> None:
    """protoc writes a gRPC module for every file, also for one without a service."""
    for file in files:
        if not file.service:
            for suffix in (".py", ".pyi"):
                (out / PACKAGE / f"{Path(file.name).stem}_pb2_grpc{suffix}").unlink(missing_ok=True)


def exports(files: Iterable[FileDescriptorProto]) -> str:
    imports: list[str] = []
    names: list[str] = []
    for file in sorted(files, key=lambda file: file.name):
        module = f"{file.package}.{Path(file.name).stem}_pb2"
        messages = [message.name for message in file.message_type]
        enums = [enum.name for enum in file.enum_type]
        values = [value.name for enum in file.enum_type for value in enum.value]
        for name in sorted(messages + enums + values):
            imports.append(f"from {module} import {name} as {name}\n")
            names.append(name)
    listed = "".join(f'    "{name}",\n' for name in sorted(names))
    return (
        '"""The messages, enums and enum values of the contract. Generated: do not edit."""\n\n'
        f"{''.join(imports)}\n__all__ = [\n{listed}]\n"
    )


def listing(folder: Path) -> set[str]:
    return {path.name for pattern in GENERATED for path in folder.glob(pattern)}


def stale(fresh: Path, committed: Path) -> list[str]:
    wanted, present = listing(fresh), listing(committed)
    missing = [f"{name} is missing" for name in wanted - present]
    extra = [f"{name} has no proto" for name in present - wanted]
    changed = [
        f"{name} is stale"
        for name in wanted & present
        if not filecmp.cmp(fresh / name, committed / name, shallow=False)
    ]
    return sorted(missing + extra + changed)


def report(complaints: list[str]) -> int:
    for complaint in complaints:
        print(f"{PACKAGE}/{complaint}; run scripts/generate", file=sys.stderr)
    return 1 if complaints else 0


def replace(fresh: Path, committed: Path) -> None:
    """Files that did not change keep their time stamp; files whose proto is gone go too."""
    committed.mkdir(parents=True, exist_ok=True)
    for name in listing(committed) - listing(fresh):
        (committed / name).unlink()
    for name in sorted(listing(fresh)):
        target = committed / name
        if not target.exists() or not filecmp.cmp(fresh / name, target, shallow=False):
            shutil.copyfile(fresh / name, target)


if __name__ == "__main__":
    sys.exit(main())
