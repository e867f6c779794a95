"""Why a topic cannot be read by Spark. Spark shows the text behind the trace of its own program."""

from __future__ import annotations


class SourceFailed(Exception):
    """A topic cannot be read as it was asked for. The text is a sentence that says what to do."""


class RecordsGone(Exception):
    """What was planned is not there any more: records were converted or deleted meanwhile. A new plan is needed."""
