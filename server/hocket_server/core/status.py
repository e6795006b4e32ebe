"""A run as its users see it: a fold over its events."""

from hocket import v1


def apply(run: v1.Run, event: v1.Event) -> None:
    """Bring `run` up to `event`. Its state while it goes on is the scheduler's to tell, not an event's."""
    run.last_sequence = event.sequence
    match event.WhichOneof("kind"):
        case "superstep_started":
            if not event.path:
                run.superstep = event.superstep_started.superstep
        case "superstep_completed":
            run.latest_checkpoint_id = event.superstep_completed.checkpoint_id
        case "output_yielded":
            if not event.path and not event.output_yielded.intermediate:
                run.outputs.append(event.output_yielded.payload)
        case "question_asked":
            run.open_questions.append(event.question_asked.question)
        case "question_answered":
            _close_question(run, event.question_answered.question_id)
        case "run_ended":
            ended = event.run_ended
            run.state, run.reason = ended.state, ended.reason
            run.converged_without_output = ended.converged_without_output
            run.end_time.CopyFrom(event.time)
            if ended.HasField("failure"):
                run.failure.CopyFrom(ended.failure)
        case "run_resumed":
            for field in ("failure", "end_time", "reason", "converged_without_output"):
                run.ClearField(field)
        case _:
            pass


def _close_question(run: v1.Run, question_id: str) -> None:
    for index, question in enumerate(run.open_questions):
        if question.question_id == question_id:
            del run.open_questions[index]
            return
