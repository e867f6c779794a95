"""Translates modules to C and compiles that: the part of a build that needs mypyc. Runs as a process of its own.

    python -m strandline.compiled.extensions SOURCES OUTPUT MODULE...

SOURCES holds a copy of the package `strandline`, OUTPUT gets one file for each module and one for their library. mypyc
ends the process when it finds an error, prints its messages, and has to run in the directory of the package: hence a
process of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strandline.compiled.finder import LIBRARY
from strandline.compiled.manifest import library_file

if TYPE_CHECKING:
    from setuptools import Extension
    from setuptools._distutils.ccompiler import CCompiler

_OPTIMIZATION: Final = "2"
_MYPY_OPTIONS: Final = ("--no-incremental", "--ignore-missing-imports", "--config-file=")


def compile_modules(sources: Path, output: Path, modules: Sequence[str]) -> None:
    """Build the files of `modules`, whose sources are below `sources`."""
    from mypyc.build import mypycify

    # Paths of tracebacks begin with the package: linecache finds the source below the directory of sys.path.
    os.chdir(sources)
    paths = [os.path.join("strandline", *name.split(".")) + ".py" for name in modules]
    extensions = mypycify(
        [*_MYPY_OPTIONS, *paths],
        opt_level=_OPTIMIZATION,
        debug_level="0",
        multi_file=True,  # compiled side by side
        target_dir="c",
        group_name=LIBRARY.removesuffix("__mypyc"),
    )
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        compiling = [
            (extension, [pool.submit(_compile, source, extension) for source in extension.sources])
            for extension in extensions
        ]
        for extension, objects in compiling:
            _compiler().link_shared_object(
                [one.result() for one in objects], str(output / library_file(extension.name))
            )


def _compile(source: str, extension: Extension) -> str:
    """Compile one file; the name of what came out."""
    from setuptools._distutils import sysconfig

    includes = [*extension.include_dirs, sysconfig.get_python_inc(), sysconfig.get_python_inc(plat_specific=True)]
    [compiled] = _compiler().compile([source], include_dirs=includes, extra_postargs=extension.extra_compile_args)
    return str(compiled)


def _compiler() -> CCompiler:
    from setuptools._distutils import ccompiler, sysconfig

    compiler = ccompiler.new_compiler()
    sysconfig.customize_compiler(compiler)
    return compiler


if __name__ == "__main__":
    compile_modules(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
