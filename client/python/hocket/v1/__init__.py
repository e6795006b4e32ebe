"""The messages, enums and enum values of the contract. Generated: do not edit."""

from hocket.v1.blob_service_pb2 import GetBlobRequest as GetBlobRequest
from hocket.v1.blob_service_pb2 import GetBlobResponse as GetBlobResponse
from hocket.v1.blob_service_pb2 import PutBlobRequest as PutBlobRequest
from hocket.v1.blob_service_pb2 import PutBlobResponse as PutBlobResponse
from hocket.v1.definition_pb2 import Definition as Definition
from hocket.v1.definition_pb2 import Fault as Fault
from hocket.v1.definition_service_pb2 import GetDefinitionRequest as GetDefinitionRequest
from hocket.v1.definition_service_pb2 import GetDefinitionResponse as GetDefinitionResponse
from hocket.v1.definition_service_pb2 import ListDefinitionsRequest as ListDefinitionsRequest
from hocket.v1.definition_service_pb2 import ListDefinitionsResponse as ListDefinitionsResponse
from hocket.v1.definition_service_pb2 import PutDefinitionRequest as PutDefinitionRequest
from hocket.v1.definition_service_pb2 import PutDefinitionResponse as PutDefinitionResponse
from hocket.v1.event_pb2 import DROP_REASON_CONDITION_FALSE as DROP_REASON_CONDITION_FALSE
from hocket.v1.event_pb2 import DROP_REASON_JOIN_LEFTOVER as DROP_REASON_JOIN_LEFTOVER
from hocket.v1.event_pb2 import DROP_REASON_NO_EDGE as DROP_REASON_NO_EDGE
from hocket.v1.event_pb2 import DROP_REASON_NO_HANDLER as DROP_REASON_NO_HANDLER
from hocket.v1.event_pb2 import DROP_REASON_UNSPECIFIED as DROP_REASON_UNSPECIFIED
from hocket.v1.event_pb2 import DropReason as DropReason
from hocket.v1.event_pb2 import Event as Event
from hocket.v1.event_pb2 import HandedOff as HandedOff
from hocket.v1.event_pb2 import InvocationCompleted as InvocationCompleted
from hocket.v1.event_pb2 import InvocationFailed as InvocationFailed
from hocket.v1.event_pb2 import InvocationStarted as InvocationStarted
from hocket.v1.event_pb2 import InvocationSuspended as InvocationSuspended
from hocket.v1.event_pb2 import MessageDropped as MessageDropped
from hocket.v1.event_pb2 import OutputYielded as OutputYielded
from hocket.v1.event_pb2 import QuestionAnswered as QuestionAnswered
from hocket.v1.event_pb2 import QuestionAsked as QuestionAsked
from hocket.v1.event_pb2 import RouteTaken as RouteTaken
from hocket.v1.event_pb2 import RunCancelRequested as RunCancelRequested
from hocket.v1.event_pb2 import RunEnded as RunEnded
from hocket.v1.event_pb2 import RunResumed as RunResumed
from hocket.v1.event_pb2 import RunStarted as RunStarted
from hocket.v1.event_pb2 import SignalReceived as SignalReceived
from hocket.v1.event_pb2 import SuperstepCompleted as SuperstepCompleted
from hocket.v1.event_pb2 import SuperstepStarted as SuperstepStarted
from hocket.v1.executor_service_pb2 import ExecuteRequest as ExecuteRequest
from hocket.v1.executor_service_pb2 import ExecuteResponse as ExecuteResponse
from hocket.v1.executor_service_pb2 import GetManifestRequest as GetManifestRequest
from hocket.v1.executor_service_pb2 import GetManifestResponse as GetManifestResponse
from hocket.v1.failure_pb2 import ERROR_REASON_ADDRESS_FORBIDDEN as ERROR_REASON_ADDRESS_FORBIDDEN
from hocket.v1.failure_pb2 import ERROR_REASON_ARGUMENT_INVALID as ERROR_REASON_ARGUMENT_INVALID
from hocket.v1.failure_pb2 import ERROR_REASON_CHECKPOINT_NOT_FOUND as ERROR_REASON_CHECKPOINT_NOT_FOUND
from hocket.v1.failure_pb2 import ERROR_REASON_CONCURRENT_UPDATE as ERROR_REASON_CONCURRENT_UPDATE
from hocket.v1.failure_pb2 import ERROR_REASON_CURSOR_EXPIRED as ERROR_REASON_CURSOR_EXPIRED
from hocket.v1.failure_pb2 import ERROR_REASON_CURSOR_INVALID as ERROR_REASON_CURSOR_INVALID
from hocket.v1.failure_pb2 import ERROR_REASON_DEFINITION_INVALID as ERROR_REASON_DEFINITION_INVALID
from hocket.v1.failure_pb2 import ERROR_REASON_DEFINITION_NOT_FOUND as ERROR_REASON_DEFINITION_NOT_FOUND
from hocket.v1.failure_pb2 import ERROR_REASON_DRAINING as ERROR_REASON_DRAINING
from hocket.v1.failure_pb2 import ERROR_REASON_EXECUTOR_TYPE_FORBIDDEN as ERROR_REASON_EXECUTOR_TYPE_FORBIDDEN
from hocket.v1.failure_pb2 import ERROR_REASON_NAMESPACE_FORBIDDEN as ERROR_REASON_NAMESPACE_FORBIDDEN
from hocket.v1.failure_pb2 import ERROR_REASON_NODE_NOT_FOUND as ERROR_REASON_NODE_NOT_FOUND
from hocket.v1.failure_pb2 import ERROR_REASON_NO_CHECKPOINT as ERROR_REASON_NO_CHECKPOINT
from hocket.v1.failure_pb2 import ERROR_REASON_PAYLOAD_INVALID as ERROR_REASON_PAYLOAD_INVALID
from hocket.v1.failure_pb2 import ERROR_REASON_PAYLOAD_TOO_LARGE as ERROR_REASON_PAYLOAD_TOO_LARGE
from hocket.v1.failure_pb2 import ERROR_REASON_PROTOCOL_VERSION_UNSUPPORTED as ERROR_REASON_PROTOCOL_VERSION_UNSUPPORTED
from hocket.v1.failure_pb2 import ERROR_REASON_QUESTION_CLOSED as ERROR_REASON_QUESTION_CLOSED
from hocket.v1.failure_pb2 import ERROR_REASON_QUESTION_NOT_FOUND as ERROR_REASON_QUESTION_NOT_FOUND
from hocket.v1.failure_pb2 import ERROR_REASON_QUOTA as ERROR_REASON_QUOTA
from hocket.v1.failure_pb2 import ERROR_REASON_REQUEST_ID_REUSED as ERROR_REASON_REQUEST_ID_REUSED
from hocket.v1.failure_pb2 import ERROR_REASON_RUN_EXISTS as ERROR_REASON_RUN_EXISTS
from hocket.v1.failure_pb2 import ERROR_REASON_RUN_NOT_FOUND as ERROR_REASON_RUN_NOT_FOUND
from hocket.v1.failure_pb2 import ERROR_REASON_RUN_NOT_RESUMABLE as ERROR_REASON_RUN_NOT_RESUMABLE
from hocket.v1.failure_pb2 import ERROR_REASON_RUN_TERMINAL as ERROR_REASON_RUN_TERMINAL
from hocket.v1.failure_pb2 import ERROR_REASON_SIGNATURE_MISMATCH as ERROR_REASON_SIGNATURE_MISMATCH
from hocket.v1.failure_pb2 import ERROR_REASON_SLOW_READER as ERROR_REASON_SLOW_READER
from hocket.v1.failure_pb2 import ERROR_REASON_STANDBY as ERROR_REASON_STANDBY
from hocket.v1.failure_pb2 import ERROR_REASON_STORE_UNAVAILABLE as ERROR_REASON_STORE_UNAVAILABLE
from hocket.v1.failure_pb2 import ERROR_REASON_TOKEN_EXPIRED as ERROR_REASON_TOKEN_EXPIRED
from hocket.v1.failure_pb2 import ERROR_REASON_UNSPECIFIED as ERROR_REASON_UNSPECIFIED
from hocket.v1.failure_pb2 import ErrorReason as ErrorReason
from hocket.v1.failure_pb2 import FAILURE_KIND_APPLICATION as FAILURE_KIND_APPLICATION
from hocket.v1.failure_pb2 import FAILURE_KIND_CANCELLED as FAILURE_KIND_CANCELLED
from hocket.v1.failure_pb2 import FAILURE_KIND_CONDITION as FAILURE_KIND_CONDITION
from hocket.v1.failure_pb2 import FAILURE_KIND_CONFLICT as FAILURE_KIND_CONFLICT
from hocket.v1.failure_pb2 import FAILURE_KIND_EXECUTOR_LOST as FAILURE_KIND_EXECUTOR_LOST
from hocket.v1.failure_pb2 import FAILURE_KIND_INTERNAL as FAILURE_KIND_INTERNAL
from hocket.v1.failure_pb2 import FAILURE_KIND_JOIN_STARVED as FAILURE_KIND_JOIN_STARVED
from hocket.v1.failure_pb2 import FAILURE_KIND_PROTOCOL as FAILURE_KIND_PROTOCOL
from hocket.v1.failure_pb2 import FAILURE_KIND_QUESTION_EXPIRED as FAILURE_KIND_QUESTION_EXPIRED
from hocket.v1.failure_pb2 import FAILURE_KIND_TIMEOUT as FAILURE_KIND_TIMEOUT
from hocket.v1.failure_pb2 import FAILURE_KIND_UNDELIVERED as FAILURE_KIND_UNDELIVERED
from hocket.v1.failure_pb2 import FAILURE_KIND_UNSCHEDULED as FAILURE_KIND_UNSCHEDULED
from hocket.v1.failure_pb2 import FAILURE_KIND_UNSPECIFIED as FAILURE_KIND_UNSPECIFIED
from hocket.v1.failure_pb2 import Failure as Failure
from hocket.v1.failure_pb2 import FailureKind as FailureKind
from hocket.v1.graph_pb2 import ConditionalTarget as ConditionalTarget
from hocket.v1.graph_pb2 import DefinitionRef as DefinitionRef
from hocket.v1.graph_pb2 import EdgeGroup as EdgeGroup
from hocket.v1.graph_pb2 import ExecutorRef as ExecutorRef
from hocket.v1.graph_pb2 import FanIn as FanIn
from hocket.v1.graph_pb2 import FanOut as FanOut
from hocket.v1.graph_pb2 import Graph as Graph
from hocket.v1.graph_pb2 import JOIN_POLICY_ALL as JOIN_POLICY_ALL
from hocket.v1.graph_pb2 import JOIN_POLICY_ANY as JOIN_POLICY_ANY
from hocket.v1.graph_pb2 import JOIN_POLICY_QUORUM as JOIN_POLICY_QUORUM
from hocket.v1.graph_pb2 import JOIN_POLICY_REACHABLE as JOIN_POLICY_REACHABLE
from hocket.v1.graph_pb2 import JOIN_POLICY_UNSPECIFIED as JOIN_POLICY_UNSPECIFIED
from hocket.v1.graph_pb2 import JoinPolicy as JoinPolicy
from hocket.v1.graph_pb2 import MERGE_POLICY_APPEND as MERGE_POLICY_APPEND
from hocket.v1.graph_pb2 import MERGE_POLICY_LAST_WRITER as MERGE_POLICY_LAST_WRITER
from hocket.v1.graph_pb2 import MERGE_POLICY_MERGE as MERGE_POLICY_MERGE
from hocket.v1.graph_pb2 import MERGE_POLICY_REJECT as MERGE_POLICY_REJECT
from hocket.v1.graph_pb2 import MERGE_POLICY_SUM as MERGE_POLICY_SUM
from hocket.v1.graph_pb2 import MERGE_POLICY_UNSPECIFIED as MERGE_POLICY_UNSPECIFIED
from hocket.v1.graph_pb2 import MergePolicy as MergePolicy
from hocket.v1.graph_pb2 import MultiSelection as MultiSelection
from hocket.v1.graph_pb2 import Node as Node
from hocket.v1.graph_pb2 import ON_STUCK_FAIL as ON_STUCK_FAIL
from hocket.v1.graph_pb2 import ON_STUCK_OVERLAP as ON_STUCK_OVERLAP
from hocket.v1.graph_pb2 import ON_STUCK_UNSPECIFIED as ON_STUCK_UNSPECIFIED
from hocket.v1.graph_pb2 import ON_STUCK_WAIT as ON_STUCK_WAIT
from hocket.v1.graph_pb2 import OUTPUT_ROLE_HIDDEN as OUTPUT_ROLE_HIDDEN
from hocket.v1.graph_pb2 import OUTPUT_ROLE_INTERMEDIATE as OUTPUT_ROLE_INTERMEDIATE
from hocket.v1.graph_pb2 import OUTPUT_ROLE_OUTPUT as OUTPUT_ROLE_OUTPUT
from hocket.v1.graph_pb2 import OUTPUT_ROLE_UNSPECIFIED as OUTPUT_ROLE_UNSPECIFIED
from hocket.v1.graph_pb2 import OnStuck as OnStuck
from hocket.v1.graph_pb2 import OutputRole as OutputRole
from hocket.v1.graph_pb2 import RetryPolicy as RetryPolicy
from hocket.v1.graph_pb2 import SingleEdge as SingleEdge
from hocket.v1.graph_pb2 import StateKey as StateKey
from hocket.v1.graph_pb2 import SwitchCase as SwitchCase
from hocket.v1.input_pb2 import Answered as Answered
from hocket.v1.input_pb2 import Begin as Begin
from hocket.v1.input_pb2 import Cancel as Cancel
from hocket.v1.input_pb2 import Completed as Completed
from hocket.v1.input_pb2 import Failed as Failed
from hocket.v1.input_pb2 import Fired as Fired
from hocket.v1.input_pb2 import Input as Input
from hocket.v1.input_pb2 import Resume as Resume
from hocket.v1.input_pb2 import Signalled as Signalled
from hocket.v1.input_pb2 import TIMER_KIND_QUESTION as TIMER_KIND_QUESTION
from hocket.v1.input_pb2 import TIMER_KIND_RETRY as TIMER_KIND_RETRY
from hocket.v1.input_pb2 import TIMER_KIND_RUN as TIMER_KIND_RUN
from hocket.v1.input_pb2 import TIMER_KIND_UNSPECIFIED as TIMER_KIND_UNSPECIFIED
from hocket.v1.input_pb2 import TimerKind as TimerKind
from hocket.v1.invocation_pb2 import CANCEL_REASON_RUN_CANCELLED as CANCEL_REASON_RUN_CANCELLED
from hocket.v1.invocation_pb2 import CANCEL_REASON_SERVER_DRAINING as CANCEL_REASON_SERVER_DRAINING
from hocket.v1.invocation_pb2 import CANCEL_REASON_SUPERSEDED as CANCEL_REASON_SUPERSEDED
from hocket.v1.invocation_pb2 import CANCEL_REASON_TIMEOUT as CANCEL_REASON_TIMEOUT
from hocket.v1.invocation_pb2 import CANCEL_REASON_UNSPECIFIED as CANCEL_REASON_UNSPECIFIED
from hocket.v1.invocation_pb2 import CancelInvocation as CancelInvocation
from hocket.v1.invocation_pb2 import CancelReason as CancelReason
from hocket.v1.invocation_pb2 import CustomEvent as CustomEvent
from hocket.v1.invocation_pb2 import Effects as Effects
from hocket.v1.invocation_pb2 import GraphPosition as GraphPosition
from hocket.v1.invocation_pb2 import HANDOFF_MODE_CALL as HANDOFF_MODE_CALL
from hocket.v1.invocation_pb2 import HANDOFF_MODE_TRANSFER as HANDOFF_MODE_TRANSFER
from hocket.v1.invocation_pb2 import HANDOFF_MODE_UNSPECIFIED as HANDOFF_MODE_UNSPECIFIED
from hocket.v1.invocation_pb2 import Handoff as Handoff
from hocket.v1.invocation_pb2 import HandoffMode as HandoffMode
from hocket.v1.invocation_pb2 import Invocation as Invocation
from hocket.v1.invocation_pb2 import InvocationRef as InvocationRef
from hocket.v1.invocation_pb2 import InvocationResult as InvocationResult
from hocket.v1.invocation_pb2 import InvocationUpdate as InvocationUpdate
from hocket.v1.invocation_pb2 import LiveEvent as LiveEvent
from hocket.v1.invocation_pb2 import MethodPosition as MethodPosition
from hocket.v1.invocation_pb2 import Progress as Progress
from hocket.v1.invocation_pb2 import REJECTION_REASON_DRAINING as REJECTION_REASON_DRAINING
from hocket.v1.invocation_pb2 import REJECTION_REASON_OVERLOADED as REJECTION_REASON_OVERLOADED
from hocket.v1.invocation_pb2 import REJECTION_REASON_UNKNOWN_EXECUTOR_TYPE as REJECTION_REASON_UNKNOWN_EXECUTOR_TYPE
from hocket.v1.invocation_pb2 import REJECTION_REASON_UNSPECIFIED as REJECTION_REASON_UNSPECIFIED
from hocket.v1.invocation_pb2 import REJECTION_REASON_UNSUPPORTED_PAYLOAD as REJECTION_REASON_UNSUPPORTED_PAYLOAD
from hocket.v1.invocation_pb2 import Receipt as Receipt
from hocket.v1.invocation_pb2 import Rejection as Rejection
from hocket.v1.invocation_pb2 import RejectionReason as RejectionReason
from hocket.v1.invocation_pb2 import StateWrite as StateWrite
from hocket.v1.invocation_pb2 import Suspended as Suspended
from hocket.v1.invocation_pb2 import TaskPosition as TaskPosition
from hocket.v1.manifest_pb2 import CAPABILITY_BLOB_PAYLOADS as CAPABILITY_BLOB_PAYLOADS
from hocket.v1.manifest_pb2 import CAPABILITY_GRACEFUL_CANCEL as CAPABILITY_GRACEFUL_CANCEL
from hocket.v1.manifest_pb2 import CAPABILITY_UNSPECIFIED as CAPABILITY_UNSPECIFIED
from hocket.v1.manifest_pb2 import Capability as Capability
from hocket.v1.manifest_pb2 import ExecutorSpec as ExecutorSpec
from hocket.v1.manifest_pb2 import Manifest as Manifest
from hocket.v1.manifest_pb2 import ProtocolVersionRange as ProtocolVersionRange
from hocket.v1.manifest_pb2 import SdkInfo as SdkInfo
from hocket.v1.message_pb2 import Delivery as Delivery
from hocket.v1.message_pb2 import Message as Message
from hocket.v1.payload_pb2 import BlobRef as BlobRef
from hocket.v1.payload_pb2 import ExecutorTypes as ExecutorTypes
from hocket.v1.payload_pb2 import Payload as Payload
from hocket.v1.payload_pb2 import PayloadType as PayloadType
from hocket.v1.payload_pb2 import Preview as Preview
from hocket.v1.payload_pb2 import TraceContext as TraceContext
from hocket.v1.question_pb2 import Question as Question
from hocket.v1.registry_service_pb2 import CONNECTION_MODE_DIALED as CONNECTION_MODE_DIALED
from hocket.v1.registry_service_pb2 import CONNECTION_MODE_SESSION as CONNECTION_MODE_SESSION
from hocket.v1.registry_service_pb2 import CONNECTION_MODE_UNSPECIFIED as CONNECTION_MODE_UNSPECIFIED
from hocket.v1.registry_service_pb2 import ConnectionMode as ConnectionMode
from hocket.v1.registry_service_pb2 import DeregisterEndpointRequest as DeregisterEndpointRequest
from hocket.v1.registry_service_pb2 import DeregisterEndpointResponse as DeregisterEndpointResponse
from hocket.v1.registry_service_pb2 import EXECUTOR_STATE_DRAINING as EXECUTOR_STATE_DRAINING
from hocket.v1.registry_service_pb2 import EXECUTOR_STATE_LOST as EXECUTOR_STATE_LOST
from hocket.v1.registry_service_pb2 import EXECUTOR_STATE_READY as EXECUTOR_STATE_READY
from hocket.v1.registry_service_pb2 import EXECUTOR_STATE_UNSPECIFIED as EXECUTOR_STATE_UNSPECIFIED
from hocket.v1.registry_service_pb2 import ExecutorInstance as ExecutorInstance
from hocket.v1.registry_service_pb2 import ExecutorState as ExecutorState
from hocket.v1.registry_service_pb2 import GetServerInfoRequest as GetServerInfoRequest
from hocket.v1.registry_service_pb2 import GetServerInfoResponse as GetServerInfoResponse
from hocket.v1.registry_service_pb2 import ListExecutorsRequest as ListExecutorsRequest
from hocket.v1.registry_service_pb2 import ListExecutorsResponse as ListExecutorsResponse
from hocket.v1.registry_service_pb2 import RegisterEndpointRequest as RegisterEndpointRequest
from hocket.v1.registry_service_pb2 import RegisterEndpointResponse as RegisterEndpointResponse
from hocket.v1.run_pb2 import Checkpoint as Checkpoint
from hocket.v1.run_pb2 import RUN_STATE_CANCELLED as RUN_STATE_CANCELLED
from hocket.v1.run_pb2 import RUN_STATE_CANCELLING as RUN_STATE_CANCELLING
from hocket.v1.run_pb2 import RUN_STATE_COMPLETED as RUN_STATE_COMPLETED
from hocket.v1.run_pb2 import RUN_STATE_FAILED as RUN_STATE_FAILED
from hocket.v1.run_pb2 import RUN_STATE_LIMIT_REACHED as RUN_STATE_LIMIT_REACHED
from hocket.v1.run_pb2 import RUN_STATE_PENDING as RUN_STATE_PENDING
from hocket.v1.run_pb2 import RUN_STATE_RUNNING as RUN_STATE_RUNNING
from hocket.v1.run_pb2 import RUN_STATE_UNSPECIFIED as RUN_STATE_UNSPECIFIED
from hocket.v1.run_pb2 import RUN_STATE_WAITING as RUN_STATE_WAITING
from hocket.v1.run_pb2 import Run as Run
from hocket.v1.run_pb2 import RunState as RunState
from hocket.v1.run_service_pb2 import AnswerQuestionRequest as AnswerQuestionRequest
from hocket.v1.run_service_pb2 import AnswerQuestionResponse as AnswerQuestionResponse
from hocket.v1.run_service_pb2 import Bookmark as Bookmark
from hocket.v1.run_service_pb2 import CancelRunRequest as CancelRunRequest
from hocket.v1.run_service_pb2 import CancelRunResponse as CancelRunResponse
from hocket.v1.run_service_pb2 import DeleteRunRequest as DeleteRunRequest
from hocket.v1.run_service_pb2 import DeleteRunResponse as DeleteRunResponse
from hocket.v1.run_service_pb2 import Events as Events
from hocket.v1.run_service_pb2 import ForkRunRequest as ForkRunRequest
from hocket.v1.run_service_pb2 import ForkRunResponse as ForkRunResponse
from hocket.v1.run_service_pb2 import Gap as Gap
from hocket.v1.run_service_pb2 import GetCheckpointRequest as GetCheckpointRequest
from hocket.v1.run_service_pb2 import GetCheckpointResponse as GetCheckpointResponse
from hocket.v1.run_service_pb2 import GetInvocationRequest as GetInvocationRequest
from hocket.v1.run_service_pb2 import GetInvocationResponse as GetInvocationResponse
from hocket.v1.run_service_pb2 import GetRunRequest as GetRunRequest
from hocket.v1.run_service_pb2 import GetRunResponse as GetRunResponse
from hocket.v1.run_service_pb2 import ListCheckpointsRequest as ListCheckpointsRequest
from hocket.v1.run_service_pb2 import ListCheckpointsResponse as ListCheckpointsResponse
from hocket.v1.run_service_pb2 import ListEventsRequest as ListEventsRequest
from hocket.v1.run_service_pb2 import ListEventsResponse as ListEventsResponse
from hocket.v1.run_service_pb2 import ListQuestionsRequest as ListQuestionsRequest
from hocket.v1.run_service_pb2 import ListQuestionsResponse as ListQuestionsResponse
from hocket.v1.run_service_pb2 import ListRunsRequest as ListRunsRequest
from hocket.v1.run_service_pb2 import ListRunsResponse as ListRunsResponse
from hocket.v1.run_service_pb2 import RUN_ID_CONFLICT_POLICY_FAIL as RUN_ID_CONFLICT_POLICY_FAIL
from hocket.v1.run_service_pb2 import RUN_ID_CONFLICT_POLICY_REPLACE as RUN_ID_CONFLICT_POLICY_REPLACE
from hocket.v1.run_service_pb2 import RUN_ID_CONFLICT_POLICY_UNSPECIFIED as RUN_ID_CONFLICT_POLICY_UNSPECIFIED
from hocket.v1.run_service_pb2 import RUN_ID_CONFLICT_POLICY_USE_EXISTING as RUN_ID_CONFLICT_POLICY_USE_EXISTING
from hocket.v1.run_service_pb2 import ResumeRunRequest as ResumeRunRequest
from hocket.v1.run_service_pb2 import ResumeRunResponse as ResumeRunResponse
from hocket.v1.run_service_pb2 import RunIdConflictPolicy as RunIdConflictPolicy
from hocket.v1.run_service_pb2 import RunQuestion as RunQuestion
from hocket.v1.run_service_pb2 import SignalRunRequest as SignalRunRequest
from hocket.v1.run_service_pb2 import SignalRunResponse as SignalRunResponse
from hocket.v1.run_service_pb2 import StartRunRequest as StartRunRequest
from hocket.v1.run_service_pb2 import StartRunResponse as StartRunResponse
from hocket.v1.run_service_pb2 import WatchRunRequest as WatchRunRequest
from hocket.v1.run_service_pb2 import WatchRunResponse as WatchRunResponse
from hocket.v1.run_service_pb2 import WatchRunsRequest as WatchRunsRequest
from hocket.v1.run_service_pb2 import WatchRunsResponse as WatchRunsResponse
from hocket.v1.session_service_pb2 import ACK_DISPOSITION_ACCEPTED as ACK_DISPOSITION_ACCEPTED
from hocket.v1.session_service_pb2 import ACK_DISPOSITION_DUPLICATE as ACK_DISPOSITION_DUPLICATE
from hocket.v1.session_service_pb2 import ACK_DISPOSITION_REJECTED as ACK_DISPOSITION_REJECTED
from hocket.v1.session_service_pb2 import ACK_DISPOSITION_STALE as ACK_DISPOSITION_STALE
from hocket.v1.session_service_pb2 import ACK_DISPOSITION_UNSPECIFIED as ACK_DISPOSITION_UNSPECIFIED
from hocket.v1.session_service_pb2 import Ack as Ack
from hocket.v1.session_service_pb2 import AckDisposition as AckDisposition
from hocket.v1.session_service_pb2 import Acks as Acks
from hocket.v1.session_service_pb2 import ConnectRequest as ConnectRequest
from hocket.v1.session_service_pb2 import ConnectResponse as ConnectResponse
from hocket.v1.session_service_pb2 import Drain as Drain
from hocket.v1.session_service_pb2 import Goodbye as Goodbye
from hocket.v1.session_service_pb2 import Heartbeat as Heartbeat
from hocket.v1.session_service_pb2 import Hello as Hello
from hocket.v1.session_service_pb2 import InvocationUpdates as InvocationUpdates
from hocket.v1.session_service_pb2 import Invocations as Invocations
from hocket.v1.session_service_pb2 import Welcome as Welcome
from hocket.v1.session_service_pb2 import Window as Window
from hocket.v1.snapshot_pb2 import Child as Child
from hocket.v1.snapshot_pb2 import ClosedQuestion as ClosedQuestion
from hocket.v1.snapshot_pb2 import GraphSnapshot as GraphSnapshot
from hocket.v1.snapshot_pb2 import JoinBuffer as JoinBuffer
from hocket.v1.snapshot_pb2 import NodeDeliveries as NodeDeliveries
from hocket.v1.snapshot_pb2 import OpenQuestion as OpenQuestion
from hocket.v1.snapshot_pb2 import Snapshot as Snapshot
from hocket.v1.snapshot_pb2 import WORK_STATE_ABANDONED as WORK_STATE_ABANDONED
from hocket.v1.snapshot_pb2 import WORK_STATE_BACKOFF as WORK_STATE_BACKOFF
from hocket.v1.snapshot_pb2 import WORK_STATE_DONE as WORK_STATE_DONE
from hocket.v1.snapshot_pb2 import WORK_STATE_FAILED as WORK_STATE_FAILED
from hocket.v1.snapshot_pb2 import WORK_STATE_QUEUED as WORK_STATE_QUEUED
from hocket.v1.snapshot_pb2 import WORK_STATE_RUNNING as WORK_STATE_RUNNING
from hocket.v1.snapshot_pb2 import WORK_STATE_SUSPENDED as WORK_STATE_SUSPENDED
from hocket.v1.snapshot_pb2 import WORK_STATE_UNSPECIFIED as WORK_STATE_UNSPECIFIED
from hocket.v1.snapshot_pb2 import Work as Work
from hocket.v1.snapshot_pb2 import WorkState as WorkState

