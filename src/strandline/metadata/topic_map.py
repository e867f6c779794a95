"""The topics of an image by name, with indexes over them: which brokers hold them, and which names are alike.

The indexes are kept with the topics, at the cost of the partitions that change: a broker that is fenced, and the
periodic work of the controller, would otherwise look at every partition of the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from strandline.metadata.bucket_map import BucketEditor, BucketMap
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.metadata.topic_names import collision_key, may_collide
from strandline.model import NO_LEADER

_NO_NAMES: Final[BucketMap[str, int]] = BucketMap()


class TopicMap(BucketMap[str, TopicImage]):
    """Topics by name. Made by a `TopicEditor`, or of any other mapping."""

    __slots__ = ("_alike", "_astray", "_eligible", "_held", "_led", "names_since")

    def __init__(self, topics: Mapping[str, TopicImage] | None = None) -> None:
        super().__init__()
        # By broker, the names of topics with partitions that it leads, is in sync with or is an eligible leader of, and
        # how many there are; NO_LEADER: partitions without a leader.
        self._held: Mapping[int, BucketMap[str, int]] = {}
        self._led: Mapping[int, int] = {}  # partitions by leader
        self._astray: BucketMap[str, int] = _NO_NAMES
        self._eligible: BucketMap[str, int] = _NO_NAMES
        self._alike: BucketMap[str, tuple[str, ...]] = BucketMap()
        self.names_since = object()  # the same object in other maps means: no topic was created or deleted in between
        if topics:
            editor = TopicEditor(self, room=len(topics))
            for topic in topics.values():
                editor.put(topic)
            self._become(editor)

    def _become(self, editor: TopicEditor) -> None:
        self._take(editor.topics)
        self.names_since = editor.names_since
        self._held, self._led, self._astray, self._eligible, self._alike = editor.index()

    @property
    def partition_count(self) -> int:
        """How many partitions the topics have."""
        return sum(self._led.values())

    def leads_any(self, node_id: int) -> bool:
        """True if the broker leads a partition."""
        return node_id in self._led

    def held_by(self, node_id: int) -> Iterator[TopicImage]:
        """The topics with a partition that the broker leads, is in sync with or is an eligible leader of."""
        return map(self.__getitem__, self._held.get(node_id, _NO_NAMES))

    @property
    def leaderless(self) -> Collection[str]:
        """The names of topics with a partition that has no leader."""
        return self._held.get(NO_LEADER, _NO_NAMES)

    @property
    def astray(self) -> Collection[str]:
        """The names of topics with a partition that is not led by its preferred replica."""
        return self._astray

    @property
    def with_eligible(self) -> Collection[str]:
        """The names of topics with a partition that has eligible leaders outside its in-sync set."""
        return self._eligible

    def alike(self, name: str) -> tuple[str, ...]:
        """The names of topics that differ from this one at most in '.' and '_'."""
        return self._alike.get(collision_key(name), ())

    def named(self, names: Iterable[str]) -> Iterator[TopicImage]:
        """Those of the topics that there are."""
        return filter(None, map(self.get, names))


def indexed_topics(image: MetadataImage) -> TopicMap:
    """The topics of an image. One that was put together by hand is looked at as a whole, each time."""
    return image.topics if isinstance(image.topics, TopicMap) else TopicMap(image.topics)


class TopicEditor:
    """Collects changes of topics, and gives the changed map. `room`: see `BucketEditor`."""

    __slots__ = ("_alike", "_astray", "_base", "_eligible", "_held", "_led", "_room", "names_since", "topics")

    def __init__(self, base: TopicMap, *, room: int = 0) -> None:
        self._base, self._room = base, room
        self.names_since = base.names_since
        self.topics: BucketEditor[str, TopicImage] = BucketEditor(base, room=room)
        self._held: dict[int, BucketEditor[str, int]] = {}
        self._led = dict(base._led)
        self._astray: BucketEditor[str, int] = BucketEditor(base._astray)
        self._eligible: BucketEditor[str, int] = BucketEditor(base._eligible)
        self._alike: BucketEditor[str, tuple[str, ...]] = BucketEditor(base._alike)

    def put(self, topic: TopicImage, changed: Collection[int] | None = None) -> None:
        """Add a topic, or replace the one of its name and id. `changed`: in these partitions only; None: in all."""
        before = self.topics.get(topic.name)
        self.topics.put(topic.name, topic)
        if before is None:
            self._added(topic.name)
            self._index(topic.name, (), topic.partitions)
        elif changed is None:
            self._index(topic.name, before.partitions, topic.partitions)
        else:
            old = [one for one in map(before.partition, changed) if one is not None]
            self._index(topic.name, old, [topic.partitions[number] for number in changed])

    def _added(self, name: str) -> None:
        self.names_since = object()
        if may_collide(name):
            key = collision_key(name)
            self._alike.put(key, (*(self._alike.get(key) or ()), name))

    def discard(self, name: str) -> None:
        """Remove a topic if there is one."""
        before = self.topics.get(name)
        if before is None:
            return
        self.topics.discard(name)
        self.names_since = object()
        if may_collide(name):
            key = collision_key(name)
            others = tuple(other for other in self._alike.get(key) or () if other != name)
            if others:
                self._alike.put(key, others)
            else:
                self._alike.discard(key)
        self._index(name, before.partitions, ())

    def build(self) -> TopicMap:
        """The topics with the changes. The editor is of no use afterwards."""
        made = TopicMap()
        made._become(self)
        return made

    def index(
        self,
    ) -> tuple[
        Mapping[int, BucketMap[str, int]],
        Mapping[int, int],
        BucketMap[str, int],
        BucketMap[str, int],
        BucketMap[str, tuple[str, ...]],
    ]:
        """What a map has beside its entries."""
        held = {**self._base._held, **{node_id: names.build() for node_id, names in self._held.items()}}
        led = {node_id: count for node_id, count in self._led.items() if count}
        return (
            {node_id: names for node_id, names in held.items() if names},
            led,
            self._astray.build(),
            self._eligible.build(),
            self._alike.build(),
        )

    def _index(self, name: str, before: Iterable[PartitionImage], after: Iterable[PartitionImage]) -> None:
        """Partitions of a topic were replaced by others. Costs by them: the topic may have thousands more."""
        held: Counter[int] = Counter()
        astray = eligible = 0
        for partitions, step in (before, -1), (after, 1):
            for one in partitions:
                self._led[one.leader] = self._led.get(one.leader, 0) + step
                for node_id in {one.leader, *one.isr, *one.elr, *one.last_known_elr}:
                    held[node_id] += step
                if one.replicas and one.leader != one.replicas[0]:
                    astray += step
                if one.elr or one.last_known_elr:
                    eligible += step
        for node_id, change in held.items():
            if change:
                _count(self._names_of(node_id), name, change)
        if astray:
            _count(self._astray, name, astray)
        if eligible:
            _count(self._eligible, name, eligible)

    def _names_of(self, node_id: int) -> BucketEditor[str, int]:
        names = self._held.get(node_id)
        if names is None:
            known = self._base._held.get(node_id, _NO_NAMES)
            names = self._held[node_id] = BucketEditor(known, room=self._room)
        return names


def _count(names: BucketEditor[str, int], name: str, change: int) -> None:
    """So many partitions more of the topic belong in an index; one without any is not in it."""
    count = (names.get(name) or 0) + change
    if count:
        names.put(name, count)
    else:
        names.discard(name)
