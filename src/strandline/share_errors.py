"""Errors that only requests of share groups end in; the others are in `strandline.errors`."""

from __future__ import annotations

from strandline.errors import StrandlineError


class InvalidRecordState(StrandlineError):
    """The record is not acquired by the member that acknowledges it."""


class ShareSessionNotFound(StrandlineError):
    """The broker has no such share session."""

    retriable = True


class InvalidShareSessionEpoch(StrandlineError):
    """The request does not follow the last one of its share session."""

    retriable = True


class ShareSessionLimitReached(StrandlineError):
    """The broker has as many share sessions as it may have."""

    retriable = True


class FencedStateEpoch(StrandlineError):
    """The state of the share partition was begun anew since the caller read it."""
