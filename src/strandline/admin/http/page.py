"""The status page: one HTML document, without scripts and without anything loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from strandline.admin.status import BrokerStatus, DisklessStatus, DisklessTierStatus, TieredStatus, read
from strandline.admin.text import duration, size

_STYLE: Final = """
:root { --ink: #1c2b33; --soft: #5b7280; --line: #d9e2e7; --sand: #f6f3ec; --sea: #0f6e84; }
:root { --ok: #1d7a4c; --bad: #b3402e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4edf1; --soft: #93a8b3; --line: #2c3d46; --sand: #131c21; --sea: #58b8cf; }
  :root { --ok: #5ec48f; --bad: #ee8673; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--sand); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1rem; margin: 2.2rem 0 .6rem; color: var(--soft); }
h1 small { font-weight: 400; color: var(--soft); }
.state { font-weight: 600; } .ok { color: var(--ok); } .bad { color: var(--bad); }
.numbers { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .75rem; }
.numbers { margin-top: 1.5rem; }
.numbers div { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; }
.numbers b { display: block; font-size: 1.4rem; font-variant-numeric: tabular-nums; }
.numbers span { color: var(--soft); }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 500; color: var(--soft); }
td, th { padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
a { color: var(--sea); }
""".strip()

_TOPICS_SHOWN: Final = 50
_NOTHING: Final = "0 (0 B)"


def render_page(status: BrokerStatus) -> str:
    """The page for one broker at one instant."""
    return "".join(_parts(status))


def _parts(status: BrokerStatus) -> Iterable[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="refresh" content="10">'
    yield f"<title>Strandline broker {status.node_id}</title><style>{_STYLE}</style></head><body><main>"
    yield f"<h1>Strandline <small>broker {status.node_id}, version {escape(status.version)}</small></h1>"
    yield _state(status)
    yield '<div class="numbers">'
    for label, value in _numbers(status):
        yield f"<div><b>{escape(value)}</b><span>{escape(label)}</span></div>"
    yield "</div><h2>Log directories</h2>"
    yield _table(
        ("directory", "state", "partitions", "size"),
        ((row.path, _online(row.is_online), str(row.partitions), size(row.bytes)) for row in status.log_dirs),
    )
    yield read(status.diskless.tier, lambda tier: _diskless(status.diskless, tier), "")
    yield read(status.tiered, _tiered, "")
    yield "<h2>Topics here, the largest first</h2>"
    largest = sorted(status.topic_rows, key=lambda row: (-row.bytes, row.name))[:_TOPICS_SHOWN]
    yield _table(("topic", "partitions", "size"), ((row.name, str(row.partitions), size(row.bytes)) for row in largest))
    yield "<h2>Brokers of the cluster</h2>"
    yield _table(
        ("id", "address", "rack", "state"),
        ((str(row.node_id), row.address, row.rack or "", _alive(row.is_fenced)) for row in status.brokers),
    )
    yield f"<h2>Cluster</h2><p>{escape(status.cluster_id)}, controller {status.controller_id} "
    yield f"in epoch {status.controller_epoch}, metadata at offset {status.metadata_offset}.</p>"
    yield '<p><a href="/metrics">metrics</a> · <a href="/status">status as JSON</a> · '
    yield '<a href="/healthz">healthz</a> · <a href="/readyz">readyz</a></p></main></body></html>\n'


def _state(status: BrokerStatus) -> str:
    listening = ", ".join(escape(listener) for listener in status.listeners)
    if status.is_ready:
        return f'<p><span class="state ok">Ready</span> for {duration(status.uptime_s)}, serving {listening}</p>'
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in status.not_ready_because)
    return f'<p><span class="state bad">Not ready</span></p><ul>{reasons}</ul>'


def _numbers(status: BrokerStatus) -> Iterable[tuple[str, str]]:
    yield "topics", str(status.topics)
    yield "partitions", str(status.partitions)
    yield "led here", str(status.led_partitions)
    yield "without a leader", str(status.offline_partitions)
    yield "under-replicated", str(status.under_replicated_partitions)
    yield "groups", str(status.groups)
    yield "connections", str(status.connections)
    yield "on disk", size(sum(row.bytes for row in status.log_dirs))


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _diskless(topics: DisklessStatus, tier: DisklessTierStatus) -> str:
    totals, cache = tier.writer.totals, tier.reader.cache
    row = (
        tier.objects.url,
        str(topics.topics),
        str(topics.partitions),
        f"{totals.files} ({size(totals.bytes)})",
        size(cache.hot_bytes + cache.cold_bytes),
    )
    heads = ("where", "topics", "partitions", "WAL objects written", "in memory")
    return "<h2>Diskless topics</h2>" + _table(heads, [row])


def _tiered(status: TieredStatus) -> str:
    heads = ("topic", "remote segments", "remote", "still to copy", "to delete")
    where = f"<p>Segments are kept in {escape(status.storage.url)}.</p>"
    return f"<h2>Tiered topics</h2>{where}" + _table(heads, _tiered_rows(status))


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


def _online(is_online: bool) -> str:
    return "online" if is_online else "failed"


def _alive(is_fenced: bool) -> str:
    return "fenced" if is_fenced else "alive"
