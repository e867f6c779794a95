"""Which Java is taken for Spark, and what is said when there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from strandline.pipeline.errors import PipelineFailed
from strandline.pipeline.java import find_java


def _installed(home: Path, *modules: str, status: int = 0) -> Path:
    """A directory with a program that answers like Java."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    lines = "\n".join(modules)
    program.write_text(f'#!/bin/sh\ncat <<"."\n{lines}\n.\nexit {status}\n')
    program.chmod(0o755)
    return home


def test_java_home_comes_first(tmp_path: Path) -> None:
    named = _installed(tmp_path / "a", "java.base@21.0.2", "jdk.incubator.vector@21.0.2")
    other = _installed(tmp_path / "b", "java.base@17.0.1", "jdk.incubator.vector@17.0.1")
    found = find_java({"JAVA_HOME": str(named), "PATH": str(other / "bin")})
    assert (found.home, found.version) == (named, 21)


def test_an_old_java_home_does_not_hide_a_good_java_on_the_path(tmp_path: Path) -> None:
    old = _installed(tmp_path / "a", "java.base@11.0.2", "java.sql@11.0.2")
    good = _installed(tmp_path / "b", "java.base@17.0.1", "jdk.incubator.vector@17.0.1")
    assert find_java({"JAVA_HOME": str(old), "PATH": str(good / "bin")}).home == good


def test_a_checkout_may_have_a_java_of_its_own(tmp_path: Path) -> None:
    kept = _installed(tmp_path / "java", "java.base@17.0.1", "jdk.incubator.vector@17.0.1")
    assert find_java({"PATH": ""}, kept).home == kept


def test_every_java_that_will_not_do_is_named_with_the_reason(tmp_path: Path) -> None:
    old = _installed(tmp_path / "a", "Unrecognized option: --list-modules", status=1)
    small = _installed(tmp_path / "b", "java.base@21.0.2", "java.sql@21.0.2")
    with pytest.raises(PipelineFailed) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": str(small / "bin")})
    sentence = str(caught.value)
    assert f"JAVA_HOME ({old}) is older than 17, or broken" in sentence
    assert f"({small}) is Java 21, but lacks the module jdk.incubator.vector" in sentence
    assert "apt-get install openjdk-17-jre-headless" in sentence


def test_no_java_at_all_is_a_sentence_that_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(PipelineFailed, match=r"no java on the PATH\. Install a Java runtime"):
        find_java({"PATH": str(tmp_path)})


def test_nobody_who_does_not_run_spark_loads_it() -> None:
    """Neither the package nor the command line nor a broker."""
    modules = (
        "strandline.pipeline, strandline.pipeline.driver.running, strandline.admin.commands.main, strandline.broker"
    )
    check = f"import sys, {modules}; print([m for m in ('pyspark', 'py4j', 'pyarrow', 'aiokafka') if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
