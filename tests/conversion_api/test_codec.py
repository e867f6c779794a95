"""Every value of the tiering API survives its JSON, and what is no value is refused with a sentence."""

from __future__ import annotations

import dataclasses
import enum
import json
import re
import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.conversion_api import values
from strandline.conversion_api.codec import decode, encode
from strandline.conversion_api.values import BeginSegment, BegunSegment, ClaimFiles, CommitSegment, RecordedSplits
from strandline.errors import InvalidRequest
from strandline.model import INT64_MAX, TopicIdPartition, TopicPartition
from tests.config.refusals import refusal_of

KINDS = [found for found in vars(values).values() if dataclasses.is_dataclass(found) and isinstance(found, type)]

TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(-INT64_MAX - 1, INT64_MAX),
    str: TEXT,
    bytes: st.binary(max_size=5),
    UUID: st.uuids(),
}


@cache
def value_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type, by the types of its fields."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    if origin is types.UnionType:
        return st.none() | value_of(arguments[0])
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(value_of(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(value_of, arguments))
    if origin is Mapping:
        return st.dictionaries(TEXT, value_of(arguments[1]), max_size=2)
    if issubclass(kind, enum.Enum):
        return st.sampled_from(kind)
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: value_of(hint) for name, hint in hints.items()})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_a_value_survives_its_json(kind: Any, data: st.DataObject) -> None:
    value = data.draw(value_of(kind))
    assert decode(kind, json.loads(json.dumps(encode(value)))) == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_anything_else_is_refused_with_a_sentence(kind: Any, data: st.DataObject) -> None:
    """Whatever somebody sends: random JSON, and a good document of which one field is replaced by random JSON."""
    document: Any = data.draw(JSON)
    if data.draw(st.booleans()):
        good = encode(data.draw(value_of(kind)))
        document = good | {data.draw(st.sampled_from(sorted(good))): document}
    reason = refusal_of(lambda: decode(kind, document))
    if reason is None:
        found = decode(kind, document)
        assert decode(kind, encode(found)) == found
    else:
        assert reason.startswith(f"This is no {kind.__name__} of the tiering API: ")
        assert re.search(r"[^.]\.$", reason)


CLAIM = {"claimant": "a", "max_files": 1, "max_rows": 1, "claim_ms": 1}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({}, "The field claim_ms, claimant, max_files, max_rows is missing"),
        (CLAIM | {"colour": 1}, "There is no field colour"),
        (CLAIM | {"max_files": "1"}, "'1' is not of type int"),
        (CLAIM | {"max_files": True}, "True is not of type int"),
        (CLAIM | {"max_files": 2**63}, "9223372036854775808 has more than 64 bits"),
        (CLAIM | {"topics": "orders"}, "'orders' is no list"),
        ([], r"\[\] is no object"),
    ],
)
def test_a_refusal_says_what_is_wrong(document: object, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"^This is no ClaimFiles of the tiering API: {reason}\.$"):
        decode(ClaimFiles, document)


def test_the_json_is_what_the_document_says() -> None:
    """docs/tiering-api.md shows these forms to those who write their own client."""
    partition = TopicIdPartition(UUID(int=1), TopicPartition("orders", 3))
    begin = BeginSegment(claimant="me", partition=partition, base_offset=0, last_offset=9, claim_ms=5)
    assert encode(begin)["partition"] == ["AAAAAAAAAAAAAAAAAAAAAQ", "orders", 3]
    commit = CommitSegment(
        claimant="me", partition=partition, segment_id=UUID(int=2), end_offset=9, custom_metadata=b"\x00\xff"
    )
    assert encode(commit)["custom_metadata"] == "AP8="
    assert encode(RecordedSplits(refused={"k": "No."}, files_done=("f",))) == {
        "refused": {"k": "No."},
        "files_done": ["f"],
    }
    assert {field.name for field in dataclasses.fields(BegunSegment)} == {
        "partition",
        "leader_epoch",
        "segment",
        "splits",
        "previous",
        "index_interval_bytes",
        "producer_id_expiration_ms",
        "aborted",
    }


DOCUMENT = Path(__file__).parents[2] / "docs" / "tiering-api.md"
DOCUMENTED: dict[str, tuple[type[Any], ...]] = {
    "describe": (values.ClusterDescription,),
    "claim-files": (values.ClaimFiles, values.ClaimedFiles),
    "record-splits": (values.RecordSplits, values.RecordedSplits),
    "release-files": (values.ReleaseFiles,),
    "renew-claims": (values.RenewClaims, values.RenewedClaims),
    "list-triggers": (values.ListTriggers, values.Triggers),
    "list-merges": (values.ListMerges, values.MergeRanges),
    "begin-segment": (values.BeginSegment, values.BegunSegment),
    "commit-segment": (values.CommitSegment, values.CommittedSegment),
    "abort-segment": (values.AbortSegment,),
    "plan-read": (values.PlanRead, values.ReadPlan),
    "Topics": (values.TieringStatus,),
}


def test_the_document_shows_every_request_and_answer_as_they_are() -> None:
    sections = re.split(r"^## (.+)$", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert list(DOCUMENTED) == [title for title in found if title not in ("The rules", "Errors")]
    for title, kinds in DOCUMENTED.items():
        examples = [json.loads(one) for one in re.findall(r"^```json\n(.*?)^```$", found[title], re.M | re.S)]
        shown = [example for example in examples if example != {}]
        assert len(shown) == len(kinds), title
        for kind, example in zip(kinds, shown, strict=True):
            assert encode(decode(kind, example)) == example, "every field is shown"
