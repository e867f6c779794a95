"""One request and the place of its response in the order of its connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from strandline.clock import ticks_ns
from strandline.server.times.recording import TURN_RESOLUTION

if TYPE_CHECKING:
    from strandline.server.buffers import FrameBuffer
    from strandline.server.connection import Connection
    from strandline.server.times import ApiTimes
    from strandline.wire.fetch_codec import Part
    from strandline.wire.produce_codec import ProduceAnswer

MAX_IN_FLIGHT: Final = 64  # requests of one connection that wait for their answers, or for those of earlier ones


class Exchange:
    """Answer it exactly once: `respond`, `respond_nothing` or `abort`, now or later, on the event loop."""

    __slots__ = (
        "_frame",
        "_held",
        "_uncommitted",
        "answered_ns",
        "api_key",
        "api_version",
        "begun",
        "connection",
        "correlation_id",
        "local_end_ns",
        "memory",
        "on_closed",
        "parts",
        "queue_ns",
        "started_ns",
        "times",
    )

    # For `server.times`, in nanoseconds of `ticks_ns`; set by the connection as the request goes on.
    queue_ns: int
    """How long the request waited before it was started."""
    started_ns: int
    local_end_ns: int
    """When its handler was through with it, or began to wait; 0 before."""
    answered_ns: int
    """When it was answered, if that was later than the end of the local part; else 0."""

    def __init__(
        self,
        connection: Connection,
        api_key: int,
        api_version: int,
        correlation_id: int,
        *,
        begun: Sequence[ProduceAnswer] = (),
    ) -> None:
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.begun = begun
        """Of a Produce: the answers of its first partitions, if they were appended before (`server.straight`)."""
        self.parts: list[Part] | None = None
        self._frame: FrameBuffer | None = None
        self._held = 0
        self._uncommitted = 0
        self.memory = 0
        """Bytes of records in memory that the answer holds until it is sent."""
        self.on_closed: Callable[[], None] | None = None
        """Called if the connection closes before the answer, for what waits and holds memory meanwhile."""
        self.times: ApiTimes | None = None
        """Where the request is counted."""
        self.queue_ns = self.local_end_ns = self.answered_ns = 0

    @property
    def is_answered(self) -> bool:
        return self.parts is not None

    @property
    def holds_frame(self) -> bool:
        """True if the request's bytes stay valid until the answer; else only while it is dispatched."""
        return self._frame is not None

    def respond(self, parts: list[Part], *, memory: int = 0) -> None:
        """Send these parts once every earlier response of the connection has been sent.

        `memory` is how many bytes of records in memory they hold.
        """
        self.parts = parts
        if self.local_end_ns:
            self.answered_ns = ticks_ns()
        if self._held:
            self.release_frame()
        if self._uncommitted:
            self._commits_ended()
        if memory and not self.connection.is_closed:
            self.memory = memory
            self.connection.server.memory.answers.take(memory)
        self.connection.answered(self)

    def starts(self, turn_began: float) -> None:
        """The request is started. Its bytes were found in the turn of the event loop that began then."""
        self.started_ns = started = ticks_ns()
        waited = started / 1e9 - turn_began
        if waited > TURN_RESOLUTION:
            self.queue_ns = int(1e9 * (waited - TURN_RESOLUTION))

    def begins(self) -> None:
        """The handler begins only now: until now the request waited."""
        now = ticks_ns()
        self.queue_ns += now - self.started_ns
        self.started_ns, self.local_end_ns = now, 0

    def waits(self) -> None:
        """The handler waits for something, or is through: what follows is not the local part any more."""
        if not self.local_end_ns:
            self.local_end_ns = ticks_ns()

    def comes_from_follower(self) -> None:
        """The request is a Fetch of another broker."""
        if self.times is not None and self.times.followers is not None:
            self.times.versions[self.api_version] -= 1
            self.times = self.times.followers
            self.times.versions[self.api_version] += 1

    def count_error(self, code: int) -> None:
        """The answer will hold this error."""
        if self.times is not None:
            self.times.errors[code] += 1

    def respond_nothing(self) -> None:
        """The request wants no response (acks=0)."""
        self.respond([])

    def abort(self, reason: str) -> None:
        """Close the connection; the log gets one line with the reason."""
        self.release_frame()
        self._commits_ended()
        self.connection.close(reason)

    def hold_frame(self, buffer: FrameBuffer) -> None:
        """The request's bytes lie in this buffer, which goes back to the pool with the answer, or earlier."""
        self._frame = buffer
        self.hold_copy(buffer.capacity)

    def hold_copy(self, size: int) -> None:
        """A copy of this many bytes of the request is kept until it is written."""
        self._held += size
        self.connection.server.memory.frames.take(size)

    def hold_uncommitted(self, size: int) -> None:
        """Diskless batches of this many bytes are kept until their commit, and then answered."""
        self._uncommitted += size
        self.connection.uncommitted += size
        self.connection.server.memory.commits.take(size)

    def _commits_ended(self) -> None:
        size, self._uncommitted = self._uncommitted, 0
        if size:
            self.connection.uncommitted -= size
            self.connection.server.memory.commits.give_back(size)

    def release_frame(self) -> None:
        """The request's bytes are not needed any more."""
        buffer, self._frame = self._frame, None
        if buffer is not None:
            self.connection.server.pool.give_back(buffer)
        self.forget_frame()

    def forget_frame(self) -> None:
        """The request failed half-way: its bytes may still be in use, so the buffer does not go back to the pool."""
        self._frame = None
        held, self._held = self._held, 0
        if held:
            self.connection.server.memory.frames.give_back(held)
