package promqlscripts

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/storage"
)

// server is a tidepool of its own, with an empty data directory. The parts of storage.Storage that
// the harness does not call are nil.
type server struct {
	storage.Storage
	command *exec.Cmd
	url     string
}

// Its clock: scripts begin at 1970, and samples of a later time than now are refused.
var now = time.Date(1975, 1, 1, 0, 0, 0, 0, time.UTC)

// Scripts give series in any order.
var flags = []string{
	"--out-of-order-window=1000d", "--block-duration=1000d", "--retention-time=0s", "--max-future=3650d",
	"--enable-feature=promql-experimental-functions,promql-extended-range-selectors," +
		"promql-binop-fill-modifiers,promql-delayed-name-removal",
}

func start(t testing.TB) *server {
	program := os.Getenv("TIDEPOOL_BIN")
	if program == "" {
		t.Fatal("TIDEPOOL_BIN names no program")
	}
	command := exec.Command(program, append(
		[]string{"serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0",
			"--no-host-metrics", "--no-own-metrics"}, flags...)...)
	offset := time.Until(now).Milliseconds()
	command.Env = append(os.Environ(), fmt.Sprintf("TIDEPOOL_CLOCK_OFFSET_MS=%d", offset))
	log, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(command) })
	lines, said := bufio.NewScanner(log), ""
	for lines.Scan() {
		said += lines.Text() + "\n"
		if _, address, found := strings.Cut(lines.Text(), "listening address="); found {
			go io.Copy(io.Discard, log)
			address, _, _ = strings.Cut(address, " ")
			s := &server{command: command, url: "http://" + address}
			s.wait(t)
			return s
		}
	}
	t.Fatalf("%s ended:\n%s", program, said)
	return nil
}

// wait returns when the server is ready.
func (s *server) wait(t testing.TB) {
	for range 1000 {
		response, err := http.Get(s.url + "/-/ready")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("tidepool does not get ready")
}

// stop kills a process, once.
func stop(command *exec.Cmd) {
	if command.ProcessState == nil {
		command.Process.Kill()
		command.Wait()
	}
}

func (s *server) Close() error {
	stop(s.command)
	return nil
}

func (s *server) AppenderV2(context.Context) storage.AppenderV2 {
	return &appender{server: s, places: map[string]int{}, symbols: writev2.NewSymbolTable()}
}

// appender gathers what is one request of remote write 2.0.
type appender struct {
	server  *server
	places  map[string]int
	series  []writev2.TimeSeries
	symbols writev2.SymbolsTable
}

func (a *appender) Append(_ storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, _ storage.AppendV2Options) (storage.SeriesRef, error) {
	place, known := a.places[ls.String()]
	if !known {
		place = len(a.series)
		a.places[ls.String()] = place
		a.series = append(a.series, writev2.TimeSeries{LabelsRefs: a.symbols.SymbolizeLabels(ls, nil)})
	}
	series := &a.series[place]
	switch {
	case fh != nil:
		series.Histograms = append(series.Histograms, writev2.FromFloatHistogram(st, t, fh))
	case h != nil:
		series.Histograms = append(series.Histograms, writev2.FromIntHistogram(st, t, h))
	default:
		series.Samples = append(series.Samples, writev2.Sample{Value: v, Timestamp: t, StartTimestamp: st})
	}
	return 1, nil
}

func (a *appender) Commit() error {
	if len(a.series) == 0 {
		return nil
	}
	message, err := (&writev2.Request{Symbols: a.symbols.Symbols(), Timeseries: a.series}).Marshal()
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, a.server.url+"/api/v1/write", bytes.NewReader(snappy.Encode(nil, message)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
	request.Header.Set("Content-Encoding", "snappy")
	request.Header.Set("X-Prometheus-Remote-Write-Version", "2.0.0")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("remote write: %s: %s", response.Status, text)
	}
	return nil
}

func (*appender) Rollback() error { return nil }
