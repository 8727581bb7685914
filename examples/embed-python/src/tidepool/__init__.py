"""A Prometheus-compatible metrics store inside a Python program.

    import tidepool

    with tidepool.open("data") as store:
        up = store.series({"__name__": "up", "job": "api"})
        store.append([up, up], [1_700_000_000_000, 1_700_000_015_000], [1.0, 0.0],
                     now_ms=1_700_000_015_000)
        for series in store.select({"job": "api"}):
            print(series.labels, list(series.samples()))

The directory is a Prometheus data directory: tidepool and Prometheus open it, too, though not at
the same time. Times are milliseconds since the epoch.
"""

from ._errors import (
    Busy,
    Corrupt,
    Crashed,
    HeadLost,
    Invalid,
    LimitExceeded,
    Locked,
    Malformed,
    NoSpace,
    NotFound,
    NotOpen,
    QueryExecutionError,
    QueryParseError,
    ReadOnly,
    SeriesDropped,
    ShortOfMemory,
    StorageError,
    TidepoolError,
    WrongRole,
)
from ._matchers import Matcher, equal, not_equal, not_regex, regex
from ._query import (
    Histogram,
    QueryOptions,
    QueryResult,
    QuerySeries,
    QueryStats,
)
from ._store import (
    Compaction,
    Options,
    Refusal,
    Series,
    SeriesRef,
    Store,
    WriteOutcome,
    open,
)

__all__ = [
    "Busy",
    "Compaction",
    "Corrupt",
    "Crashed",
    "HeadLost",
    "Histogram",
    "Invalid",
    "LimitExceeded",
    "Locked",
    "Malformed",
    "Matcher",
    "NoSpace",
    "NotFound",
    "NotOpen",
    "Options",
    "QueryExecutionError",
    "QueryOptions",
    "QueryParseError",
    "QueryResult",
    "QuerySeries",
    "QueryStats",
    "ReadOnly",
    "Refusal",
    "Series",
    "SeriesDropped",
    "SeriesRef",
    "ShortOfMemory",
    "StorageError",
    "Store",
    "TidepoolError",
    "WriteOutcome",
    "WrongRole",
    "equal",
    "not_equal",
    "not_regex",
    "open",
    "regex",
]
