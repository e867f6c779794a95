"""The judge of progress: in a calm time every partition gets an acknowledged value, and every group gets records."""

from __future__ import annotations

import io
from dataclasses import replace

from chaos.history import Append, Attempt, Calm, Delivery, Event, Fault, Outcome, Promise, Undone, from_line, to_line
from chaos.progress import check_progress, longest_pauses
from chaos.recorder import Recorder
from chaos.values import COPIERS
from chaos.violations import Kind

CALM = Calm(at=10.0, until=20.0, places=[("list-classic", 0), ("list-classic", 1)], groups=["g", COPIERS])


def written(at: float, partition: int, outcome: Outcome = Outcome.COMMITTED, writer: str = "plain-1.1") -> Attempt:
    append = Append(topic="list-classic", partition=partition, value=f"{writer}/{at}")
    return Attempt(at=at, writer=writer, promise=Promise.PLAIN, outcome=outcome, appends=[append])


def given(at: float) -> Delivery:
    return Delivery(at=at, group="g", member="m", topic="list-classic", partition=0, records=[(0, "plain-1.1/1")])


GOING_ON: list[Event] = [written(11.0, 0), written(12.0, 1), given(13.0), written(14.0, 0, writer="copy-1"), CALM]


def texts(events: list[Event]) -> list[str]:
    found = list(check_progress(events))
    assert {one.kind for one in found} <= {Kind.STUCK}
    return [one.text for one in found]


def test_everything_goes_on() -> None:
    assert texts(GOING_ON) == []


def test_what_came_before_or_afterwards_or_was_not_acknowledged_is_no_progress() -> None:
    for late in (written(9.9, 1), written(20.1, 1), written(12.0, 1, Outcome.UNKNOWN), written(12.0, 0)):
        (text,) = texts([GOING_ON[0], late, *GOING_ON[2:]])
        assert text.startswith("Nothing was acknowledged in list-classic-1 from 10.0 s")


def test_a_group_that_gets_nothing_and_copiers_that_copy_nothing() -> None:
    assert texts([*GOING_ON[:2], given(5.0), *GOING_ON[3:]]) == [
        "The group of g got nothing from 10.0 s, when all faults were over, to 20.0 s."
    ]
    (text,) = texts([*GOING_ON[:3], CALM])
    assert "group of copiers" in text


def test_each_calm_time_is_judged() -> None:
    assert len(texts([*GOING_ON, replace(CALM, at=30.0, until=40.0)])) == 4


def test_the_longest_pause_of_each_topic_and_the_faults_meanwhile() -> None:
    faults = [
        Fault(at=1.0, kind="SIGKILL", target="broker 1", seconds=2.0),
        Fault(at=6.0, kind="SIGSTOP", target="broker 1", seconds=1.0),
    ]
    events: list[Event] = [written(0.5, 0), faults[0], written(4.0, 0), written(5.5, 1), faults[1], written(6.0, 1)]
    (pause,) = longest_pauses(events)
    assert (pause.topic, pause.partition, pause.seconds, pause.begin) == ("list-classic", 0, 3.5, 0.5)
    assert pause.faults == ("SIGKILL",)
    assert longest_pauses([]) == []
    late = Undone(at=5.2, kind="SIGKILL")  # it took longer than planned to have the broker back
    (pause,) = longest_pauses([faults[0], late, written(4.5, 0), written(5.9, 0), faults[1]])
    assert pause.faults == ("SIGKILL",)


def test_a_recorder_knows_what_went_on() -> None:
    recorder = Recorder(io.StringIO())
    recorder.write(*GOING_ON)
    assert recorder.heard == {("list-classic", 0): 11.0, ("list-classic", 1): 12.0, "g": 13.0, COPIERS: 14.0}
    assert [from_line(to_line(event)) for event in GOING_ON] == GOING_ON
