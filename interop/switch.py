"""A live topic becomes diskless, in the hands of Kafka's tools and clients, and of kcat."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import partial

from bench import kafka
from confluent_kafka import KafkaException

from interop import kcat, switch_load, switch_tools
from interop.broker import Target
from interop.dump_tool import Complaint, dump
from interop.kafka_tools import ToolFailed, Tools
from interop.results import Outcome
from interop.switch_load import TOPIC
from interop.switch_tools import Switch
from interop.tiered_files import RemoteFiles
from interop.tiers import fresh, tiered_broker

NAME = "switch"
FAILURES = (ToolFailed, Complaint, KafkaException, RuntimeError, TimeoutError, subprocess.TimeoutExpired)


def why_unavailable() -> str | None:
    return kafka.why_unavailable() or kcat.why_unavailable()


def run(target: Target, only: str | None = None) -> dict[str, Outcome]:
    """Fill a broker with tiered topics, switch one under load and others without, and look at what is left on disk."""
    log_file = target.suite_log
    log_file.write_text("")
    remote = fresh(f"{NAME}-remote")
    outcomes: dict[str, Outcome] = {}

    def check(name: str, does: Callable[[], object]) -> None:
        if only is None or re.fullmatch(only, name):
            outcomes[name] = _outcome(name, does, switch)

    with tiered_broker(target.name, f"{NAME}-written", remote) as broker:
        switch = Switch(Tools(kafka.install(), broker.bootstrap, log_file), broker, remote, log_file)
        switch_load.prepare(switch)
        switch_tools.prepare(switch)
        check("clients", lambda: switch_load.switch_under_load(switch))
        for tool_check in switch_tools.CHECKS:
            check(tool_check.__name__.replace("_", "-"), partial(tool_check, switch))
    check("dump-local", lambda: _dump_local(switch))
    files = RemoteFiles(remote, broker.log_dir, log_file)
    check("dump-remote", lambda: files.must_be_accepted(("log", "snapshot"), "--deep-iteration"))
    check("dump-remote-indexes", lambda: files.must_be_accepted(("index", "timeindex"), "--verify-index-only"))
    check("dump-remote-metadata", files.metadata_must_fit)
    return outcomes


def _dump_local(switch: Switch) -> None:
    """What is on disk below the boundary is what Kafka expects there, up to the boundary and not further."""
    names = [f"{TOPIC}-{number}" for number in range(switch_load.PARTITIONS)] + ["measured-0"]
    files = [path for name in names for path in (switch.broker.log_dir / name).iterdir()]
    by_kind = {kind: [path for path in files if path.suffix == f".{kind}"] for kind in ("log", "index", "timeindex")}
    said = dump(kafka.install(), by_kind["log"], "--deep-iteration", "--print-data-log", log_file=switch.log_file)
    snapshots = [path for path in files if path.suffix == ".snapshot"]
    dump(kafka.install(), snapshots, log_file=switch.log_file)
    for option in ("--index-sanity-check", "--verify-index-only"):
        dump(kafka.install(), [*by_kind["index"], *by_kind["timeindex"]], option, log_file=switch.log_file)
    dumped = [int(one) for one in re.findall(r"payload: value-(\d+) ", said)]
    if dumped != list(range(dumped[0], switch_tools.BOUNDARY)):
        raise Complaint(f"the local segments of measured-0 have {dumped[:3]} ... {dumped[-3:]}")


def _outcome(name: str, does: Callable[[], object], switch: Switch) -> Outcome:
    try:
        does()
    except FAILURES as failure:
        switch.log(f"FAILED {name}: {type(failure).__name__}: {failure}")
        return Outcome.FAILED
    return Outcome.PASSED
