// promqlcases prints what Prometheus computes with random native histograms, what its functions
// give, and what whole expressions give: the tables histograms.tsv, functions.tsv and
// evaluation.tsv in engine/promql/tests/cases; joins.tsv are expressions whose selectors are equal.
//
//	go run ./promqlcases -cases 25 > ../../engine/promql/tests/cases/histograms.tsv
//	go run ./promqlcases -functions -cases 8 > ../../engine/promql/tests/cases/functions.tsv
//	go run ./promqlcases -evaluation 3 -cases 200 -seed 2 > ../../engine/promql/tests/cases/evaluation.tsv
//	go run ./promqlcases -evaluation 1 -joins -cases 120 -seed 5 > ../../engine/promql/tests/cases/joins.tsv
//
// A longer table may be given to the test in TIDEPOOL_EVALUATION_CASES; among thousands of random
// expressions some differ where values with roundings become labels.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"sort"
	"strconv"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser/posrange"
)

var random *rand.Rand

func main() {
	cases := flag.Int("cases", 25, "cases of each operation")
	seed := flag.Int64("seed", 1, "seed of the random numbers")
	ofFunctions := flag.Bool("functions", false, "cases of functions")
	ofStores := flag.Int("evaluation", 0, "cases of whole expressions, on so many sets of series")
	ofJoins := flag.Bool("joins", false, "whole expressions whose selectors are equal")
	flag.Parse()
	random = rand.New(rand.NewSource(*seed))
	if *ofStores > 0 {
		fmt.Println("# What expressions give in Prometheus 3.15, by tests/peers/promqlcases. Either `store` and")
		fmt.Println("# series as labels and samples; or `query`, expression, first and last time, step (0 for an")
		fmt.Println("# instant query) and whether names are removed with delay, failure, series, warnings, infos.")
		expression := func() string { return vector(3) }
		if *ofJoins {
			expression = joined
		}
		evaluations(*ofStores, *cases, expression)
		return
	}
	if *ofFunctions {
		fmt.Println("# What functions of Prometheus 3.15 give, by tests/peers/promqlcases. Over ranges: function,")
		fmt.Println("# result, annotations, window (start, end, evaluation, bounds), floats, histograms, start times")
		fmt.Println("# of both, scalars. Else: function, result, value, scalars. Histograms as in histograms.tsv.")
		functions(*cases)
		return
	}
	fmt.Println("# What Prometheus 3.15 computes with native histograms, by tests/peers/promqlcases:")
	fmt.Println("# operation, result, and operands, separated by tabs. Histograms are lists of schema, hint,")
	fmt.Println("# zero threshold, zero count, count, sum, positive spans and counts, negative spans and")
	fmt.Println("# counts, custom bounds. Numbers that are no integers are strings.")
	for range *cases {
		a, b := pair()
		row("add", combine(a, b, (*histogram.FloatHistogram).Add), a, b)
		row("subtract", combine(a, b, (*histogram.FloatHistogram).Sub), a, b)
		row("reset", a.DetectReset(b), a, b)
		grown, _, _, err := a.Copy().Add(b)
		if err == nil {
			grown.CounterResetHint = histogram.UnknownCounterReset
			row("reset", grown.DetectReset(a), grown, a)
		}
		all := []*histogram.FloatHistogram{a, b}
		for range random.Intn(4) {
			all = append(all, like(a))
		}
		row("sum", sum(all), encodeAll(all))
		row("text", a.String(), a)
		row("buckets", buckets(a), a)
		value := around(a)
		row("trim_upper", encode(a.Copy().TrimBuckets(value, true)), a, value)
		row("trim_lower", encode(a.Copy().TrimBuckets(value, false)), a, value)
		q := []float64{0, 0.001, 0.25, 0.5, 0.9, 0.99, 1, -1, 2, random.Float64()}[random.Intn(10)]
		result, notes := promql.HistogramQuantile(q, a, "", posrange.PositionRange{})
		row("quantile", []any{number(result), len(notes)}, a, q)
		lower, upper := around(a), around(a)
		result, notes = promql.HistogramFraction(lower, upper, a, "", posrange.PositionRange{})
		row("fraction", []any{number(result), len(notes)}, a, lower, upper)
		classic()
	}
}

