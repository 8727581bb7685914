// Rules says what upstream's package makes of groups of rules whose queries a script answers:
//
//	go run -tags remove_all_sd ./rules <TABLE >NEW
//	go run -tags remove_all_sd ./rules -random 300 >NEW
//
// The first evaluates the scripts of a table anew, the second writes so many random scripts,
// evaluated.
//
// A script begins with a line `group`, and `reload` replaces the group by another that takes over
// its state:
//
//	group   for  keep_firing_for  limit  query_offset  labels
//
// Times are seconds. The group has a recording rule `r` with the label `x`, and an alerting rule
// `A` with an annotation and the labels that `newGroup` has for the word. Each `slot` has what the
// two queries answer, and then what is written anew: the last errors of the rules, the alerts with
// their times, and all samples of the slot:
//
//	slot    time  answer of r  answer of A  error of r  error of A  alerts  samples
//
// An answer has items `k=value` for series with the label `k`, or is `!`, an error. Times count
// from the beginning of the script, and `-` is nothing.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

const interval = 15

var (
	base       = time.Unix(1_700_000_000, 0).UTC()
	background = context.Background()
)

type world struct {
	db      *tsdb.DB
	dir     string
	options *rules.ManagerOptions
	group   *rules.Group
	answers map[string]string
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func newWorld() *world {
	dir, err := os.MkdirTemp("", "go-rules")
	check(err)
	db, err := tsdb.Open(dir, nil, nil, tsdb.DefaultOptions(), nil)
	check(err)
	w := &world{db: db, dir: dir}
	w.options = &rules.ManagerOptions{
		Appendable: db,
		Queryable:  db,
		Context:    background,
		QueryFunc:  w.query,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	}
	return w
}

func (w *world) close() {
	check(w.db.Close())
	check(os.RemoveAll(w.dir))
}

func (w *world) query(_ context.Context, expression string, at time.Time) (promql.Vector, error) {
	answer := w.answers[expression]
	if answer == "!" {
		return nil, errors.New("query failed")
	}
	var vector promql.Vector
	for _, item := range strings.Split(answer, ",") {
		name, text, ok := strings.Cut(item, "=")
		if !ok {
			continue
		}
		number, err := strconv.ParseFloat(text, 64)
		check(err)
		metric := labels.FromStrings("__name__", "m", "k", name)
		vector = append(vector, promql.Sample{Metric: metric, T: at.UnixMilli(), F: number})
	}
	return vector, nil
}

func seconds(text string) time.Duration {
	number, err := strconv.Atoi(text)
	check(err)
	return time.Duration(number) * time.Second
}

func (w *world) newGroup(fields []string) *rules.Group {
	parse := func(text string) parser.Expr {
		expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		check(err)
		return expression
	}
	own := map[string]labels.Labels{
		"plain": labels.FromStrings("team", "x"),
		"templates": labels.FromStrings(
			"size", "{{ if gt $value 5.0 }}high{{ else }}low{{ end }}",
			"rare", "{{ if gt $value 8.0 }}yes{{ end }}",
		),
		"empty": labels.FromStrings("k", ""),
	}[fields[5]]
	annotations := labels.FromStrings("v", "{{ $value }} of {{ $labels.k }}")
	recording := rules.NewRecordingRule("r", parse("r_query"), labels.FromStrings("x", "1"))
	alerting := rules.NewAlertingRule(
		"A", parse("a_query"), seconds(fields[1]), seconds(fields[2]),
		own, annotations, labels.EmptyLabels(), "", true, nil,
	)
	limit, err := strconv.Atoi(fields[3])
	check(err)
	offset := seconds(fields[4])
	return rules.NewGroup(rules.GroupOptions{
		Name: "g", File: "f", Interval: interval * time.Second, Limit: limit,
		Rules: []rules.Rule{recording, alerting}, Opts: w.options, QueryOffset: &offset,
	})
}

func since(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return strconv.FormatInt(at.Unix()-base.Unix(), 10)
}

func message(err error) string {
	switch {
	case err == nil:
		return "-"
	case errors.Is(err, storage.ErrDuplicateSampleForTimestamp):
		return "duplicate sample for timestamp"
	}
	return err.Error()
}

func list(items []string) string {
	if len(items) == 0 {
		return "-"
	}
	sort.Strings(items)
	return strings.Join(items, " ")
}

// name writes labels without quotes, after the name of the metric. No text of a script has a comma.
func name(set labels.Labels) string {
	items := []string{set.Get("__name__")}
	set.Range(func(l labels.Label) {
		if l.Name != "__name__" && l.Name != "alertname" {
			items = append(items, l.Name+"="+strings.ReplaceAll(l.Value, " ", "_"))
		}
	})
	return strings.Join(items, ",")
}

func (w *world) alerts() string {
	var items []string
	w.group.Rules()[1].(*rules.AlertingRule).ForEachActiveAlert(func(a *rules.Alert) {
		items = append(items, strings.Join([]string{
			name(a.Labels), a.State.String(), since(a.ActiveAt), since(a.FiredAt),
			since(a.KeepFiringSince), since(a.ResolvedAt), fmt.Sprint(a.Value), name(a.Annotations),
		}, "|"))
	})
	return list(items)
}

func (w *world) samples(at time.Time) string {
	querier, err := w.db.Querier(at.UnixMilli(), at.UnixMilli())
	check(err)
	defer querier.Close()
	everything := labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+")
	set := querier.Select(background, true, nil, everything)
	var items []string
	for set.Next() {
		iterator := set.At().Iterator(nil)
		for iterator.Next() == chunkenc.ValFloat {
			_, number := iterator.At()
			text := fmt.Sprint(number)
			switch metric := set.At().Labels().Get("__name__"); {
			case value.IsStaleNaN(number):
				text = "stale"
			case metric == "ALERTS_FOR_STATE":
				text = strconv.FormatInt(int64(math.Round(number))-base.Unix(), 10)
			}
			items = append(items, name(set.At().Labels())+"|"+text)
		}
	}
	check(set.Err())
	return list(items)
}

func (w *world) run(line string) string {
	fields := strings.Split(line, "\t")
	switch fields[0] {
	case "group":
		w.group = w.newGroup(fields)
		return line
	case "reload":
		group := w.newGroup(fields)
		group.CopyState(w.group)
		w.group = group
		return line
	case "slot":
		slot := base.Add(seconds(fields[1]))
		w.answers = map[string]string{"r_query": fields[2], "a_query": fields[3]}
		w.group.Eval(background, slot)
		return strings.Join(append(
			fields[:4:4],
			message(w.group.Rules()[0].LastError()), message(w.group.Rules()[1].LastError()),
			w.alerts(), w.samples(slot.Add(-w.group.QueryOffset())),
		), "\t")
	}
	log.Fatalf("no such line: %s", line)
	return ""
}

func pick(random *rand.Rand, items ...int) int {
	return items[random.Intn(len(items))]
}

func answer(random *rand.Rand, present *[3]bool) string {
	if random.Intn(25) == 0 {
		return "!"
	}
	var items []string
	for i := range present {
		if random.Intn(4) == 0 {
			present[i] = !present[i]
		}
		if present[i] {
			items = append(items, fmt.Sprintf("%c=%d", 'a'+i, random.Intn(10)))
		}
	}
	if len(items) > 0 && random.Intn(30) == 0 {
		items = append(items, items[0])
	}
	if len(items) == 0 {
		return "-"
	}
	return strings.Join(items, ",")
}

// script writes a random script. Slots lie up to 5 intervals apart, and rarely on each other.
func script(random *rand.Rand) []string {
	offset := pick(random, 0, 0, 30)
	own := []string{"plain", "plain", "plain", "templates", "templates", "empty"}[random.Intn(6)]
	group := func(word string) string {
		limit := pick(random, 0, 0, 0, 1, 2)
		return fmt.Sprintf(
			"%s\t%d\t%d\t%d\t%d\t%s", word, pick(random, 0, 15, 30, 60, 100),
			pick(random, 0, 0, 20, 45, 60), limit, offset, own,
		)
	}
	lines := []string{group("group")}
	var recorded, alerted [3]bool
	steps := []int{1, 1, 1, 1, 1, 2, 3, 5}
	at := 0
	for range 14 {
		if random.Intn(12) == 0 {
			lines = append(lines, group("reload"))
		}
		lines = append(lines, fmt.Sprintf(
			"slot\t%d\t%s\t%s", at, answer(random, &recorded), answer(random, &alerted),
		))
		if random.Intn(20) != 0 {
			at += interval * pick(random, steps...)
		}
	}
	// Resolved alerts are kept for 15 minutes, in steps that are none of a clock that was set.
	if random.Intn(4) == 0 {
		for range 15 {
			lines = append(lines, fmt.Sprintf("slot\t%d\t-\t-", at))
			at += 5 * interval
		}
	}
	return lines
}

func main() {
	var lines []string
	if len(os.Args) == 3 && os.Args[1] == "-random" {
		count, err := strconv.Atoi(os.Args[2])
		check(err)
		random := rand.New(rand.NewSource(1))
		for range count {
			lines = append(lines, script(random)...)
		}
	} else {
		input := bufio.NewScanner(os.Stdin)
		input.Buffer(nil, 1<<20)
		for input.Scan() {
			lines = append(lines, input.Text())
		}
		check(input.Err())
	}
	var w *world
	for _, line := range lines {
		if line == "" || strings.HasPrefix(line, "#") {
			fmt.Println(line)
			continue
		}
		if strings.HasPrefix(line, "group\t") {
			if w != nil {
				w.close()
			}
			w = newWorld()
		}
		fmt.Println(w.run(line))
	}
	if w != nil {
		w.close()
	}
}
