"""The page of metrics says what `/metrics` answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strandline.admin.http.metrics.collector import StatusCollector
from strandline.admin.http.metrics.reference import main, render
from strandline.admin.status import BrokerStatus
from tests.admin.http.statuses import CLEANER

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_page_in_the_repository_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make docs`"


def test_the_page_goes_to_a_file_or_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path / "page.md")])
    main([])
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page == capsys.readouterr().out
    assert "| `kafka_server_brokertopicmetrics_messagesin_total` | counter | `topic` |" in page


def test_the_page_has_what_is_collected_and_nothing_else() -> None:
    class Source:
        def status(self) -> BrokerStatus:
            return BrokerStatus(version="1", node_id=1, cluster_id="c", cleaner=CLEANER)

    families = {(family.name, family.type, family.documentation) for family in StatusCollector(Source()).collect()}
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in render().splitlines() if row.startswith("| `")]
    listed = {(re.sub(r"_(total|info)$", "", row[0].strip("`")), row[1], row[3]) for row in rows}
    assert listed == families
