"""Recorded requests with a few damaged bytes: each is answered or its connection closed; others are not affected."""

from __future__ import annotations

import hashlib

import pytest

from strandline.wire.api import ApiKey
from tests.broker import BrokerProcess
from tests.wire.frames import Frame
from tests.wirelevel.raw import API_VERSIONS_VERSION, Closed, RawConnection, api_versions_request, connected
from tests.wirelevel.replay import replayable

ROUNDS = 400
# A damaged time-out may make these wait for very long, and rightly so.
WAITING = {ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP}


def damaged(frame: Frame, dice: bytes) -> bytes:
    """The request with one to four bytes flipped, set to an extreme, taken away or added, behind its first header."""
    data = bytearray(frame.data)
    for throw in range(1 + dice[0] % 4):
        position = 8 + int.from_bytes(dice[1 + 2 * throw : 3 + 2 * throw], "big") % max(1, len(data) - 8)
        kind, how = dice[10 + throw] % 4, dice[14 + throw]
        if position >= len(data):
            continue
        if kind == 0:
            data[position] ^= 1 << how % 8
        elif kind == 1:
            data[position] = 0xFF if how & 1 else 0x7F
        elif kind == 2:
            del data[position : position + 1 + how % 5]
        else:
            data[position:position] = dice[18 : 19 + how % 3]
    return bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_requests_do_not_disturb_other_connections(own_broker: BrokerProcess, seed: int) -> None:
    frames = [frame for frame in replayable() if frame.api_key not in WAITING]
    with connected(own_broker.bootstrap) as neighbour:
        for number in range(ROUNDS):
            dice = hashlib.sha256(f"{seed} {number}".encode()).digest()
            frame = frames[int.from_bytes(dice[20:24], "big") % len(frames)]
            with connected(own_broker.bootstrap) as connection:
                connection.send_frame(damaged(frame, dice))
                # A good request behind it: where the first one has no answer (acks=0), this one has.
                assert _is_answered_or_closed(connection), f"{frame} with damage {number}: neither answer nor end"
            if number % 50 == 0:
                assert neighbour.is_answered()
        assert neighbour.is_answered()
    assert own_broker.is_running
    assert "Traceback" not in own_broker.log_text


def _is_answered_or_closed(connection: RawConnection) -> bool:
    try:
        connection.send(ApiKey.API_VERSIONS, API_VERSIONS_VERSION, api_versions_request())
        connection.receive_frame()
    except (Closed, ConnectionError):
        return True
    except TimeoutError:
        return False
    return True
