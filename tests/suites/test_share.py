"""What the suite `share` makes of members that do not accept each record exactly once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from interop.share_members import ShareMember, accepted_once

RECORDS = [(0, 0), (0, 1)]


@contextmanager
def _members(tmp_path: Path, *said: str, running: bool = False) -> Iterator[list[ShareMember]]:
    """Members that said this, one event on a line: dead ones, or ones that still run."""
    members = []
    for number, lines in enumerate(said):
        text = "".join(line.replace(" ", "\t") + "\n" for line in lines.split(", "))
        program = f"import sys; sys.stdout.write({text!r}); sys.stdout.flush(); sys.stdin.read()"
        member = ShareMember(f"member-{number}", [sys.executable, "-c", program], tmp_path / f"{number}.out")
        member.wait_until(lambda member=member, text=text: member.text + "\n" == text, "its words")  # type: ignore[misc]
        if not running:
            member.close()
        members.append(member)
    try:
        yield members
    finally:
        for member in members:
            member.close()


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        pytest.param(("stored 0 0 ACCEPT", "stored 0 1 ACCEPT"), "", id="each by somebody"),
        pytest.param(("stored 0 0 ACCEPT, stored 0 1 ACCEPT", "stored 0 1 ACCEPT"), "accepted twice", id="twice"),
        pytest.param(("stored 0 0 ACCEPT, stored 0 1 RELEASE",), "never accepted", id="only released"),
        pytest.param(("stored 0 0 ACCEPT, got 0 1 1 x",), "never accepted", id="never answered"),
        pytest.param(("stored 0 0 ACCEPT, stored 0 1 ACCEPT, stored 0 2 ACCEPT",), "never written", id="invented"),
        pytest.param(
            ("stored 0 0 ACCEPT, says 0 1 ACCEPT, refused 0 1 ACCEPT InvalidRecordStateException",),
            "never accepted",
            id="refused for good",
        ),
        pytest.param(
            ("stored 0 0 ACCEPT, says 0 1 ACCEPT, refused 0 1 ACCEPT DisconnectException",), "", id="nobody knows"
        ),
    ],
)
def test_records_that_are_not_accepted_exactly_once_are_found(
    said: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    with _members(tmp_path, *said, running=True) as members:
        found = accepted_once(RECORDS, members)
    assert complaint in found
    assert bool(found) == bool(complaint)


def test_the_last_words_of_a_dead_member_leave_it_open_what_was_stored(tmp_path: Path) -> None:
    with _members(tmp_path, "stored 0 0 ACCEPT, says 0 1 ACCEPT", running=True) as members:
        assert "never accepted" in accepted_once(RECORDS, members)
    with _members(tmp_path, "stored 0 0 ACCEPT, says 0 1 ACCEPT") as members:
        assert accepted_once(RECORDS, members) == ""
