"""Listeners for notifications of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from strandline.sql.store import OnNotification


class Listeners:
    """The listeners of this process, by channel."""

    def __init__(self) -> None:
        self._by_channel: dict[str, list[OnNotification]] = {}

    def add(self, channel: str, wake: OnNotification) -> Callable[[], None]:
        """Call `wake` for `channel` until the returned function is called."""
        self._by_channel.setdefault(channel, []).append(wake)

        def remove() -> None:
            listeners = self._by_channel.get(channel, [])
            if wake in listeners:
                listeners.remove(wake)

        return remove

    def channels(self) -> frozenset[str]:
        """Every channel that ever had a listener."""
        return frozenset(self._by_channel)

    def wake(self, channels: Iterable[str]) -> None:
        """Call the listeners of these channels."""
        for channel in channels:
            for listener in tuple(self._by_channel.get(channel, ())):
                listener()
