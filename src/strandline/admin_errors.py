"""Errors that only requests of administrators and of their tools end in; the others are in `strandline.errors`."""

from __future__ import annotations

from strandline.errors import StrandlineError


class ReplicaNotAvailable(StrandlineError):
    """This broker has no replica of the partition."""

    retriable = True


class UnsupportedSaslMechanism(StrandlineError):
    """There is no such mechanism of SASL, or it is not one of SCRAM."""


class SecurityDisabled(StrandlineError):
    """The request is about access rules, and the cluster has no authorizer."""


class LogDirNotFound(StrandlineError):
    """The broker has no such log directory."""


class MismatchedEndpointType(StrandlineError):
    """The request went to the wrong kind of endpoint."""


class UnsupportedEndpointType(StrandlineError):
    """This broker cannot answer for this kind of endpoint."""


class NoReassignmentInProgress(StrandlineError):
    """The partition is not being reassigned, so there is nothing to cancel."""


class ResourceNotFound(StrandlineError):
    """There is nothing of that name."""


class DuplicateResource(StrandlineError):
    """The request names the same thing twice."""


class UnacceptableCredential(StrandlineError):
    """The credential is not strong enough, or has no owner."""


class ThrottlingQuotaExceeded(StrandlineError):
    """The client sends more often than it may."""

    retriable = True


class UnknownSubscriptionId(StrandlineError):
    """The client's telemetry subscription is not the current one: it has to ask for it again."""


class TelemetryTooLarge(StrandlineError):
    """A client sent more metrics at once than it may."""
