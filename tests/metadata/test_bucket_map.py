"""Maps whose copies share what did not change: they are what a dict would be, and old ones stay as they are."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.metadata import bucket_map
from strandline.metadata.bucket_map import ENTRIES_PER_BUCKET, BucketEditor, BucketMap

keys = st.integers(0, 40)
changes = st.lists(st.lists(st.tuples(keys, st.none() | st.integers(0, 3)), max_size=30), max_size=6)


@given(changes=changes, per_bucket=st.integers(1, 5))
def test_a_map_with_changes_is_what_a_dict_would_be(
    changes: list[list[tuple[int, int | None]]], per_bucket: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bucket_map, "ENTRIES_PER_BUCKET", per_bucket)
        model: dict[int, int] = {}
        now: BucketMap[int, int] = BucketMap()
        for some in changes:
            old, model_before, editor = now, dict(model), BucketEditor(now)
            for key, value in some:
                if value is None:
                    editor.discard(key)
                    model.pop(key, None)
                else:
                    editor.put(key, value)
                    model[key] = value
                assert editor.get(key) == model.get(key)
            now = editor.build()
            assert_is(now, model)
            assert_is(old, model_before)
        assert_is(BucketMap(model), model)


def assert_is(made: BucketMap[int, int], model: dict[int, int]) -> None:
    assert made == model
    assert len(made) == len(model)
    assert set(made) == model.keys()
    assert dict(made.items()) == model
    assert sorted(made.values()) == sorted(model.values())
    for key in range(41):
        assert made.get(key) == model.get(key)
        assert made.get(key, -1) == model.get(key, -1)
        assert (key in made) == (key in model)


def test_few_entries_are_in_the_order_in_which_they_came() -> None:
    entries = {str(number): number for number in range(ENTRIES_PER_BUCKET, 0, -1)}
    assert list(BucketMap(entries)) == list(entries)


def test_a_missing_key_is_an_error() -> None:
    with pytest.raises(KeyError):
        BucketMap({"a": 1})["b"]


def test_a_map_of_another_process_is_read() -> None:
    made = BucketMap({str(number): number for number in range(3 * ENTRIES_PER_BUCKET)})
    assert pickle.loads(pickle.dumps(made)) == made
    assert repr(BucketMap({"a": 1})) == "{'a': 1}"
