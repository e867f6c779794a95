"""The page of metrics says what `/metrics` answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.admin.metrics_reference import main, render

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_page_in_the_repository_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make docs`"


def test_the_page_goes_to_a_file_or_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path / "page.md")])
    main([])
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page == capsys.readouterr().out
    assert "| `kafka_server_brokertopicmetrics_messagesin_total` | counter | `topic` |" in page
