"""A member of a classic group, and its requests that wait for an answer."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import TypeAlias

from strandline.coordinators.groups.schemas import MemberValue
from strandline.coordinators.groups.values import (
    DescribedMember,
    JoinedMember,
    JoinResponse,
    MemberProtocol,
    SyncResponse,
)
from strandline.coordinators.runtime import Timer

JoinReply: TypeAlias = Callable[[JoinResponse], None]
SyncReply: TypeAlias = Callable[[SyncResponse], None]


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicMember:
    """`is_new` until its first rebalance is over: a client that waits for its first JoinGroup cannot heartbeat."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: tuple[MemberProtocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    join_reply: JoinReply | None = field(default=None, repr=False)
    sync_reply: SyncReply | None = field(default=None, repr=False)
    session: Timer | None = field(default=None, repr=False)

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def protocol_names(self) -> frozenset[str]:
        return frozenset(protocol.name for protocol in self.protocols)

    @property
    def is_awaiting_join(self) -> bool:
        return self.join_reply is not None

    @property
    def is_awaiting_sync(self) -> bool:
        return self.sync_reply is not None

    @property
    def is_expected_to_heartbeat(self) -> bool:
        """A member that waits for an answer is alive; a new one may have gone away unnoticed."""
        return self.is_new or not (self.is_awaiting_join or self.is_awaiting_sync)

    def metadata_for(self, protocol_name: str | None) -> bytes:
        return next((protocol.metadata for protocol in self.protocols if protocol.name == protocol_name), b"")

    def vote(self, candidates: Container[str]) -> str | None:
        """The member's favourite among the candidates."""
        return next((protocol.name for protocol in self.protocols if protocol.name in candidates), None)

    def answer_join(self, response: JoinResponse) -> bool:
        """Answer the waiting JoinGroup, if there is one."""
        reply, self.join_reply = self.join_reply, None
        if reply is not None:
            reply(response)
        return reply is not None

    def answer_sync(self, response: SyncResponse) -> bool:
        """Answer the waiting SyncGroup, if there is one."""
        reply, self.sync_reply = self.sync_reply, None
        if reply is not None:
            reply(response)
        return reply is not None

    def end_session(self) -> None:
        if self.session is not None:
            self.session.cancel()
            self.session = None

    def joined(self, protocol_name: str | None) -> JoinedMember:
        return JoinedMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            metadata=self.metadata_for(protocol_name),
        )

    def described(self, protocol_name: str | None) -> DescribedMember:
        """`protocol_name` is None if the group is not stable: then the metadata is left out."""
        return DescribedMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            metadata=b"" if protocol_name is None else self.metadata_for(protocol_name),
            assignment=self.assignment,
        )

    def stored(self, protocol_name: str, assignment: bytes) -> MemberValue:
        return MemberValue(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            subscription=self.metadata_for(protocol_name),
            assignment=assignment,
        )

    @classmethod
    def loaded(cls, value: MemberValue, protocol_type: str, protocol_name: str) -> ClassicMember:
        return cls(
            member_id=value.member_id,
            group_instance_id=value.group_instance_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            session_timeout_ms=value.session_timeout_ms,
            protocol_type=protocol_type,
            protocols=(MemberProtocol(name=protocol_name, metadata=value.subscription),),
            assignment=value.assignment,
        )
