// Templates says what upstream's package makes of templates of alerts:
//
//	go run -tags remove_all_sd ./templates <TABLE >NEW
//
// A line of the table has the value of the alert, a text as JSON, and what becomes of it, which is
// written anew: `=` and the output as JSON, or `!` and the error as JSON. The value is a float or
// `histogram`. Lines that begin with `#` are kept. The functions below have what else a template
// sees.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
)

const (
	externalURL = "http://testhost:9090/path/prefix"
	now         = model.Time(1353755652000)
	prelude     = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
)

var alertLabels = map[string]string{
	"alertname": "Test", "instance": "web-1.example.com:9100", "job": "node", "device": "/dev/sda1",
	"quoted": "a \"b\" <c> & 'd'", "unicode": "h\u00e9llo w\u00f6rld", "number": "0.25", "blank": "",
}

func sample(text string) promql.Sample {
	if text == "histogram" {
		return promql.Sample{H: &histogram.FloatHistogram{Count: 3, Sum: 10}}
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		log.Fatal(err)
	}
	return promql.Sample{F: value}
}

func query(_ context.Context, expression string, _ time.Time) (promql.Vector, error) {
	switch expression {
	case "none":
		return promql.Vector{}, nil
	case "one":
		return promql.Vector{{F: 1.5}}, nil
	case "histogram":
		return promql.Vector{sample("histogram")}, nil
	case "up":
		return promql.Vector{
			{Metric: labels.FromStrings("__name__", "up", "instance", "b", "__value__", "text"), F: 21},
			{Metric: labels.FromStrings("__name__", "up", "instance", "a"), F: 1e7},
			{Metric: labels.FromStrings("__name__", "up", "job", "x"), F: 0},
		}, nil
	}
	return nil, errors.New("no such query")
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

func expanded(value, text string) string {
	external, err := url.Parse(externalURL)
	if err != nil {
		log.Fatal(err)
	}
	data := template.AlertTemplateData(alertLabels, map[string]string{"region": "eu"}, externalURL, sample(value))
	expander := template.NewTemplateExpander(context.Background(), prelude+text, "__alert_Test", data, now, query, external, nil)
	output, err := expander.Expand()
	if err != nil {
		return "!" + quoted(err.Error())
	}
	return "=" + quoted(output)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			fmt.Println(line)
			continue
		}
		fields := strings.Split(line, "\t")
		var text string
		if err := json.Unmarshal([]byte(fields[1]), &text); err != nil {
			log.Fatalf("%s: %v", line, err)
		}
		fmt.Printf("%s\t%s\t%s\n", fields[0], quoted(text), expanded(fields[0], text))
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}
