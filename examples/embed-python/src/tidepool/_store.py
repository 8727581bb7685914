"""The store."""

import json
import secrets
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, NewType

from . import _errors
from ._columns import FloatColumn, IntColumn, pack, unpack
from ._component import Instance
from ._lock import DirectoryLock
from ._matchers import Matcher, to_records
from ._query import QueryOptions, QueryResult, evaluate
from ._records import field, record

#: The number of a series in this store, until it is closed or a `compact` drops the series.
SeriesRef = NewType("SeriesRef", int)

_HOUR_MS = 60 * 60 * 1000
_STEP_BYTES = 4 * 1024 * 1024
_TIME_MIN_MS, _TIME_MAX_MS = -(2**63), 2**63 - 1
_U64_MAX = 2**64 - 1


@dataclass(frozen=True)
class Options:
    """How to open a store; zero is no limit unless it says otherwise. The defaults are tidepool's."""

    #: Span of one block.
    block_duration_ms: int = 2 * _HOUR_MS
    #: How far behind the newest sample an out-of-order one is accepted; zero: in order only.
    out_of_order_window_ms: int = 2 * _HOUR_MS
    #: How far ahead of now a sample may be.
    future_limit_ms: int = _HOUR_MS // 6
    #: Blocks that end this long before the newest are deleted by `compact`.
    retention_ms: int = 15 * 24 * _HOUR_MS
    #: Bytes that the directory may take before `compact` deletes the oldest blocks.
    retention_bytes: int = 0
    #: Most series among recent samples.
    series_max: int = 0
    #: Bytes of memory that the engine may use.
    memory_bytes_max: int = 0
    #: Longest time that a sample is not forced to the device, checked when others are appended;
    #: zero: each append does.
    sync_interval_ms: int = 1000


@dataclass(frozen=True)
class Refusal:
    """Why a row was not written."""

    reason: str
    detail: str
    timestamp_ms: int


@dataclass(frozen=True)
class WriteOutcome:
    """What became of a batch: refused rows are left out, all others are stored."""

    written: int
    refused: int
    #: The first ten.
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True)
class Series:
    """A series with its samples in the range that was asked for, by ascending time."""

    labels: Mapping[str, str]
    timestamps_ms: "array[int]"
    values: "array[float]"
    #: Native histograms in the range, which do not come with it.
    histograms: int = 0

    def samples(self) -> Iterator[tuple[int, float]]:
        """Pairs of time and value."""
        return zip(self.timestamps_ms, self.values)


@dataclass(frozen=True)
class Compaction:
    """What a compaction did, as ULIDs of blocks."""

    made: tuple[str, ...]
    deleted: tuple[str, ...]
    #: Blocks that are damaged and left out, or cannot be merged, with the reason.
    left: tuple[str, ...]


def open(
    directory: "str | PathLike[str]",
    options: Options = Options(),
    *,
    component: "str | PathLike[str] | None" = None,
) -> "Store":
    """Opens the store in a directory, which is made if it is missing, and reads its log back.

    Another component than the one in this package may be named by its file.
    """
    return Store(Path(directory), options, component)


