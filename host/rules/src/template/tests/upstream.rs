//! The tests of upstream, as values.

use super::*;

/// The cases of upstream's test of the same name that are no HTML, and whose inputs have types
/// that templates of alerts meet.
#[test]
fn templates_expand_as_in_upstreams_tests() {
    let up = || vec![sample(11.0, &[("__name__", "metric"), ("instance", "a")])];
    let query = "query \"metric{instance='a'}\"";
    for (text, answer, expected) in [
        ("plain text", vec![], "plain text"),
        ("{{ 1 }}", vec![], "1"),
        ("{{ \"<b>\" }}", vec![], "<b>"),
        (
            "{{define \"x\"}}{{.arg0}} {{.arg1}}{{end}}{{template \"x\" (args 1 \"2\")}}",
            vec![],
            "1 2",
        ),
        ("{{ query \"1.5\" | first | value }}", vec![sample(1.5, &[])], "1.5"),
        (&format!("{{{{ {query} | first | value }}}}"), up(), "11"),
        (&format!("{{{{ {query} | first | label \"instance\" }}}}"), up(), "a"),
        (&format!("{{{{ {query} | first | label \"foo\" }}}}"), up(), ""),
        ("{{ query \"m\" | first | strvalue }}", vec![sample(11.0, &[("__value__", "a")])], "a"),
        ("{{ $x := query \"metric\" | first }}{{ $x.Labels.foo }}", up(), ""),
        (
            "{{ range query \"metric\" | sortByLabel \"instance\" }}{{.Labels.instance}}:{{.Value}}: {{end}}",
            vec![sample(21.0, &[("instance", "b")]), sample(11.0, &[("instance", "a")])],
            "a:11: b:21: ",
        ),
        ("{{ \"foo.example.com\" | stripPort }}", vec![], "foo.example.com"),
        ("{{ \"foo.example.com:12345\" | stripPort }}", vec![], "foo.example.com"),
        ("{{ \"192.0.2.1\" | stripPort }}", vec![], "192.0.2.1"),
        ("{{ \"192.0.2.1:12345\" | stripPort }}", vec![], "192.0.2.1"),
        ("{{ \"2001:0DB8::1\" | stripPort }}", vec![], "2001:0DB8::1"),
        ("{{ \"[2001:0DB8::1]:12345\" | stripPort }}", vec![], "2001:0DB8::1"),
        ("{{ \"[2001:0DB8::1]::12345\" | stripPort }}", vec![], "[2001:0DB8::1]::12345"),
        ("{{ .Foo }}", vec![], "<no value>"),
        ("{{ reReplaceAll \"(a)b\" \"x$1\" \"ab\" }}", vec![], "xa"),
        (
            "{{ -0.22222 | humanizePercentage }}:{{ 0.0 | humanizePercentage }}:{{ 0.1234567 | humanizePercentage }}:{{ 1.23456 | humanizePercentage }}",
            vec![],
            "-22.22%:0%:12.35%:123.5%",
        ),
        (
            r#"{{ "-0.22222" | humanizePercentage }}:{{ "0.0" | humanizePercentage }}:{{ "0.1234567" | humanizePercentage }}:{{ "1.23456" | humanizePercentage }}"#,
            vec![],
            "-22.22%:0%:12.35%:123.5%",
        ),
        ("{{ 1435065584.128 | humanizeTimestamp }}", vec![], "2015-06-23 13:19:44.128 +0000 UTC"),
        (
            "{{ \"1435065584.128\" | humanizeTimestamp }}",
            vec![],
            "2015-06-23 13:19:44.128 +0000 UTC",
        ),
        (r#"{{ (1435065584.128 | toTime).Format "2006" }}"#, vec![], "2015"),
        (r#"{{ ("1435065584.128" | toTime).Format "2006" }}"#, vec![], "2015"),
        ("{{ (1800 | toDuration).String }}", vec![], "30m0s"),
        ("{{ (\"1800\" | toDuration).String }}", vec![], "30m0s"),
        ("{{ now }}", vec![], "1.353755652e+09"),
        (
            r#"{{ (now | toTime).Format "Mon Jan 2 15:04:05 2006" }}"#,
            vec![],
            "Sat Nov 24 11:14:12 2012",
        ),
        (
            r#"{{ ("-30m" | parseDuration | toDuration | (now | toTime).Add).UnixMilli }}"#,
            vec![],
            "1353753852000",
        ),
        ("{{ \"aa bb CC\" | title }}", vec![], "Aa Bb CC"),
        ("{{ \"aa bb CC\" | toUpper }}", vec![], "AA BB CC"),
        ("{{ \"aA bB CC\" | toLower }}", vec![], "aa bb cc"),
        ("{{ match \"a+\" \"aa\" }} {{ match \"a+\" \"b\" }}", vec![], "true false"),
        ("{{ graphLink \"up\" }}", vec![], "/graph?g0.expr=up&g0.tab=0"),
        ("{{ tableLink \"up\" }}", vec![], "/graph?g0.expr=up&g0.tab=1"),
        ("{{ pathPrefix }}", vec![], "/path/prefix"),
        ("{{ externalURL }}", vec![], "http://testhost:9090/path/prefix"),
        ("{{ printf \"%0.2f\" (parseDuration \"1h2m10ms\") }}", vec![], "3720.01"),
        ("{{ printf \"%0.2f\" (parseDuration \"-1h2m10ms\") }}", vec![], "-3720.01"),
        ("{{ \"foo.example.com\" | stripDomain }}", vec![], "foo"),
        ("{{ \"foo.example.com:12345\" | stripDomain }}", vec![], "foo:12345"),
        ("{{ \"192.0.2.1\" | stripDomain }}", vec![], "192.0.2.1"),
        ("{{ \"192.0.2.1:12345\" | stripDomain }}", vec![], "192.0.2.1:12345"),
        ("{{ \"2001:0DB8::1\" | stripDomain }}", vec![], "2001:0DB8::1"),
        ("{{ \"[2001:0DB8::1]:12345\" | stripDomain }}", vec![], "[2001:0DB8::1]:12345"),
        ("{{ \"[2001:0DB8::1]::12345\" | stripDomain }}", vec![], "[2001:0DB8::1]::12345"),
        ("{{ \"fe80::1%eth0.100\" | stripDomain }}", vec![], "fe80::1%eth0.100"),
        ("{{ \"[fe80::1%eth0.100]:9090\" | stripDomain }}", vec![], "[fe80::1%eth0.100]:9090"),
        ("{{ \"::ffff:192.0.2.1%eth0.100\" | stripDomain }}", vec![], "::ffff:192.0.2.1%eth0.100"),
    ] {
        assert_eq!(expand(text, Value::None, answer).as_deref(), Ok(expected), "{text}");
    }
}

/// The values of upstream's tests that range over lists of them, one after the other.
#[test]
fn numbers_are_humanized_as_in_upstreams_tests() {
    let float = Value::Float;
    let int = Value::Int64;
    let text = |text: &str| Value::text(text);
    let values = |function: &str, cases: &[(Value, &str)]| {
        for (value, expected) in cases {
            let found = expand(&format!("{{{{ {function} . }}}}"), value.clone(), vec![]);
            assert_eq!(found.as_deref(), Ok(*expected), "{function} {value:?}");
        }
    };
    values(
        "humanize",
        &[
            (float(0.0), "0"),
            (float(1.0), "1"),
            (float(1234567.0), "1.235M"),
            (float(0.12), "120m"),
            (text("0.0"), "0"),
            (text("1.0"), "1"),
            (text("1234567.0"), "1.235M"),
            (text(".12"), "120m"),
            (int(0), "0"),
            (int(-1), "-1"),
            (int(1234567), "1.235M"),
            (int(i64::MAX), "9.223E"),
        ],
    );
    values(
        "humanize1024",
        &[
            (float(0.0), "0"),
            (float(1.0), "1"),
            (float(1048576.0), "1Mi"),
            (float(0.12), "0.12"),
            (text("1048576.0"), "1Mi"),
            (int(-1), "-1"),
            (int(1234567), "1.177Mi"),
            (int(i64::MAX), "8Ei"),
        ],
    );
    values(
        "humanizeDuration",
        &[
            (float(0.0), "0s"),
            (float(1.0), "1s"),
            (float(60.0), "1m 0s"),
            (float(3600.0), "1h 0m 0s"),
            (float(86400.0), "1d 0h 0m 0s"),
            (float(90000.0), "1d 1h 0m 0s"),
            (float(-183845.0), "-2d 3h 4m 5s"),
            (float(899.99), "14m 59s"),
            (float(0.1), "100ms"),
            (float(0.0001), "100us"),
            (float(0.12345), "123.5ms"),
            (float(60.5), "1m 0s"),
            (float(1.2345), "1.234s"),
            (text("12.345"), "12.35s"),
            (text("86400"), "1d 0h 0m 0s"),
            (Value::Int(-1), "-1s"),
            (Value::Int(1234567), "14d 6h 56m 7s"),
        ],
    );
    values(
        "humanizePercentage",
        &[
            (int(0), "0%"),
            (int(-1), "-100%"),
            (int(1234567), "1.235e+08%"),
            (int(i64::MAX), "9.223e+20%"),
        ],
    );
    values(
        "humanizeTimestamp",
        &[
            (int(0), "1970-01-01 00:00:00 +0000 UTC"),
            (int(-1), "1969-12-31 23:59:59 +0000 UTC"),
            (int(1234567), "1970-01-15 06:56:07 +0000 UTC"),
            (int(9223372036), "2262-04-11 23:47:16 +0000 UTC"),
        ],
    );
    for function in ["humanize", "humanize1024", "humanizeDuration", "humanizeTimestamp"] {
        values(
            function,
            &[
                (float(f64::INFINITY), "+Inf"),
                (float(f64::NEG_INFINITY), "-Inf"),
                (float(f64::NAN), "NaN"),
                (text("+Inf"), "+Inf"),
                (text("-Inf"), "-Inf"),
                (text("NaN"), "NaN"),
            ],
        );
    }
}

#[test]
fn errors_are_upstreams() {
    let failed = |text: &str, dot: Value| expand(text, dot, vec![]).unwrap_err();
    for (text, expected) in [
        ("{{\u{a0}}}", "template: test:1: unrecognized character in action: U+00A0"),
        ("{{", "template: test:1: unclosed action"),
        (
            "{{ query \"missing\" | first }}",
            "error executing template test: template: test:1:21: executing \"test\" at <first>: error calling first: first() called on vector with no elements",
        ),
        (
            "{{ (query \"missing\").banana }}",
            "error executing template test: template: test:1:10: executing \"test\" at <\"missing\">: can't evaluate field banana in type template.queryResult",
        ),
        (
            "{{ humanize \"one\" }}",
            "error executing template test: template: test:1:3: executing \"test\" at <humanize \"one\">: error calling humanize: strconv.ParseFloat: parsing \"one\": invalid syntax",
        ),
        (
            "{{ \"one\" | humanizePercentage }}",
            "error executing template test: template: test:1:11: executing \"test\" at <humanizePercentage>: error calling humanizePercentage: strconv.ParseFloat: parsing \"one\": invalid syntax",
        ),
    ] {
        assert_eq!(failed(text, Value::None), expected);
    }
    assert_eq!(failed("{{ humanizeTimestamp . }}", Value::Int64(i64::MAX)), {
        "error executing template test: template: test:1:3: executing \"test\" at <humanizeTimestamp .>: error calling humanizeTimestamp: 9.223372036854776e+18 cannot be represented as a nanoseconds timestamp since it overflows int64"
    });
}
