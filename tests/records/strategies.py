"""Random records and batches."""

from __future__ import annotations

from hypothesis import strategies as st

from strandline.records import Codec, Header, Record

small_bytes = st.one_of(st.none(), st.binary(max_size=80))
headers = st.lists(st.builds(Header, st.text(max_size=8), small_bytes), max_size=3).map(tuple)
timestamps = st.one_of(st.just(-1), st.integers(min_value=0, max_value=4_000_000_000_000))
codecs = st.sampled_from(list(Codec))


@st.composite
def record_lists(draw: st.DrawFn, *, holes: bool = False, least: int = 1) -> list[Record]:
    """Records with rising offsets from 0 on; with `holes`, some are left out, as after compaction."""
    count = draw(st.integers(min_value=least, max_value=12))
    offset = 0
    records = []
    for _ in range(count):
        if holes:
            offset += draw(st.sampled_from([0, 0, 1, 200, 70_000]))
        value = draw(small_bytes)
        records.append(Record(offset, draw(timestamps), draw(small_bytes), value, draw(headers)))
        offset += 1
    return records
