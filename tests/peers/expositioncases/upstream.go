package main

import (
	"encoding/binary"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// The files with tests of the parsers that tidepool has, and the formats of the bodies in them.
// OpenMetrics 2.0 is behind a flag in Prometheus.
var upstreamsFiles = map[string][]string{
	"promparse_test.go":        {"prometheus"},
	"openmetricsparse_test.go": {"openmetrics"},
	"nhcbparse_test.go":        {"prometheus", "openmetrics"},
	"interface_test.go":        {"prometheus", "openmetrics"},
	"protobufparse_test.go":    {"protobuf"},
}

// upstreamsCases makes a case of every text in the functions of upstream's tests, whether it is a
// body there or not, and of the files in testdata: what is no body is refused by all.
func upstreamsCases(folder string) (cases []one) {
	for file, formats := range upstreamsFiles {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, file), nil, parser.SkipObjectResolution)
		if err != nil {
			log.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			for number, text := range textsIn(function.Body) {
				name := fmt.Sprintf("%s %s %d", file, function.Name.Name, number)
				for _, format := range formats {
					cases = append(cases, withOptions(name, format, text)...)
				}
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "testdata", "*.txt"))
	if err != nil {
		log.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			log.Fatal(err)
		}
		for _, format := range []string{"prometheus", "openmetrics"} {
			cases = append(cases, withOptions(filepath.Base(file), format, string(text))...)
		}
	}
	return cases
}

// textsIn finds the constant texts below a node: literals, and sums of them.
func textsIn(node ast.Node) (texts []string) {
	ast.Inspect(node, func(node ast.Node) bool {
		expression, ok := node.(ast.Expr)
		if !ok {
			return true
		}
		text, ok := constant(expression)
		if ok {
			texts = append(texts, text)
		}
		return !ok
	})
	return texts
}

func constant(expression ast.Expr) (string, bool) {
	switch expression := expression.(type) {
	case *ast.BasicLit:
		if expression.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(expression.Value)
		return text, err == nil
	case *ast.ParenExpr:
		return constant(expression.X)
	case *ast.BinaryExpr:
		left, isLeft := constant(expression.X)
		right, isRight := constant(expression.Y)
		return left + right, expression.Op == token.ADD && isLeft && isRight
	}
	return "", false
}

// withOptions gives a case for each way to treat histograms.
func withOptions(name, format, text string) (cases []one) {
	c := one{Name: name, Format: format, Body: text}
	if format == "protobuf" {
		var family dto.MetricFamily
		if prototext.Unmarshal([]byte(text), &family) != nil {
			return nil
		}
		message, err := proto.Marshal(&family)
		if err != nil {
			log.Fatal(err)
		}
		c.Body = ""
		c.Bytes = append(binary.AppendUvarint(nil, uint64(len(message))), message...)
	} else if !utf8.ValidString(text) {
		c.Body, c.Bytes = "", []byte(text)
	}
	for _, converts := range []bool{false, true} {
		for _, keeps := range []bool{false, true} {
			for _, ignores := range []bool{false, true} {
				if format != "protobuf" && (ignores || (keeps && !converts)) {
					continue
				}
				c.ConvertsClassic, c.KeepsClassic, c.IgnoresNative = converts, keeps, ignores
				cases = append(cases, c)
			}
		}
	}
	return cases
}
