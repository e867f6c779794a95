"""Judges the sequences of producers in a log: each number once and none left out, whatever the client was told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chaos.history import Content
from chaos.violations import Kind, Violation


def check_sequences(contents: Iterable[Content]) -> Iterator[Violation]:
    """In a partition the sequences of a producer id and epoch go on without a gap, wherever they begin."""
    for content in contents:
        expected: dict[tuple[int, int], int] = {}
        for batch in content.batches:
            producer = (batch.producer_id, batch.epoch)
            next_one = expected.get(producer, batch.sequence)
            if batch.sequence != next_one:
                kind = Kind.DOUBLED if batch.sequence < next_one else Kind.LOST
                text = f"Producer {batch.producer_id} with epoch {batch.epoch} has sequence {batch.sequence} at offset"
                where = f"{batch.offset} of {content.topic}-{content.partition} from {content.source}"
                yield Violation(kind, f"{text} {where}, and {next_one} is the next.")
            expected[producer] = batch.sequence + batch.count
