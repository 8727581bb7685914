"""Queries in PromQL."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ._component import Instance
from ._records import field, record

#: Bytes of series that cross at a time.
_STEP_BYTES = 1024 * 1024


@dataclass(frozen=True)
class QueryOptions:
    """Options of a query; zero is no limit unless it says otherwise."""

    #: How far back a selector of instant vectors looks; zero: five minutes.
    lookback_ms: int = 0
    #: Most samples that the evaluation holds at a time; the default is Prometheus'.
    samples_max: int = 50_000_000
    #: Most series of the answer; a warning says that there were more.
    series_max: int = 0
    #: Most memory that the evaluation holds at a time, in bytes; the default is tidepool's.
    memory_bytes_max: int = 256 * 1024 * 1024
    #: Step of subqueries that give none; zero: one minute.
    subquery_step_ms: int = 0
    #: These allow what Prometheus has behind feature flags.
    experimental_functions: bool = False
    extended_range_selectors: bool = False
    binop_fill_modifiers: bool = False
    delayed_name_removal: bool = False
    type_and_unit_labels: bool = False
    start_timestamps: bool = False
    #: Counts samples for each step: see `QueryStats.samples_per_step`.
    stats_per_step: bool = False


@dataclass(frozen=True)
class Histogram:
    """A native histogram at a time; its fields are those of `native-histogram` in `wit/query.wit`,
    spans as pairs of offset and length."""

    timestamp_ms: int
    counter_reset: str
    schema: int
    zero_threshold: float
    zero_count: float
    count: float
    sum: float
    positive_spans: tuple[tuple[int, int], ...]
    positive_buckets: tuple[float, ...]
    negative_spans: tuple[tuple[int, int], ...]
    negative_buckets: tuple[float, ...]
    custom_values: tuple[float, ...]


@dataclass(frozen=True)
class QuerySeries:
    """A series of an answer: in an instant vector it has one point, in a range query at most one for
    each step."""

    labels: Mapping[str, str]
    timestamps_ms: "array[int]"
    values: "array[float]"
    histograms: tuple[Histogram, ...]


@dataclass(frozen=True)
class QueryStats:
    """The cost of a query."""

    #: Samples that were used, counted as Prometheus does: once for each step that uses them.
    samples: int
    #: Samples that were read from the store, once for each selector that reads them.
    samples_read: int
    #: Largest number of samples held at a time.
    samples_peak: int
    #: Largest memory held at a time.
    memory_peak_bytes: int
    #: Series that were selected.
    series: int
    #: `samples` of each step, from the first one on; empty unless `stats_per_step` asks for them.
    samples_per_step: tuple[int, ...] = ()


@dataclass(frozen=True)
class QueryResult:
    """The answer to a query."""

    #: `scalar` (one series without labels), `string`, `vector` or `matrix`.
    result_type: str
    #: The result of the type `string`; empty for other types.
    text: str
    series: tuple[QuerySeries, ...]
    #: Prometheus' messages, each with its place in the expression.
    warnings: tuple[str, ...]
    infos: tuple[str, ...]
    stats: QueryStats


def evaluate(
    instance: Instance, expression: str, times_ms: tuple[int, ...], options: QueryOptions
) -> QueryResult:
    """Evaluates at one time, or over a range: start, end and step."""
    function = "instant" if len(times_ms) == 1 else "range"
    given = record(**{one.name: getattr(options, one.name) for one in fields(options)})
    evaluation = instance.call("query", function, expression, *times_ms, given)

    def ask(method: str, *arguments: Any) -> Any:
        return instance.call("query", f"[method]evaluation.{method}", evaluation, *arguments)

    try:
        series: list[QuerySeries] = []
        while piece := ask("next", _STEP_BYTES):
            series.extend(map(_series, piece))
        annotations = ask("annotations", 0)
        stats = ask("stats")
        counts = {one.name: field(stats, one.name) for one in fields(QueryStats)[:-1]}
        return QueryResult(
            ask("value-type"),
            ask("text"),
            tuple(series),
            tuple(one.text for one in annotations if field(one, "is_warning")),
            tuple(one.text for one in annotations if not field(one, "is_warning")),
            QueryStats(**counts, samples_per_step=tuple(ask("samples-per-step"))),
        )
    finally:
        instance.drop(evaluation)


def _series(one: Any) -> QuerySeries:
    times_ms = field(one, "histogram_times_ms")
    histograms = map(_histogram, times_ms, one.histograms)
    return QuerySeries(
        {label.name: label.value for label in one.labels},
        array("q", field(one, "times_ms")),
        array("d", one.values),
        tuple(histograms),
    )


def _histogram(timestamp_ms: int, one: Any) -> Histogram:
    def spans(name: str) -> tuple[tuple[int, int], ...]:
        return tuple((span.offset, span.length) for span in field(one, name))

    return Histogram(
        timestamp_ms,
        field(one, "counter_reset"),
        one.schema,
        field(one, "zero_threshold"),
        field(one, "zero_count"),
        one.count,
        one.sum,
        spans("positive_spans"),
        tuple(field(one, "positive_buckets")),
        spans("negative_spans"),
        tuple(field(one, "negative_buckets")),
        tuple(field(one, "custom_values")),
    )
