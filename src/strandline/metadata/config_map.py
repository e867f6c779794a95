"""The settings of an image by resource, those of one kind apart: topics may be very many, the others are few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from strandline.metadata.bucket_map import BucketEditor, BucketMap
from strandline.metadata.image import ConfigResource, ConfigResourceType, MetadataImage, Overrides

_NO_CONFIGS: Final[BucketMap[str, Overrides]] = BucketMap()


def configs_of(image: MetadataImage, kind: ConfigResourceType) -> Mapping[str, Overrides]:
    """By name, the settings of resources of one kind. The same object as long as none of them changes."""
    return ConfigMap.of(image.configs).of_type(kind)


class ConfigMap(Mapping[ConfigResource, Overrides]):
    """Never changed: `with_changes` gives another one, which shares what did not change."""

    __slots__ = ("_by_type",)

    def __init__(self, configs: Mapping[ConfigResource, Overrides] | None = None) -> None:
        self._by_type: dict[ConfigResourceType, BucketMap[str, Overrides]] = {}
        if configs:
            self._by_type = self.with_changes(configs)._by_type

    @classmethod
    def of(cls, configs: Mapping[ConfigResource, Overrides]) -> ConfigMap:
        """The map itself, or one with the entries of a map of another kind."""
        return configs if isinstance(configs, ConfigMap) else ConfigMap(configs)

    def of_type(self, kind: ConfigResourceType) -> Mapping[str, Overrides]:
        """By name, those of one kind. The same object as long as none of them changes."""
        return self._by_type.get(kind, _NO_CONFIGS)

    def with_changes(self, changes: Mapping[ConfigResource, Overrides]) -> ConfigMap:
        """The map with these entries. One without settings goes."""
        editor = ConfigEditor(self)
        for resource, overrides in changes.items():
            editor.put(resource, overrides)
        return editor.build()

    def __getitem__(self, resource: ConfigResource) -> Overrides:
        return self._by_type[resource.type][resource.name]

    def __contains__(self, resource: object) -> bool:
        return isinstance(resource, ConfigResource) and resource.name in self.of_type(resource.type)

    def __iter__(self) -> Iterator[ConfigResource]:
        for kind, names in self._by_type.items():
            for name in names:
                yield ConfigResource(kind, name)

    def __len__(self) -> int:
        return sum(map(len, self._by_type.values()))

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self.items()),)


class ConfigEditor:
    """Collects changes of settings, and gives the changed map. `room`: see `BucketEditor`."""

    __slots__ = ("_base", "_editors", "_room")

    def __init__(self, base: ConfigMap, *, room: int = 0) -> None:
        self._base, self._room = base, room
        self._editors: dict[ConfigResourceType, BucketEditor[str, Overrides]] = {}

    def put(self, resource: ConfigResource, overrides: Overrides) -> None:
        """Give a resource these settings; one without settings goes."""
        editor = self._editors.get(resource.type)
        if editor is None:
            known = self._base._by_type.get(resource.type, _NO_CONFIGS)
            editor = self._editors[resource.type] = BucketEditor(known, room=self._room)
        if overrides:
            editor.put(resource.name, overrides)
        else:
            editor.discard(resource.name)

    def build(self) -> ConfigMap:
        """The settings with the changes. The editor is of no use afterwards."""
        made = ConfigMap()
        made._by_type = {**self._base._by_type, **{kind: editor.build() for kind, editor in self._editors.items()}}
        return made
