// expositioncases reads cases of bodies that targets expose, and writes them with what Prometheus'
// parsers give for them: the tables in host/exposition/tests/cases.
//
//	go run ./expositioncases < ../../host/exposition/tests/cases/text.jsonl > /tmp/text.jsonl
//
// With a folder, it makes cases of every text in the tests of upstream's parsers there
// (upstream.go).
//
// A case that has no `upstream` gets it, and one that has it gets a new one. What is refused when
// the labels of a sample are looked at, as a scrape does, is an error here.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// one case. Of text, body, or bytes where it is not UTF-8; of protobuf, families, of which the
// bytes are made.
type one struct {
	// Where the text stands in upstream's tests.
	Name   string   `json:"name,omitempty"`
	Format   string   `json:"format"`
	Body     string   `json:"body,omitempty"`
	Families []string `json:"families,omitempty"`
	Bytes    []byte   `json:"bytes,omitempty"`
	// Of histograms.
	IgnoresNative   bool `json:"ignores_native,omitempty"`
	KeepsClassic    bool `json:"keeps_classic,omitempty"`
	ConvertsClassic bool `json:"converts_classic,omitempty"`
	// What upstream gives, and what tidepool gives where that differs.
	Upstream []string `json:"upstream"`
	Ours     []string `json:"ours,omitempty"`
	Reason   string   `json:"reason,omitempty"`
}

var contentTypes = map[string]string{
	"prometheus":  "text/plain",
	"openmetrics": "application/openmetrics-text",
	"protobuf":    "application/vnd.google.protobuf",
}

func main() {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	if len(os.Args) > 1 {
		for _, c := range upstreamsCases(os.Args[1]) {
			c.Upstream = c.entries()
			if err := out.Encode(c); err != nil {
				log.Fatal(err)
			}
		}
		return
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c one
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			log.Fatalf("%v: %s", err, lines.Bytes())
		}
		if c.Families != nil {
			c.Bytes = encode(c.Families)
		}
		c.Upstream = c.entries()
		if err := out.Encode(c); err != nil {
			log.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

func encode(families []string) (body []byte) {
	for _, text := range families {
		var family dto.MetricFamily
		if err := prototext.Unmarshal([]byte(text), &family); err != nil {
			log.Fatalf("%v: %s", err, text)
		}
		message, err := proto.Marshal(&family)
		if err != nil {
			log.Fatal(err)
		}
		body = binary.AppendUvarint(body, uint64(len(message)))
		body = append(body, message...)
	}
	return body
}

func (c one) entries() (found []string) {
	defer func() {
		if recover() != nil {
			found = append(found, "panic")
		}
	}()
	body := c.Bytes
	if body == nil {
		body = []byte(c.Body)
	}
	p, err := textparse.New(append([]byte{}, body...), contentTypes[c.Format], labels.NewSymbolTable(), textparse.ParserOptions{
		IgnoreNativeHistograms:                  c.IgnoresNative,
		KeepClassicOnClassicAndNativeHistograms: c.KeepsClassic,
		ConvertClassicHistogramsToNHCB:          c.ConvertsClassic,
	})
	if err != nil {
		log.Fatal(err)
	}
	found = []string{}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			return append(found, "error")
		}
		switch entry {
		case textparse.EntryType:
			name, kind := p.Type()
			found = append(found, fmt.Sprintf("type %s %s", quoted(string(name)), kind))
		case textparse.EntryHelp:
			name, help := p.Help()
			found = append(found, fmt.Sprintf("help %s %s", quoted(string(name)), quoted(string(help))))
		case textparse.EntryUnit:
			name, unit := p.Unit()
			found = append(found, fmt.Sprintf("unit %s %s", quoted(string(name)), quoted(string(unit))))
		case textparse.EntryComment:
			found = append(found, "comment")
		case textparse.EntrySeries, textparse.EntryHistogram:
			sample, ok := sampleOf(p, entry, c.Format == "protobuf")
			found = append(found, sample)
			if !ok {
				return found
			}
		}
	}
}

