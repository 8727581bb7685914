package promqlscripts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/stats"
)

// engine asks the server that the storage is.
type engine struct{}

func (engine) NewInstantQuery(_ context.Context, q storage.Queryable, _ promql.QueryOpts, expression string, at time.Time) (promql.Query, error) {
	return &query{q.(*server), expression, "query", url.Values{"time": {seconds(at)}}}, nil
}

func (engine) NewRangeQuery(_ context.Context, q storage.Queryable, _ promql.QueryOpts, expression string, start, end time.Time, step time.Duration) (promql.Query, error) {
	return &query{q.(*server), expression, "query_range", url.Values{
		"start": {seconds(start)}, "end": {seconds(end)},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}}, nil
}

func seconds(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64)
}

type query struct {
	server     *server
	expression string
	endpoint   string
	parameters url.Values
}

func (*query) Close()                      {}
func (*query) Cancel()                     {}
func (*query) Statement() parser.Statement { return nil }
func (*query) Stats() *stats.Statistics    { return nil }
func (q *query) String() string            { return q.expression }

func (q *query) Exec(ctx context.Context) *promql.Result {
	result, err := q.ask(ctx)
	if err != nil {
		return &promql.Result{Err: err}
	}
	return result
}

func (q *query) ask(ctx context.Context) (*promql.Result, error) {
	q.parameters.Set("query", q.expression)
	body := strings.NewReader(q.parameters.Encode())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, q.server.url+"/api/v1/"+q.endpoint, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", mediaType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		var envelope struct{ Error string }
		if err := json.Unmarshal(answer, &envelope); err != nil {
			return nil, fmt.Errorf("%s: %s", response.Status, answer)
		}
		// The harness' own engine does not know of parameters.
		return nil, errors.New(strings.TrimPrefix(envelope.Error, `invalid parameter "query": `))
	}
	return decode(answer)
}
