"""Hot modules compiled ahead of time, from the same sources that run as plain Python.

`strandline compile` translates the modules of `modules.py` to C with mypyc and builds them into `__compiled__` inside
the package. `finder.py`, which `import strandline` installs, takes them from there if the build belongs to exactly the
sources that are there (`manifest.py`); if not, or if there is none, Python runs the sources. What is compiled never
differs from its source in what it does: nothing else in the package asks which of the two runs.

This package uses the standard library only, and what it needs for building (`build.py`) is loaded by the command.
"""
