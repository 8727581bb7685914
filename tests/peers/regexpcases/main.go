// Regexpcases makes regular expressions and texts at random, and says what Go's package makes of
// them:
//
//	go-regexp SEED COUNT
//
// Each line of the output is a JSON object: `expression`; `error`, why Go refuses it, empty if it
// does not; and `cases`, each with a `text` in hexadecimal, since it may be no UTF-8, whether the
// expression matches `anywhere`, and, for UTF-8, the `groups` if it matches the whole text as
// matchers and rules do, where a dot matches a newline. The texts of groups are in hexadecimal,
// too, and those that took no part are null.
package main

import (
	"encoding/hex"
	"encoding/json"
	"log"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const textsPerExpression = 12

type output struct {
	Expression string `json:"expression"`
	Error      string `json:"error"`
	Cases      []one  `json:"cases"`
}

type one struct {
	Text     string     `json:"text"`
	Anywhere bool       `json:"anywhere"`
	Groups   *[]*string `json:"groups"`
}

var (
	// What people write, and what they write by mistake.
	fixed = []string{
		"/users/{id}.*", `\<none\>`, `{{ .Values.x }}`, "/api/{version}/{id:[0-9]+}", "a{,3}", "{", "}", "a{", "a{1", "a{1,",
		"a{,}", "a{1, 2}", "x{0}", "x{0,0}y", "(x{1000}){0}", "x{1001}", "(x{32}){32}", "(x{10}){100}", "((x{10}){10}){11}",
		"*", "a|*", "(*)", "^*", "$+", `\b?`, "a**", "a*+", "a+?+", "a??", "a???", "a{2}{3}", "a{2}*", "(?i)*", "a(?i)*", "(?:)*",
		"a)(b", "(", ")", "())", "[", "[]", "[^]", "[]a]", "[^]a]", "[a", "[a-", "[a-]", "[-a]", "[a-c-e]", "[z-a]", "[--a]",
		"[[:alpha:]]", "[[:^alpha:]]", "[[:none:]]", "[[:alpha]]", "[:alpha:]", "[[.a.]]", "[[=a=]]", "[a&&b]", "[a--b]", "[a~~b]",
		"[[a]]", `[\d\D]`, `[^\d\D]`, `[\w-z]`, `[a-\d]`, `[\]]`, `[\b]`, `[\Q]`, `[\pL]`, `[\PL\d]`, `[^\pL]`, `\pL`, `\pLu`, `\p{Lu}`,
		`\p{^Lu}`, `\P{^Lu}`, `\p{Greek}`, `\p{greek}`, `\p{Any}`, `\p{ASCII}`,
		`\p{Assigned}`, `\p{LC}`, `\p{Cn}`, `\p{Letter}`, `\p{Uppercase_Letter}`, `\p{punct}`, `\p{digit}`, `\p{Alphabetic}`, `\p{}`,
		`\p`, `\p{`, `\p{^}`, `\p{isGreek}`, `\p{gc=Lu}`, `\pX`, `(?i)\p{Lu}`, `(?i)\P{Lu}`, `(?i)[^\p{Lu}]`, `(?i)\W`, `(?i)[^\W]`,
		`(?i)[[:^upper:]]`, `(?i)[k-s]`, `(?i)k`, `(?i)ſ`, `(?i)straße`, `(?i)Σ`, `(?i)[^x]`, "(?i)(?-i)a", "(?i:a)b", "a(?i)b|c", "(a(?i)b)c",
		"(?m)^a$", "(?m)^$", "^^$$", "a^b", "a$b", "(?s).", "(?s)(?-s).", "(?s-i:.)", "(?U)a+", "(?U)a+?", "(?U:a*)a*", "(?-U)a", "(?imsU)a",
		"(?i-i)a", "(?i-)a", "(?-)a", "(?)a", "(?:a", "(?", "(?i", "(?x)a", "(?^a)", "(?i--s)a", "(?-i-s)a", "(?i)", "(?i)|a", "a|(?i)b|c",
		"(?P<n>a)", "(?<n>a)", "(?P<n>a)(?P<n>b)", "(?P<>a)", "(?P<a b>c)", "(?P<1>a)", "(?P<é>a)", "(?P<n", "(?P=n)", "(?P>n)", "(?'n'a)",
		"(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "(?#a)", "(?R)", `\A\z`, `\Aa\z`, `\Z`, `\G`, `\K`, `\R`, `\X`, `\C`, `\E`, `\Qa`, `\Q`, `\Qa\E`,
		`\Q\E`, `\Qa\E*`, `\Qab\E*`, `\Q*\E\Q+\E`, `\Q\\E`, `\Qa\Qb\E\E`, `\Q(?i)\Ek`, `(?i)\Qk\E`, `\a\f\n\r\t\v`, `\e`, `\h`, `\_`, `\-`, `\/`, `\:`,
		`\"`, `\ `, `\é`, `\0`, `\00`, `\000`, `\0000`, `\1`, `\12`, `\123`, `\1234`, `\377`, `\400`, `\777`, `\8`, `\18`, `\x`, `\x4`, `\x41`, `\x4g`, `\x{41}`,
		`\x{}`, `\x{110000}`, `\x{10FFFF}`, `\x{D800}`, `[\x{D800}-\x{DFFF}]`, `[\x{D7FF}-\x{E000}]`, `\x{000000041}`, `\x{41`, `\u0041`, `\cA`, `\`, `a\`,
		"(|a)*", "(|a)+", "(a|)*b", "(a*)*", "(a*)+", "(a?){2}", "(a|b)*?c", "((a)|b)*", "(a){0}b", "(a){0}(b)", "()|a", "a||b", "|", "||", "(|)", "x|(|y)",
		".", ".*", ".+", ".?", "..", "(.*)", "(?:.*)-(.*)", "[^\n]*", `[\s\S]*`, "é", "[é]", "[à-ü]+", "\u00a0", `\s`, `\S`, `\d`, `\w+`, `\bfoo\b`, `\Bo\B`,
		`.*\.(?:local|lan)`, `(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]+)?`, `tmpfs|overlay|/(dev|proc|sys|run/credentials/.+)($|/)`,
	}
	atoms = []string{
		"a", "b", "k", "s", "S", "K", "é", "σ", "ς", "x", "0", "7", "_", "-", " ", "\n", "/", ":", ",", "]", "}", "{", "{}", "{a}", ".", ".", "^", "$",
		`\b`, `\B`, `\A`, `\z`, `\d`, `\D`, `\w`, `\W`, `\s`, `\S`, `\.`, `\-`, `\{`, `\n`, `\x41`, `\x{e9}`, `\101`, `\0`, `\pL`, `\PL`, `\p{Lu}`, `\p{Greek}`,
		"[a-c]", "[^a]", "[^a-z\n]", "[]k]", "[a-]", `[\d_]`, `[^\w]`, "[[:alpha:]]", "[[:^space:]x]", `[\pL-]`, "[&&k]", "[[a]", `[\]\\]`, `\Qa.\E`, `\<`,
		"(?i)", "(?s)", "(?m)", "(?U)", "(?-i)", "(?-s)", "(?i-s)", "|",
	}
	mistakes = []string{
		`\Q+`, `\`, "(", ")", "[", "*", "?", `\1`, `\8`, `\q`, "(?=", "(?P<", "{3,1}", "**", "+*", "{2}{2}", "{1001}", "[b-a]", `\pZz`, "[[:x:]]",
	}
	repeats = []string{
		"", "", "", "", "", "*", "+", "?", "{2}", "{0}", "{1,3}", "{2,}", "{,2}", "{02}", "*?", "+?", "??", "{1,2}?",
	}
	opens   = []string{"(", "(", "(?:", "(?i:", "(?s-i:", "(?U:", "(?m:", "(?P<n>", "(?<m>", "(?i-U:"}
	letters = []rune("aabbcckKsSſKxX07_- \n/:,]}{éÉσςΣ.+*AÃ")
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: go-regexp SEED COUNT")
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
	for number := range len(fixed) + count {
		expression := ""
		if number < len(fixed) {
			expression = fixed[number]
		} else {
			expression = made(random, 3)
		}
		if err := encoder.Encode(judged(random, expression)); err != nil {
			log.Fatal(err)
		}
	}
}

// made returns an expression, which may be wrong.
func made(random *rand.Rand, depth int) string {
	var out strings.Builder
	for range 1 + random.IntN(4) {
		switch {
		case depth > 0 && random.IntN(4) == 0:
			out.WriteString(pick(random, opens) + made(random, depth-1) + ")")
		case random.IntN(9) == 0:
			out.WriteString("|")
		case random.IntN(20) == 0:
			out.WriteString(pick(random, mistakes))
		default:
			out.WriteString(pick(random, atoms))
		}
		out.WriteString(pick(random, repeats))
	}
	return out.String()
}

func judged(random *rand.Rand, expression string) output {
	out := output{Expression: expression, Cases: []one{}}
	anywhere, err := regexp.Compile(expression)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	whole, err := regexp.Compile("^(?s:" + expression + ")$")
	if err != nil {
		// What is quoted at its end has to end first.
		whole = regexp.MustCompile("^(?s:" + expression + `\E)$`)
	}
	for range textsPerExpression {
		text := textFor(random, expression)
		case_ := one{Text: hex.EncodeToString([]byte(text)), Anywhere: anywhere.MatchString(text)}
		if utf8.ValidString(text) {
			case_.Groups = groups(whole, text)
		}
		out.Cases = append(out.Cases, case_)
	}
	return out
}

func groups(whole *regexp.Regexp, text string) *[]*string {
	places := whole.FindStringSubmatchIndex(text)
	if places == nil {
		return nil
	}
	found := []*string{}
	for i := 2; i < len(places); i += 2 {
		if places[i] < 0 {
			found = append(found, nil)
			continue
		}
		group := hex.EncodeToString([]byte(text[places[i]:places[i+1]]))
		found = append(found, &group)
	}
	return &found
}

// textFor returns a text that has a chance to match: letters of the expression and others.
func textFor(random *rand.Rand, expression string) string {
	if random.IntN(8) == 0 {
		return expression
	}
	of := []rune(expression)
	var out strings.Builder
	for range random.IntN(7) {
		switch choice := random.IntN(24); {
		case choice == 0:
			out.WriteByte(byte(0x80 + random.IntN(0x80)))
		case choice < 10 && len(of) > 0:
			out.WriteRune(of[random.IntN(len(of))])
		default:
			out.WriteRune(letters[random.IntN(len(letters))])
		}
	}
	return out.String()
}

func pick(random *rand.Rand, of []string) string {
	return of[random.IntN(len(of))]
}
