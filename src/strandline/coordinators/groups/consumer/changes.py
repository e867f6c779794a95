"""A decision about a consumer group: beside what all groups change, the matches of regular expressions."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.schemas import ConsumerRecordType, RegularExpressionValue
from strandline.coordinators.groups.modern.changes import GroupChanges


class ConsumerChanges(GroupChanges[ConsumerGroup]):
    def put_expression(self, expression: str, value: RegularExpressionValue | None) -> None:
        self.put(ConsumerRecordType.REGULAR_EXPRESSION, expression, value)

    def drop_unread(self, expressions: Iterable[str]) -> None:
        """Delete the matches of expressions that no member subscribes to any more."""
        for expression in sorted(set(expressions)):
            if expression and not self.group.readers_of(expression):
                self.put_expression(expression, None)
