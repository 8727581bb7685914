package promqlscripts

import (
	"fmt"
	"io"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"
	"google.golang.org/protobuf/encoding/protowire"
)

// Answers come as the message tidepool.QueryResponse of proto/tidepool/query.proto.
const mediaType = "application/vnd.tidepool.queryresponse+protobuf"

// Values of tidepool.ResultType.
const (
	scalar = 1 + iota
	text
	vector
	matrix
)

type answer struct {
	kind        uint64
	text        string
	series      []prompb.TimeSeries
	annotations annotations.Annotations
}

// note is a warning or an info as the server words it.
type note struct {
	text string
	kind error
}

func (n note) Error() string { return n.text }
func (n note) Unwrap() error { return n.kind }

func decode(body []byte) (*promql.Result, error) {
	var a answer
	for len(body) > 0 {
		number, kind, length := protowire.ConsumeTag(body)
		if length < 0 {
			return nil, protowire.ParseError(length)
		}
		body = body[length:]
		length = protowire.ConsumeFieldValue(number, kind, body)
		if length < 0 {
			return nil, protowire.ParseError(length)
		}
		if err := a.field(number, body[:length]); err != nil {
			return nil, err
		}
		body = body[length:]
	}
	value, err := a.value()
	return &promql.Result{Value: value, Warnings: a.annotations}, err
}

func (a *answer) field(number protowire.Number, value []byte) error {
	if number == 2 {
		a.kind, _ = protowire.ConsumeVarint(value)
		return nil
	}
	bytes, length := protowire.ConsumeBytes(value)
	if length < 0 {
		return io.ErrUnexpectedEOF
	}
	switch number {
	case 1:
		var series prompb.TimeSeries
		if err := series.Unmarshal(bytes); err != nil {
			return err
		}
		a.series = append(a.series, series)
	case 3:
		a.text = string(bytes)
	case 4:
		a.annotations.Add(note{string(bytes), annotations.PromQLWarning})
	case 5:
		a.annotations.Add(note{string(bytes), annotations.PromQLInfo})
	}
	return nil
}

func (a *answer) value() (parser.Value, error) {
	switch a.kind {
	case scalar:
		if len(a.series) != 1 || len(a.series[0].Samples) != 1 {
			return nil, fmt.Errorf("a scalar of %d series", len(a.series))
		}
		sample := a.series[0].Samples[0]
		return promql.Scalar{T: sample.Timestamp, V: sample.Value}, nil
	case text:
		return promql.String{V: a.text}, nil
	case vector:
		found := promql.Vector{}
		for _, series := range points(a.series) {
			sample := promql.Sample{Metric: series.Metric, DropName: series.DropName}
			switch {
			case len(series.Floats) == 1 && len(series.Histograms) == 0:
				sample.T, sample.F = series.Floats[0].T, series.Floats[0].F
			case len(series.Floats) == 0 && len(series.Histograms) == 1:
				sample.T, sample.H = series.Histograms[0].T, series.Histograms[0].H
			default:
				return nil, fmt.Errorf("%s has not one point", series.Metric)
			}
			found = append(found, sample)
		}
		return found, nil
	case matrix:
		return promql.Matrix(points(a.series)), nil
	}
	return nil, fmt.Errorf("an answer of type %d", a.kind)
}

func points(series []prompb.TimeSeries) []promql.Series {
	all := []promql.Series{}
	for _, from := range series {
		builder := labels.NewScratchBuilder(len(from.Labels))
		for _, label := range from.Labels {
			builder.Add(label.Name, label.Value)
		}
		to := promql.Series{Metric: builder.Labels()}
		for _, sample := range from.Samples {
			to.Floats = append(to.Floats, promql.FPoint{T: sample.Timestamp, F: sample.Value})
		}
		for _, h := range from.Histograms {
			to.Histograms = append(to.Histograms, promql.HPoint{T: h.Timestamp, H: h.ToFloatHistogram()})
		}
		all = append(all, to)
	}
	return all
}