class Store:
    """An open store. One thread at a time may use it; close it, or use it in a `with`."""

    def __init__(
        self,
        directory: Path,
        options: Options,
        component: "str | PathLike[str] | None" = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = DirectoryLock(directory)
        self._is_open = True
        try:
            self._instance = Instance(directory, component)
            self._instance.call("directory", "sync-every", options.sync_interval_ms)
            self._call("open", _options_record(options))
            while not self._call("replay", _STEP_BYTES).done:
                pass
        except BaseException:
            self._is_open = False
            self._lock.release()
            raise

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forces everything to the device and ends the store. Closing again is fine."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._instance.call("directory", "sync")
            self._instance.call("store", "close")
        finally:
            self._lock.release()

    def sync(self) -> None:
        """Forces what was appended to the device: it survives a power cut from here on."""
        self._checked().call("directory", "sync")

    def series(self, labels: Mapping[str, str]) -> SeriesRef:
        """The number of a series, which is created if needed. Ask once for each series."""
        pairs = [record(name=name, value=value) for name, value in sorted(labels.items())]
        return SeriesRef(self._call("series-ref", pairs))

    def append(
        self,
        series: Iterable[SeriesRef],
        timestamps_ms: IntColumn,
        values: FloatColumn,
        *,
        now_ms: int | None = None,
    ) -> WriteOutcome:
        """Stores rows, given as columns of equal length.

        An error such as an unknown series stores none of them. `now_ms` is the clock against which
        samples of the future are refused.
        """
        rows = record(
            series=pack(series, "Q"),
            timestamps_ms=pack(timestamps_ms, "q"),
            values=pack(values, "d"),
        )
        instance = self._checked()
        outcome = instance.call("packed", "append", rows, _now_ms() if now_ms is None else now_ms)
        return WriteOutcome(
            field(outcome, "samples_written"),
            outcome.refused,
            tuple(
                Refusal(refusal.reason, refusal.detail, field(refusal, "timestamp_ms"))
                for refusal in outcome.refusals
            ),
        )

    def select(
        self,
        matchers: Mapping[str, str] | Iterable[Matcher] = (),
        start_ms: int = _TIME_MIN_MS,
        end_ms: int = _TIME_MAX_MS,
        *,
        step_bytes: int = _STEP_BYTES,
    ) -> Iterator[Series]:
        """The series for which all matchers hold, in label order, with their samples from
        `start_ms` to `end_ms`, both included; without matchers all.

        They show the store as it was at the first of them. About `step_bytes` are in memory at a
        time, but never less than one series.
        """
        instance = self._checked()
        time_range = record(start_ms=start_ms, end_ms=end_ms)
        answer = instance.call("packed", "select", to_records(matchers), time_range)
        try:
            while True:
                batch = self._checked().call("packed", "[method]answer.next", answer, step_bytes)
                listed = json.loads(batch.series)
                if not listed:
                    return
                yield from _split(listed, batch)
        finally:
            instance.drop(answer)

    def query(
        self,
        expression: str,
        time_ms: int | None = None,
        *,
        options: QueryOptions = QueryOptions(),
    ) -> QueryResult:
        """Evaluates an expression in PromQL at one time, now by default. Only a component with
        PromQL can: `tidepool-standalone-promql.wasm`."""
        at_ms = _now_ms() if time_ms is None else time_ms
        return evaluate(self._checked(), expression, (at_ms,), options)

    def query_range(
        self,
        expression: str,
        start_ms: int,
        end_ms: int,
        step_ms: int,
        *,
        options: QueryOptions = QueryOptions(),
    ) -> QueryResult:
        """Evaluates an expression in PromQL at `start_ms`, then every `step_ms` until `end_ms`,
        which is included. Only a component with PromQL can: `tidepool-standalone-promql.wasm`."""
        return evaluate(self._checked(), expression, (start_ms, end_ms, step_ms), options)

    def label_names(self, matchers: Mapping[str, str] | Iterable[Matcher] = ()) -> list[str]:
        """Names of the labels that selected series have, ascending."""
        return self._strings(self._call("label-names", _lookup(matchers)))

    def label_values(
        self, name: str, matchers: Mapping[str, str] | Iterable[Matcher] = ()
    ) -> list[str]:
        """Values that selected series have for a label, ascending."""
        return self._strings(self._call("label-values", name, _lookup(matchers)))

    def compact(self, *, all: bool = False, now_ms: int | None = None) -> Compaction:
        """Does all the work that is due: cuts blocks, merges them, and drops old ones. Call it now
        and then, at least every few minutes. With `all`, recent samples too are put into blocks,
        from now on."""
        instance = self._checked()
        if all:
            self._call("cut-all")
        now_ms = _now_ms() if now_ms is None else now_ms
        made: list[str] = []
        deleted: list[str] = []
        left: list[str] = []
        while True:
            other_bytes = instance.call("directory", "other-bytes")
            room = record(free_bytes=_U64_MAX, other_bytes=other_bytes, memory_bytes=_U64_MAX)
            progress = self._call("compact", now_ms, room)
            if progress.block is not None:
                made.append(progress.block.id)
            deleted.extend(block.id for block in progress.deleted)
            left.extend(f"{one.where}: {one.reason}" for one in progress.bad + progress.unmerged)
            if progress.done:
                return Compaction(tuple(made), tuple(deleted), tuple(left))

    def stats(self) -> Mapping[str, int]:
        """The store's figures by name, as `figures` in `wit/store.wit` describes them."""
        figures = vars(self._call("stats"))
        return {name.replace("-", "_"): value for name, value in figures.items()}

    def _checked(self) -> Instance:
        if not self._is_open:
            raise _errors.NotOpen("the store is closed")
        return self._instance

    def _call(self, function: str, *arguments: Any) -> Any:
        return self._checked().call("store", function, *arguments)

    def _strings(self, strings: Any) -> list[str]:
        found: list[str] = []
        try:
            while more := self._call("[method]strings.next", strings, _STEP_BYTES):
                found.extend(more)
        finally:
            self._instance.drop(strings)
        return found


def _split(listed: Sequence[dict[str, Any]], batch: Any) -> Iterator[Series]:
    timestamps_ms: Any = unpack(field(batch, "timestamps_ms"), "q")
    values: Any = unpack(batch.values, "d")
    at = 0
    for one in listed:
        end = at + one["samples"]
        yield Series(one["labels"], timestamps_ms[at:end], values[at:end], one["histograms"])
        at = end


def _lookup(matchers: Mapping[str, str] | Iterable[Matcher]) -> Any:
    everything = record(start_ms=_TIME_MIN_MS, end_ms=_TIME_MAX_MS)
    return record(matcher_sets=[to_records(matchers)], range=everything, limit=0)


def _options_record(options: Options) -> Any:
    limits = record(labels_max=128, name_bytes_max=1024, value_bytes_max=4096)
    return record(
        role="all",
        block_duration_ms=options.block_duration_ms,
        future_limit_ms=options.future_limit_ms,
        out_of_order_window_ms=options.out_of_order_window_ms,
        series_max=options.series_max,
        exemplars_max=0,
        memory_bytes_max=options.memory_bytes_max,
        label_limits=limits,
        block_duration_max_ms=0,
        retention_ms=options.retention_ms,
        retention_bytes=options.retention_bytes,
        hash_seed=secrets.randbits(64),
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
