"""The reference page says what the declarations say."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.config.reference import main, render
from strandline.config.settings import BROKER_DECLARATIONS
from strandline.config.topic import TOPIC_DECLARATIONS

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_in_the_repository_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make docs`"


def test_every_setting_is_on_the_page() -> None:
    page = render()
    for name in (*BROKER_DECLARATIONS, *TOPIC_DECLARATIONS):
        assert f"| `{name}` |" in page


def test_the_page_goes_to_a_file_or_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path / "page.md")])
    main([])
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == capsys.readouterr().out
