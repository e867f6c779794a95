"""A Kafka Streams word count with `processing.guarantee=exactly_once_v2`, while broker and program are killed.

Lines are written all the time. Whenever some more counts are committed, the broker, the program or both end by SIGKILL
and start again. In the end every word of every acknowledged line has been counted once: the counts of a word, read with
read_committed, are 1, 2, 3 and so on, in the output and in the changelog.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from bench import java_program
from bench.process import ProcessFailed
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from interop import streams_application
from interop.broker import CACHE, Target, broker_like, fresh_directory, must_be_as_wanted
from interop.open_transactions import READ_COMMITTED
from interop.records import Records, create_topics, read_all
from interop.results import Outcome
from interop.streams_application import APPLICATION_ID, CHANGELOG, WordCount

NAME = "streams"
LINES, COUNTS = "lines", "word-counts"
PARTITIONS = 4
WORDS = tuple(f"word-{number}" for number in range(50))
WORDS_PER_LINE = 5
LINES_PER_SECOND = 40
COUNTS_BETWEEN_KILLS = 1000
SECONDS = 240.0  # a program that was killed is missed after its session, and its open transaction ends by a timeout


class Victim(Enum):
    """What is killed."""

    BROKER = "the broker"
    PROGRAM = "the program"
    BOTH = "both"


KILLS = (Victim.BROKER, Victim.BROKER, Victim.PROGRAM, Victim.BROKER, Victim.BOTH, Victim.BROKER)


class NoProgress(Exception):
    """Counts stopped coming."""


class Killable(Protocol):
    """A broker of either kind."""

    @property
    def bootstrap(self) -> str: ...

    def start(self) -> float: ...

    def kill(self) -> None: ...


def why_unavailable() -> str | None:
    return java_program.why_unavailable()


@dataclass(frozen=True, slots=True)
class Counted:
    """What is there at the end."""

    words: Mapping[str, int]
    output: Records
    changelog: Records
    unread: int
    ended_by_itself: bool


def run(target: Target, only: str | None = None) -> dict[str, Outcome]:
    """Run the program once, with a broker of its own, and look at what it left behind."""
    log_file = target.suite_log
    log_file.write_text("")
    counted = _count(target, log_file)
    checks: dict[str, Callable[[Counted], str]] = {
        "every-word-is-counted": missing,
        "counts-have-no-gap-and-no-repetition": lambda found: jumps(found.output, int),
        "changelog-has-no-gap-and-no-repetition": lambda found: jumps(
            found.changelog, lambda value: int.from_bytes(value, "big")
        ),
        "lines-are-committed": lambda found: f"{found.unread} lines are not committed" if found.unread else "",
        "program-never-fails": lambda found: "the program ended by itself" if found.ended_by_itself else "",
    }
    outcomes = {}
    for name, check in checks.items():
        if only is None or name == only:
            complaint = check(counted)
            _log(log_file, f"{name}: {complaint or 'passed'}")
            outcomes[name] = Outcome.FAILED if complaint else Outcome.PASSED
    return outcomes


def _count(target: Target, log_file: Path) -> Counted:
    compiled = streams_application.build()
    data_dir = fresh_directory(f"{target.run_name}-killed-{target.name}")
    with broker_like(target, data_dir) as broker:
        topics: dict[str, Mapping[str, str]] = {LINES: {}, COUNTS: {}}
        create_topics(broker.bootstrap, topics, PARTITIONS)
        state = fresh_directory(f"{NAME}-state")
        output = CACHE / f"{target.run_name}-program.log"
        output.unlink(missing_ok=True)
        feeder = Feeder(broker.bootstrap)
        with WordCount(compiled, broker.bootstrap, state, LINES, COUNTS, output) as program:
            ended_by_itself = _kill_often(broker, program, feeder, log_file)
        read = {name: _read(broker.bootstrap, name) for name in (COUNTS, CHANGELOG)}
        unread = _unread(broker.bootstrap)
        must_be_as_wanted(target.topics, data_dir / "objects" / "wal")
    return Counted(feeder.words, read[COUNTS], read[CHANGELOG], unread, ended_by_itself)


def _kill_often(broker: Killable, program: WordCount, feeder: Feeder, log_file: Path) -> bool:
    """Kill and restart while lines are written, then wait until all of them are counted. True if the program failed."""
    chance = random.Random(13)
    with feeder, Progress(broker.bootstrap) as progress:
        try:
            for victim in KILLS:
                progress.wait_for(progress.counts + COUNTS_BETWEEN_KILLS, program)
                time.sleep(chance.uniform(0.0, 0.3))  # anywhere in a transaction: one lasts 100 ms
                _log(log_file, f"{progress.counts} counts are committed: killing {victim.value}")
                _kill(victim, broker, program)
            feeder.stop()
            progress.wait_for(sum(feeder.words.values()), program)
        except NoProgress as failure:
            _log(log_file, str(failure))
        return not program.is_running


def _kill(victim: Victim, broker: Killable, program: WordCount) -> None:
    if victim is not Victim.BROKER:
        program.kill()
    if victim is not Victim.PROGRAM:
        broker.kill()
        broker.start()
    if victim is not Victim.BROKER:
        program.start()


class Feeder:
    """Writes lines of random words until it is stopped. A block."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.words: Counter[str] = Counter()
        self._failure: KafkaError | None = None

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def stop(self) -> None:
        """Returns when every line is acknowledged. Raises ProcessFailed if one was given up."""
        self._is_over.set()
        self._thread.join()
        if self._failure is not None:
            raise ProcessFailed(f"a line was not written: {self._failure.str()}")

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "log_level": 2})
        chance = random.Random(7)
        while not self._is_over.wait(1 / LINES_PER_SECOND):
            words = chance.choices(WORDS, k=WORDS_PER_LINE)
            producer.produce(LINES, " ".join(words).encode(), on_delivery=self._delivered)
            self.words.update(words)
            producer.poll(0)
        producer.flush(SECONDS)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self._failure = self._failure or error


