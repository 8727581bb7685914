"""Queries give the answers of Prometheus: the cases of `tests/contract/queries`.

`cargo build-standalone --promql` makes the component.
"""

import json
import math
import os
from array import array
from pathlib import Path
from typing import Any

import pytest

import tidepool

ROOT = Path(__file__).resolve().parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
COMPONENT = TARGET / "wasm32-wasip2" / "component-small-promql" / "tidepool-standalone-promql.wasm"
CASES: dict[str, Any] = json.loads(
    (ROOT / "tests" / "contract" / "queries" / "cases.json").read_text()
)


def open_store(directory: Path) -> tidepool.Store:
    assert COMPONENT.exists(), f"`cargo build-standalone --promql` makes {COMPONENT}"
    return tidepool.open(directory, component=COMPONENT)


def write(store: tidepool.Store) -> None:
    for one in CASES["series"]:
        series = store.series(one["labels"])
        times_ms = [one["startMs"] + one["stepMs"] * step for step in range(len(one["values"]))]
        outcome = store.append([series] * len(times_ms), times_ms, one["values"])
        assert outcome.refused == 0


def ask(store: tidepool.Store, case: dict[str, Any]) -> tidepool.QueryResult:
    if case["stepMs"] == 0:
        return store.query(case["query"], case["startMs"])
    return store.query_range(case["query"], case["startMs"], case["endMs"], case["stepMs"])


def is_same(found: float, wanted: float) -> bool:
    both_nan = math.isnan(found) and math.isnan(wanted)
    return both_nan or math.isclose(found, wanted, rel_tol=1e-12)


def assert_answer(store: tidepool.Store, case: dict[str, Any]) -> None:
    match case.get("errorType"):
        case "bad_data":
            with pytest.raises(tidepool.QueryParseError) as caught:
                ask(store, case)
            assert str(caught.value) == case["error"].removeprefix('invalid parameter "query": ')
            return
        case "execution":
            with pytest.raises(tidepool.QueryExecutionError):
                ask(store, case)
            return
    answer = ask(store, case)
    assert answer.result_type == case["resultType"]
    assert answer.text == case.get("text", "")
    assert list(answer.warnings) == case["warnings"]
    assert list(answer.infos) == case["infos"]
    found = sorted(answer.series, key=lambda one: sorted(one.labels.items()))
    wanted = sorted(case["series"], key=lambda one: sorted(one["labels"].items()))
    assert [one.labels for one in found] == [one["labels"] for one in wanted]
    for one, other in zip(found, wanted):
        assert list(one.timestamps_ms) == [time_ms for time_ms, _ in other["points"]]
        for value, (_, text) in zip(one.values, other["points"]):
            assert is_same(value, float(text)), (value, text)
        assert one.histograms == ()


def test_answers_are_those_of_prometheus_from_the_head_and_from_blocks(tmp_path: Path) -> None:
    assert len(CASES["queries"]) >= 20
    with open_store(tmp_path) as store:
        write(store)
        for case in CASES["queries"]:
            assert_answer(store, case)
        assert store.compact(all=True).made
    with open_store(tmp_path) as store:
        for case in CASES["queries"]:
            assert_answer(store, case)


def test_limits_and_stats(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        write(store)
        time_ms = CASES["queries"][1]["startMs"]
        answer = store.query("http_requests_total", time_ms)
        assert (answer.stats.series, answer.stats.samples) == (5, 5)
        # Five series with a sample each 15 s, of which those of five minutes are read.
        assert (answer.stats.samples_read, answer.stats.samples_per_step) == (5 * 20, ())
        counted = tidepool.QueryOptions(stats_per_step=True)
        by_step = store.query("http_requests_total", time_ms, options=counted).stats
        assert by_step.samples_per_step == (5,)
        assert answer.series[0].values == array("d", [2400.0])
        few = tidepool.QueryOptions(series_max=2)
        limited = store.query("http_requests_total", time_ms, options=few)
        assert (len(limited.series), len(limited.warnings)) == (2, 1)
        with pytest.raises(tidepool.LimitExceeded) as caught:
            store.query("sort(http_requests_total)", time_ms,
                        options=tidepool.QueryOptions(samples_max=4))
        assert caught.value.maximum == 4
        assert store.query("count(http_requests_total)", time_ms).series[0].values[0] == 5
    with pytest.raises(tidepool.NotOpen):
        store.query("1")


def test_a_component_without_promql_says_so(tmp_path: Path) -> None:
    with tidepool.open(tmp_path) as store:
        with pytest.raises(tidepool.TidepoolError, match="no PromQL"):
            store.query("1")
