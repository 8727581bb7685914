package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// sample is a float or a histogram at a time.
type sample struct {
	t int64
	f float64
	h *histogram.FloatHistogram
}

func (s sample) T() int64                      { return s.t }
func (sample) ST() int64                       { return 0 }
func (s sample) F() float64                    { return s.f }
func (sample) H() *histogram.Histogram         { return nil }
func (s sample) FH() *histogram.FloatHistogram { return s.h }
func (s sample) Copy() chunks.Sample           { return s }
func (s sample) Type() chunkenc.ValueType {
	if s.h != nil {
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

// series is what the engine reads.
type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

type memory []series

func (m memory) Querier(_, _ int64) (storage.Querier, error) { return m, nil }
func (memory) Close() error                                  { return nil }

func (memory) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (memory) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (m memory) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range m {
		fits := true
		for _, matcher := range matchers {
			fits = fits && matcher.Matches(s.labels.Get(matcher.Name))
		}
		if fits {
			// The engine may write into histograms that it was given.
			copied := make([]chunks.Sample, len(s.samples))
			for i, one := range s.samples {
				copied[i] = one
				if h := one.FH(); h != nil {
					copied[i] = sample{t: one.T(), h: h.Copy()}
				}
			}
			found = append(found, storage.NewListSeries(s.labels, copied))
		}
	}
	return &set{rest: found}
}

// set returns series in their order.
type set struct {
	rest    []storage.Series
	current storage.Series
}

func (s *set) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.current, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *set) At() storage.Series              { return s.current }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }

// evaluations prints series, and what random expressions give on them.
func evaluations(stores, cases int, expression func() string) {
	for range stores {
		data := store()
		list := []any{}
		for _, s := range data {
			samples := []any{}
			for _, one := range s.samples {
				if h := one.FH(); h != nil {
					samples = append(samples, []any{one.T(), encode(h)})
				} else if value.IsStaleNaN(one.F()) {
					samples = append(samples, []any{one.T(), "stale"})
				} else {
					samples = append(samples, []any{one.T(), number(one.F())})
				}
			}
			list = append(list, []any{s.labels.Map(), samples})
		}
		fmt.Printf("store\t%s\n", line(list))
		for done := 0; done < cases; {
			text := expression()
			if _, err := parsing.ParseExpr(text); err != nil {
				continue
			}
			if evaluate(data, text) {
				done++
			}
		}
	}
}

func line(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

var parsing = parser.NewParser(parser.Options{EnableExperimentalFunctions: true})

// evaluate prints what an expression gives, unless that depends on the order of Go's maps.
func evaluate(data memory, text string) bool {
	delayed := random.Intn(4) == 0
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 },
		EnableDelayedNameRemoval: delayed,
		Parser:                   parsing,
	})
	start := int64(random.Intn(40)) * 30_000
	end, step := start, int64(0)
	run := func() string {
		return outcome(data, engine, text, start, end, step)
	}
	if random.Intn(3) > 0 {
		step = int64(1+random.Intn(6)) * 20_000
		end = start + step*int64(random.Intn(20))
	}
	first := run()
	for range 4 {
		if run() != first {
			return false
		}
	}
	fmt.Printf("query\t%s\t%s\t%s\n", line(text), line([]any{start, end, step, delayed}), first)
	return true
}

