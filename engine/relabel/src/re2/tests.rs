use super::*;
use regex_automata::meta::Regex;

fn regex(expression: &str) -> Regex {
    let parsed = parse(expression, Dot::Any).unwrap_or_else(|error| panic!("{error}"));
    let anchored = Hir::concat(vec![
        Hir::look(regex_syntax::hir::Look::Start),
        parsed.hir,
        Hir::look(regex_syntax::hir::Look::End),
    ]);
    Regex::builder().build_from_hir(&anchored).expect("it compiles")
}

/// Expressions that the library parses differently, or not at all.
#[test]
fn expressions_mean_what_they_mean_upstream() {
    for (expression, fits, differs) in [
        ("/users/{id}.*", "/users/{id}/x", "/users/id"),
        (r"\<none\>", "<none>", "none"),
        ("a{,2}", "a{,2}", "aa"),
        ("a{02}", "a{02}", "aa"),
        ("x{2,}", "xxx", "x"),
        (r"\d+\s", "42\t", "٤٢ "),
        (r"\v\x41\x{1F600}\101\0", "\u{b}A😀A\0", "A"),
        (r".*\bé\W", "aé ", " é "),
        (r"[]a\]]+", "]a]", "b"),
        (r"[^]a]", "b", "]"),
        ("[a[b&&~-]+", "[&~-", "c"),
        ("[[:alpha:][:^word:]]+", "a-", "_"),
        (r"[\Wd-]+", "-d.", "e"),
        (r"\Qa.(\E.", "a.(x", "axx"),
        (r"\Qab\E+", "abb", "abab"),
        (r"\pN\p{Lu}[\P{greek}]", "1Aa", "1Aα"),
        (r"\p{^Lu}\P{^Lu}\p{any}", "aAa", "AAa"),
        ("(?i)k+", "kK\u{212a}", "x"),
        (r"(?i)\w[^k]", "\u{17f}a", "aK"),
        ("(?i:a)b", "Ab", "AB"),
        ("(?-s).(?s).", "a\n", "\n\n"),
        ("(?U)(a+)(a*?)", "aa", "b"),
        ("(?m)a$\n^b", "a\nb", "ab"),
        ("(a|b(?i)c)d", "bCd", "bCD"),
        ("a|", "", "b"),
        ("(?P<x>a)(?<x>b)", "ab", "a"),
        (r"[\x{d800}-\x{e000}]", "\u{e000}", "a"),
        ("(?:a{500}){2}", &"a".repeat(1000), "a"),
    ] {
        let regex = regex(expression);
        assert!(regex.is_match(fits), "{expression} {fits:?}");
        assert!(!regex.is_match(differs), "{expression} {differs:?}");
    }
}

#[test]
fn what_is_wrong_is_said_as_upstream_says_it() {
    for (expression, expected) in [
        (r"\q", r"invalid escape sequence: `\q`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a(|+?)", "missing argument to repetition operator: `+?`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}{3}?", "invalid nested repetition operator: `{2}{3}?`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(?:a{501}){2}", "invalid repeat count: `{2}`"),
        ("a)b", "unexpected ): `a)b`"),
        ("(a", "missing closing ): `(a`"),
        ("x[a", "missing closing ]: `[a`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:none:]]", "invalid character class range: `[:none:]`"),
        (r"\p{None}", r"invalid character class range: `\p{None}`"),
        (r"\p{Alphabetic}", r"invalid character class range: `\p{Alphabetic}`"),
        (r"\p{isGreek}", r"invalid character class range: `\p{isGreek}`"),
        (r"\p{gc=Lu}", r"invalid character class range: `\p{gc=Lu}`"),
        (r"a\", "trailing backslash at end of expression: ``"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"[\Q]", r"invalid escape sequence: `\Q`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?i-)", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?P<a b>c)", "invalid named capture: `(?P<a b>`"),
        ("(?P<a", "invalid named capture: `(?P<a`"),
    ] {
        let error = parse(expression, Dot::Any).expect_err(expression).to_string();
        assert_eq!(error, format!("error parsing regexp: {expected}"));
    }
}

#[test]
fn what_reading_costs_is_bounded() {
    let wrong = |expression: &str| parse(expression, Dot::Any).map_err(|error| error.wrong).err();
    let nested = |depth: usize| "(".repeat(depth) + &")".repeat(depth);
    assert_eq!(wrong(&nested(200)), None);
    assert_eq!(wrong(&nested(20_000)), Some(Wrong::TooDeep));
    assert_eq!(wrong(&r"\pL".repeat(20_000)), Some(Wrong::TooLarge));
    let folded = format!("(?i){}", r"[\x{0}-\x{10ffff}]".repeat(3_000));
    assert_eq!(wrong(&folded), Some(Wrong::TooLarge));
    assert_eq!(wrong(&"[a-z0-9]".repeat(8_000)), None);
    let error = parse(&"(".repeat(9_000), Dot::Any).expect_err("it is too deep").to_string();
    assert!(error.len() < 300, "{error}");
}

#[test]
fn an_expression_may_take_the_empty_text() {
    for (expression, expected) in [
        ("", true),
        ("a*", true),
        ("a", false),
        ("(a|b?)c{0}", true),
        (r"^\B$", true),
        (r"\b", false),
        ("(?i)a|()", true),
    ] {
        let parsed = parse(expression, Dot::Any).expect("an expression");
        assert_eq!(takes_empty(&parsed.hir), expected, "{expression}");
    }
}
