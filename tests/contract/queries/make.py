#!/usr/bin/env python3
"""Writes cases.json beside it: samples, expressions, and what Prometheus answers.

    tests/contract/queries/make.py target/peers/prometheus target/peers/promtool

The tests of every embedder write the samples through their own storage, and compare their answers
with these. Prometheus reads the samples from blocks that promtool makes of text, so that nothing of
tidepool takes part.
"""

import json
import math
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

# A quarter of an hour in November 2023.
START_MS = 1_699_999_200_000
STEP_MS = 15_000
STEPS = 61
END_MS = START_MS + STEP_MS * (STEPS - 1)


def series():
    """Counters with a reset, a gauge that ends early, and a classic histogram."""
    for job, instance, code, per_step in [
        ("api", "a", "200", 40),
        ("api", "a", "500", 0.5),
        ("api", "b", "200", 25),
        ("web", "a", "200", 7),
        ("web", "a", "500", 2),
    ]:
        resets_at = 30 if instance == "b" else STEPS
        values = [per_step * (step % resets_at) for step in range(STEPS)]
        labels = {"__name__": "http_requests_total", "code": code, "instance": instance, "job": job}
        yield labels, values
    for room, base, length in [("lab", 21.5, STEPS), ("roof", -3.25, 30)]:
        values = [round(base + 4 * math.sin(step / 7), 2) for step in range(length)]
        yield {"__name__": "temperature_celsius", "room": room}, values
    for bound, share in [("0.1", 3), ("0.5", 8), ("1", 9), ("+Inf", 10)]:
        labels = {"__name__": "request_duration_seconds_bucket", "job": "api", "le": bound}
        yield labels, [share * step for step in range(STEPS)]


QUERIES = [
    # Expression, first time, last time, step; a step of zero is an instant query.
    ("sum by (job) (rate(http_requests_total[2m]))", START_MS + 120_000, END_MS, 60_000),
    ('http_requests_total{code=~"5.."}', END_MS, END_MS, 0),
    ('http_requests_total{code=~"5.."}[1m]', END_MS, END_MS, 0),
    ("sum(increase(http_requests_total[5m]))", END_MS, END_MS, 0),
    (
        'sum by (job) (http_requests_total{code="500"}) / on (job) sum by (job) (http_requests_total)',
        START_MS + 60_000, END_MS, 300_000,
    ),
    (
        "histogram_quantile(0.85, sum by (le) (rate(request_duration_seconds_bucket[5m])))",
        START_MS + 300_000, END_MS, 300_000,
    ),
    ("topk(1, http_requests_total)", END_MS, END_MS, 0),
    ("avg_over_time(temperature_celsius[5m:1m] offset 3m)", START_MS + 480_000, END_MS, 210_000),
    ("temperature_celsius", START_MS, END_MS + 600_000, 150_000),
    ('count_values("code", http_requests_total > 300)', END_MS, END_MS, 0),
    ("http_requests_total @ end() / 0", START_MS, START_MS + 60_000, 60_000),
    ('scalar(temperature_celsius{room="lab"}) * 2', END_MS, END_MS, 0),
    ("time() - 1699999200", START_MS, START_MS + 3, 1),
    ('"a \\"text\\""', START_MS, START_MS, 0),
    ('absent(up{job="none"})', END_MS, END_MS, 0),
    ('up{job="none"}', END_MS, END_MS, 0),
    ("rate(temperature_celsius[5m])", END_MS, END_MS, 0),
    ("quantile(2, temperature_celsius)", END_MS, END_MS, 0),
    ("sum(rate(http_requests_total[5m])", END_MS, END_MS, 0),
    ("http_requests_total * on (job) http_requests_total", END_MS, END_MS, 0),
]


def open_metrics(all_series):
    """The samples as OpenMetrics text, without types: a family for each metric."""
    lines = []
    for labels, values in all_series:
        pairs = ",".join(f'{name}="{value}"' for name, value in labels.items() if name != "__name__")
        for step, value in enumerate(values):
            lines.append(f'{labels["__name__"]}{{{pairs}}} {value} {(START_MS + STEP_MS * step) / 1000}')
    return "\n".join([*lines, "# EOF\n"])


def ask(base, expression, start_ms, end_ms, step_ms):
    """Prometheus' answer, with times in milliseconds."""
    if step_ms == 0:
        path, times = "query", {"time": start_ms / 1000}
    else:
        path = "query_range"
        times = {"start": start_ms / 1000, "end": end_ms / 1000, "step": step_ms / 1000}
    url = f"{base}/api/v1/{path}?{urllib.parse.urlencode({'query': expression, **times})}"
    try:
        with urllib.request.urlopen(url) as response:
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        answer = json.load(error)
        return {"errorType": answer["errorType"], "error": answer["error"]}
    point = lambda pair: [round(pair[0] * 1000), pair[1]]
    kind, result = answer["data"]["resultType"], answer["data"]["result"]
    if kind == "string":
        found = {"text": result[1], "series": []}
    elif kind == "scalar":
        found = {"series": [{"labels": {}, "points": [point(result)]}]}
    else:
        found = {
            "series": [
                {
                    "labels": one["metric"],
                    "points": [point(pair) for pair in one.get("values") or [one["value"]]],
                }
                for one in result
            ]
        }
    notes = {"warnings": answer.get("warnings", []), "infos": answer.get("infos", [])}
    return {"resultType": kind, **found, **notes}


def main():
    prometheus, promtool = sys.argv[1:]
    all_series = list(series())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "text").write_text(open_metrics(all_series))
        (folder / "prometheus.yml").write_text("")
        made = [promtool, "tsdb", "create-blocks-from", "openmetrics", folder / "text", folder / "data"]
        subprocess.run(made, check=True, stdout=sys.stderr)
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        server = subprocess.Popen([
            prometheus,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address={address}",
        ])
        try:
            base = f"http://{address}"
            while True:
                try:
                    urllib.request.urlopen(f"{base}/-/ready").close()
                    break
                except OSError:
                    time.sleep(0.2)
            answers = [
                {"query": query[0], "startMs": query[1], "endMs": query[2], "stepMs": query[3],
                 **ask(base, *query)}
                for query in QUERIES
            ]
        finally:
            server.terminate()
            server.wait()
    samples = [
        {"labels": labels, "startMs": START_MS, "stepMs": STEP_MS, "values": values}
        for labels, values in all_series
    ]
    lines = lambda items: ",\n  ".join(json.dumps(item) for item in items)
    source = json.dumps("Answers of Prometheus 3.15, by make.py beside it.")
    text = f"""{{"source": {source},
 "series": [
  {lines(samples)}
 ],
 "queries": [
  {lines(answers)}
 ]}}
"""
    pathlib.Path(__file__).with_name("cases.json").write_text(text)


main()
