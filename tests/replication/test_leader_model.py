"""Any order of appends, writes, role changes and settings agrees with a list of promises."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from strandline.clock import SystemChance
from strandline.config import Settings
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.errors import NotEnoughReplicas, NotLeaderOrFollower, StrandlineError
from strandline.log import AppendOrigin, LogManager
from strandline.replication import Append, LeaderRole, Partition
from tests.replication.conftest import CLOCK, NODE, TOPIC_ID, TP, batch, image
from tests.replication.manual_writer import ManualWriter

ALL, LEADER = -1, 1
NOBODY, OTHER = -1, 2
assignments = st.sampled_from([(1,), (1, 2), (1, 2, 3)])


def config(least: int, *, is_slow: bool = False) -> TopicConfig:
    """`is_slow`: each append goes to the writer, however small it is, since it has to be forced to disk."""
    settings = {"min.insync.replicas": str(least)}
    return Settings().topic_config(settings | ({"flush.messages": "1"} if is_slow else {}))


@dataclass
class Promise:
    """An append, and what its producer has to be told."""

    end: int
    acks: int
    leadership: int
    told: list[StrandlineError | None] = field(default_factory=list)
    expected: list[type[StrandlineError] | None] = field(default_factory=list)
    is_written: bool = False


class LeaderAgainstModel(RuleBasedStateMachine):
    """The model: where the log and its high watermark are, who is in sync, and all promises ever made.

    No follower is known to have anything: the high watermark moves when this broker alone is in sync.
    """

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.logs = LogManager(
            LogSettings(log_dirs=(str(self.root),)), node_id=NODE, clock=CLOCK, chance=SystemChance(1)
        )
        self.least = 1
        self.logs.load(lambda _: config(1))
        self.writer = ManualWriter()
        log = self.logs.get_or_create(TP, TOPIC_ID, config(1))
        self.partition = Partition(TP, TOPIC_ID, log, node_id=NODE, writer=self.writer)
        self.version = self.epoch = self.leadership = 0
        self.leads = False
        self.replicas: tuple[int, ...] = (1,)
        self.isr: tuple[int, ...] = (1,)
        self.reserved = self.end = self.high_watermark = 0
        self.promises: list[Promise] = []
        self.unwritten: list[Promise] = []

    def teardown(self) -> None:
        self.partition.log.abandon()
        self.logs.shutdown()
        shutil.rmtree(self.root)

    # The model

    @property
    def too_few(self) -> bool:
        return len(self.isr) < min(self.least, len(self.replicas))

    def moved(self) -> None:
        """The high watermark may move now, and that answers whoever waits for it in this leadership."""
        if not self.leads or self.too_few:
            return
        if self.isr == (NODE,):
            self.high_watermark = self.end
        for promise in self.promises:
            if promise.is_written and not promise.expected and promise.end <= self.high_watermark:
                promise.expected.append(None)

    def ended(self) -> None:
        """The leadership is over: what is written and not replicated is refused; the rest when it is written."""
        for promise in self.promises:
            if promise.is_written and not promise.expected:
                promise.expected.append(NotLeaderOrFollower)

    def written(self, promise: Promise) -> None:
        promise.is_written = True
        self.end = promise.end
        if promise.leadership != self.leadership or not self.leads:
            self.moved()
            promise.expected = [None if self.replicas == (NODE,) else NotLeaderOrFollower]
            return
        if promise.acks == LEADER:
            promise.expected.append(None)
        self.moved()

    # What happens

    @rule(acks=st.sampled_from([ALL, LEADER]), is_slow=st.booleans())
    def append(self, acks: int, is_slow: bool) -> None:
        self.partition.log.update_config(config(self.least, is_slow=is_slow))
        promise = Promise(self.reserved + 1, acks, self.leadership)
        request = Append(batch(b"x"), acks=acks, origin=AppendOrigin.CLIENT, done=promise.told.append)
        refused = self.refusal(acks)
        if refused is not None:
            assert raised_by(lambda: self.partition.append(request)) is refused
            return
        appended = self.partition.append(request)
        self.promises.append(promise)
        self.reserved += 1
        if is_slow or self.unwritten:
            assert (appended.is_done, appended.is_written) == (False, False)
            self.unwritten.append(promise)
            return
        self.written(promise)
        assert appended.is_done == bool(promise.expected)
        if appended.is_done:
            promise.told.append(None)  # the answer of the call is the only one

    def refusal(self, acks: int) -> type[StrandlineError] | None:
        if not self.leads:
            return NotLeaderOrFollower
        return NotEnoughReplicas if acks == ALL and self.too_few else None

    @rule()
    def append_now(self) -> None:
        self.partition.log.update_config(config(self.least))
        role = self.partition.role
        begins_epoch = self.partition.log.epochs.latest_begun != self.epoch
        offset = role.append_now(batch(b"x"))
        if not self.leads or self.too_few or self.unwritten or begins_epoch:
            assert offset == -1
            return
        assert offset == self.reserved
        assert isinstance(role, LeaderRole)
        promise = Promise(self.reserved + 1, ALL, self.leadership)
        self.promises.append(promise)
        self.reserved += 1
        self.written(promise)
        is_replicated = role.wait_replicated(promise.told.append)
        assert is_replicated == bool(promise.expected)
        assert is_replicated or not role.answers_at_once
        if is_replicated:
            promise.told.append(None)

    @precondition(lambda self: self.unwritten)
    @rule()
    def write(self) -> None:
        self.writer.write_next()
        self.written(self.unwritten.pop(0))

    @rule(replicas=assignments, in_sync=st.integers(1, 3), is_new_epoch=st.booleans())
    def lead(self, replicas: tuple[int, ...], in_sync: int, is_new_epoch: bool) -> None:
        if is_new_epoch or not self.leads:
            self.epoch += 1
        self.leadership += not self.leads
        self.follow(NODE, replicas, replicas[:in_sync])
        self.leads = True
        self.moved()

    @rule(leader=st.sampled_from([NOBODY, OTHER]), replicas=assignments)
    def lose(self, leader: int, replicas: tuple[int, ...]) -> None:
        if leader == OTHER and OTHER not in replicas:
            return
        self.epoch += 1
        self.follow(leader, replicas, replicas)
        if self.leads:
            self.ended()
        self.leads = False

    def follow(self, leader: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> None:
        self.version += 1
        self.replicas, self.isr = replicas, isr
        was_leader = self.leads
        changed = self.partition.follow(
            image(leader=leader, epoch=self.epoch, replicas=replicas, isr=isr, version=self.version)
        )
        assert changed or was_leader == (leader == NODE)

    @rule(least=st.integers(1, 3))
    def set_min_isr(self, least: int) -> None:
        """It counts from the next move on."""
        self.least = least
        self.partition.log.update_config(config(least))

    @invariant()
    def they_agree(self) -> None:
        offsets = self.partition.log.offsets
        assert (offsets.high_watermark, offsets.end, offsets.reserved_end) == (
            self.high_watermark,
            self.end,
            self.reserved,
        )
        for promise in self.promises:
            assert [None if error is None else type(error) for error in promise.told] == promise.expected


def raised_by(call: Callable[[], object]) -> type[BaseException] | None:
    try:
        call()
    except StrandlineError as error:
        return type(error)
    return None


TestLeaderAgainstModel = LeaderAgainstModel.TestCase
