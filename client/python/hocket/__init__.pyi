"""What `hocket` offers, for type checkers: the same names as in the table of `__init__.py`."""

from hocket.builder import Case as Case
from hocket.builder import Default as Default
from hocket.builder import WorkflowBuilder as WorkflowBuilder
from hocket.context import WorkflowContext as WorkflowContext
from hocket.errors import DefinitionError as DefinitionError
from hocket.errors import DefinitionWarning as DefinitionWarning
from hocket.errors import EffectError as EffectError
from hocket.errors import HocketError as HocketError
from hocket.errors import LimitReached as LimitReached
from hocket.errors import NotFoundError as NotFoundError
from hocket.errors import PayloadError as PayloadError
from hocket.errors import PayloadTooLargeError as PayloadTooLargeError
from hocket.errors import QuestionClosedError as QuestionClosedError
from hocket.errors import RefusedError as RefusedError
from hocket.errors import RunCancelledError as RunCancelledError
from hocket.errors import RunError as RunError
from hocket.errors import RunExistsError as RunExistsError
from hocket.errors import RunFailedError as RunFailedError
from hocket.errors import RunNotResumableError as RunNotResumableError
from hocket.errors import RunTerminalError as RunTerminalError
from hocket.errors import SignatureMismatchError as SignatureMismatchError
from hocket.errors import StatefulExecutorWarning as StatefulExecutorWarning
from hocket.executor import Executor as Executor
from hocket.executor import RetryPolicy as RetryPolicy
from hocket.executor import executor as executor
from hocket.executor import handler as handler
from hocket.executor import response_handler as response_handler
from hocket.mesh import Mesh as Mesh
from hocket.payload import Codec as Codec
from hocket.workflow import Workflow as Workflow

__version__: str
__all__ = [
    "Executor",
    "RetryPolicy",
    "executor",
    "handler",
    "response_handler",
    "Case",
    "Default",
    "WorkflowBuilder",
    "Workflow",
    "WorkflowContext",
    "Mesh",
    "Codec",
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
    "__version__",
]

def __dir__() -> list[str]: ...
