"""The package as a program uses it, on the real component and real directories."""

import math
import struct
from array import array
from pathlib import Path

import pytest

import tidepool

NOW_MS = 1_700_000_000_000


def filled(directory: Path) -> tidepool.Store:
    """A store of two series with four samples each."""
    store = tidepool.open(directory)
    for job in ("api", "db"):
        ref = store.series({"__name__": "up", "job": job})
        times = [NOW_MS + 15_000 * step for step in range(4)]
        outcome = store.append([ref] * 4, times, [0.0, 1.5, -0.0, 3.0], now_ms=times[-1])
        assert outcome == tidepool.WriteOutcome(4, 0, ())
    return store


def test_what_is_appended_is_selected(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        api, db = store.select()
        assert api.labels == {"__name__": "up", "job": "api"}
        assert db.labels["job"] == "db"
        assert list(api.samples())[1] == (NOW_MS + 15_000, 1.5)
        assert math.copysign(1, api.values[2]) == -1
        assert [one.labels["job"] for one in store.select({"job": "db"})] == ["db"]
        assert not list(store.select([tidepool.regex("job", "x.*")]))
        [cut] = store.select({"job": "api"}, NOW_MS + 1, NOW_MS + 30_000)
        assert list(cut.timestamps_ms) == [NOW_MS + 15_000, NOW_MS + 30_000]
        assert store.label_names() == ["__name__", "job"]
        assert store.label_values("job") == ["api", "db"]
        assert store.label_values("job", [tidepool.not_equal("job", "api")]) == ["db"]
        assert store.stats()["head_series"] == 2


def test_it_is_still_there_after_reopening_and_in_blocks(tmp_path: Path) -> None:
    filled(tmp_path).close()
    with tidepool.open(tmp_path) as store:
        before = list(store.select())
        assert len(before) == 2
        compaction = store.compact(all=True, now_ms=NOW_MS)
        assert len(compaction.made) == 1 and not compaction.left
        assert (tmp_path / compaction.made[0] / "meta.json").exists()
        assert list(store.select()) == before
    with tidepool.open(tmp_path) as store:
        assert list(store.select()) == before


def test_every_bit_of_a_value_survives(tmp_path: Path) -> None:
    bits = [0x7FF0000000000002, 0x7FF8000000000001, 0x8000000000000000, 1, 0xFFF8000000000123]
    values = array("d", struct.pack("<5Q", *bits))
    with tidepool.open(tmp_path) as store:
        ref = store.series({"__name__": "odd"})
        store.append([ref] * 5, range(NOW_MS, NOW_MS + 5), values, now_ms=NOW_MS)
        [series] = store.select()
        assert list(struct.unpack("<5Q", series.values.tobytes())) == bits


def test_columns_may_be_lists_iterators_arrays_and_numpy(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    with tidepool.open(tmp_path) as store:
        ref = store.series({"__name__": "a"})
        at = NOW_MS
        for make in (list, iter, lambda x: array("q", x), numpy.array):
            times = make([at, at + 1])
            values = numpy.array([1, 2]) if make is numpy.array else [1.0, 2]
            assert store.append([ref, ref], times, values, now_ms=at).written == 2
            at += 2
        store.append(numpy.full(2, ref, "u8"), numpy.arange(at, at + 2), numpy.ones(2), now_ms=at)
        [series] = store.select()
        assert list(series.timestamps_ms) == list(range(NOW_MS, at + 2))


def test_long_answers_come_in_pieces(tmp_path: Path) -> None:
    rows = 20_000
    with tidepool.open(tmp_path) as store:
        expected = {}
        for number in range(5):
            ref = store.series({"__name__": "long", "number": str(number)})
            times = array("q", range(NOW_MS, NOW_MS + rows))
            values = array("d", (number + at / 7 for at in range(rows)))
            store.append(array("Q", [ref]) * rows, times, values, now_ms=NOW_MS)
            expected[str(number)] = values
        got = {one.labels["number"]: one.values for one in store.select(step_bytes=1000)}
        assert got == expected


def test_refused_rows_say_why_and_the_others_are_stored(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        ref = store.series({"__name__": "up", "job": "api"})
        late = NOW_MS + 3 * 3_600_000
        outcome = store.append([ref, ref], [late, NOW_MS + 60_000], [1, 2], now_ms=NOW_MS)
        assert (outcome.written, outcome.refused) == (1, 1)
        [refusal] = outcome.refusals
        assert refusal.reason == "too-far-in-future" and refusal.timestamp_ms == late
        assert 'job="api"' in refusal.detail


def test_errors_are_exceptions(tmp_path: Path) -> None:
    store = filled(tmp_path)
    with pytest.raises(tidepool.Invalid):
        store.append([tidepool.SeriesRef(999)], [NOW_MS], [1.0])
    with pytest.raises(tidepool.Invalid):
        store.append([], [NOW_MS], [1.0])
    with pytest.raises(tidepool.Invalid):
        store.series({"": "x"})
    with pytest.raises(tidepool.Invalid):
        list(store.select([tidepool.regex("job", "(")]))
    with pytest.raises(tidepool.Locked):
        tidepool.open(tmp_path)
    store.close()
    store.close()
    with pytest.raises(tidepool.NotOpen):
        store.stats()
    with pytest.raises(tidepool.NotOpen):
        list(store.select())


def test_a_read_that_is_given_up_holds_nothing_open(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        answer = store.select(step_bytes=1)
        next(answer)
        assert store.stats()["open_cursors"] == 1
        answer.close()  # type: ignore[attr-defined]
        assert store.stats()["open_cursors"] == 0


def test_a_damaged_block_is_named_and_the_rest_is_served(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        [block] = store.compact(all=True, now_ms=NOW_MS).made
    (tmp_path / block / "index").write_bytes(b"nothing")
    with tidepool.open(tmp_path) as store:
        ref = store.series({"__name__": "new"})
        store.append([ref], [NOW_MS + 90_000], [1.0], now_ms=NOW_MS + 90_000)
        assert [one.labels["__name__"] for one in store.select()] == ["new"]
