"""Which series: matchers on their labels."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from wasmtime.component import Record

from ._records import record


@dataclass(frozen=True)
class Matcher:
    """Selects series by one label; one that a series does not have counts as empty."""

    name: str
    op: Literal["equal", "not-equal", "regex", "not-regex"]
    value: str


def equal(name: str, value: str) -> Matcher:
    """The label has this value."""
    return Matcher(name, "equal", value)


def not_equal(name: str, value: str) -> Matcher:
    """The label has another value."""
    return Matcher(name, "not-equal", value)


def regex(name: str, expression: str) -> Matcher:
    """The label's whole value matches an RE2 expression."""
    return Matcher(name, "regex", expression)


def not_regex(name: str, expression: str) -> Matcher:
    """The label's whole value does not match an RE2 expression."""
    return Matcher(name, "not-regex", expression)


def to_records(matchers: Mapping[str, str] | Iterable[Matcher]) -> list[Record]:
    """As the component takes them; a mapping means that each label is equal to its value."""
    if isinstance(matchers, Mapping):
        matchers = [equal(name, value) for name, value in matchers.items()]
    return [record(name=m.name, op=m.op, value=m.value) for m in matchers]
