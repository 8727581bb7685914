"""The work of `src/work.rs` in Python; prints its figures as JSON."""

import json
import tempfile
import time
from array import array

import tidepool

SERIES = 1000
STEPS = 1000
STEPS_A_CALL = 10
RUNS = 3
START_MS = 1_700_000_000_000
STEP_MS = 15_000
END_MS = START_MS + STEP_MS * STEPS


def timed(work):
    """What the work gives, and the wall clock and CPU seconds that it took."""
    began, cpu_began = time.perf_counter(), time.process_time()
    given = work()
    return given, (time.process_time() - cpu_began, time.perf_counter() - began)


def batch(refs, first):
    steps = range(first, first + STEPS_A_CALL)
    return (
        array("Q", refs) * STEPS_A_CALL,
        array("q", (START_MS + STEP_MS * step for step in steps for _ in refs)),
        array("d", ((s * 31 + step * 17) % 1000 / 8 for step in steps for s in range(SERIES))),
    )


def append(store, batches):
    for series, times, values in batches:
        store.append(series, times, values, now_ms=END_MS)


def read(store):
    samples, total = 0, 0.0
    for series in store.select():
        samples += len(series.values)
        total += sum(series.values)
    return samples, total


def load_ms():
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory, tidepool.open(directory):
        return (time.perf_counter() - began) * 1e3


def main():
    loads = [load_ms(), load_ms()]
    appends, selects = [], []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as directory, tidepool.open(directory) as store:
            labels = {"__name__": "http_requests_total", "code": "200", "job": "api"}
            refs = [store.series({**labels, "path": f"/{series}"}) for series in range(SERIES)]
            batches = [batch(refs, first) for first in range(0, STEPS, STEPS_A_CALL)]
            appends.append(timed(lambda: append(store, batches))[1])
            (samples, total), spent = timed(lambda: read(store))
            selects.append(spent)
    (append_cpu, append_wall), (select_cpu, select_wall) = min(appends), min(selects)
    print(json.dumps({
        "load_ms": loads[0],
        "reload_ms": loads[1],
        "append_seconds": append_wall,
        "append_cpu_seconds": append_cpu,
        "select_seconds": select_wall,
        "select_cpu_seconds": select_cpu,
        "samples": samples,
        "sum": total,
    }))


main()
