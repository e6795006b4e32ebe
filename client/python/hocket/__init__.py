"""Typed messages, flows and agent teams over one durable workflow engine.

Nothing is loaded before it is asked for: each name is fetched from its module when it is first used. `__init__.pyi`
says the same to type checkers.
"""

from importlib import import_module

_MODULES = {
    "executor": (
        "Executor",
        "RetryPolicy",
        "executor",
        "handler",
        "response_handler",
    ),
    "builder": ("Case", "Default", "WorkflowBuilder"),
    "workflow": ("Workflow",),
    "context": ("WorkflowContext",),
    "mesh": ("Mesh",),
    "payload": ("Codec",),
    "errors": (
        "HocketError",
        "DefinitionError",
        "PayloadError",
        "PayloadTooLargeError",
        "EffectError",
        "NotFoundError",
        "RefusedError",
        "RunTerminalError",
        "RunNotResumableError",
        "RunExistsError",
        "QuestionClosedError",
        "SignatureMismatchError",
        "RunError",
        "RunFailedError",
        "RunCancelledError",
        "LimitReached",
        "DefinitionWarning",
        "StatefulExecutorWarning",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [*_MODULE_OF, "__version__"]  # noqa: PLE0604  # the table holds text


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("hocket")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'hocket' has no attribute {name!r}")
    module = import_module(f"hocket.{_MODULE_OF[name]}")
    if name == _MODULE_OF[name]:
        return module  # `executor` is both: its module can be called as the decorator
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
