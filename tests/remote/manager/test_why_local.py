"""Why a segment is still local, in one sentence."""

from __future__ import annotations

import pytest

from strandline.remote.manager.why_local import LocalSegmentQuestion, why_local


def question(**changes: object) -> LocalSegmentQuestion:
    values: dict[str, object] = {
        "base_offset": 10,
        "next_base_offset": 20,
        "last_stable_offset": 30,
        "high_watermark": 30,
        "is_enabled": True,
        "is_copy_disabled": False,
        "is_ready": True,
        "refusal": None,
        "copying_seconds": None,
        "is_waiting_for_quota": False,
        "is_waiting_for_place": False,
        "pool_size": 10,
        "last_error": None,
        "next_look_seconds": 12.3,
    }
    return LocalSegmentQuestion(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"is_enabled": False}, "remote.storage.enable is false"),
        ({"is_copy_disabled": True}, "remote.log.copy.disable is true"),
        ({"refusal": "too large"}, "copying has stopped: too large"),
        ({"next_base_offset": None}, "active segment"),
        ({"last_stable_offset": 15}, "a transaction has been open since offset 15"),
        ({"last_stable_offset": 15, "high_watermark": 15}, "the high watermark is 15"),
        ({"copying_seconds": 7.2}, "copying for 7 s"),
        ({"is_waiting_for_quota": True}, "remote.log.manager.copy.max.bytes.per.second"),
        ({"is_waiting_for_place": True}, "one of 10 copier slots"),
        ({"last_error": "gone"}, "the last attempt failed, the next one is in 12 s: gone"),
        ({"is_ready": False}, "has not been read yet"),
        ({}, "it will be copied in 12 s"),
    ],
)
def test_a_sentence_says_why_a_segment_is_still_local(changes: dict[str, object], expected: str) -> None:
    assert expected in why_local(question(**changes))
