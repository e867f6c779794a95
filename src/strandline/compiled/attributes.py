"""Instructions in hot modules for the compiler, which Python ignores.

`@mypyc_attr(native_class=False)` leaves a class what Python makes of it, with compiled methods: for classes that need
weak references, which compiled ones do not have. The decorator is that of mypy_extensions, which comes with mypy and
is needed for a build only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(*_names, **_values):
        """Python ignores it."""
        return lambda cls: cls
