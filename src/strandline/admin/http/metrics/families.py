"""A metric family: its name, what it means, and how its samples are read from a status value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

from strandline.admin.status import read

S = TypeVar("S")
# Samples by the values of their labels. What kind of value a sample has depends on the family.
Samples: TypeAlias = Mapping[tuple[str, ...], Any]

_MADE_AS: Final = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily, "info": InfoMetricFamily}
_SUFFIXES: Final = {"gauge": "", "counter": "_total", "info": "_info"}


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
        return self.name + _SUFFIXES[self.kind]

    def metric(self, status: S | None) -> Metric:
        """The family of one scrape. Of something that is off (None), plain numbers are 0 and labels have no values."""
        family: Any = _MADE_AS[self.kind](self.name, self.text, labels=() if self.kind == "info" else self.labels)
        for labels, value in read(status, self.samples, self.samples_if_off).items():
            family.add_metric(labels, value)
        return cast(Metric, family)


def gauge(name: str, text: str, value: Callable[[S], float]) -> Family[S]:
    """A number that goes up and down."""
    return Family("gauge", name, text, (), lambda status: {(): value(status)}, {(): 0})


def counter(name: str, text: str, value: Callable[[S], float]) -> Family[S]:
    """A number that only grows. Prometheus reads it as `name_total`."""
    return Family("counter", name, text, (), lambda status: {(): value(status)}, {(): 0})


def gauges(name: str, text: str, label: str, values: Callable[[S], Mapping[str, float]]) -> Family[S]:
    """A gauge for each value of a label."""
    return Family("gauge", name, text, (label,), lambda status: _labelled(values(status)), {})


def counters(name: str, text: str, label: str, values: Callable[[S], Mapping[str, float]]) -> Family[S]:
    """A counter for each value of a label."""
    return Family("counter", name, text, (label,), lambda status: _labelled(values(status)), {})


def info(name: str, text: str, labels: Sequence[str], values: Callable[[S], Mapping[str, str]]) -> Family[S]:
    """Words instead of a number: `values` has one for each of the labels."""
    return Family("info", name, text, labels, lambda status: {(): values(status)}, {})


def _labelled(values: Mapping[str, float]) -> Samples:
    return {(key,): value for key, value in values.items()}
