"""The status page: one HTML document, without scripts and without anything loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from html import escape
from typing import Final

from strandline.admin.http.page_style import STYLE
from strandline.admin.http.rates import Rate, Rates
from strandline.admin.http.ruler import render_migrations
from strandline.admin.status import (
    BrokerStatus,
    DisklessStatus,
    GroupRow,
    TopicRow,
    read,
)
from strandline.admin.text import count, duration, sentence, size
from strandline.health import HealthStatus
from strandline.hybrid.conversion.progress import ConversionStatus
from strandline.hybrid.diskless.status import DisklessTierStatus
from strandline.hybrid.remote.status import TieredStatus

_TOPICS_SHOWN: Final = 50
_NOTHING: Final = "0 (0 B)"
# Numbers that are red unless they are 0.
_BAD: Final = frozenset({"without a leader", "under-replicated"})
# Columns of numbers: right-aligned, never wrapped.
_NUMBERS: Final = frozenset(
    {
        "partitions",
        "size",
        "records in",
        "in",
        "out",
        "lag",
        "held",
        "limit",
        "topics",
        "WAL objects written",
        "in memory",
        "remote segments",
        "remote",
        "still to copy",
        "to delete",
        "boundary",
        "end",
        "rows to split",
        "rows to merge",
        "not converted",
    }
)


def render_page(status: BrokerStatus, rates: Rates, groups: Sequence[GroupRow]) -> str:
    """The page for one broker at one instant."""
    return "".join(_parts(status, rates, groups))


def _parts(status: BrokerStatus, rates: Rates, groups: Sequence[GroupRow]) -> Iterable[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="refresh" content="10">'
    yield f"<title>Strandline broker {status.node_id}</title><style>{STYLE}</style></head><body><main>"
    yield f"<h1>Strandline <small>broker {status.node_id}, version {escape(status.version)}</small></h1>"
    yield _state(status)
    yield '<div class="numbers">'
    for label, value in _numbers(status, rates.of()):
        bad = ' class="bad"' if label in _BAD and value != count(0) else ""
        yield f"<div><b{bad}>{escape(value)}</b><span>{escape(label)}</span></div>"
    yield "</div>"
    switched = {topic for topic, _ in status.migration.led}
    yield _section(
        "Topics here, the busiest first",
        ("topic", "kind", "partitions", "size", "records in", "in", "out"),
        (_topic(row, rates.of(row.name), switched) for row in _busiest(status.topic_rows, rates)),
        note=f"Rates are those of the last {duration(rates.seconds)}, through this broker.",
    )
    yield _section(
        "Groups coordinated here, the furthest behind first", ("group", "state", "reads", "lag"), _groups(groups)
    )
    yield _section("Database and stores", ("what", "where", "state"), map(_dependency, status.dependencies))
    yield read(status.diskless.tier, lambda tier: _diskless(status.diskless, tier), "")
    yield read(status.tiered, _tiered, "")
    yield _conversion(status.tiering) if status.tiered else ""
    yield render_migrations(status.migration)
    yield _section(
        "Log directories",
        ("directory", "state", "partitions", "size"),
        ((row.path, _online(row.is_online), count(row.partitions), size(row.bytes)) for row in status.log_dirs),
    )
    yield _section(
        "Memory for clients",
        ("what", "held", "limit"),
        ((name, size(held), size(limit)) for name, (held, limit) in status.client_memory.items()),
    )
    yield _section(
        "Brokers of the cluster",
        ("broker", "address", "rack", "state"),
        ((str(row.node_id), row.address, row.rack or "-", _alive(row.is_fenced)) for row in status.brokers),
    )
    yield f"<h2>Cluster</h2><p>{escape(status.cluster_id)}, controller {status.controller_id} "
    yield f"in epoch {status.controller_epoch}, metadata at offset {status.metadata_offset}.</p>"
    yield '<p><a href="/metrics">metrics</a> · <a href="/status">status as JSON</a> · '
    yield '<a href="/healthz">healthz</a> · <a href="/readyz">readyz</a></p></main></body></html>\n'


def _state(status: BrokerStatus) -> str:
    listening = ", ".join(escape(listener) for listener in status.listeners)
    shown = f'<p><span class="state ok">Ready</span> for {duration(status.uptime_s)}, serving {listening}</p>'
    if not status.is_ready:
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in status.not_ready_because)
        shown = f'<p><span class="state bad">Not ready</span></p><ul>{reasons}</ul>'
    away = (f'<p class="away">{escape(sentence(one))}</p>' for one in status.dependencies if one.is_away)
    problems = filter(None, (*status.leaderless, status.clock_problem))
    return shown + "".join((*away, *(f'<p class="away">{escape(one)}</p>' for one in problems)))


def _numbers(status: BrokerStatus, rate: Rate) -> Iterable[tuple[str, str]]:
    yield "records in", f"{count(rate.messages_in)}/s"
    yield "bytes in", f"{size(int(rate.bytes_in))}/s"
    yield "bytes out", f"{size(int(rate.bytes_out))}/s"
    yield "on disk", size(sum(row.bytes for row in status.log_dirs))
    yield "topics", count(status.topics)
    yield "partitions", count(status.partitions)
    yield "led here", count(status.led_partitions)
    yield "without a leader", count(status.offline_partitions)
    yield "under-replicated", count(status.under_replicated_partitions)
    yield "groups", count(status.groups)
    yield "connections", count(status.connections)


def _section(title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, note: str = "") -> str:
    """A heading and a table; nothing if there is no row."""
    body = "".join(_row(heads, row) for row in rows)
    if not body:
        return ""
    head = "".join(f"<th{_number(cell)}>{escape(cell)}</th>" for cell in heads)
    shown = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<h2>{escape(title)}</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{shown}"


def _row(heads: tuple[str, ...], row: tuple[str, ...]) -> str:
    # On a narrow screen each row is a card: its cells show their names, which the heads of columns no longer do.
    cells = (
        f'<td{_number(head)} data-label="{escape(head)}">{escape(cell)}</td>'
        for head, cell in zip(heads, row, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _number(head: str) -> str:
    return ' class="n"' if head in _NUMBERS else ""


def _busiest(rows: Sequence[TopicRow], rates: Rates) -> Sequence[TopicRow]:
    def busy(row: TopicRow) -> tuple[float, int, str]:
        rate = rates.of(row.name)
        return -(rate.bytes_in + rate.bytes_out), -row.bytes, row.name

    return sorted(rows, key=busy)[:_TOPICS_SHOWN]


def _topic(row: TopicRow, rate: Rate, switched: Container[str]) -> tuple[str, ...]:
    is_diskless = row.is_diskless or row.name in switched
    kind = "diskless" if is_diskless else "tiered" if row.is_tiered else "classic"
    on_disk = size(row.bytes) if row.bytes or not row.is_diskless else "-"
    return (
        row.name,
        kind,
        count(row.partitions),
        on_disk,
        f"{count(rate.messages_in)}/s",
        f"{size(int(rate.bytes_in))}/s",
        f"{size(int(rate.bytes_out))}/s",
    )


def _groups(groups: Sequence[GroupRow]) -> Iterable[tuple[str, ...]]:
    for row in groups[:_TOPICS_SHOWN]:
        unknown = f" and {row.unknown_partitions} partitions elsewhere" if row.unknown_partitions else ""
        yield row.group_id, row.state, ", ".join(row.topics) or "-", f"{count(row.lag)}{unknown}"


def _dependency(health: HealthStatus) -> tuple[str, ...]:
    return (
        health.what,
        health.url,
        f"away for {duration(health.away_seconds)}" if health.is_away else health.state.value,
    )


def _diskless(topics: DisklessStatus, tier: DisklessTierStatus) -> str:
    totals, cache = tier.writer.totals, tier.reader.cache
    row = (
        tier.objects.url,
        count(topics.topics),
        count(topics.partitions),
        f"{count(totals.files)} ({size(totals.bytes)})",
        size(cache.hot_bytes + cache.cold_bytes),
    )
    return _section("Diskless topics", ("where", "topics", "partitions", "WAL objects written", "in memory"), [row])


def _tiered(status: TieredStatus) -> str:
    heads = ("topic", "remote segments", "remote", "still to copy", "to delete")
    where = f"Segments are kept in {status.storage.url}."
    return _section("Tiered topics", heads, _tiered_rows(status), note=where)


def _tiered_rows(status: TieredStatus) -> Iterable[tuple[str, ...]]:
    stored = {name: status.manager.topics.get(name) for name in status.topics}
    largest = sorted(stored.items(), key=lambda item: (-read(item[1], lambda t: t.remote_bytes, 0), item[0]))
    for name, topic in largest[:_TOPICS_SHOWN]:
        yield (
            name,
            str(read(topic, lambda t: t.metadata_count, 0)),
            size(read(topic, lambda t: t.remote_bytes, 0)),
            read(topic, lambda t: f"{t.copy_lag_segments} ({size(t.copy_lag_bytes)})", _NOTHING),
            read(topic, lambda t: f"{t.delete_lag_segments} ({size(t.delete_lag_bytes)})", _NOTHING),
        )


def _conversion(status: ConversionStatus) -> str:
    heads = ("topic", "state", "boundary", "end", "rows to split", "rows to merge", "not converted")
    largest = sorted(status.topics.items(), key=lambda item: (-item[1].lag_bytes, item[0]))
    rows = (
        (
            topic,
            "paused" if one.is_paused else "converting" if one.pending_split or one.pending_merge else "up to date",
            str(one.boundary),
            str(one.high_watermark),
            count(one.pending_split),
            count(one.pending_merge),
            size(one.lag_bytes),
        )
        for topic, one in largest[:_TOPICS_SHOWN]
    )
    note = "Of the partitions led here; boundary and end of the one that is least far. Below the boundary are segments."
    return _section("Conversion of diskless topics into segments", heads, rows, note=note)


def _online(is_online: bool) -> str:
    return "online" if is_online else "failed"


def _alive(is_fenced: bool) -> str:
    return "fenced" if is_fenced else "alive"
