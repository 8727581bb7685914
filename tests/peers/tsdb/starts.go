package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Blocks as a server writes them that runs with --enable-feature=st-storage.
func writeStarts(directory string, spanMs int64) error {
	in, err := open(2)
	if err != nil {
		return err
	}
	var block *startsBlock
	var endMs int64
	for in.next() {
		if block == nil || in.timeMs >= endMs {
			if err := block.flush(directory); err != nil {
				return err
			}
			endMs = (in.timeMs/spanMs + 1) * spanMs
			if block, err = newStartsBlock(spanMs, len(in.series)); err != nil {
				return err
			}
		}
		appender := block.head.AppenderV2(context.Background())
		for i, labels := range in.series {
			block.refs[i], err = appender.Append(block.refs[i], labels, in.startMs(i), in.timeMs, in.value(i), nil, nil, storage.AppendV2Options{})
			if err != nil {
				return err
			}
		}
		if err := appender.Commit(); err != nil {
			return err
		}
	}
	return errors.Join(in.err, block.flush(directory))
}

// A head that becomes one block.
type startsBlock struct {
	head   *tsdb.Head
	chunks string
	spanMs int64
	refs   []storage.SeriesRef
}

func newStartsBlock(spanMs int64, series int) (*startsBlock, error) {
	chunks, err := os.MkdirTemp("", "head")
	if err != nil {
		return nil, err
	}
	options := tsdb.DefaultHeadOptions()
	options.ChunkRange = spanMs
	options.ChunkDirRoot = chunks
	options.EnableSTStorage.Store(true)
	options.EnableHistogramSTEncoding.Store(true)
	options.FloatChunkEncoding.Store(uint32(chunkenc.EncXOR2))
	head, err := tsdb.NewHead(nil, quiet, nil, nil, options, tsdb.NewHeadStats())
	if err != nil {
		return nil, err
	}
	refs := make([]storage.SeriesRef, series)
	return &startsBlock{head, chunks, spanMs, refs}, head.Init(math.MinInt64)
}

func (b *startsBlock) flush(directory string) error {
	if b == nil {
		return nil
	}
	compactor, err := tsdb.NewLeveledCompactor(context.Background(), nil, quiet, []int64{b.spanMs}, chunkenc.NewPool(), nil)
	if err != nil {
		return err
	}
	// A block's end is not in it.
	_, err = compactor.Write(directory, b.head, b.head.MinTime(), b.head.MaxTime()+1, nil)
	return errors.Join(err, b.head.Close(), os.RemoveAll(b.chunks))
}

func read(directory string) error {
	db, err := tsdb.OpenDBReadOnly(directory, "", quiet)
	if err != nil {
		return err
	}
	defer db.Close()
	blocks, err := db.Blocks()
	if err != nil {
		return err
	}
	var queriers []storage.Querier
	for _, block := range blocks {
		querier, err := tsdb.NewBlockQuerier(block, math.MinInt64, math.MaxInt64)
		if err != nil {
			return err
		}
		queriers = append(queriers, querier)
	}
	querier := storage.NewMergeQuerier(queriers, nil, storage.ChainedSeriesMerge)
	defer querier.Close()
	out := bufio.NewWriter(os.Stdout)
	all := labels.MustNewMatcher(labels.MatchRegexp, labels.MetricName, ".*")
	found := querier.Select(context.Background(), true, nil, all)
	var samples chunkenc.Iterator
	for found.Next() {
		series := found.At()
		samples = series.Iterator(samples)
		for kind := samples.Next(); kind != chunkenc.ValNone; kind = samples.Next() {
			value := ""
			switch kind {
			case chunkenc.ValFloat:
				_, v := samples.At()
				value = "f " + strconv.FormatUint(math.Float64bits(v), 16)
			case chunkenc.ValHistogram:
				_, h := samples.AtHistogram(nil)
				value = "h " + h.String()
			case chunkenc.ValFloatHistogram:
				_, h := samples.AtFloatHistogram(nil)
				value = "h " + h.String()
			}
			fmt.Fprintln(out, series.Labels(), samples.AtT(), samples.AtST(), value)
		}
		if err := samples.Err(); err != nil {
			return err
		}
	}
	return errors.Join(found.Err(), out.Flush())
}
