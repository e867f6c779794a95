"""What stops a run of the pipeline, as sentences for the person who started it."""

from __future__ import annotations


class PipelineFailed(Exception):
    """The pipeline cannot run, or not go on. The text is a sentence that says what to do."""
