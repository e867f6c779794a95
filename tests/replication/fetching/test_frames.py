"""The memory of answers: it is another answer's when no write needs it any more."""

from __future__ import annotations

from strandline.replication.fetching.frames import SMALLEST, FrameRooms

MB = 1 << 20


def test_a_room_serves_one_answer_after_the_other() -> None:
    rooms = FrameRooms()
    first = rooms.take(MB)
    rooms.read(first, MB)
    assert rooms.take() is first, "a large one, since the next answer is large as well"


def test_a_room_that_a_write_needs_is_not_used_again() -> None:
    rooms = FrameRooms()
    room = rooms.take(MB)
    room.hold()
    room.hold()
    rooms.read(room, MB)
    assert rooms.held == 1
    other = rooms.take()
    assert other is not room
    room.release()
    assert rooms.held == 1
    room.release()
    assert rooms.held == 0
    assert rooms.take() is room


def test_a_write_may_end_before_the_answer_is_read_to_its_end() -> None:
    rooms = FrameRooms()
    room = rooms.take()
    room.hold()
    room.release()
    rooms.read(room, 100)
    assert rooms.held == 0
    assert rooms.take() is room
    assert rooms.take() is not room


def test_memory_of_large_answers_is_given_up_when_they_are_small_for_long() -> None:
    rooms = FrameRooms()
    room = rooms.take(8 * MB)
    for _ in range(200):
        rooms.read(room, 100)
        room = rooms.take()
    assert room.capacity == SMALLEST


def test_a_room_is_at_least_as_large_as_is_asked() -> None:
    rooms = FrameRooms()
    rooms.read(rooms.take(), 100)
    assert rooms.take(3 * MB).capacity == 4 * MB
