"""Subscriptions by regular expression.

An expression has to match the whole name of a topic. It is compiled when the first member subscribes to it, and matched
against all topics in the background: when it is new, when topics were created, and every
`group.consumer.regex.refresh.interval.ms`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, TypeAlias

from strandline.coordinators.fields import LONGEST_STRING
from strandline.errors import InvalidRegularExpression
from strandline.patterns import compile_pattern

Matches: TypeAlias = Mapping[str, frozenset[str]]
"""The topics that each expression matches."""


def compile_expression(expression: str) -> Any:
    """Raises InvalidRegularExpression."""
    if len(expression.encode()) > LONGEST_STRING:
        raise InvalidRegularExpression(
            f"A regular expression of {len(expression)} characters is longer than the {LONGEST_STRING} bytes that a "
            "record of the group can hold."
        )
    return compile_pattern(expression, name="SubscribedTopicRegex")


def matching_topics(expressions: Collection[str], topics: Collection[str]) -> Matches:
    """The topics whose whole name each expression matches. Raises InvalidRegularExpression."""
    compiled = {expression: compile_expression(expression) for expression in expressions}
    return {
        expression: frozenset(topic for topic in topics if pattern.fullmatch(topic) is not None)
        for expression, pattern in compiled.items()
    }


class TopicMatcher(Protocol):
    """Matches expressions against topics and calls back on the event loop, at once or later."""

    def match(
        self, expressions: Collection[str], topics: Collection[str], done: Callable[[Matches | Exception], None]
    ) -> None: ...


class BackgroundMatcher:
    """Matches in a thread, so that requests do not wait while ten thousand topics are looked at."""

    def match(
        self, expressions: Collection[str], topics: Collection[str], done: Callable[[Matches | Exception], None]
    ) -> None:
        work = asyncio.get_running_loop().run_in_executor(None, matching_topics, expressions, topics)
        work.add_done_callback(lambda finished: done(_result(finished)))


def _result(finished: asyncio.Future[Matches]) -> Matches | Exception:
    if finished.cancelled():
        return TimeoutError("The broker stops.")
    error = finished.exception()
    if isinstance(error, Exception):
        return error
    return finished.result()
