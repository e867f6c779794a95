"""Regular expressions of clients, with the rules of RE2: no back references, and time linear in the input."""

from __future__ import annotations

from typing import Any, Final

import re2

from strandline.errors import InvalidRegularExpression


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False  # a wrong expression is an error for its client, not for the log
    return options


_OPTIONS: Final = _options()


def compile_pattern(expression: str, *, name: str) -> Any:
    """The compiled expression. Raises InvalidRegularExpression, which calls it by its `name` in the request."""
    try:
        return re2.compile(expression, _OPTIONS)
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise InvalidRegularExpression(f"{name} `{expression}` is not a valid regular expression: {reason}.") from error
