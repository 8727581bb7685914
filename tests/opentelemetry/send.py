"""Measures with OpenTelemetry's SDK and sends it to the address given: every instrument, a
histogram of each kind, compressed. What goes wrong is on standard error."""

import sys

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource

exporter = OTLPMetricExporter(endpoint=sys.argv[1], compression=Compression.Gzip)
provider = MeterProvider(
    metric_readers=[PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)],
    views=[
        View(instrument_name="latency", aggregation=ExponentialBucketHistogramAggregation())
    ],
    resource=Resource.create(
        {
            "service.name": "api",
            "service.namespace": "shop",
            "service.instance.id": "i-1",
        }
    ),
)
meter = provider.get_meter("tidepool.test", "1.0")
requests = meter.create_counter("requests", unit="1", description="Requests served.")
requests.add(3, {"route": "/a"})
requests.add(4, {"route": "/b"})
meter.create_up_down_counter("queue.length", unit="{items}").add(-2)
meter.create_observable_gauge(
    "temperature", [lambda options: [Observation(21.5, {"room": "lab"})]], unit="Cel"
)
duration = meter.create_histogram("duration", unit="s")
latency = meter.create_histogram("latency", unit="ms", description="How long it took.")
for value in (0.001, 0.7, 12, 9000):
    duration.record(value)
    latency.record(value)
if not provider.force_flush():
    sys.exit("the export failed")
provider.shutdown()
