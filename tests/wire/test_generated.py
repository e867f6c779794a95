"""The generated modules are what the generator writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_generator_would_write_the_same_files() -> None:
    command = [sys.executable, str(ROOT / "tools/generate_messages.py"), "--check"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_production_code_does_not_import_the_library_it_was_generated_from() -> None:
    offenders = [str(path) for path in (ROOT / "src").rglob("*.py") if "import kio" in path.read_text()]
    assert offenders == []
