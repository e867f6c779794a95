"""What a start has to read costs in proportion to what there is, by count. `python -m bench.growth` has the times."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.growing.crashed_logs import SHAPES, crashed_directory, load_crashed

from tests.guards.counting import CountedInstructions, exponent

FEW, MANY = 60, 600


@pytest.mark.parametrize("shape", SHAPES)
def test_a_log_is_recovered_in_proportion_to_its_transactions(shape: str, tmp_path: Path) -> None:
    def recover(size: int) -> int:
        directory = crashed_directory(tmp_path / str(size), SHAPES[shape](size))
        with CountedInstructions() as counted:
            log = load_crashed(directory)
            log.update_high_watermark(log.log_end_offset)
        assert log.log_end_offset >= size
        log.close()
        return counted.total

    few, many = recover(FEW), recover(MANY)
    grows = exponent((FEW, few), (MANY, many))
    assert grows <= 1.03, f"{shape}: {few} instructions for {FEW}, {many} for {MANY}"
