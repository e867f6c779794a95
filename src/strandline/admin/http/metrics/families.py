"""A metric family: its name, what it means, and how its samples are read from a status value and written as text.

The text is Prometheus' format 0.0.4. It is written here and not by `prometheus_client`, which takes many times as long:
a broker may have tens of thousands of samples, and writes them on its event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from strandline.admin.status import read
from strandline.server.times import Distribution, upper_bound_ns

S = TypeVar("S")
# Samples by the values of their labels. What kind of value a sample has depends on the family.
Samples: TypeAlias = Mapping[tuple[str, ...], Any]

_SUFFIXES: Final = {"counter": "_total", "info": "_info"}
_WRITTEN_AS: Final = {"info": "gauge"}
_LINES_AT_ONCE: Final = 1000
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

QUANTILES: Final = (0.5, 0.75, 0.95, 0.99, 0.999)
# Buckets that are shown, from 0.26 ms to 17 s: with fewer of them quantiles would be too coarse.
_SHOWN_BUCKETS: Final = range(5, 22)


class Histogram(NamedTuple):
    """A histogram of few values, with bounds of its own."""

    bounds: Sequence[float]
    counts: Sequence[int]
    """By bucket: one for each bound, and one for what is above all of them."""
    sum: float


@dataclass(frozen=True, slots=True)
class Family(Generic[S]):
    """One metric family over status values of type S."""

    kind: str
    name: str
    text: str
    labels: Sequence[str]
    samples: Callable[[S], Samples]
    samples_if_off: Samples

    @property
    def exposed_name(self) -> str:
        """The name of its samples in what Prometheus reads."""
        return self.name + _SUFFIXES.get(self.kind, "")

    def head(self) -> str:
        """The lines before the samples."""
        return heading(self.exposed_name, _WRITTEN_AS.get(self.kind, self.kind), self.text)

    def exposition(self, status: S | None) -> Iterator[str]:
        """The text of one scrape, in pieces. Of something that is off (None), plain numbers are 0 and labels have no
        values."""
        yield self.head()
        write = _WRITERS[self.kind]
        lines: list[str] = []
        for labels, value in read(status, self.samples, self.samples_if_off).items():
            lines.extend(write(self, labels, value))
            if len(lines) >= _LINES_AT_ONCE:
                yield "".join(lines)
                lines.clear()
        yield "".join(lines)


def heading(name: str, kind: str, text: str) -> str:
    """What precedes the samples of a family."""
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def label_text(names: Iterable[str], values: Iterable[str]) -> str:
    """Labels as they follow the name of a sample; nothing if there are none."""
    pairs = [f'{name}="{escaped(value)}"' for name, value in zip(names, values, strict=True)]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def escaped(value: str) -> str:
    """The value of a label, between quotes."""
    return value.translate(_ESCAPES)


def _plain(family: Family[Any], labels: tuple[str, ...], value: float) -> Iterable[str]:
    return (f"{family.exposed_name}{label_text(family.labels, labels)} {float(value)}\n",)


def _info(family: Family[Any], labels: tuple[str, ...], value: Mapping[str, str]) -> Iterable[str]:
    return (f"{family.exposed_name}{label_text(value.keys(), value.values())} 1\n",)


def _summary(family: Family[Any], labels: tuple[str, ...], value: Distribution) -> Iterable[str]:
    """Quantiles of the last minutes, in milliseconds, as Kafka has them."""
    for quantile in QUANTILES:
        names, values = (*family.labels, "quantile"), (*labels, str(quantile))
        yield f"{family.name}{label_text(names, values)} {value.quantile_ns(quantile) / 1e6:.6g}\n"
    text = label_text(family.labels, labels)
    yield f"{family.name}_sum{text} {value.sum_ns / 1e6}\n{family.name}_count{text} {value.count}\n"


def _histogram(family: Family[Any], labels: tuple[str, ...], value: Distribution | Histogram) -> Iterable[str]:
    """All durations since the start, in seconds."""
    if isinstance(value, Histogram):
        yield from _small_histogram(family, labels, value)
        return
    names, below = (*family.labels, "le"), sum(value.counts[: _SHOWN_BUCKETS.start])
    for bucket in _SHOWN_BUCKETS:
        below += value.counts[bucket]
        yield f"{family.name}_bucket{label_text(names, (*labels, str(upper_bound_ns(bucket) / 1e9)))} {below}\n"
    text = label_text(family.labels, labels)
    yield f"{family.name}_bucket{label_text(names, (*labels, '+Inf'))} {value.count}\n"
    yield f"{family.name}_sum{text} {value.sum_ns / 1e9}\n{family.name}_count{text} {value.count}\n"


def _small_histogram(family: Family[Any], labels: tuple[str, ...], value: Histogram) -> Iterable[str]:
    names, text = (*family.labels, "le"), label_text(family.labels, labels)
    bounds = (*map(str, value.bounds), "+Inf")
    for bound, below in zip(bounds, accumulate(value.counts), strict=True):
        yield f"{family.name}_bucket{label_text(names, (*labels, bound))} {below}\n"
    yield f"{family.name}_sum{text} {value.sum}\n{family.name}_count{text} {sum(value.counts)}\n"


_WRITERS: Final[Mapping[str, Callable[[Family[Any], tuple[str, ...], Any], Iterable[str]]]] = {
    "gauge": _plain,
    "counter": _plain,
    "untyped": _plain,
    "info": _info,
    "summary": _summary,
    "histogram": _histogram,
}


def gauge(name: str, text: str, value: Callable[[S], float]) -> Family[S]:
    """A number that goes up and down."""
    return Family("gauge", name, text, (), lambda status: {(): value(status)}, {(): 0})


def counter(name: str, text: str, value: Callable[[S], float]) -> Family[S]:
    """A number that only grows. Prometheus reads it as `name_total`."""
    return Family("counter", name, text, (), lambda status: {(): value(status)}, {(): 0})


def untyped(name: str, text: str, value: Callable[[S], float]) -> Family[S]:
    """A number whose name, which is Kafka's, breaks the rules for names of its type."""
    return Family("untyped", name, text, (), lambda status: {(): value(status)}, {(): 0})


def gauges(name: str, text: str, label: str, values: Callable[[S], Mapping[str, float]]) -> Family[S]:
    """A gauge for each value of a label."""
    return Family("gauge", name, text, (label,), lambda status: _labelled(values(status)), {})


def counters(name: str, text: str, label: str, values: Callable[[S], Mapping[str, float]]) -> Family[S]:
    """A counter for each value of a label."""
    return Family("counter", name, text, (label,), lambda status: _labelled(values(status)), {})


def info(name: str, text: str, labels: Sequence[str], values: Callable[[S], Mapping[str, str]]) -> Family[S]:
    """Words instead of a number: `values` has one for each of the labels."""
    return Family("info", name, text, labels, lambda status: {(): values(status)}, {})


def alias(name: str, family: Family[S]) -> Family[S]:
    """Another name for the samples of a family. Untyped: such names follow no rules."""
    text = f"As {family.exposed_name}."
    return Family("untyped", name, text, family.labels, family.samples, family.samples_if_off)


def _labelled(values: Mapping[str, float]) -> Samples:
    return {(key,): value for key, value in values.items()}
