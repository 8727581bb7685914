// Tsdb makes and compacts data directories with upstream's own packages, for benchmarks that start
// servers on them:
//
//	go-tsdb wal DIR               writes DIR/wal, as a killed server leaves it
//	go-tsdb blocks DIR SPAN_MS    writes a block for each aligned span, as cuts of a head are
//	go-tsdb compact DIR MAX_MS    merges blocks as a server does whose longest block is this
//	go-tsdb starts DIR SPAN_MS    as blocks, of a server that keeps start timestamps
//	go-tsdb server DIR SPAN_MS MAX_MS CUT_MS
//	                              leaves what such a server does that is ended: blocks, merged ones
//	                              and a log. All its cuts and merges come when CUT_MS is reached
//	go-tsdb read DIR              prints what the blocks of a directory hold
//
// All but compact and read take series from the standard input; all numbers are little-endian: a
// 32-bit count of series; for each of them a 32-bit count of labels, and names and values in turn,
// sorted, each with its 32-bit length; then, until the end, scrapes: a 64-bit time in milliseconds
// and a 64-bit float for each of the series. For starts and server, a 64-bit start timestamp comes
// before each float, 0 if it is not known; server adds a native histogram to each scrape.
//
// What read prints is a line for each sample, series by series: labels, time and start timestamp in
// milliseconds, and the kind of the value and the value: f and the bits of a float, or h and a
// histogram as text.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/record"
	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"
)

const (
	// Samples in a record: what a server takes in one remote write.
	recordSamples = 2000
	// Shortest block, how many lengths there are and how much longer each is: a server's defaults.
	blockMs    = int64(2 * time.Hour / time.Millisecond)
	rangeSteps = 10
	rangeStep  = 3
	// A label set or a text that is longer is a broken input.
	lengthMax = 1 << 24
)

var quiet = slog.New(slog.DiscardHandler)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 2 && arguments[0] == "wal":
		return writeLog(arguments[1])
	case len(arguments) == 3 && arguments[0] == "blocks":
		spanMs, err := strconv.ParseInt(arguments[2], 10, 64)
		if err != nil {
			return err
		}
		return writeBlocks(arguments[1], spanMs)
	case len(arguments) == 3 && arguments[0] == "starts":
		spanMs, err := strconv.ParseInt(arguments[2], 10, 64)
		if err != nil {
			return err
		}
		return writeStarts(arguments[1], spanMs)
	case len(arguments) == 5 && arguments[0] == "server":
		var numbers [3]int64
		for i, argument := range arguments[2:] {
			number, err := strconv.ParseInt(argument, 10, 64)
			if err != nil {
				return err
			}
			numbers[i] = number
		}
		return writeServer(arguments[1], numbers[0], numbers[1], numbers[2])
	case len(arguments) == 2 && arguments[0] == "read":
		return read(arguments[1])
	case len(arguments) == 3 && arguments[0] == "compact":
		maxMs, err := strconv.ParseInt(arguments[2], 10, 64)
		if err != nil {
			return err
		}
		return compact(arguments[1], maxMs)
	}
	return errors.New("usage: go-tsdb wal DIR | blocks DIR SPAN_MS | compact DIR MAX_MS | starts DIR SPAN_MS | server DIR SPAN_MS MAX_MS CUT_MS | read DIR")
}

func writeLog(directory string) error {
	in, err := open(1)
	if err != nil {
		return err
	}
	wal, err := wlog.New(quiet, nil, filepath.Join(directory, "wal"), compression.Snappy)
	if err != nil {
		return err
	}
	var encoder record.Encoder
	var buffer []byte
	series := make([]record.RefSeries, len(in.series))
	for i, labels := range in.series {
		series[i] = record.RefSeries{Ref: chunks.HeadSeriesRef(i + 1), Labels: labels}
	}
	for start := 0; start < len(series); start += recordSamples {
		end := min(start+recordSamples, len(series))
		buffer = encoder.Series(series[start:end], buffer[:0])
		if err := wal.Log(buffer); err != nil {
			return err
		}
	}
	samples := make([]record.RefSample, 0, recordSamples)
	for in.next() {
		for start := 0; start < len(series); start += recordSamples {
			samples = samples[:0]
			for i := start; i < min(start+recordSamples, len(series)); i++ {
				sample := record.RefSample{Ref: series[i].Ref, T: in.timeMs, V: in.value(i)}
				samples = append(samples, sample)
			}
			buffer = encoder.Samples(samples, buffer[:0])
			if err := wal.Log(buffer); err != nil {
				return err
			}
		}
	}
	return errors.Join(in.err, wal.Close())
}

