"""Writes points with InfluxDB's own client to the address and with the token given: batched and one by
one, compressed and not, in each precision. The time is in milliseconds. The last write is wrong, and
what the client makes of the answer is printed."""

import sys

from influxdb_client import InfluxDBClient, Point, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS, WriteOptions
from influxdb_client.rest import ApiException

url, token, now_ms = sys.argv[1], sys.argv[2], int(sys.argv[3])
UNITS = [
    (WritePrecision.NS, now_ms * 1_000_000),
    (WritePrecision.US, now_ms * 1_000),
    (WritePrecision.MS, now_ms),
    (WritePrecision.S, now_ms // 1_000),
]

for gzip in (False, True):
    with InfluxDBClient(url, token, org="edge", enable_gzip=gzip) as client:
        write = client.write_api(write_options=SYNCHRONOUS)
        for unit, time in UNITS:
            point = Point("air").tag("unit", unit).tag("gzip", gzip).tag("room", "a b,c=d")
            point.field("celsius", 21.5).field("people", 3).field("open", True).field("note", 'a "b"')
            write.write(bucket="node", record=point.time(time, unit), write_precision=unit)

with InfluxDBClient(url, token, org="edge") as client:
    failed = []
    options = WriteOptions(batch_size=500, flush_interval=5_000)
    with client.write_api(
        write_options=options, error_callback=lambda about, data, error: failed.append(error)
    ) as write:
        for number in range(2_000):
            point = Point("batched").tag("n", number % 20).field("value", float(number))
            write.write(bucket="node", record=point.time(now_ms - number, WritePrecision.MS))
    if failed:
        sys.exit(f"a batch failed: {failed[0]}")
    try:
        client.write_api(write_options=SYNCHRONOUS).write(
            bucket="node", record="good value=1\nbad", write_precision=WritePrecision.MS
        )
    except ApiException as error:
        print(error.status, error.message)
