"""What a run has found, for a reader and as JSON."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from differential.findings import Findings
from differential.run import Wanted
from strandline.wire.errors import ErrorCode

_MOST_PASSING = 10


def lines(findings: Findings, wanted: Wanted) -> list[str]:
    """The verdict comes last."""
    old = wanted.against or "the working tree"
    told = [f"seed {wanted.seed}, {old} against the working tree, {', '.join(wanted.kinds)}"]
    told += [f"steps: {findings.steps}"]
    told += [f"  {api}: {', '.join(counted)}" for api, counted in _answers(findings).items()]
    told.append(f"batches read: {', '.join(f'{kind} {count}' for kind, count in sorted(findings.batches.items()))}")
    told.append(f"different once, and the same when repeated: {len(findings.passing)}")
    told += [f"  {one}" for one in findings.passing[:_MOST_PASSING]]
    for difference in findings.differences:
        told += ["", *difference.lines()]
    again = sum(findings.repeated.values()) - len(findings.differences)
    told += [""] if findings.differences else []
    alike = f", and {again} like these" if again else ""
    told.append(f"differences: {len(findings.differences)}{alike}")
    return told


def to_json(findings: Findings, wanted: Wanted) -> dict[str, Any]:
    return {
        "seed": wanted.seed,
        "against": wanted.against,
        "kinds": [*wanted.kinds],
        "steps": findings.steps,
        "answers": _answers(findings),
        "batches": dict(findings.batches),
        "passing": findings.passing,
        "differences": [
            {**one.to_json(), "like_it": count - 1}
            for one, count in zip(findings.differences, findings.repeated.values(), strict=True)
        ],
    }


def _answers(findings: Findings) -> dict[str, list[str]]:
    """How often each API gave each error, so that nobody takes a run of refusals for a good one."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for (api, code), count in sorted(findings.answers.items()):
        found[api].append(f"{ErrorCode(code).name} {count}")
    return dict(found)
