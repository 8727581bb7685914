// Client sends remote-write messages through the client library of client_golang, which encodes and
// compresses them, reads the answers' headers, and tries again as the library sees fit.
//
// Each file holds one message, not compressed: prometheus.WriteRequest for 1.0,
// io.prometheus.write.v2.Request for 2.0. For each it prints a line with what the library takes the
// answer for: samples, histograms and exemplars written, how often it tried again, and the error,
// which may be empty.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/push"
	"github.com/prometheus/prometheus/prompb"
)

// Longer than any test waits.
const timeout = 2 * time.Minute

func main() {
	url := flag.String("url", "", "base address of the receiver")
	version := flag.String("version", "2.0", "1.0 or 2.0")
	job := flag.String("push", "", "job to push metrics as")
	flag.Parse()
	if *job != "" {
		if err := pushMetrics(*url, *job); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := run(*url, *version, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(url, version string, files []string) error {
	backoff := remote.BackoffConfig{Min: 50 * time.Millisecond, Max: time.Second, MaxRetries: 60}
	api, err := remote.NewAPI(url, remote.WithAPIBackoff(backoff))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for _, file := range files {
		bytes, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		kind, message, err := decode(version, bytes)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		retries := 0
		count := remote.WithWriteRetryCallback(func(error) { retries++ })
		stats, err := api.Write(ctx, kind, message, count)
		reason := ""
		if err != nil {
			reason = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Println(stats.Samples, stats.Histograms, stats.Exemplars, retries, reason)
	}
	return nil
}

func decode(version string, bytes []byte) (remote.WriteMessageType, any, error) {
	switch version {
	case "1.0":
		message := &prompb.WriteRequest{}
		return remote.WriteV1MessageType, message, message.Unmarshal(bytes)
	case "2.0":
		message := &writev2.Request{}
		return remote.WriteV2MessageType, message, message.UnmarshalVT(bytes)
	default:
		return "", nil, fmt.Errorf("version %q is neither 1.0 nor 2.0", version)
	}
}

func pushMetrics(url, job string) error {
	counter := prometheus.NewCounterVec(
		prometheus.CounterOpts{Name: "runs_total", Help: "Runs."}, []string{"kind"})
	counter.WithLabelValues("full").Add(3)
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "last_success"})
	gauge.Set(1.5)
	classic := prometheus.NewHistogram(
		prometheus.HistogramOpts{Name: "size_bytes", Buckets: []float64{1, 2.5}})
	native := prometheus.NewHistogram(
		prometheus.HistogramOpts{Name: "duration_seconds", NativeHistogramBucketFactor: 1.1})
	summary := prometheus.NewSummary(
		prometheus.SummaryOpts{Name: "age", Objectives: map[float64]float64{0.5: 0.05}})
	for _, value := range []float64{0.5, 2, 7} {
		classic.Observe(value)
		native.Observe(value)
		summary.Observe(value)
	}
	pusher := push.New(url, job).Grouping("path", "/var/tmp")
	for _, one := range []prometheus.Collector{counter, gauge, classic, native, summary} {
		pusher.Collector(one)
	}
	return pusher.Push()
}