// outcome is failure, series, warnings and infos.
func outcome(data memory, engine *promql.Engine, text string, start, end, step int64) string {
	var query promql.Query
	var err error
	if step == 0 {
		query, err = engine.NewInstantQuery(context.Background(), data, nil, text, time.UnixMilli(start))
	} else {
		query, err = engine.NewRangeQuery(context.Background(), data, nil, text,
			time.UnixMilli(start), time.UnixMilli(end), time.Duration(step)*time.Millisecond)
	}
	if err != nil {
		panic(text + ": " + err.Error())
	}
	result := query.Exec(context.Background())
	warnings, infos := result.Warnings.AsStrings(text, 0, 0)
	answer := []any{}
	failure := ""
	if result.Err != nil {
		failure = result.Err.Error()
	}
	one := func(metric labels.Labels, samples []any) {
		answer = append(answer, []any{metric.Map(), samples})
	}
	switch v := result.Value.(type) {
	case promql.Matrix:
		for _, s := range v {
			samples := []any{}
			for _, p := range s.Floats {
				samples = append(samples, []any{p.T, number(p.F)})
			}
			for _, p := range s.Histograms {
				samples = append(samples, []any{p.T, encode(p.H)})
			}
			one(s.Metric, samples)
		}
	case promql.Vector:
		for _, s := range v {
			if s.H != nil {
				one(s.Metric, []any{[]any{s.T, encode(s.H)}})
			} else {
				one(s.Metric, []any{[]any{s.T, number(s.F)}})
			}
		}
	case promql.Scalar:
		one(labels.EmptyLabels(), []any{[]any{v.T, number(v.V)}})
	}
	if warnings == nil {
		warnings = []string{}
	}
	if infos == nil {
		infos = []string{}
	}
	sort.Slice(answer, func(i, j int) bool { return line(answer[i]) < line(answer[j]) })
	return line(failure) + "\t" + line(answer) + "\t" + line(warnings) + "\t" + line(infos)
}

