"""Share groups under random requests, random time, topics that come and go, a log that may refuse, and a share
coordinator that may fail or stay silent; and what must hold in every case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from strandline.coordinators.groups.modern.partitions import Partitions, pairs, united
from strandline.coordinators.groups.modern.records import ModernRecordKey
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.schemas import ShareRecordType, ShareRecordValue
from strandline.coordinators.groups.share.service import ShareHeartbeatOutcome
from strandline.coordinators.groups.share.states import StateCreation
from strandline.coordinators.groups.share.values import AlteredShareOffset, ShareHeartbeatRequest
from strandline.errors import FencedMemberEpoch, GroupIdNotFound, StrandlineError, UnknownMemberId
from tests.coordinators.groups.share.share_world import ShareWorld
from tests.coordinators.groups.timed_shard import Call
from tests.coordinators.steps import take_all

NAMES = ("a", "b", "c")
SUBSCRIPTIONS = (("a",), ("b",), ("a", "b"), ("a", "b", "c"))


@dataclass(eq=False)
class ShareClient:
    """What one client knows about itself. It hears of its epoch when its heartbeat is answered."""

    member_id: str
    topics: tuple[str, ...]
    epoch: int = 0
    call: Call | None = None


class ShareStory:
    """A shard and its clients. Every step is followed by `check`, the last one by `end`."""

    def __init__(self, max_size: int = 200, interval_ms: int = 1000) -> None:
        self.world = ShareWorld(
            {"a": 2, "b": 3},
            takes_all=False,
            group_share_max_size=max_size,
            group_share_assignment_interval_ms=interval_ms,
        )
        self.clients: list[ShareClient] = []
        self.calls: list[Call] = []
        self.members_seen = 0
        self.creations: list[StateCreation] = []
        self.has_state: set[tuple[UUID, int]] = set()
        self.last_group: ShareGroup | None = None
        self.last_epochs: dict[str, int] = {}

    @property
    def group(self) -> ShareGroup | None:
        found = self.world.shard.groups.get("g")
        assert found is None or isinstance(found, ShareGroup)
        return found

    # Clients

    def appear(self, subscription: int) -> None:
        if len(self.clients) < 6:
            self.members_seen += 1
            self.clients.append(ShareClient(f"m{self.members_seen}", SUBSCRIPTIONS[subscription % len(SUBSCRIPTIONS)]))

    def act(self, who: int, what: str, number: int) -> None:
        if not self.clients:
            return
        client = self.clients[who % len(self.clients)]
        self.learn(client)
        match what:
            case "beat":
                self.beat(client)
            case "change topics":
                client.topics = SUBSCRIPTIONS[number % len(SUBSCRIPTIONS)]
                self.beat(client, is_full=True)
            case "beat with a wrong epoch":
                self.wrong_epoch(client, number + 1)
            case "leave":
                self.beat(client, leaves=True)
                self.clients.remove(client)
            case "lose memory":
                client.epoch = 0
            case "vanish":
                self.clients.remove(client)

    def beat(self, client: ShareClient, *, is_full: bool = False, leaves: bool = False) -> None:
        self.learn(client)
        epoch = -1 if leaves else client.epoch
        topics = client.topics if epoch == 0 or is_full else None
        request = ShareHeartbeatRequest(group_id="g", member_id=client.member_id, member_epoch=epoch, topics=topics)
        call = Call()
        try:
            self.world.shard.share.heartbeat(request, call)
        except (UnknownMemberId, FencedMemberEpoch, GroupIdNotFound):
            client.epoch, client.call = 0, None
        except StrandlineError:
            assert self.group is not None  # it is full
        else:
            client.call = call
            self.calls.append(call)

    def wrong_epoch(self, client: ShareClient, beyond: int) -> None:
        group = self.group
        member = None if group is None else group.members.get(client.member_id)
        if group is None or member is None:
            return
        before = self.told(group)
        request = ShareHeartbeatRequest(
            group_id="g", member_id=client.member_id, member_epoch=member.epoch + beyond, topics=("c",)
        )
        try:
            self.world.shard.share.heartbeat(request, Call())
        except FencedMemberEpoch:
            assert self.told(group) == before
        else:
            raise AssertionError("a wrong epoch was accepted")

    def learn(self, client: ShareClient) -> None:
        if client.call is not None and client.call.answers:
            outcome: ShareHeartbeatOutcome = client.call.answers[0]
            client.call = None
            client.epoch = outcome.response.member_epoch if outcome.response.error is None else client.epoch

    def everyone_beats(self) -> None:
        for client in self.clients:
            self.beat(client)

    # The world

    def topics_change(self, what: int, name: str) -> None:
        topics = self.world.topics
        known = topics.image.topics.get(name)
        if known is None:
            topics.create(name, 1 + what % 3)
        elif what % 3 == 0:
            topics.delete(name)
            take_all(self.world.shard.forget_vanished_topics())
        elif what % 3 == 1:
            topics.enlarge(name, min(len(known.partitions) + 1, 6))
        else:
            topics.create(name, 2)
            take_all(self.world.shard.forget_vanished_topics())

    def share_coordinator(self, what: str) -> None:
        """Work that answers brought is done, fails, or is never heard of again."""
        self.collect()
        if not self.creations:
            return
        creation = self.creations.pop(0)
        share = self.world.shard.share
        match what:
            case "succeeds":
                self.create(creation)
            case "fails":
                share.not_created("g", creation.partitions, Call())

    def create(self, creation: StateCreation) -> None:
        self.has_state |= set(pairs(creation.partitions))
        unwanted = self.world.shard.share.created("g", creation.partitions, Call())
        self.has_state -= set(pairs(unwanted))

    def collect(self) -> None:
        answered = [call for call in self.calls if call.answers]
        self.calls = [call for call in self.calls if not call.answers]
        self.creations += [call.answers[0].creation for call in answered if call.answers[0].creation is not None]

    def finish_write(self, accept: bool | None) -> None:
        """None: the log has the records, and says that it does not know."""
        self.learn_all()
        log = self.world.log
        if log.waiting:
            if accept is None:
                log.records += log.waiting[0][0]
            log.finish_one(accept=bool(accept))
        self.learn_all()

    def finish_all(self) -> None:
        while self.world.log.waiting:
            self.world.log.finish_one(accept=True)
        self.learn_all()

    def learn_all(self) -> None:
        for client in self.clients:
            self.learn(client)
        self.collect()

    def pass_time(self, seconds: float) -> None:
        self.world.let_time_pass(seconds)

    def upheaval(self, what: str, number: int) -> None:
        match what:
            case "restart":
                self.finish_all()
                self.world.restart()
                self.creations.clear()
                self.last_group = None
            case "delete group":
                self.tolerate(lambda: self.world.shard.share.begin_group_deletion("g", self.forget_states))
                self.tolerate(lambda: self.world.shard.delete_group("g", Call()))
            case "alter offsets":
                wishes = [AlteredShareOffset(topic=NAMES[number % 3], partition=0, start_offset=number)]
                self.tolerate(lambda: self.world.shard.share.alter_offsets("g", wishes, self.altered))
            case "delete offsets":
                name = NAMES[number % 3]
                self.tolerate(lambda: self.world.shard.share.begin_offset_deletion("g", [name], self.offsets_go))

    def forget_states(self, result: Partitions | StrandlineError) -> None:
        if not isinstance(result, StrandlineError):
            self.has_state -= set(pairs(self.world.shard.share.still_deleted("g", result)))

    def altered(self, result: Any) -> None:
        if not isinstance(result, StrandlineError) and result.creation is not None:
            self.creations.append(result.creation)

    def offsets_go(self, result: Any) -> None:
        if not isinstance(result, StrandlineError):
            deleted = self.world.shard.share.still_deleted("g", result.partitions)
            self.has_state -= set(pairs(deleted))
            self.world.shard.share.end_offset_deletion("g", list(deleted), Call())

    @staticmethod
    def tolerate(action: Any) -> None:
        try:
            action()
        except StrandlineError:
            return

    # What must hold

    def check(self) -> None:
        group = self.group
        if group is None:
            self.last_group, self.last_epochs = None, {}
            return
        self.epochs_never_go_back(group)
        assert group.target_epoch <= group.epoch
        for member in group.members.values():
            assert member.epoch <= group.target_epoch or member.epoch < group.epoch
        assert set(group.targets) <= set(group.members)
        if not self.world.log.has_failed:  # else somebody who left may be back after a restart
            assert len(group.members) <= self.world.settings.group_share_max_size
        for member in group.members.values():
            assert all(member.assigned.values())
        assert group.targeted == united(*group.targets.values())
        timers = len(group.members) + 1  # one session for each, and one to write again
        assert len(self.world.timers) <= timers

    def epochs_never_go_back(self, group: ShareGroup) -> None:
        epochs = {"": group.epoch, **{one.member_id: one.epoch for one in group.members.values()}}
        if group is self.last_group:
            for name, epoch in epochs.items():
                assert epoch >= self.last_epochs.get(name, 0) or epoch == 0
        self.last_group, self.last_epochs = group, epochs

    @staticmethod
    def told(group: ShareGroup) -> dict[ModernRecordKey, ShareRecordValue | None]:
        """All that the log has to say of the group."""
        keys: Sequence[ModernRecordKey] = [
            *group.keys(),
            *(group.key(ShareRecordType.TARGET, at) for at in group.targets),
        ]
        return {key: group.value_of(key) for key in keys}

    def calm(self) -> None:
        """The log takes everything, the share coordinator answers: all that is subscribed to is read."""
        for _ in range(20):  # until the silent are forgotten, and lost calls for state were made again
            self.finish_all()
            self.collect()
            while self.creations:
                self.create(self.creations.pop(0))
            self.finish_all()
            self.pass_time(5)
            self.finish_all()
            self.everyone_beats()
            self.finish_all()
            self.check()
        self.log_and_memory_agree()
        group = self.group
        if group is None or not group.members:
            return
        topics = self.world.topics
        present = [client for client in self.clients if client.member_id in group.members]
        subscribed = {name for member in group.members.values() for name in member.subscription.topics}
        existing = [name for name in subscribed if name in topics.image.topics]
        if present:  # somebody is there to be told
            assert united(*group.targets.values()) == topics.all_of(*existing)
            assert group.assignable.keys() >= topics.all_of(*existing).keys()
        for client in present:
            member = group.members[client.member_id]
            assert member.assigned == group.targets[client.member_id]
            assert set(member.assigned) <= {topics.id_of(name) for name in client.topics if name in existing}
            assert client.epoch == member.epoch == group.epoch
            assert set(pairs(member.assigned)) <= self.has_state

    def log_and_memory_agree(self) -> None:
        found = self.world.replayed().groups.get("g")
        group = self.group
        if group is None:
            assert found is None
        else:
            assert isinstance(found, ShareGroup)
            assert self.told(found) == self.told(group)

    def end(self) -> None:
        """Everybody is silent: no member is left, and no timer."""
        self.calm()
        self.clients.clear()
        for _ in range(3):
            self.pass_time(60)
            self.finish_all()
        assert self.group is None or not self.group.members
        assert len(self.world.timers) == 0
        self.log_and_memory_agree()
        assert not [call for call in self.calls if not call.answers], "a heartbeat was never answered"
