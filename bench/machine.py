"""What the figures were measured on, and how quiet it was."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

from bench.tree import SourceTree


def describe() -> dict[str, str | int | float]:
    """Processor, memory, versions, and the load that others put on the machine before we began."""
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(int(memory.split()[1]) / 1e6, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "java": _first_line("java", "-version"),
        "librdkafka": _librdkafka(),
        "hot_modules": SourceTree.working().hot_modules(),
        "commit": _first_line("git", "rev-parse", "--short", "HEAD"),
        "load_before": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _librdkafka() -> str:
    import confluent_kafka

    return str(confluent_kafka.libversion()[0])


def _first_line(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return "none"
    run = subprocess.run(command, capture_output=True, text=True)
    return ((run.stdout or run.stderr).splitlines() or [""])[0]
