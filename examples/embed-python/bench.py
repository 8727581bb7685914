"""Appends and selects a million samples; prints the figures of the README.

    python bench.py [SAMPLES]
"""

import random
import resource
import sys
import tempfile
import time
from array import array

import tidepool

SERIES = 1000
BATCH = 100_000
START_MS = 1_700_000_000_000


def main(samples: int) -> None:
    opening = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory, tidepool.open(directory) as store:
        print(f"open: {time.perf_counter() - opening:.2f} s")
        created = time.perf_counter()
        refs = [store.series({"__name__": "cpu_seconds_total", "cpu": str(cpu), "job": "node"})
                for cpu in range(SERIES)]
        print(f"series: {SERIES / (time.perf_counter() - created):,.0f} a second")
        generator = random.Random(1)
        steps = samples // SERIES
        series = array("Q", refs) * steps
        times = array("q", (START_MS + 15_000 * step for step in range(steps) for _ in refs))
        values = array("d", (generator.randrange(1000) for _ in range(len(series))))
        now_ms = times[-1]

        began = time.perf_counter()
        for at in range(0, len(series), BATCH):
            part = slice(at, at + BATCH)
            outcome = store.append(series[part], times[part], values[part], now_ms=now_ms)
            assert outcome.refused == 0
        report("append, arrays", len(series), began)

        lists = [list(column[-BATCH:]) for column in (series, times, values)]
        lists[1] = [at + BATCH // SERIES * 15_000 for at in lists[1]]
        now_ms = lists[1][-1]
        rows = {"series": lists[0], "timestamps-ms": lists[1], "values": lists[2]}
        began = time.perf_counter()
        assert store.append(*lists, now_ms=now_ms).refused == 0
        report("append, lists", BATCH, began)

        # What it would be without the packed columns: the engine's own interface.
        from tidepool._records import record

        rows["timestamps-ms"] = [at + 7 for at in lists[1]]
        began = time.perf_counter()
        store._call("append", record(**rows), now_ms)
        report("append, one value at a time (tidepool:tsdb/store)", BATCH, began)

        began = time.perf_counter()
        found = sum(len(one.values) for one in store.select())
        report("select", found, began)
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


def report(what: str, samples: int, began: float) -> None:
    print(f"{what}: {samples / (time.perf_counter() - began) / 1e6:.2f} M samples a second")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
