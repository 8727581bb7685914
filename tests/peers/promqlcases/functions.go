package main

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// Functions of a range, with how many scalars they take before and behind it.
var ofRange = map[string][2]int{
	"avg_over_time": {}, "changes": {}, "count_over_time": {}, "delta": {}, "deriv": {},
	"double_exponential_smoothing": {0, 2}, "first_over_time": {}, "idelta": {}, "increase": {}, "irate": {},
	"last_over_time": {}, "mad_over_time": {}, "max_over_time": {}, "min_over_time": {}, "predict_linear": {0, 1},
	"present_over_time": {}, "quantile_over_time": {1, 0}, "rate": {}, "resets": {}, "stddev_over_time": {},
	"stdvar_over_time": {}, "sum_over_time": {}, "ts_of_first_over_time": {}, "ts_of_last_over_time": {},
	"ts_of_max_over_time": {}, "ts_of_min_over_time": {},
}

// Functions of an instant vector, with how many scalars they take behind it.
var ofVector = map[string]int{
	"abs": 0, "acos": 0, "acosh": 0, "asin": 0, "asinh": 0, "atan": 0, "atanh": 0, "ceil": 0, "clamp": 2,
	"clamp_max": 1, "clamp_min": 1, "cos": 0, "cosh": 0, "day_of_month": 0, "day_of_week": 0, "day_of_year": 0,
	"days_in_month": 0, "deg": 0, "exp": 0, "floor": 0, "histogram_avg": 0, "histogram_count": 0,
	"histogram_stddev": 0, "histogram_stdvar": 0, "histogram_sum": 0, "hour": 0, "ln": 0, "log10": 0, "log2": 0,
	"minute": 0, "month": 0, "rad": 0, "round": 1, "sgn": 0, "sin": 0, "sinh": 0, "sqrt": 0, "tan": 0, "tanh": 0,
	"year": 0,
}

var metric = labels.FromStrings(labels.MetricName, "m")

func functions(cases int) {
	for _, name := range sorted(ofRange) {
		for range cases {
			rangeRow(name, ofRange[name])
		}
	}
	for _, name := range sorted(ofVector) {
		for range cases {
			vectorRow(name, ofVector[name])
		}
	}
}