class Progress:
    """Counts what is committed to the output. A block."""

    def __init__(self, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "progress", "enable.auto.commit": False, "log_level": 2}
        self._consumer = Consumer({**settings, **READ_COMMITTED})
        self.counts = 0

    def __enter__(self) -> Progress:
        self._consumer.assign([TopicPartition(COUNTS, one, OFFSET_BEGINNING) for one in range(PARTITIONS)])
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def wait_for(self, counts: int, program: WordCount) -> None:
        """Returns when so many counts are committed in all. Raises NoProgress."""
        deadline = time.monotonic() + SECONDS
        while self.counts < counts:
            message = self._consumer.poll(1.0)
            if message is not None and message.error() is None:
                self.counts += 1
            if not program.is_running:
                raise NoProgress(f"the program ended by itself after {self.counts} counts")
            if time.monotonic() > deadline:
                raise NoProgress(f"{self.counts} counts are committed, not {counts}, after {SECONDS:g} s")


def _read(bootstrap: str, topic: str) -> Records:
    return read_all(bootstrap, [topic], PARTITIONS, settings=READ_COMMITTED)


def _unread(bootstrap: str) -> int:
    """How many lines lie behind the offsets that the program committed."""
    settings = {"bootstrap.servers": bootstrap, "group.id": APPLICATION_ID, "log_level": 2}
    with closing(Consumer(settings)) as consumer:
        committed = consumer.committed([TopicPartition(LINES, one) for one in range(PARTITIONS)], timeout=60.0)
        ends = [consumer.get_watermark_offsets(one, timeout=60.0) for one in committed]
    return sum(end[1] - max(one.offset, 0) for one, end in zip(committed, ends, strict=True) if end is not None)


def missing(found: Counted) -> str:
    """Words whose last count is not the number of times that they were written."""
    last = {key.decode(): int(value) for _, (key, value, _) in sorted(found.output.items()) if key and value}
    wrong = [
        f"{word}: {last.get(word, 0)} of {count}" for word, count in found.words.items() if last.get(word) != count
    ]
    return "; ".join(wrong)


def jumps(records: Records, count_of: Callable[[bytes], int]) -> str:
    """Words whose counts are not 1, 2, 3 and so on."""
    counts: dict[bytes, list[int]] = defaultdict(list)
    for _, (key, value, _) in sorted(records.items()):
        counts[key or b""].append(count_of(value or b""))
    wrong = [f"{word.decode()}: {seen}" for word, seen in counts.items() if seen != list(range(1, len(seen) + 1))]
    return "; ".join(wrong) if records else "there are no counts"


def _log(log_file: Path, text: str) -> None:
    with log_file.open("a") as log:
        log.write(f"{time.strftime('%H:%M:%S')} {text}\n")
