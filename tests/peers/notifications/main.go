// Notifications says what Alertmanager's package makes of templates of notifications:
//
//	go run ./notifications <TABLE >NEW
//
// A line of the table has a text as JSON, and what becomes of it, which is written anew: `=` and
// the output as JSON, or `!` and the error as JSON. Lines that begin with `#` are kept. The
// functions below have what the templates see.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/alertmanager/types"
	"github.com/prometheus/common/model"
)

func alert(labels, annotations model.LabelSet, startsAt, endsAt time.Time) *types.Alert {
	return &types.Alert{Alert: model.Alert{
		Labels: labels, Annotations: annotations, StartsAt: startsAt, EndsAt: endsAt,
		GeneratorURL: "http://testhost:9090/graph?g0.expr=x&g0.tab=1",
	}}
}

func data(t *template.Template) *template.Data {
	start := time.Date(2020, 2, 29, 23, 59, 58, 500000000, time.UTC)
	end := time.Date(2020, 3, 1, 1, 2, 3, 0, time.UTC)
	alerts := []*types.Alert{
		alert(
			model.LabelSet{"alertname": "DiskFull", "job": "node", "instance": "a:9100", "severity": "page"},
			model.LabelSet{"summary": "\"a\" <is> full & more\nsecond\u2028line \u00e9\u0001", "runbook": "http://wiki/x"},
			start, time.Time{},
		),
		alert(
			model.LabelSet{"alertname": "DiskFull", "job": "node", "instance": "b:9100", "severity": "ticket"},
			model.LabelSet{"summary": "b is full", "runbook": "http://wiki/x"},
			start, end,
		),
		alert(
			model.LabelSet{"alertname": "DiskFull", "job": "node", "Zone": "eu", "instance": "c:9100"},
			model.LabelSet{"runbook": "http://wiki/x"},
			end, time.Time{},
		),
	}
	group := model.LabelSet{"job": "node", "alertname": "DiskFull"}
	return t.Data("phone", group, nil, "first notification", alerts...)
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

func main() {
	t, err := template.New()
	if err != nil {
		log.Fatal(err)
	}
	if t.ExternalURL, err = url.Parse("http://testhost:9093/path"); err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			fmt.Println(line)
			continue
		}
		var text string
		if err := json.Unmarshal([]byte(strings.Split(line, "\t")[0]), &text); err != nil {
			log.Fatalf("%s: %v", line, err)
		}
		output, err := t.ExecuteTextString(text, data(t))
		expected := "=" + quoted(output)
		if err != nil {
			expected = "!" + quoted(err.Error())
		}
		fmt.Printf("%s\t%s\n", quoted(text), expected)
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}
