// go-grafana asks a server what Grafana asks a data source of the type Prometheus, with Grafana's
// own backend library, and prints one line for each question: its name and the answer as JSON.
//
//	go-grafana URL FIRST_SECOND LAST_SECOND
//
// The times are those of the panels. Questions: "Save & test", those of the query editor, panels,
// exemplars and annotations.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/httpclient"
	"github.com/grafana/grafana-plugin-sdk-go/backend/log"
	"github.com/grafana/grafana-plugin-sdk-go/data"
	"github.com/grafana/grafana/pkg/promlib"
)

type client struct {
	service *promlib.Service
	plugin  backend.PluginContext
	window  backend.TimeRange
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: go-grafana URL FIRST_SECOND LAST_SECOND")
		os.Exit(2)
	}
	settings, _ := json.Marshal(map[string]string{"httpMethod": "POST", "timeInterval": "15s"})
	c := client{
		service: promlib.NewService(httpclient.NewProvider(), log.NewNullLogger(), nil),
		plugin: backend.PluginContext{OrgID: 1, DataSourceInstanceSettings: &backend.DataSourceInstanceSettings{
			ID: 1, UID: "store", Type: "prometheus", Name: "store", URL: os.Args[1], JSONData: settings,
		}},
		window: backend.TimeRange{From: second(os.Args[2]), To: second(os.Args[3])},
	}
	c.health()
	c.editor()
	c.panels()
}

func second(text string) time.Time {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return time.Unix(seconds, 0).UTC()
}

func line(name string, answer any, err error) {
	if err != nil {
		answer = map[string]string{"error": err.Error()}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		text = []byte(strconv.Quote(err.Error()))
	}
	fmt.Printf("%s\t%s\n", name, text)
}

// health is what the button "Save & test" does.
func (c *client) health() {
	result, err := c.service.CheckHealth(context.Background(), &backend.CheckHealthRequest{PluginContext: c.plugin})
	if err != nil {
		line("health", nil, err)
		return
	}
	line("health", []any{result.Status.String(), result.Message, json.RawMessage(result.JSONDetails)}, nil)
}

// editor asks what the query editor and the variables of a dashboard need.
func (c *client) editor() {
	from, to := strconv.FormatInt(c.window.From.Unix(), 10), strconv.FormatInt(c.window.To.Unix(), 10)
	times := url.Values{"start": {from}, "end": {to}}
	with := func(pairs ...string) url.Values {
		values := url.Values{}
		for name, value := range times {
			values[name] = value
		}
		for at := 0; at < len(pairs); at += 2 {
			values.Add(pairs[at], pairs[at+1])
		}
		return values
	}
	for _, question := range []struct {
		method, path string
		values       url.Values
	}{
		{http.MethodGet, "api/v1/metadata", url.Values{}},
		{http.MethodGet, "api/v1/rules", url.Values{}},
		{http.MethodPost, "api/v1/labels", times},
		{http.MethodPost, "api/v1/labels", with("match[]", `requests_total{code=~"5.."}`)},
		{http.MethodPost, "api/v1/labels", with("match[]", `{__name__="up"}`, "limit", "40000")},
		{http.MethodGet, "api/v1/label/__name__/values", with("limit", "40000")},
		{http.MethodGet, "api/v1/label/job/values", with("match[]", `up{instance=~".+"}`)},
		{http.MethodGet, "api/v1/label/U__dotted_2e_name/values", times},
		{http.MethodPost, "api/v1/series", with("match[]", `{job="web"}`, "limit", "40000")},
		{http.MethodPost, "api/v1/series", with("match[]", `{`)},
		{http.MethodGet, "api/v1/query_exemplars", url.Values{
			"query": {"test"}, "start": {from + "000"}, "end": {to + "000"},
		}},
	} {
		request := &backend.CallResourceRequest{
			PluginContext: c.plugin, Path: question.path, Method: question.method, URL: question.path,
		}
		if question.method == http.MethodGet {
			request.URL += "?" + question.values.Encode()
		} else {
			request.Body = []byte(question.values.Encode())
			request.Headers = map[string][]string{"Content-Type": {"application/x-www-form-urlencoded"}}
		}
		name := question.method + " " + question.path + "?" + strings.ReplaceAll(strings.ReplaceAll(question.values.Encode(), from, "FROM"), to, "TO")
		var status int
		var body []byte
		sender := backend.CallResourceResponseSenderFunc(func(response *backend.CallResourceResponse) error {
			status, body = response.Status, append(body, response.Body...)
			return nil
		})
		err := c.service.CallResource(context.Background(), request, sender)
		var answer any
		if json.Unmarshal(body, &answer) != nil {
			answer = string(body)
		}
		line(name, []any{status, answer}, err)
	}
}

type panel struct {
	name  string
	model map[string]any
}

// panels asks what panels, exemplars and annotations show.
func (c *client) panels() {
	panels := []panel{
		{"scalar", map[string]any{"expr": "1 + 1", "instant": true}},
		{"instant", map[string]any{"expr": "sum by (job) (up)", "instant": true, "legendFormat": "{{job}}"}},
		{"table", map[string]any{"expr": "requests_total", "instant": true, "format": "table"}},
		{"range", map[string]any{"expr": "rate(requests_total[$__rate_interval])", "range": true}},
		{"both", map[string]any{"expr": "up", "range": true, "instant": true}},
		{"interval", map[string]any{"expr": "increase(requests_total[$__interval]) + $__range_s", "range": true}},
		{"quantile", map[string]any{"expr": "histogram_quantile(0.9, sum by (le) (rate(latency_seconds_bucket[1m])))", "range": true}},
		{"heatmap", map[string]any{"expr": "sum by (le) (increase(latency_seconds_bucket[1m]))", "range": true, "format": "heatmap"}},
		{"exemplars", map[string]any{"expr": "sum by (job) (rate(requests_total[1m])) / 2", "exemplar": true, "range": true}},
		{"annotation", map[string]any{"expr": "changes(up[2m]) > bool 0", "range": true, "interval": "60s"}},
		{"empty", map[string]any{"expr": "absent_metric", "range": true}},
		{"no expression", map[string]any{"expr": "sum(", "range": true}},
		{"not evaluable", map[string]any{"expr": "up * on(job) requests_total", "range": true}},
	}
	for _, panel := range panels {
		panel.model["refId"] = "A"
		model, _ := json.Marshal(panel.model)
		response, err := c.service.QueryData(context.Background(), &backend.QueryDataRequest{
			PluginContext: c.plugin,
			Queries: []backend.DataQuery{{
				RefID: "A", JSON: model, MaxDataPoints: 100, Interval: 15 * time.Second, TimeRange: c.window,
			}},
		})
		if err != nil {
			line("panel "+panel.name, nil, err)
			continue
		}
		answer := response.Responses["A"]
		frames := []string{}
		for _, frame := range answer.Frames {
			text, err := data.FrameToJSON(frame, data.IncludeAll)
			if err != nil {
				text = []byte(err.Error())
			}
			frames = append(frames, string(text))
		}
		// Series of an instant vector have no order.
		slices.Sort(frames)
		line("panel "+panel.name, []any{answer.Status, frames}, answer.Error)
	}
}
