// Relabel makes rules and label sets at random, and says what upstream's own relabeling makes of
// them:
//
//	go-relabel SEED COUNT
//
// The text of the rules is JSON, which is YAML.
// Each line of the output is a JSON object: `rules`, a text as in `write_relabel_configs`; `error`,
// why upstream refuses them, empty if it does not; and `cases`, each with `labels` and what becomes
// of them, `result`, which is null if the set is dropped or has no labels left.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v2"
)

const (
	casesPerRules = 8
	named         = "(?P<n>"
)

type output struct {
	Rules string `json:"rules"`
	Error string `json:"error"`
	Cases []one  `json:"cases"`
}

type one struct {
	Labels map[string]string  `json:"labels"`
	Result *map[string]string `json:"result"`
}

var (
	names  = []string{"__name__", "a", "b", "ab", "a1", "job", "pod_uid", "é", "a.b"}
	values = []string{
		"foo", "FOO", "bar9", "a", "b", "ab", "aab", "a;b", "x\ny", "10.0.0.1:9100", "_", " ", "7", "$1",
		// What changes its length, or has rules of its own, from one case to the other.
		"straße", "ΣΑΣ", "İI", "ᾳᾼ", "ǆǅ", "ŉ", "ﬁ",
		// Digits and letters that are none in RE2's classes.
		"٣", "éa", "\u00a0",
	}
	actions = []string{
		"replace", "replace", "replace", "keep", "drop", "keepequal", "dropequal", "hashmod", "labelmap",
		"labelmap", "labeldrop", "labelkeep", "lowercase", "uppercase", "Replace", "filter",
	}
	templates = []string{
		"$1", "${1}", "$1-$2", "$$1", "${1}x", "$1x", "$n", "${n}_", "$", "a$", "${", "${}", "${1", "$(1)",
		"a", "x", "b$1", "${01}", "$0", "$1é", "é", "", "$99", "${a b}", "$-", "{1}", "job",
	}
	atoms = []string{
		"a", "b", "o", "f", "x", "_", ";", ".", "é", "[a-c]", "[^a]", "[[:alpha:]]", `\d`, `\w`, `\s`, `\D`,
		`\W`, `[\d_]`, `[^\w]`, `\.`, `\pL`, "(?i:FOO)", "^", "$", `\b`, "9", ":", "[0-9a-z]", `\S`,
	}
	repeats = []string{"", "", "", "*", "+", "?", "{2}", "{1,3}", "*?", "+?"}
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: go-relabel SEED COUNT")
	}
	seed, err := strconv.ParseUint(os.Args[1], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	for range count {
		if err := encoder.Encode(made(random)); err != nil {
			log.Fatal(err)
		}
	}
}

func made(random *rand.Rand) output {
	rules := make([]string, 1+random.IntN(3))
	for i := range rules {
		rules[i] = rule(random)
	}
	out := output{Rules: "[" + strings.Join(rules, ", ") + "]", Cases: []one{}}
	configs, err := read(out.Rules)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	for range casesPerRules {
		set := map[string]string{}
		for range random.IntN(5) {
			set[pick(random, names)] = pick(random, values)
		}
		out.Cases = append(out.Cases, one{Labels: set, Result: result(set, configs)})
	}
	return out
}

// read takes rules as a configuration file's are taken.
func read(text string) ([]*relabel.Config, error) {
	var configs []*relabel.Config
	if err := yaml.UnmarshalStrict([]byte(text), &configs); err != nil {
		return nil, err
	}
	for _, config := range configs {
		if err := config.Validate(model.UTF8Validation); err != nil {
			return nil, err
		}
	}
	return configs, nil
}

func result(set map[string]string, configs []*relabel.Config) *map[string]string {
	builder := labels.NewBuilder(labels.FromMap(set))
	for _, config := range configs {
		if !relabel.ProcessBuilder(builder, config) {
			return nil
		}
		// What has no name is no label anywhere else.
		builder.Del("")
	}
	made := builder.Labels().Map()
	if len(made) == 0 {
		return nil
	}
	return &made
}

// rule is a mapping with the parts that its action needs, and now and then others.
func rule(random *rand.Rand) string {
	action := pick(random, actions)
	var parts []string
	add := func(key string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			log.Fatal(err)
		}
		parts = append(parts, fmt.Sprintf("%q: %s", key, text))
	}
	by := func(usual bool) bool { return usual == (random.IntN(20) > 0) }
	low := strings.ToLower(action)
	byName := low == "labeldrop" || low == "labelkeep" || low == "labelmap"
	equal := low == "keepequal" || low == "dropequal"
	cased := low == "lowercase" || low == "uppercase"
	if low != "replace" || random.IntN(2) == 0 {
		add("action", action)
	}
	if by(!byName) {
		sources := make([]string, 1+random.IntN(2))
		for i := range sources {
			sources[i] = pick(random, names)
		}
		add("source_labels", sources)
	}
	if random.IntN(4) == 0 && by(!byName && !equal) {
		add("separator", pick(random, []string{";", "", "-", "é"}))
	}
	if !equal && by(!cased && low != "hashmod") {
		text := regex(random, 3)
		// Go lets several groups have one name.
		if before, after, found := strings.Cut(text, named); found {
			text = before + named + strings.ReplaceAll(after, named, "(")
		}
		add("regex", text)
	} else if equal && random.IntN(20) == 0 {
		add("regex", "a")
	}
	if by(low == "hashmod") {
		add("modulus", random.IntN(5))
	}
	if by(low != "keep" && low != "drop" && !byName) {
		if low == "replace" && random.IntN(2) == 0 {
			add("target_label", pick(random, templates))
		} else {
			add("target_label", pick(random, names))
		}
	}
	if by(low == "replace" || low == "labelmap") && random.IntN(8) > 0 {
		add("replacement", pick(random, templates))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func regex(random *rand.Rand, depth int) string {
	var out strings.Builder
	for range 1 + random.IntN(3) {
		switch {
		case depth > 0 && random.IntN(4) == 0:
			open := pick(random, []string{"(", "(", "(?:", named})
			out.WriteString(open + regex(random, depth-1) + ")" + pick(random, repeats))
		case depth > 0 && random.IntN(6) == 0:
			out.WriteString(regex(random, depth-1) + "|" + regex(random, depth-1))
		case random.IntN(3) == 0:
			out.WriteString("(.*)")
		default:
			atom := pick(random, atoms)
			out.WriteString(atom)
			if atom != "^" && atom != "$" && atom != `\b` {
				out.WriteString(pick(random, repeats))
			}
		}
	}
	return out.String()
}

func pick(random *rand.Rand, from []string) string {
	return from[random.IntN(len(from))]
}
