"""The page of metrics says what `/metrics` answers, under names that Prometheus wants; the dashboard uses them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from strandline.admin.http.metrics.exposition import exposition
from strandline.admin.http.metrics.reference import main, render
from strandline.admin.http.metrics.tables import all_families
from tests.admin.http.test_server import Source

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs" / "metrics.md"
DASHBOARD = REPOSITORY / "docs" / "dashboards" / "strandline.json"


def test_the_page_in_the_repository_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make docs`"


def test_the_page_goes_to_a_file_or_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path / "page.md")])
    main([])
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page == capsys.readouterr().out
    assert "| `kafka_server_brokertopicmetrics_messagesin_total` | counter | `topic` |" in page


async def test_the_page_has_what_is_answered_and_nothing_else() -> None:
    answer = (await exposition(Source(), CollectorRegistry())).decode()
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", answer, re.MULTILINE))
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in render().splitlines() if row.startswith("| `")]
    assert {row[0].strip("`"): row[1].replace("info", "gauge") for row in rows} == types


def test_every_family_has_its_own_name_and_a_sentence() -> None:
    names = Counter(family.exposed_name for family in all_families())
    assert max(names.values()) == 1, names.most_common(3)
    for family in all_families():
        assert re.fullmatch(r"[A-Z0-9].*[.]", family.text), family.exposed_name
        assert "\n" not in family.text, family.exposed_name


def test_names_keep_the_rules_that_promtool_checks() -> None:
    for family in all_families():
        name, kind = family.exposed_name, family.kind
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name
        assert all(re.fullmatch(r"[a-z][a-z0-9_]*", label) for label in family.labels), name
        assert name.endswith("_total") == (kind == "counter"), name
        assert not re.search(r"_(gauge|counter|summary|histogram)(_|$)", name), name
        assert not re.search(r"_(s|ms|us|ns|sec|b|kb|mb|gb|tb|pb|m|h|d)(_|$)", name), name
        assert not re.search(r"_(minutes|hours|days|bits|milliseconds|kilobytes|megabytes)(_|$)", name), name
        assert kind in ("untyped", "info") or not re.search(r"_(count|sum|bucket|info)$", name), name
        assert not {"le", "quantile"} & set(family.labels), name


async def test_no_sample_comes_twice() -> None:
    answer = (await exposition(Source(), CollectorRegistry())).decode()
    samples = Counter(line.rsplit(" ", 1)[0] for line in answer.splitlines() if not line.startswith("#"))
    assert max(samples.values()) == 1, samples.most_common(3)
    assert sum(len(family.samples) for family in text_string_to_metric_families(answer)) == len(samples)


def expressions(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key in ("expr", "query") and isinstance(value, str))
        for value in node.values():
            yield from expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value)


def test_the_dashboard_shows_metrics_that_exist() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    known = {family.exposed_name for family in all_families()} | {
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
    }
    shown = set()
    for expression in expressions(dashboard):
        for name in re.findall(r"\b(?:inkless|kafka|strandline|process)_[a-z0-9_]+", expression):
            shown.add(name)
            assert re.sub(r"_(bucket|sum)$", "", name) in known or name in known, (name, expression)
    assert len(shown) > 40
    assert {panel["datasource"]["uid"] for panel in dashboard["panels"] if "datasource" in panel} == {"${datasource}"}
