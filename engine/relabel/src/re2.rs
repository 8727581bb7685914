//! Expressions of RE2's syntax as our library reads them. Where the two differ: `\d`, `\s`, `\w`,
//! `\b` and `\B` know ASCII alone, `\Q…\E` quotes, and a bracket or `&&` within a class is a letter
//! like others.
//!
//! Source: RE2's page "Syntax".

use std::fmt::Write as _;

/// The expression in the other syntax. What is wrong stays wrong.
pub fn translated(expression: &str) -> String {
    let mut out = String::with_capacity(expression.len() + 16);
    let mut letters = expression.chars().peekable();
    // Where in a class: `None` outside, else whether a bracket would be its first letter.
    let mut class: Option<bool> = None;
    while let Some(letter) = letters.next() {
        let is_first = class == Some(true);
        match (letter, class) {
            ('\\', _) => {
                class = class.map(|_| false);
                match letters.next() {
                    Some('Q') if class.is_none() => quote(&mut letters, &mut out),
                    Some(edge @ ('b' | 'B')) if class.is_none() => {
                        out.extend(["(?-u:\\", if edge == 'b' { "b)" } else { "B)" }]);
                    }
                    Some(escaped @ ('p' | 'P')) => property(escaped, &mut letters, &mut out),
                    Some(escaped) => out.push_str(&perl(escaped)),
                    None => out.push('\\'),
                }
            }
            ('[', None) => {
                class = Some(true);
                out.push('[');
                if letters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            (']', Some(false)) => {
                class = None;
                out.push(']');
            }
            ('[', Some(_)) if letters.peek() == Some(&':') => {
                class = Some(false);
                out.push('[');
                // A name such as `[:alpha:]`, whose bracket ends no class.
                while let Some(letter) = letters.next_if(|letter| *letter != ']') {
                    out.push(letter);
                }
                out.extend(letters.next());
            }
            ('[' | '&' | '~', Some(_)) => {
                class = Some(false);
                out.push('\\');
                out.push(letter);
            }
            (']', Some(true)) if is_first => {
                class = Some(false);
                out.push_str("\\]");
            }
            _ => {
                class = class.map(|_| false);
                out.push(letter);
            }
        }
    }
    out
}

/// Perl's classes, which RE2 knows of ASCII alone; other letters stay escaped.
fn perl(letter: char) -> String {
    match letter {
        'd' => "[0-9]".to_owned(),
        'D' => "[^0-9]".to_owned(),
        's' => "[\\t\\n\\f\\r ]".to_owned(),
        'S' => "[^\\t\\n\\f\\r ]".to_owned(),
        'w' => "[0-9A-Za-z_]".to_owned(),
        'W' => "[^0-9A-Za-z_]".to_owned(),
        other => format!("\\{other}"),
    }
}

/// A class by its name in Unicode. RE2 has general categories and scripts; our library has other
/// properties, too, if it is built with their tables, so the kind is written out.
fn property(
    escaped: char,
    letters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    out: &mut String,
) {
    out.push('\\');
    if letters.next_if_eq(&'{').is_none() {
        out.push(escaped);
        return;
    }
    let is_negated = letters.next_if_eq(&'^').is_some();
    out.push(match (escaped, is_negated) {
        ('p', false) | ('P', true) => 'p',
        _ => 'P',
    });
    let mut name = String::new();
    while let Some(letter) = letters.next_if(|letter| *letter != '}') {
        name.push(letter);
    }
    let is_category = regex_syntax::parse(&format!("\\p{{gc={name}}}")).is_ok();
    let kind = if is_category { "gc" } else { "sc" };
    // Writing to a string cannot fail.
    let _ = write!(out, "{{{kind}={name}");
    out.extend(letters.next());
}

/// Everything up to `\E` or the end stands for itself.
fn quote(letters: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    while let Some(letter) = letters.next() {
        if letter == '\\' && letters.next_if_eq(&'E').is_some() {
            return;
        }
        // Writing to a string cannot fail.
        let _ = write!(out, "\\x{{{:x}}}", letter as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_written_anew() {
        for (expression, expected) in [
            (r"(.*)\.a", r"(.*)\.a"),
            (r"\d+\b\B", r"[0-9]+(?-u:\b)(?-u:\B)"),
            (r"[\d_]", r"[[0-9]_]"),
            (r"[^]a]x]", r"[^\]a]x]"),
            (r"[a[b]", r"[a\[b]"),
            (r"[[:alpha:]&&]", r"[[:alpha:]\&\&]"),
            (r"\Qa.\E.", r"\x{61}\x{2e}."),
            (r"a\", r"a\"),
            (r"\pN\p{Lu}[\P{greek}]", r"\pN\p{gc=Lu}[\P{sc=greek}]"),
            (r"\p{^Letter}\P{^Any}\p{Lu", r"\P{gc=Letter}\p{gc=Any}\p{gc=Lu"),
        ] {
            assert_eq!(translated(expression), expected);
        }
    }

    // As Go's `regexp/syntax` has it, whatever tables our library is built with.
    #[test]
    fn only_categories_and_scripts_have_names() {
        for (name, is_known) in [
            ("L", true),
            ("Lu", true),
            ("Letter", true),
            ("Greek", true),
            ("Any", true),
            ("ASCII", true),
            ("Assigned", true),
            ("Alphabetic", false),
            ("White_Space", false),
            ("Emoji", false),
            ("gc=Lu", false),
            ("sc=Greek", false),
            ("sc:Greek", false),
            ("Age=6.0", false),
            ("", false),
        ] {
            let expression = translated(&format!(r"\p{{{name}}}"));
            assert_eq!(regex_syntax::parse(&expression).is_ok(), is_known, "{expression}");
        }
    }
}
