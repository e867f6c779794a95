"""Which lines of a broker's log are shown."""

from __future__ import annotations

from pathlib import Path

from strandline.admin.commands.cluster.log_lines import LogFollower, last_sentence

STAMP = "2026-11-18 19:52:29,611"


def append(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def test_warnings_and_what_belongs_to_them_are_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    append(log, f"{STAMP} ERROR   strandline.log: of an earlier run")
    follower = LogFollower(log)
    append(
        log,
        f"{STAMP} INFO    strandline.broker: started",
        "a second line of that",
        f"{STAMP} ERROR   strandline.log: it failed",
        "Traceback (most recent call last):",
        "OSError: no space",
        f"{STAMP} INFO    strandline.broker: goes on",
        f"{STAMP} WARNING strandline.log: slow",
    )
    assert follower.read().lines == (
        f"{STAMP} ERROR   strandline.log: it failed",
        "Traceback (most recent call last):",
        "OSError: no space",
        f"{STAMP} WARNING strandline.log: slow",
    )
    assert follower.read().lines == ()


def test_a_line_is_shown_once_it_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    follower = LogFollower(log)
    assert follower.read().lines == (), "there is no file yet"
    log.write_text(f"{STAMP} WARNING half")
    assert follower.read().lines == ()
    append(log, " a line")
    assert follower.read().lines == (f"{STAMP} WARNING half a line",)


def test_why_a_broker_has_ended_is_always_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    follower = LogFollower(log)
    append(log, f"{STAMP} INFO    strandline.broker: starts", "strandline: There is no such setting.")
    assert follower.read().lines == ("strandline: There is no such setting.",)
    assert last_sentence(log) == "There is no such setting."
    append(log, f"{STAMP} INFO    strandline.broker: starts")
    assert last_sentence(log) == last_sentence(tmp_path / "none") == ""


def test_a_flood_is_counted_and_not_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    follower = LogFollower(log)
    append(log, *(f"{STAMP} WARNING number {number}" for number in range(100)))
    found = follower.read()
    assert (len(found.lines), found.left_out) == (20, 80)
    append(log, *(f"{STAMP} WARNING {'x' * 1000}" for _ in range(3000)), f"{STAMP} WARNING last")
    assert 800 < follower.read().left_out < 1100, "only the end is read"
    append(log, f"{STAMP} WARNING next")
    assert follower.read().lines == (f"{STAMP} WARNING next",)