func sorted[V any](table map[string]V) (names []string) {
	for name := range table {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func rangeRow(name string, scalars [2]int) {
	const start, end = 600_000, 900_000
	selector := &parser.VectorSelector{Name: "m"}
	bounds := 0
	if _, ok := promql.AnchoredSafeFunctions[name]; ok && random.Intn(3) == 0 {
		selector.Anchored, bounds = true, 1
	} else if _, ok := promql.SmoothedSafeFunctions[name]; ok && random.Intn(2) == 0 {
		selector.Smoothed, bounds = true, 2
	}
	offset := int64(random.Intn(2) * 60_000)
	selector.Offset = time.Duration(offset) * time.Millisecond
	matrix := &parser.MatrixSelector{VectorSelector: selector, Range: (end - start) * time.Millisecond}
	series, starts := samples(start, end, bounds)
	enh := &promql.EvalNodeHelper{Ts: end + offset}
	if random.Intn(4) == 0 {
		enh.StartTimestamps = starts
	} else {
		starts.Floats, starts.Histograms = nil, nil
	}
	args := parser.Expressions{}
	vectors := []promql.Vector{}
	values := []any{}
	scalar := func() {
		value := []float64{0, 0.1, 0.5, 0.9, 1, 2, -1, 0.25, math.NaN(), 60}[random.Intn(10)]
		if name == "double_exponential_smoothing" {
			value = []float64{0.1, 0.5, 0.9}[random.Intn(3)]
		}
		args = append(args, &parser.NumberLiteral{Val: value})
		vectors = append(vectors, promql.Vector{promql.Sample{F: value}})
		values = append(values, number(value))
	}
	for range scalars[0] {
		scalar()
	}
	args = append(args, matrix)
	for range scalars[1] {
		scalar()
	}
	out, notes := promql.FunctionCalls[name](vectors, promql.Matrix{series}, args, enh)
	messages := []string{}
	for _, note := range notes.AsErrors() {
		messages = append(messages, note.Error())
	}
	slices.Sort(messages)
	floats, histograms := []any{}, []any{}
	for _, p := range series.Floats {
		floats = append(floats, []any{p.T, number(p.F)})
	}
	for _, p := range series.Histograms {
		histograms = append(histograms, []any{p.T, encode(p.H)})
	}
	row(name, result(out), messages, []any{start, end, end + offset, bounds}, floats, histograms, integers(starts.Floats),
		integers(starts.Histograms), values)
}

func integers(values []int64) any {
	if values == nil {
		return []any{}
	}
	return values
}

func result(out promql.Vector) any {
	switch {
	case len(out) == 0:
		return nil
	case out[0].H != nil:
		return encode(out[0].H)
	default:
		return number(out[0].F)
	}
}

// Samples of a window, some of them outside of it if it is bounded by values.
func samples(start, end int64, bounds int) (promql.Series, *promql.StartTimestamps) {
	series := promql.Series{Metric: metric}
	starts := &promql.StartTimestamps{}
	from, to := start+1, end
	if bounds > 0 {
		from = start - 120_000
	}
	if bounds == 2 {
		to = end + 120_000
	}
	kind := random.Intn(8)
	step := int64(15_000 + random.Intn(60_000))
	value := float64(random.Intn(100))
	started := from - 500
	hint := histogram.CounterResetHint(random.Intn(4))
	var h *histogram.FloatHistogram
	for t := from + random.Int63n(step); t <= to; t += step + random.Int63n(2)*random.Int63n(2_000) {
		if random.Intn(8) == 0 {
			continue
		}
		if random.Intn(6) == 0 {
			started = t - random.Int63n(3)*random.Int63n(step)
		}
		// Most series are of floats; some are of histograms, or of both.
		if kind > 2 || kind == 2 && random.Intn(2) == 0 {
			series.Floats = append(series.Floats, promql.FPoint{T: t, F: value})
			starts.Floats = append(starts.Floats, started)
			switch random.Intn(12) {
			case 0:
				value = float64(random.Intn(5))
			case 1:
				value = -value / 3
			case 2:
				if kind == 3 {
					value = []float64{math.NaN(), math.Inf(1), 1e308, 0.1}[random.Intn(4)]
				}
			default:
				value += random.Float64() * 10
			}
			continue
		}
		if h == nil {
			h, _ = pair()
			h.CounterResetHint = hint
		}
		series.Histograms = append(series.Histograms, promql.HPoint{T: t, H: h})
		starts.Histograms = append(starts.Histograms, started)
		switch random.Intn(5) {
		case 0:
			h = like(h)
		case 1:
			h = h.Copy()
		default:
			next := h.Copy()
			if grown, _, _, err := next.Add(like(h)); err == nil {
				h = grown
			}
		}
		h.CounterResetHint = hint
		if random.Intn(10) == 0 {
			h.CounterResetHint = histogram.CounterResetHint(random.Intn(4))
		}
	}
	if len(series.Floats)+len(series.Histograms) == 0 {
		series.Floats = append(series.Floats, promql.FPoint{T: end, F: 1})
		starts.Floats = append(starts.Floats, 0)
	}
	return series, starts
}

func vectorRow(name string, scalars int) {
	special := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 2.5, -2.5, 1e-9, 1 + 1e-9, 1e9, 1e17, 1e300, math.NaN(), math.Inf(1), math.Inf(-1)}
	value := func() float64 {
		if random.Intn(3) == 0 {
			return special[random.Intn(len(special))]
		}
		return (random.Float64() - 0.4) * math.Pow(10, float64(random.Intn(13)-2))
	}
	sample := promql.Sample{Metric: metric, F: value()}
	if random.Intn(10) == 0 || name[0] == 'h' && name != "hour" {
		sample.H, _ = pair()
	}
	vectors := []promql.Vector{{sample}}
	args := parser.Expressions{&parser.VectorSelector{}}
	values := []any{}
	for range scalars {
		v := value()
		vectors = append(vectors, promql.Vector{promql.Sample{F: v}})
		args = append(args, &parser.NumberLiteral{Val: v})
		values = append(values, number(v))
	}
	out, _ := promql.FunctionCalls[name](vectors, nil, args, &promql.EvalNodeHelper{})
	if sample.H != nil {
		row(name, result(out), encode(sample.H), values)
	} else {
		row(name, result(out), number(sample.F), values)
	}
}
