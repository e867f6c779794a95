"""Why a segment is still only local: a sentence for operators. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.model import Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSegmentQuestion:
    """Everything that decides about the oldest local-only segment."""

    base_offset: Offset
    next_base_offset: Offset | None
    """None for the active segment."""
    last_stable_offset: Offset
    high_watermark: Offset
    is_enabled: bool
    is_copy_disabled: bool
    is_ready: bool
    refusal: str | None
    copying_seconds: float | None
    """Age of the in-flight copy."""
    is_waiting_for_quota: bool
    is_waiting_for_place: bool
    pool_size: int
    last_error: str | None
    next_look_seconds: float


def why_local(question: LocalSegmentQuestion) -> str:
    """The present reason."""
    return _settings(question) or _segment(question) or _progress(question)


def _settings(question: LocalSegmentQuestion) -> str | None:
    if not question.is_enabled:
        return "remote.storage.enable is false"
    if question.is_copy_disabled:
        return "remote.log.copy.disable is true"
    if question.refusal is not None:
        return f"copying has stopped: {question.refusal}"
    return None


def _segment(question: LocalSegmentQuestion) -> str | None:
    if question.next_base_offset is None:
        return "it is the active segment, and only closed segments are copied (segment.bytes, segment.ms)"
    if question.next_base_offset <= question.last_stable_offset:
        return None
    if question.next_base_offset <= question.high_watermark:
        return f"a transaction has been open since offset {question.last_stable_offset}"
    return f"not all in-sync replicas have it (the high watermark is {question.high_watermark})"


def _progress(question: LocalSegmentQuestion) -> str:
    if question.copying_seconds is not None:
        return f"it has been copying for {question.copying_seconds:.0f} s"
    if question.is_waiting_for_quota:
        return "it waits for the copy quota (remote.log.manager.copy.max.bytes.per.second)"
    if question.is_waiting_for_place:
        return f"it waits for one of {question.pool_size} copier slots (remote.log.manager.copier.thread.pool.size)"
    soon = f"in {max(question.next_look_seconds, 0):.0f} s"
    if question.last_error is not None:
        return f"the last attempt failed, the next one is {soon}: {question.last_error}"
    if not question.is_ready:
        return "its remote log metadata has not been read yet (__remote_log_metadata)"
    return f"it will be copied {soon} (remote.log.manager.task.interval.ms)"
