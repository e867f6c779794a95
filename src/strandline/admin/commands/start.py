"""`strandline broker`: options to settings, and then the broker.

Parsed by argparse from the standard library, and without other imports, because clients wait while a broker starts.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from strandline.compiled.finder import CompiledUnavailable, running
from strandline.config import Settings, load_properties
from strandline.config.listeners import join_address, parse_address
from strandline.errors import InvalidConfig, StrandlineError
from strandline.signals import stop_at_end_of_input
from strandline.sql import SqlError

logger = logging.getLogger(__name__)

EXIT_FAILED: Final = 1
EXIT_MISUSED: Final = 2
_LEVELS: Final = ("debug", "info", "warning", "error")
_EXAMPLES: Final = """\
examples:
  strandline broker
      everything in ./strandline-data, clients on port 9092, HTTP on 127.0.0.1:9644
  strandline broker --data-dir /var/lib/strandline --listen 127.0.0.1:9092 --set num.partitions=6
  strandline broker --config server.properties --http 0.0.0.0:9644

All settings are described in docs/configuration.md. The broker stops cleanly on SIGTERM and on Ctrl-C.
"""


def start_broker(arguments: Sequence[str], run: Callable[[Settings], None]) -> int:
    """Run a broker until it is stopped; the exit status of the command.

    Bad options end with status 2 before anything is opened or written, a broker that cannot start or fails
    with status 1; both with one sentence on standard error.
    """
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=options.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s"
    )
    try:
        settings = Settings.from_properties(properties_of(options))
    except InvalidConfig as error:
        return _complain(str(error), EXIT_MISUSED)
    for name, reason in settings.ignored.items():
        logger.warning("%s has no effect: %s", name, reason)
    if options.stop_at_end_of_input:
        stop_at_end_of_input()
    try:
        logger.info(running().sentence)
        run(settings)
    except (StrandlineError, SqlError, CompiledUnavailable) as error:
        return _complain(str(error), EXIT_FAILED)
    except OSError as error:
        what = f"{error.strerror}: {error.filename}" if error.filename else error.strerror or str(error)
        return _complain(f"The broker cannot run: {what}.", EXIT_FAILED)
    except KeyboardInterrupt:
        return 130
    return 0


def properties_of(options: argparse.Namespace) -> dict[str, str]:
    """The settings that the options ask for: the file, then --set, then the short options. Raises InvalidConfig."""
    properties = common_properties(options.config, options.set, options.data_dir)
    if options.node_id is not None:
        properties["node.id"] = options.node_id
    if options.listen is not None:
        listeners = [_as_listener(entry) for entry in options.listen.split(",")]
        properties["listeners"] = ",".join(listeners)
        controllers = [name.strip() for name in properties.get("controller.listener.names", "").split(",")]
        opened = [listener for listener in listeners if listener.partition("://")[0] not in controllers]
        if all(map(_may_be_advertised, opened)):  # then clients are told the same addresses
            properties.setdefault("advertised.listeners", ",".join(opened))
    if options.http is not None:
        properties["strandline.http.listen"] = "" if options.http == "none" else options.http
    return properties


def common_properties(config: Path | None, assignments: Sequence[str], data_dir: str | None) -> dict[str, str]:
    """The options of every command that reads a broker's data: the file, --set, --data-dir. Raises InvalidConfig."""
    properties = load_properties(config) if config is not None else {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise InvalidConfig(f"--set needs name=value, but was given {assignment!r}.")
        properties[name.strip()] = value
    if data_dir is not None:
        properties["strandline.data.dir"] = data_dir
    return properties


def _as_listener(text: str) -> str:
    if "://" in text:
        return text
    return f"PLAINTEXT://{join_address(*parse_address(text, name='--listen'))}"


def _may_be_advertised(listener: str) -> bool:
    """Not an address that stands for all interfaces."""
    return listener.partition("://")[2].rpartition(":")[0].strip("[]") not in ("0.0.0.0", "::")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="strandline broker",
        description="Run a broker in the foreground.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--data-dir", metavar="DIR", help="where everything is kept (default: ./strandline-data)")
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help="where Kafka clients are served (default: :9092, all interfaces)"
    )
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="health, metrics and status over HTTP (default: 127.0.0.1:9644; none: no HTTP)",
    )
    parser.add_argument("--node-id", metavar="ID", help="the id of this broker in its cluster (default: 1)")
    parser.add_argument("--config", metavar="FILE", type=Path, help="a .properties file with settings")
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="one setting; may be repeated, and wins over the file",
    )
    parser.add_argument("--log-level", choices=_LEVELS, default="info", help="how much is logged (default: info)")
    parser.add_argument(
        "--stop-at-end-of-input",
        action="store_true",
        help="stop when standard input ends: for a program that starts the broker and must not leave it behind",
    )
    return parser


def _complain(sentence: str, status: int) -> int:
    print(f"strandline: {sentence}", file=sys.stderr)
    return status
