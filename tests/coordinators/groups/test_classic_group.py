"""Whether all members of a classic group have joined: asked at each join, and answered without looking at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.member import ClassicMember
from strandline.coordinators.groups.values import JoinResponse, MemberProtocol


def member(name: str) -> ClassicMember:
    return ClassicMember(
        member_id=name,
        group_instance_id=None,
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=1000,
        session_timeout_ms=1000,
        protocol_type="consumer",
        protocols=(MemberProtocol(name="range", metadata=b""),),
    )


def group_of(count: int) -> ClassicGroup:
    return ClassicGroup.stable("group", [member(str(number)) for number in range(count)], generation=1, now_ms=0)


def unheard(response: JoinResponse) -> None:
    """A member that waits for its answer."""


steps = st.lists(st.tuples(st.sampled_from(["join", "answer", "add", "remove", "rename", "ask"]), st.integers(0, 9)))


@given(steps)
def test_the_answer_is_that_of_looking_at_all(drawn: list[tuple[str, int]]) -> None:
    group = group_of(5)
    for step, number in drawn:
        name = str(number)
        known = group.members.get(name)
        if step == "add" and known is None:
            group.add(member(name))
        elif step == "remove":
            group.remove(name)
        elif known is not None and step == "join":
            known.join_reply = unheard
        elif known is not None and step == "answer":
            known.join_reply = None
        elif known is not None and step == "rename" and "new" not in group.members:
            group.rename_static(known, "new")
        elif step == "ask":
            assert group.have_all_joined == all(one.is_awaiting_join for one in group.members.values())
    assert group.have_all_joined == all(one.is_awaiting_join for one in group.members.values())
