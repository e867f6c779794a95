"""Kafka's DumpLogSegments: it reads segments, indexes and snapshots with Kafka's classes, and complains."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench import kafka

# What the dump tool prints when it does not like something. "Non-consecutive offsets" is not among them: it prints
# that for every segment that does not begin at 0, and for every compacted one.
COMPLAINTS = ("failed", "Mismatches", "Exception", "corrupt", "not equal", "isvalid: false", "Found timestamp mismatch")


class Complaint(Exception):
    """The tool ended with an error, or did not like a file."""


def dump(libraries: Path, files: Iterable[Path], *options: str, log_file: Path) -> str:
    """What the tool says of these files. Raises Complaint if there are none, or if it does not accept one."""
    names = sorted(str(path) for path in files)
    if not names:
        raise Complaint("there are no files to dump")
    tool = kafka.run_tool(libraries, kafka.DUMP_LOG, "--files", ",".join(names), *options)
    said = tool.stdout + tool.stderr
    with log_file.open("a") as log:
        log.write(f"$ DumpLogSegments {' '.join(options)} ({len(names)} files)\n{said}\n")
    complaints = [line for line in said.splitlines() if any(word in line for word in COMPLAINTS)]
    if tool.returncode != 0 or complaints:
        raise Complaint(f"DumpLogSegments ended with {tool.returncode}:\n" + "\n".join(complaints[:20]))
    return said
