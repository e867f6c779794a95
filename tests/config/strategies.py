"""Values for settings, made from their declarations: legal ones, and numbers just outside their range."""

from __future__ import annotations

from hypothesis import strategies as st

from strandline.config.declare import Declaration, SettingKind, Value

_TYPE_LIMITS = {SettingKind.SHORT: 2**15, SettingKind.INT: 2**31, SettingKind.LONG: 2**63}
_words = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=","), min_size=1, max_size=8)


def legal_values(declaration: Declaration) -> st.SearchStrategy[Value]:
    """Values the declaration allows."""
    match declaration.kind:
        case SettingKind.BOOLEAN:
            return st.booleans()
        case SettingKind.INT | SettingKind.SHORT | SettingKind.LONG:
            limit = _TYPE_LIMITS[declaration.kind]
            least = -limit if declaration.least is None else int(declaration.least)
            most = limit - 1 if declaration.most is None else int(declaration.most)
            inside: st.SearchStrategy[Value] = st.integers(least, most)
            return inside | st.sampled_from(declaration.also) if declaration.also else inside
        case SettingKind.DOUBLE:
            least_d = 0.0 if declaration.least is None else float(declaration.least)
            return st.floats(least_d, declaration.most if declaration.most is not None else 1e300)
        case SettingKind.LIST:
            entries = st.sampled_from(declaration.allowed) if declaration.allowed else _words
            smallest = 0 if declaration.may_be_empty else 1
            return st.lists(entries, min_size=smallest, max_size=4, unique=True).map(tuple)
        case _:
            return st.sampled_from(declaration.allowed) if declaration.allowed else _words


def illegal_numbers(declaration: Declaration) -> list[int | float]:
    """The numbers nearest to the range that are outside of it and not allowed besides."""
    candidates: list[int | float] = []
    limit = _TYPE_LIMITS.get(declaration.kind)
    if limit is not None:
        candidates += [-limit - 1, limit]
    if declaration.least is not None:
        candidates.append(declaration.least - 1)
    if declaration.most is not None and declaration.most < 1e300:
        candidates.append(declaration.most + 1)
    return [number for number in candidates if number not in declaration.also]
