package main

import (
	"context"
	"errors"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// One page of the log: small enough for cuts to leave a checkpoint.
const segmentBytes = 32 << 10

// The directory of a server that runs with --enable-feature=st-storage.
//
// The server itself cuts and merges whenever it comes to it, and its receiver of remote writes
// passes on no start timestamps. Here both are up to the caller.
func writeServer(directory string, spanMs, maxMs, cutMs int64) error {
	in, err := open(2)
	if err != nil {
		return err
	}
	options := tsdb.DefaultOptions()
	options.MinBlockDuration = spanMs
	options.MaxBlockDuration = maxMs
	options.WALSegmentSize = segmentBytes
	options.EnableSTStorage = true
	options.EnableHistogramSTEncoding = true
	options.FloatChunkEncoding = chunkenc.EncXOR2
	db, err := tsdb.Open(directory, quiet, nil, options, nil)
	if err != nil {
		return err
	}
	db.DisableCompactions()
	return errors.Join(fill(db, in, cutMs), db.Close())
}

func fill(db *tsdb.DB, in *input, cutMs int64) error {
	ctx := context.Background()
	refs := make([]storage.SeriesRef, len(in.series))
	latency := labels.FromStrings(labels.MetricName, "latency_seconds")
	var latencyRef storage.SeriesRef
	var count, begunMs int64
	isCut := false
	for in.next() {
		if in.timeMs >= cutMs && !isCut {
			if err := db.Compact(ctx); err != nil {
				return err
			}
			isCut = true
		}
		var err error
		appender := db.AppenderV2(ctx)
		for i, labels := range in.series {
			refs[i], err = appender.Append(refs[i], labels, in.startMs(i), in.timeMs, in.value(i), nil, nil, storage.AppendV2Options{})
			if err != nil {
				return err
			}
		}
		if count == 0 {
			begunMs = in.timeMs - 1
		}
		count++
		observed := &histogram.Histogram{
			Schema:          3,
			ZeroThreshold:   0.001,
			Count:           uint64(count),
			Sum:             float64(count) / 2,
			PositiveSpans:   []histogram.Span{{Offset: 1, Length: 1}},
			PositiveBuckets: []int64{count},
		}
		latencyRef, err = appender.Append(latencyRef, latency, begunMs, in.timeMs, 0, observed, nil, storage.AppendV2Options{})
		if err != nil {
			return err
		}
		if err := appender.Commit(); err != nil {
			return err
		}
	}
	return in.err
}
