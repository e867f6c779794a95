"""Records per second of processor time where records are read one by one: decoding, compaction, recompression.

    .venv/bin/python -m bench.decoding [--records 200000] [--rounds 3]

Runs the work in processes with plain and with compiled modules, in turn, and prints the medians of both.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

_PER_BATCH: Final = 100
_VALUE: Final = bytes(range(100))
_FORMS: Final = ("no", "required")


def measure(records: int) -> Mapping[str, float]:
    """Records per second of each kind of work in this process."""
    from strandline.records.batch import read_header
    from strandline.records.builder import build_batch
    from strandline.records.codecs import Codec
    from strandline.records.record import Record, read_raw_records, read_records, records_data

    def batch_of(base: int, codec: Codec = Codec.NONE) -> bytearray:
        wanted = [
            Record(base + i, 1_700_000_000_000 + i, b"key-%012d" % ((base + i) % (records // 2)), _VALUE)
            for i in range(_PER_BATCH)
        ]
        return build_batch(wanted, base_offset=base, codec=codec)

    batches = [bytes(batch_of(base)) for base in range(0, records, _PER_BATCH)]
    bodies = [(records_data(batch, read_header(batch)), _PER_BATCH) for batch in batches]
    parts = [read_records(batch) for batch in batches[:200]]
    return {
        "delimit records": _rate(records, lambda: [read_raw_records(*body) for body in bodies]),
        "read records": _rate(records, lambda: [read_records(batch) for batch in batches]),
        "build batches": _rate(
            200 * _PER_BATCH, lambda: [build_batch(part, base_offset=part[0].offset) for part in parts]
        ),
        "compact": _compact(batches, records),
    }


def _rate(records: int, work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return records / (time.process_time() - began)


def _compact(batches: list[bytes], records: int) -> float:
    from strandline.log.cleaning.requests import CleaningRules, CleaningSource, GroupRequest, MapRequest
    from strandline.log.cleaning.worker import build_map, clean_group

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "source.log")
        path.write_bytes(b"".join(batches))
        source = CleaningSource(base_offset=0, next_base_offset=records, path=str(path), size=path.stat().st_size)
        rules = CleaningRules(now_ms=1_700_000_000_000, delete_retention_ms=0, end_offset=records)

        def clean() -> None:
            build_map(
                MapRequest(
                    token=1,
                    sources=(source,),
                    start_offset=0,
                    aborted=(),
                    budget_bytes=1 << 30,
                    max_bytes_per_second=float("inf"),
                )
            )
            clean_group(
                GroupRequest(
                    token=1,
                    directory=directory,
                    sources=(source,),
                    rules=rules,
                    index_interval_bytes=4096,
                    max_bytes_per_second=float("inf"),
                )
            )

        return _rate(records, clean)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.records)))
        return 0
    found: dict[str, list[Mapping[str, float]]] = {form: [] for form in _FORMS}
    for _ in range(options.rounds):
        for form in _FORMS:
            command = [sys.executable, "-P", "-m", "bench.decoding", "--here", "--records", str(options.records)]
            environment = {"PYTHONPATH": os.pathsep.join(sys.path), **os.environ, "STRANDLINE_COMPILED": form}
            run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
            found[form].append(json.loads(run.stdout))
    for name in found["no"][0]:
        plain, compiled = (statistics.median(one[name] for one in found[form]) for form in _FORMS)
        print(f"{name:16} plain {plain:>10,.0f}/s   compiled {compiled:>10,.0f}/s   {compiled / plain:.1f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