__all__ = [
    "ACK_DISPOSITION_ACCEPTED",
    "ACK_DISPOSITION_DUPLICATE",
    "ACK_DISPOSITION_REJECTED",
    "ACK_DISPOSITION_STALE",
    "ACK_DISPOSITION_UNSPECIFIED",
    "Ack",
    "AckDisposition",
    "Acks",
    "AnswerQuestionRequest",
    "AnswerQuestionResponse",
    "Answered",
    "Begin",
    "BlobRef",
    "Bookmark",
    "CANCEL_REASON_RUN_CANCELLED",
    "CANCEL_REASON_SERVER_DRAINING",
    "CANCEL_REASON_SUPERSEDED",
    "CANCEL_REASON_TIMEOUT",
    "CANCEL_REASON_UNSPECIFIED",
    "CAPABILITY_BLOB_PAYLOADS",
    "CAPABILITY_GRACEFUL_CANCEL",
    "CAPABILITY_UNSPECIFIED",
    "CONNECTION_MODE_DIALED",
    "CONNECTION_MODE_SESSION",
    "CONNECTION_MODE_UNSPECIFIED",
    "Cancel",
    "CancelInvocation",
    "CancelReason",
    "CancelRunRequest",
    "CancelRunResponse",
    "Capability",
    "Checkpoint",
    "Child",
    "ClosedQuestion",
    "Completed",
    "ConditionalTarget",
    "ConnectRequest",
    "ConnectResponse",
    "ConnectionMode",
    "CustomEvent",
    "DROP_REASON_CONDITION_FALSE",
    "DROP_REASON_JOIN_LEFTOVER",
    "DROP_REASON_NO_EDGE",
    "DROP_REASON_NO_HANDLER",
    "DROP_REASON_UNSPECIFIED",
    "Definition",
    "DefinitionRef",
    "DeleteRunRequest",
    "DeleteRunResponse",
    "Delivery",
    "DeregisterEndpointRequest",
    "DeregisterEndpointResponse",
    "Drain",
    "DropReason",
    "ERROR_REASON_ADDRESS_FORBIDDEN",
    "ERROR_REASON_ARGUMENT_INVALID",
    "ERROR_REASON_CHECKPOINT_NOT_FOUND",
    "ERROR_REASON_CONCURRENT_UPDATE",
    "ERROR_REASON_CURSOR_EXPIRED",
    "ERROR_REASON_CURSOR_INVALID",
    "ERROR_REASON_DEFINITION_INVALID",
    "ERROR_REASON_DEFINITION_NOT_FOUND",
    "ERROR_REASON_DRAINING",
    "ERROR_REASON_EXECUTOR_TYPE_FORBIDDEN",
    "ERROR_REASON_NAMESPACE_FORBIDDEN",
    "ERROR_REASON_NODE_NOT_FOUND",
    "ERROR_REASON_NO_CHECKPOINT",
    "ERROR_REASON_PAYLOAD_INVALID",
    "ERROR_REASON_PAYLOAD_TOO_LARGE",
    "ERROR_REASON_PROTOCOL_VERSION_UNSUPPORTED",
    "ERROR_REASON_QUESTION_CLOSED",
    "ERROR_REASON_QUESTION_NOT_FOUND",
    "ERROR_REASON_QUOTA",
    "ERROR_REASON_REQUEST_ID_REUSED",
    "ERROR_REASON_RUN_EXISTS",
    "ERROR_REASON_RUN_NOT_FOUND",
    "ERROR_REASON_RUN_NOT_RESUMABLE",
    "ERROR_REASON_RUN_TERMINAL",
    "ERROR_REASON_SIGNATURE_MISMATCH",
    "ERROR_REASON_SLOW_READER",
    "ERROR_REASON_STANDBY",
    "ERROR_REASON_STORE_UNAVAILABLE",
    "ERROR_REASON_TOKEN_EXPIRED",
    "ERROR_REASON_UNSPECIFIED",
    "EXECUTOR_STATE_DRAINING",
    "EXECUTOR_STATE_LOST",
    "EXECUTOR_STATE_READY",
    "EXECUTOR_STATE_UNSPECIFIED",
    "EdgeGroup",
    "Effects",
    "ErrorReason",
    "Event",
    "Events",
    "ExecuteRequest",
    "ExecuteResponse",
    "ExecutorInstance",
    "ExecutorRef",
    "ExecutorSpec",
    "ExecutorState",
    "ExecutorTypes",
    "FAILURE_KIND_APPLICATION",
    "FAILURE_KIND_CANCELLED",
    "FAILURE_KIND_CONDITION",
    "FAILURE_KIND_CONFLICT",
    "FAILURE_KIND_EXECUTOR_LOST",
    "FAILURE_KIND_INTERNAL",
    "FAILURE_KIND_JOIN_STARVED",
    "FAILURE_KIND_PROTOCOL",
    "FAILURE_KIND_QUESTION_EXPIRED",
    "FAILURE_KIND_TIMEOUT",
    "FAILURE_KIND_UNDELIVERED",
    "FAILURE_KIND_UNSCHEDULED",
    "FAILURE_KIND_UNSPECIFIED",
    "Failed",
    "Failure",
    "FailureKind",
    "FanIn",
    "FanOut",
    "Fault",
    "Fired",
    "ForkRunRequest",
    "ForkRunResponse",
    "Gap",
    "GetBlobRequest",
    "GetBlobResponse",
    "GetCheckpointRequest",
    "GetCheckpointResponse",
    "GetDefinitionRequest",
    "GetDefinitionResponse",
    "GetInvocationRequest",
    "GetInvocationResponse",
    "GetManifestRequest",
    "GetManifestResponse",
    "GetRunRequest",
    "GetRunResponse",
    "GetServerInfoRequest",
    "GetServerInfoResponse",
    "Goodbye",
    "Graph",
    "GraphPosition",
    "GraphSnapshot",
    "HANDOFF_MODE_CALL",
    "HANDOFF_MODE_TRANSFER",
    "HANDOFF_MODE_UNSPECIFIED",
    "HandedOff",
    "Handoff",
    "HandoffMode",
    "Heartbeat",
    "Hello",
    "Input",
    "Invocation",
    "InvocationCompleted",
    "InvocationFailed",
    "InvocationRef",
    "InvocationResult",
    "InvocationStarted",
    "InvocationSuspended",
    "InvocationUpdate",
    "InvocationUpdates",
    "Invocations",
    "JOIN_POLICY_ALL",
    "JOIN_POLICY_ANY",
    "JOIN_POLICY_QUORUM",
    "JOIN_POLICY_REACHABLE",
    "JOIN_POLICY_UNSPECIFIED",
    "JoinBuffer",
    "JoinPolicy",
    "ListCheckpointsRequest",
    "ListCheckpointsResponse",
    "ListDefinitionsRequest",
    "ListDefinitionsResponse",
    "ListEventsRequest",
    "ListEventsResponse",
    "ListExecutorsRequest",
    "ListExecutorsResponse",
    "ListQuestionsRequest",
    "ListQuestionsResponse",
    "ListRunsRequest",
    "ListRunsResponse",
    "LiveEvent",
    "MERGE_POLICY_APPEND",
    "MERGE_POLICY_LAST_WRITER",
    "MERGE_POLICY_MERGE",
    "MERGE_POLICY_REJECT",
    "MERGE_POLICY_SUM",
    "MERGE_POLICY_UNSPECIFIED",
    "Manifest",
    "MergePolicy",
    "Message",
    "MessageDropped",
    "MethodPosition",
    "MultiSelection",
    "Node",
    "NodeDeliveries",
    "ON_STUCK_FAIL",
    "ON_STUCK_OVERLAP",
    "ON_STUCK_UNSPECIFIED",
    "ON_STUCK_WAIT",
    "OUTPUT_ROLE_HIDDEN",
    "OUTPUT_ROLE_INTERMEDIATE",
    "OUTPUT_ROLE_OUTPUT",
    "OUTPUT_ROLE_UNSPECIFIED",
    "OnStuck",
    "OpenQuestion",
    "OutputRole",
    "OutputYielded",
    "Payload",
    "PayloadType",
    "Preview",
    "Progress",
    "ProtocolVersionRange",
    "PutBlobRequest",
    "PutBlobResponse",
    "PutDefinitionRequest",
    "PutDefinitionResponse",
    "Question",
    "QuestionAnswered",
    "QuestionAsked",
    "REJECTION_REASON_DRAINING",
    "REJECTION_REASON_OVERLOADED",
    "REJECTION_REASON_UNKNOWN_EXECUTOR_TYPE",
    "REJECTION_REASON_UNSPECIFIED",
    "REJECTION_REASON_UNSUPPORTED_PAYLOAD",
    "RUN_ID_CONFLICT_POLICY_FAIL",
    "RUN_ID_CONFLICT_POLICY_REPLACE",
    "RUN_ID_CONFLICT_POLICY_UNSPECIFIED",
    "RUN_ID_CONFLICT_POLICY_USE_EXISTING",
    "RUN_STATE_CANCELLED",
    "RUN_STATE_CANCELLING",
    "RUN_STATE_COMPLETED",
    "RUN_STATE_FAILED",
    "RUN_STATE_LIMIT_REACHED",
    "RUN_STATE_PENDING",
    "RUN_STATE_RUNNING",
    "RUN_STATE_UNSPECIFIED",
    "RUN_STATE_WAITING",
    "Receipt",
    "RegisterEndpointRequest",
    "RegisterEndpointResponse",
    "Rejection",
    "RejectionReason",
    "Resume",
    "ResumeRunRequest",
    "ResumeRunResponse",
    "RetryPolicy",
    "RouteTaken",
    "Run",
    "RunCancelRequested",
    "RunEnded",
    "RunIdConflictPolicy",
    "RunQuestion",
    "RunResumed",
    "RunStarted",
    "RunState",
    "SdkInfo",
    "SignalReceived",
    "SignalRunRequest",
    "SignalRunResponse",
    "Signalled",
    "SingleEdge",
    "Snapshot",
    "StartRunRequest",
    "StartRunResponse",
    "StateKey",
    "StateWrite",
    "SuperstepCompleted",
    "SuperstepStarted",
    "Suspended",
    "SwitchCase",
    "TIMER_KIND_QUESTION",
    "TIMER_KIND_RETRY",
    "TIMER_KIND_RUN",
    "TIMER_KIND_UNSPECIFIED",
    "TaskPosition",
    "TimerKind",
    "TraceContext",
    "WORK_STATE_ABANDONED",
    "WORK_STATE_BACKOFF",
    "WORK_STATE_DONE",
    "WORK_STATE_FAILED",
    "WORK_STATE_QUEUED",
    "WORK_STATE_RUNNING",
    "WORK_STATE_SUSPENDED",
    "WORK_STATE_UNSPECIFIED",
    "WatchRunRequest",
    "WatchRunResponse",
    "WatchRunsRequest",
    "WatchRunsResponse",
    "Welcome",
    "Window",
    "Work",
    "WorkState",
]
