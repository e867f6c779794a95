"""What `strandline fsck` found: tables and advice for people, JSON for programs."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from strandline.admin.commands.output import print_line, print_table
from strandline.admin.text import duration, size
from strandline.client import Json
from strandline.diskless.fsck import FsckReport, WalFault
from strandline.objects.comparing import ComparisonReport, Finding
from strandline.remote.fsck import RemoteFindingKind as RemoteKind
from strandline.remote.fsck import RemoteFsckReport

_DISKLESS_ADVICE: Final = {
    WalFault.STUCK: "Stuck: the leader of the partition finishes such a segment, or deletes its bytes, by itself "
    "(remote.log.storage.system.enable=true). If it does not, its log says why.",
    WalFault.ORPHAN: "Orphans hold no records that a consumer can read. The broker deletes them by itself; "
    "--repair does it now.",
    WalFault.CONTRADICTION: "Contradictions: a broker of an earlier version has run beside this one, or rows were "
    "changed by hand. The next marker of any transaction in the partition mends its first unstable offset.",
}
_REMOTE_ADVICE: Final = {
    RemoteKind.MISSING: "Missing objects: restore them under the same name from a backup, and consumers can read them "
    "at once. If they are lost, DeleteRecords moves the log start past them, and past everything before them.",
    RemoteKind.DAMAGED: "Damaged objects: restore them as missing ones. Damaged records of the remote log metadata: "
    "strandline remote dump shows them; brokers skip them.",
    RemoteKind.HOLE: "Holes: consumers cannot read these offsets. Look for their segments among the orphans, the "
    "unknown objects and your backups; if they are lost, DeleteRecords moves the log start past them.",
    RemoteKind.STUCK: "Stuck: a running broker finishes these copies and deletions by itself "
    "(remote.log.storage.system.enable=true). If it does not, its log says why.",
    RemoteKind.ORPHAN: "Orphans hold no records that a consumer can read, and brokers do not delete them; --repair "
    "does, where it is certain that no log needs them.",
    RemoteKind.UNKNOWN: "Unknown objects belong to another cluster, or their remote log metadata was lost. fsck never "
    "deletes them: find out whose they are, and delete them by hand.",
}


def print_diskless(report: FsckReport, *, is_all: bool) -> None:
    """The findings in the objects of diskless topics, and what to do about them. `is_all`: nothing was left out."""
    _print_findings(("found", "object", "size", "age", "what"), report.findings, is_all=is_all)
    print_line(
        f"{report.objects} objects ({size(report.object_bytes)}), {report.files} files in the control plane"
        + (f" ({report.split_files} split files)" if report.split_files else "")
        + (f", {report.uploads} segments under way: " if report.uploads else ": ")
        + _counts(report, WalFault)
        + f". {report.young_objects} objects are too young to judge, {report.marked_files} files wait for the cleaner"
        + (f", {report.foreign_objects} objects are of other kinds." if report.foreign_objects else ".")
    )
    _print_advice(_DISKLESS_ADVICE, report)


def print_remote(report: RemoteFsckReport, *, is_all: bool) -> None:
    """The findings in remote storage, and what to do about them. `is_all`: nothing was left out."""
    _print_findings(("found", "what", "size", "age", "why"), report.findings, is_all=is_all)
    unbounded = report.unbounded_partitions
    print_line(
        f"{report.objects} objects ({size(report.object_bytes)}), {report.segments} segments in remote log metadata: "
        + _counts(report, RemoteKind)
        + f". {report.young_objects} objects are too young to judge"
        + (f", {report.foreign_objects} objects are not remote segments" if report.foreign_objects else "")
        + (f", {unbounded} logs could not be checked for holes." if unbounded else ".")
    )
    _print_advice(_REMOTE_ADVICE, report)


def diskless_as_json(report: FsckReport) -> Json:
    """What `print_diskless` prints."""
    return {
        "clean": report.is_clean,
        "objects": report.objects,
        "object_bytes": report.object_bytes,
        "files": report.files,
        "split_files": report.split_files,
        "uploads": report.uploads,
        "young_objects": report.young_objects,
        "marked_files": report.marked_files,
        "foreign_objects": report.foreign_objects,
        "findings": [finding._asdict() for finding in report.findings],
    }


def remote_as_json(report: RemoteFsckReport) -> Json:
    """What `print_remote` prints."""
    return {
        "clean": report.is_clean,
        "objects": report.objects,
        "object_bytes": report.object_bytes,
        "segments": report.segments,
        "young_objects": report.young_objects,
        "foreign_objects": report.foreign_objects,
        "unbounded_partitions": report.unbounded_partitions,
        "findings": [finding._asdict() for finding in report.findings],
    }


def _print_findings(columns: Sequence[str], findings: Iterable[Finding], *, is_all: bool) -> None:
    rows = [
        (
            finding.kind,
            finding.key,
            size(finding.size),
            duration(finding.age_ms / 1000) if finding.age_ms else None,
            finding.detail,
        )
        for finding in findings
    ]
    print_table(columns, rows, empty="Nothing is wrong." if is_all else "Nothing is wrong in what was compared.")


def _counts(report: ComparisonReport, kinds: type[enum.StrEnum]) -> str:
    counts, repaired = _unrepaired(report), sum(finding.is_repaired for finding in report.findings)
    return ", ".join(f"{counts[kind]} {kind}" for kind in kinds) + (f"; {repaired} orphans deleted" if repaired else "")


def _print_advice(advice: dict[WalFault, str] | dict[RemoteKind, str], report: ComparisonReport) -> None:
    counts = _unrepaired(report)
    for kind, sentences in advice.items():
        if counts[kind]:
            print_line(sentences)


def _unrepaired(report: ComparisonReport) -> Counter[enum.StrEnum]:
    return Counter(finding.kind for finding in report.findings if not finding.is_repaired)
