"""A matcher of regular expressions that answers at once, so that tests need no threads."""

from __future__ import annotations

from collections.abc import Callable, Collection

from strandline.coordinators.groups.consumer.regular_expressions import Matches, matching_topics
from strandline.errors import InvalidRegularExpression


class ImmediateMatcher:
    """`TopicMatcher` without a thread."""

    def match(
        self, expressions: Collection[str], topics: Collection[str], done: Callable[[Matches | Exception], None]
    ) -> None:
        try:
            result: Matches | Exception = matching_topics(expressions, topics)
        except InvalidRegularExpression as error:
            result = error
        done(result)