// store makes an hour of series, with gaps, stale markers and resets.
func store() memory {
	var out memory
	gappy := func(gap int, f func(i int) (float64, *histogram.FloatHistogram)) []chunks.Sample {
		var samples []chunks.Sample
		offset := int64(random.Intn(30_000))
		silent := 0
		for i := range 80 {
			t := offset + int64(i)*30_000 + int64(random.Intn(400))
			v, h := f(i)
			if silent > 0 {
				silent--
				continue
			}
			switch random.Intn(gap) {
			case 0:
				silent = random.Intn(20)
			case 1:
				silent = random.Intn(20)
				samples = append(samples, sample{t: t, f: math.Float64frombits(value.StaleNaN)})
				continue
			}
			if h != nil {
				samples = append(samples, sample{t: t, h: h})
			} else {
				samples = append(samples, sample{t: t, f: v})
			}
		}
		return samples
	}
	add := func(samples []chunks.Sample, pairs ...string) {
		out = append(out, series{labels.FromStrings(pairs...), samples})
	}
	for _, job := range []string{"a", "b"} {
		for _, instance := range []string{"0", "1", "2"} {
			counter := func(scale float64) func(int) (float64, *histogram.FloatHistogram) {
				total := 0.0
				return func(int) (float64, *histogram.FloatHistogram) {
					total += float64(random.Intn(10)) * scale
					if random.Intn(25) == 0 {
						total = 0
					}
					return total, nil
				}
			}
			gauge := func(int) (float64, *histogram.FloatHistogram) {
				switch random.Intn(60) {
				case 0:
					return math.NaN(), nil
				case 1:
					return math.Inf(1), nil
				}
				return math.Round(random.NormFloat64()*100) / 4, nil
			}
			if random.Intn(8) > 0 {
				add(gappy(30, counter(1)), "__name__", "c_total", "instance", instance, "job", job)
			}
			if random.Intn(8) > 0 {
				add(gappy(30, counter(0.1)), "__name__", "d_total", "instance", instance, "job", job)
			}
			for _, zone := range []string{"x", "y"} {
				if random.Intn(4) > 0 {
					add(gappy(20, gauge), "__name__", "g", "instance", instance, "job", job, "zone", zone)
				}
			}
			add(gappy(20, gauge), "__name__", "k", "instance", instance, "job", job)
			totals := counter(1)
			first := exponential()
			first.CounterResetHint = histogram.UnknownCounterReset
			sum := first
			add(gappy(40, func(int) (float64, *histogram.FloatHistogram) {
				f, _ := totals(0)
				if instance == "2" && random.Intn(6) == 0 {
					return f, nil
				}
				if random.Intn(20) == 0 {
					sum = first
				}
				next, _, _, err := sum.Copy().Add(first)
				if err == nil {
					sum = next
				}
				return 0, sum.Copy()
			}), "__name__", "h", "instance", instance, "job", job)
			total := make([]float64, 4)
			buckets := make([][]chunks.Sample, 4)
			for i := range 80 {
				sum := 0.0
				for b := range buckets {
					total[b] += float64(random.Intn(3))
					sum += total[b]
					if random.Intn(100) == 0 {
						sum -= 2
					}
					buckets[b] = append(buckets[b], sample{t: int64(i)*30_000 + 7, f: sum})
				}
			}
			for b, le := range []string{"0.1", "1", "10", "+Inf"} {
				add(buckets[b], "__name__", "b_bucket", "instance", instance, "job", job, "le", le)
			}
			versions := 1 + random.Intn(2)
			for version := range versions {
				var samples []chunks.Sample
				for i := version * 40; i < (version+1)*80/versions && i < 80; i++ {
					samples = append(samples, sample{t: int64(i)*30_000 + int64(version), f: 1})
				}
				add(samples, "__name__", "target_info", "instance", instance, "job", job,
					"version", fmt.Sprint(version))
			}
		}
	}
	// In the order of labels, as storage returns them.
	for i := range out {
		for j := i; j > 0 && labels.Compare(out[j].labels, out[j-1].labels) < 0; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

func pick(choices ...string) string { return choices[random.Intn(len(choices))] }

func modifiers() string {
	text := ""
	switch random.Intn(8) {
	case 0:
		text += pick(" offset 1m", " offset -90s", " offset 7m")
	case 1:
		// Upstream takes a wrong time for "@" within a subquery that begins when the query does.
		text += pick(" @ 600", " @ start()", " @ end()")
	}
	return text
}

func selector(names ...string) string {
	name := pick(names...)
	switch random.Intn(8) {
	case 0:
		name += `{job="a"}`
	case 1:
		name += `{instance=~"0|1"}`
	case 2:
		name += `{job!="b",instance!~"2"}`
	case 3:
		if name != "h" {
			name = `{__name__=~"` + name + `|k"}`
		}
	}
	return name
}

func window(depth int, names ...string) string {
	if depth > 0 && random.Intn(4) == 0 {
		return vectorIn(depth-1) + "[" + pick("5m", "10m", "3m") + ":" + pick("", "1m", "50s") + "]" + modifiers()
	}
	return selector(names...) + "[" + pick("1m", "2m", "5m", "10m") + "]" + modifiers()
}

func vectorIn(depth int) string { return "(" + vector(depth) + ")" }

// joined is an operator on two vectors that have most of their selectors in common.
func joined() string {
	name := pick("c_total", "k", "g", "h", "b_bucket")
	if random.Intn(6) > 0 {
		return operator(name, 3)
	}
	return operator(name, 1) + " / (" + operator(name, 1) + " + " + pick("c_total", "k") + ")"
}

// operator is an operator on two vectors of one name.
func operator(name string, depth int) string {
	op := pick("+", "-", "*", "/", "==", "> bool", "<=", "!=", "and", "unless", "or")
	if random.Intn(12) == 0 {
		op += pick(" on(instance, job)", " ignoring(zone)", " ignoring(le)")
	}
	return "(" + operand(name, depth-1) + ") " + op + " (" + operand(name, depth-1) + ")"
}

func operand(name string, depth int) string {
	switch {
	case random.Intn(3) == 0:
		return name + modifiers()
	case depth == 0:
		return pick("rate", "delta", "max_over_time", "changes") + "(" + name + "[" + pick("1m", "5m") + "]" + modifiers() + ")"
	}
	inner := operator(name, depth)
	switch random.Intn(6) {
	case 0:
		return pick("abs", "-", "timestamp", "sgn") + "(" + inner + ")"
	case 1:
		return "(" + inner + ") * " + scalar(1)
	case 2:
		return "max_over_time((" + inner + ")[" + pick("3m", "5m") + ":" + pick("1m", "50s") + "])"
	case 3:
		return pick("sum", "max") + grouping() + "(" + inner + ")"
	}
	return inner
}

var all = []string{"c_total", "d_total", "g", "k", "h", "b_bucket"}

func scalar(depth int) string {
	switch random.Intn(6) {
	case 0:
		return "time()"
	case 1:
		if depth > 0 {
			return "scalar(" + vector(depth-1) + ")"
		}
	case 2:
		if depth > 0 {
			return "(" + scalar(depth-1) + pick(" + ", " * ", " > bool ") + scalar(depth-1) + ")"
		}
	}
	return pick("0", "1", "2", "0.5", "-3", "10", "NaN", "100")
}

func grouping() string {
	return pick("", "", " by (job) ", " by (instance, job) ", " without (instance) ", " by (zone) ",
		" without (zone, job) ", " by (__name__) ", " by (le, job) ", " without (le) ")
}

func vector(depth int) string {
	if depth == 0 {
		return selector(all...) + modifiers()
	}
	switch random.Intn(22) {
	case 0, 1:
		return selector(all...) + modifiers()
	case 2, 3, 4:
		return pick("rate", "increase", "delta", "irate", "idelta", "resets", "changes", "deriv") + "(" + window(depth, all...) + ")"
	case 5, 6:
		return pick("sum", "avg", "min", "max", "count", "last", "stddev", "stdvar", "present", "first", "mad", "absent") + "_over_time(" + window(depth, all...) + ")"
	case 7:
		return pick("quantile_over_time("+scalar(depth-1)+", ", "predict_linear(", "double_exponential_smoothing(") + window(depth, all...) + ")"
	case 8, 9, 10:
		return pick("sum", "avg", "min", "max", "count", "group", "stddev", "stdvar") + grouping() + "(" + vector(depth-1) + ")"
	case 11:
		return pick("topk", "bottomk", "quantile", "limitk") + grouping() + "(" + scalar(0) + ", " + vector(depth-1) + ")"
	case 12:
		return `count_values` + grouping() + `("v", ` + vector(depth-1) + ")"
	case 13, 14:
		op := pick("+", "-", "*", "/", "%", "^", "atan2", "==", "!=", ">", "<=", "== bool", "< bool", "and", "or", "unless")
		match := pick("", "", "", " on(instance, job)", " ignoring(zone)", " on(job)", " ignoring(le)", " on(instance, job, zone)")
		if match != "" && op != "and" && op != "or" && op != "unless" {
			match += pick("", "", " group_left", " group_right", " group_left(version)", " group_right(zone)")
		}
		return vectorIn(depth-1) + " " + op + match + " " + vectorIn(depth-1)
	case 15, 16:
		op := pick("+", "-", "*", "/", "%", "==", "!=", ">", "<=", "== bool", ">= bool")
		if random.Intn(3) == 0 {
			return scalar(depth-1) + " " + op + " " + vectorIn(depth-1)
		}
		return vectorIn(depth-1) + " " + op + " " + scalar(depth-1)
	case 17:
		return pick("abs", "ceil", "-", "sgn", "ln", "hour", "timestamp", "absent", "histogram_count", "histogram_sum", "histogram_avg", "histogram_stddev", "day_of_week", "sqrt", "sort", "sort_desc") + vectorIn(depth-1)
	case 18:
		return pick("clamp_max("+vector(depth-1)+", "+scalar(depth-1)+")", "round("+vector(depth-1)+", 5)",
			"clamp("+vector(depth-1)+", -1, "+scalar(depth-1)+")", "vector("+scalar(depth-1)+")", "sort_by_label("+vector(depth-1)+`, "instance")`)
	case 19:
		return pick(`label_replace(`+vector(depth-1)+`, "`+pick("job", "x", "__name__", "instance")+`", "`+pick("$1", "n_$1", "")+`", "`+pick("instance", "job", "__name__")+`", "`+pick("(.*)", "(.).*", "a|0")+`")`,
			`label_join(`+vector(depth-1)+`, "`+pick("job", "x")+`", "-", "instance", "job")`)
	case 20:
		return pick("histogram_quantile("+scalar(depth-1)+", ", "histogram_fraction(0, "+scalar(depth-1)+", ") +
			pick("sum by (le, job) (rate(b_bucket[5m]))", "rate(b_bucket[2m])", "b_bucket", "rate(h[5m])", vector(depth-1)) + ")"
	default:
		return "info(" + vector(depth-1) + pick("", "", `, {version=~".+"}`, `, {version=~".*"}`) + ")"
	}
}