// Quantile and fraction of classic buckets; sometimes of counts that fall.
func classic() {
	var all promql.Buckets
	given := []any{}
	total := 0.0
	for _, bound := range []float64{-1, 0, 0.1, 0.5, 1, 1, 2.5, 10, math.Inf(1)} {
		if random.Intn(3) == 0 && (bound < 10 || random.Intn(3) == 0) {
			continue
		}
		total += count()
		switch random.Intn(12) {
		case 0:
			total -= 5
		case 1:
			total *= 1 + 1e-13
		case 2:
			total *= 1 - 1e-13
		}
		total = math.Max(total, 0)
		all = append(all, promql.Bucket{UpperBound: bound, Count: total})
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if len(all) == 0 {
		return
	}
	for _, bucket := range all {
		given = append(given, []any{number(bucket.UpperBound), number(bucket.Count)})
	}
	q := []float64{0, 0.5, 0.9, 1, -1, 2, math.NaN(), random.Float64()}[random.Intn(8)]
	result, forced, _, low, high, diff := promql.BucketQuantile(q, slices.Clone(all))
	row("classic_quantile", []any{number(result), forced, number(low), number(high), number(diff)}, given, q)
	ends := []float64{-2, 0, 0.05, 0.1, 0.7, 5, 20, math.Inf(1), math.Inf(-1), math.NaN()}
	lower, upper := ends[random.Intn(10)], ends[random.Intn(10)]
	row("classic_fraction", number(promql.BucketFraction(lower, upper, slices.Clone(all))), given, lower, upper)
}

type operation = func(a, b *histogram.FloatHistogram) (*histogram.FloatHistogram, bool, bool, error)

func combine(a, b *histogram.FloatHistogram, apply operation) any {
	result, collision, reconciled, err := apply(a.Copy(), b)
	if err != nil {
		return nil
	}
	return []any{encode(result.Compact(0)), collision, reconciled}
}

func sum(all []*histogram.FloatHistogram) any {
	total := all[0].Copy()
	var lost *histogram.FloatHistogram
	for _, other := range all[1:] {
		var err error
		if lost, _, _, err = total.KahanAdd(other, lost); err != nil {
			return nil
		}
	}
	total.Add(lost)
	return encode(total.Compact(0))
}

func buckets(h *histogram.FloatHistogram) any {
	all := []any{}
	for it := h.AllBucketIterator(); it.Next(); {
		b := it.At()
		all = append(all, []any{number(b.Lower), number(b.Upper), b.LowerInclusive, b.UpperInclusive, number(b.Count)})
	}
	return all
}

func row(name string, result any, operands ...any) {
	text, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\t%s", name, text)
	for _, operand := range operands {
		switch value := operand.(type) {
		case *histogram.FloatHistogram:
			operand = encode(value)
		case float64:
			operand = number(value)
		}
		text, err := json.Marshal(operand)
		if err != nil {
			panic(err)
		}
		fmt.Printf("\t%s", text)
	}
	fmt.Println()
}

func encodeAll(all []*histogram.FloatHistogram) (list []any) {
	for _, h := range all {
		list = append(list, encode(h))
	}
	return list
}

func encode(h *histogram.FloatHistogram) any {
	return []any{
		h.Schema, h.CounterResetHint, number(h.ZeroThreshold), number(h.ZeroCount), number(h.Count), number(h.Sum),
		spans(h.PositiveSpans), numbers(h.PositiveBuckets), spans(h.NegativeSpans), numbers(h.NegativeBuckets),
		numbers(h.CustomValues),
	}
}

func spans(spans []histogram.Span) any {
	list := []any{}
	for _, span := range spans {
		list = append(list, []any{span.Offset, span.Length})
	}
	return list
}

func numbers(values []float64) any {
	list := []any{}
	for _, value := range values {
		list = append(list, number(value))
	}
	return list
}

func number(value float64) any {
	if value != math.Trunc(value) || math.Abs(value) > 1e15 {
		return strconv.FormatFloat(value, 'g', -1, 64)
	}
	return value
}

// Two histograms that are often of one kind.
func pair() (a, b *histogram.FloatHistogram) {
	if random.Intn(3) == 0 {
		a = custom()
	} else {
		a = exponential()
	}
	if random.Intn(8) == 0 {
		return a, exponential()
	}
	return a, like(a)
}

func like(h *histogram.FloatHistogram) *histogram.FloatHistogram {
	if h.UsesCustomBuckets() {
		other := custom()
		if random.Intn(2) == 0 {
			other.CustomValues = h.CustomValues
			other.PositiveSpans, other.PositiveBuckets = side(0, len(h.CustomValues)+1)
			total(other)
		}
		return other
	}
	return exponential()
}

func exponential() *histogram.FloatHistogram {
	h := &histogram.FloatHistogram{
		Schema:           []int32{-4, -1, 0, 0, 1, 2, 3, 8}[random.Intn(8)],
		CounterResetHint: histogram.CounterResetHint(random.Intn(4)),
		ZeroThreshold:    []float64{0, 0, 1e-128, 0.001, 0.25, 1, 1.5, 6}[random.Intn(8)],
	}
	if random.Intn(2) == 0 {
		h.ZeroCount = count()
	}
	if random.Intn(6) > 0 {
		h.PositiveSpans, h.PositiveBuckets = side(-3, 12)
	}
	if random.Intn(3) == 0 {
		h.NegativeSpans, h.NegativeBuckets = side(-2, 8)
	}
	total(h)
	return h
}

func custom() *histogram.FloatHistogram {
	h := &histogram.FloatHistogram{
		Schema:           histogram.CustomBucketsSchema,
		CounterResetHint: histogram.CounterResetHint(random.Intn(4)),
	}
	for _, bound := range []float64{-5, -1, 0, 0.1, 0.5, 1, 2.5, 5, 10, 25} {
		if random.Intn(2) == 0 {
			h.CustomValues = append(h.CustomValues, bound)
		}
	}
	h.PositiveSpans, h.PositiveBuckets = side(0, len(h.CustomValues)+1)
	total(h)
	return h
}

// Buckets of indexes from first up to first+width, some of them empty.
func side(first int32, width int) (spans []histogram.Span, counts []float64) {
	places := random.Perm(width)[:random.Intn(min(width, 6)+1)]
	sort.Ints(places)
	next := int32(0)
	for _, place := range places {
		index := first + int32(place)
		if len(spans) > 0 && index == next && random.Intn(5) > 0 {
			spans[len(spans)-1].Length++
		} else {
			spans = append(spans, histogram.Span{Offset: index - next, Length: 1})
		}
		next = index + 1
		counts = append(counts, count())
	}
	return spans, counts
}

func count() float64 {
	switch random.Intn(6) {
	case 0:
		return 0
	case 1:
		return random.Float64() * 10
	default:
		return float64(1 + random.Intn(20))
	}
}

func total(h *histogram.FloatHistogram) {
	h.Count = h.ZeroCount
	for _, c := range append(append([]float64{}, h.PositiveBuckets...), h.NegativeBuckets...) {
		h.Count += c
	}
	h.Sum = math.Round((random.Float64()-0.3)*1000) / 8
	if random.Intn(6) == 0 {
		h.Sum = math.NaN()
		h.Count += float64(random.Intn(5))
	}
}

// A value near the bounds of a histogram, often one of them.
func around(h *histogram.FloatHistogram) float64 {
	special := []float64{0, 1, -1, 0.3, 2.5, -0.7, 7, 1e9, math.Inf(1), math.Inf(-1), h.ZeroThreshold}
	for it := h.AllBucketIterator(); it.Next(); {
		b := it.At()
		special = append(special, b.Lower, b.Upper)
		if b.Upper-b.Lower < 1e300 {
			special = append(special, b.Lower+(b.Upper-b.Lower)*random.Float64())
		}
	}
	return special[random.Intn(len(special))]
}