func sampleOf(p textparse.Parser, entry textparse.Entry, hasStart bool) (string, bool) {
	var of labels.Labels
	p.Labels(&of)
	if _, repeated := of.HasDuplicateLabelNames(); repeated || !of.IsValid(model.UTF8Validation) || of.Get("__name__") == "" {
		return "error", false
	}
	var text string
	var time *int64
	if entry == textparse.EntrySeries {
		_, at, value := p.Series()
		text, time = fmt.Sprintf("sample %s %s", pairs(of), number(value)), at
	} else {
		_, at, whole, float := p.Histogram()
		text, time = fmt.Sprintf("histogram %s %s", pairs(of), histogramOf(whole, float)), at
	}
	if time != nil {
		text += fmt.Sprintf(" @%d", *time)
	}
	if hasStart {
		if start := p.StartTimestamp(); start != 0 {
			text += fmt.Sprintf(" created@%d", start)
		}
	}
	for {
		var e exemplar.Exemplar
		if !p.Exemplar(&e) {
			return text, true
		}
		text += fmt.Sprintf(" # %s %s", pairs(e.Labels), number(e.Value))
		if e.HasTs {
			text += fmt.Sprintf(" @%d", e.Ts)
		}
	}
}

func histogramOf(whole *histogram.Histogram, float *histogram.FloatHistogram) string {
	if whole != nil {
		deltas := func(from []int64) (list []string) {
			for _, delta := range from {
				list = append(list, strconv.FormatInt(delta, 10))
			}
			return list
		}
		return fmt.Sprintf("int%s schema %d zero %s %d count %d sum %s positive %s %v negative %s %v custom %v%s",
			hint(whole.CounterResetHint), whole.Schema, number(whole.ZeroThreshold), whole.ZeroCount, whole.Count, number(whole.Sum),
			spans(whole.PositiveSpans), deltas(whole.PositiveBuckets), spans(whole.NegativeSpans), deltas(whole.NegativeBuckets),
			numbers(whole.CustomValues), invalid(whole.Validate()))
	}
	return fmt.Sprintf("float%s schema %d zero %s %s count %s sum %s positive %s %v negative %s %v custom %v%s",
		hint(float.CounterResetHint), float.Schema, number(float.ZeroThreshold), number(float.ZeroCount), number(float.Count), number(float.Sum),
		spans(float.PositiveSpans), numbers(float.PositiveBuckets), spans(float.NegativeSpans), numbers(float.NegativeBuckets),
		numbers(float.CustomValues), invalid(float.Validate()))
}

func hint(hint histogram.CounterResetHint) string {
	if hint == histogram.GaugeType {
		return " gauge"
	}
	return ""
}

func invalid(err error) string {
	if err != nil {
		return " invalid"
	}
	return ""
}

func spans(spans []histogram.Span) string {
	list := []string{}
	for _, span := range spans {
		list = append(list, fmt.Sprintf("%d:%d", span.Offset, span.Length))
	}
	return fmt.Sprint(list)
}

func numbers(from []float64) (list []string) {
	for _, value := range from {
		list = append(list, number(value))
	}
	return list
}

// A number that is no integer is written by its bits.
func number(value float64) string {
	if value == math.Trunc(value) && math.Abs(value) < 1e15 {
		return strconv.FormatInt(int64(value), 10)
	}
	return fmt.Sprintf("%016x", math.Float64bits(value))
}

// Empty values are those of labels that are not there.
func pairs(of labels.Labels) string {
	list := []string{}
	of.Range(func(label labels.Label) {
		if label.Value != "" {
			list = append(list, quoted(label.Name)+":"+quoted(label.Value))
		}
	})
	return "{" + strings.Join(list, ",") + "}"
}

func quoted(text string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		log.Fatal(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