func writeBlocks(directory string, spanMs int64) error {
	in, err := open(1)
	if err != nil {
		return err
	}
	var writer *tsdb.BlockWriter
	var endMs int64
	refs := make([]storage.SeriesRef, len(in.series))
	flush := func() error {
		if writer == nil {
			return nil
		}
		_, err := writer.Flush(context.Background())
		return errors.Join(err, writer.Close())
	}
	for in.next() {
		if writer == nil || in.timeMs >= endMs {
			if err := flush(); err != nil {
				return err
			}
			endMs = (in.timeMs/spanMs + 1) * spanMs
			if writer, err = tsdb.NewBlockWriter(quiet, directory, spanMs); err != nil {
				return err
			}
			clear(refs)
		}
		appender := writer.Appender(context.Background())
		for i, labels := range in.series {
			refs[i], err = appender.Append(refs[i], labels, in.timeMs, in.value(i))
			if err != nil {
				return err
			}
		}
		if err := appender.Commit(); err != nil {
			return err
		}
	}
	return errors.Join(in.err, flush())
}

func compact(directory string, maxMs int64) error {
	ranges := tsdb.ExponentialBlockRanges(blockMs, rangeSteps, rangeStep)
	for i, span := range ranges {
		if span > maxMs {
			ranges = ranges[:i]
			break
		}
	}
	compactor, err := tsdb.NewLeveledCompactor(context.Background(), nil, quiet, ranges, nil, nil)
	if err != nil {
		return err
	}
	for {
		plan, err := compactor.Plan(directory)
		if err != nil || len(plan) == 0 {
			return err
		}
		if _, err := compactor.Compact(directory, plan, nil); err != nil {
			return err
		}
		for _, block := range plan {
			if err := os.RemoveAll(block); err != nil {
				return err
			}
		}
	}
}

// The standard input: series, and the scrape that was read last.
type input struct {
	reader *bufio.Reader
	series []labels.Labels
	timeMs int64
	scrape []byte
	// Numbers of 64 bits that a series has in a scrape; the float is the last.
	numbers int
	err     error
}

func open(numbers int) (*input, error) {
	in := &input{reader: bufio.NewReaderSize(os.Stdin, 1<<20), numbers: numbers}
	count := in.number()
	for range count {
		builder := labels.NewScratchBuilder(16)
		for range in.number() {
			name := in.text()
			builder.Add(name, in.text())
		}
		if in.err != nil {
			return nil, in.err
		}
		in.series = append(in.series, builder.Labels())
	}
	in.scrape = make([]byte, 8+8*numbers*len(in.series))
	return in, in.err
}

// Reads the next scrape; false at the end and after an error.
func (in *input) next() bool {
	if in.err != nil {
		return false
	}
	if _, err := io.ReadFull(in.reader, in.scrape); err != nil {
		if err != io.EOF {
			in.err = err
		}
		return false
	}
	in.timeMs = int64(binary.LittleEndian.Uint64(in.scrape))
	return true
}

func (in *input) value(series int) float64 {
	return math.Float64frombits(in.word((series+1)*in.numbers - 1))
}

// The start timestamp that comes before the value.
func (in *input) startMs(series int) int64 {
	return int64(in.word(series * in.numbers))
}

func (in *input) word(number int) uint64 {
	return binary.LittleEndian.Uint64(in.scrape[8+8*number:])
}

func (in *input) number() uint32 {
	var bytes [4]byte
	if in.err == nil {
		_, in.err = io.ReadFull(in.reader, bytes[:])
	}
	number := binary.LittleEndian.Uint32(bytes[:])
	if in.err == nil && number > lengthMax {
		in.err = fmt.Errorf("a length of %d is too large", number)
	}
	if in.err != nil {
		return 0
	}
	return number
}

func (in *input) text() string {
	bytes := make([]byte, in.number())
	if in.err == nil {
		_, in.err = io.ReadFull(in.reader, bytes)
	}
	return string(bytes)
}
