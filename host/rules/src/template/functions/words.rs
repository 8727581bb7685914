//! Texts and regular expressions.

use super::Parameter::Text;
use super::{Context, Function, plain, text};
use crate::template::error::Reason;
use crate::template::format::quoted;
use crate::template::value::Value;
use std::sync::Arc;
use tidepool_relabel::{Substitution, case};

/// Steps to compile an expression.
const COMPILE_STEPS: u64 = 5000;
/// Compiled expressions that are kept, since each also has caches.
const EXPRESSIONS_MAX: usize = 16;
/// Maximum memory of a compiled expression, in bytes.
const COMPILED_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a compiled expression that make a step for each of the steps that its text takes.
const STEP_COMPILED_BYTES: u64 = 4096;

pub const FUNCTIONS: &[Function] = &[
    plain("match", &[Text, Text], |context, values| {
        let expression = compiled(context, text(values, 0), text(values, 1))?;
        Ok(Value::Bool(expression.is_match(text(values, 1))))
    }),
    plain("reReplaceAll", &[Text, Text, Text], |context, values| {
        let pattern = text(values, 0);
        let expression =
            compiled(context, pattern, text(values, 2)).map_err(|reason| match reason {
                Reason::Failed(error) => {
                    format!("regexp: Compile({}): {error}", quoted_pattern(pattern)).into()
                }
                other => other,
            })?;
        // The template is read for each match, even if it inserts nothing; and its references are
        // slower than plain bytes.
        const REFERENCE_FACTOR: usize = 4;
        let matches_max = text(values, 2).len() + 1;
        let bytes = matches_max.saturating_mul(text(values, 1).len() * REFERENCE_FACTOR);
        context.budget.charge_bytes(bytes, factor(&expression))?;
        let bytes_max = context.budget.bytes_max();
        let replaced = expression.replaced(text(values, 2), text(values, 1), bytes_max);
        replaced.map(Value::text).ok_or(context.budget.output())
    }),
    plain("safeHtml", &[Text], |_, values| Ok(Value::Html(text(values, 0).into()))),
    plain("title", &[Text], |_, values| Ok(Value::text(title(text(values, 0))))),
    plain("toLower", &[Text], |_, values| Ok(Value::text(case::lower(text(values, 0))))),
    plain("toUpper", &[Text], |_, values| Ok(Value::text(case::upper(text(values, 0))))),
];

/// Returns the expression, and charges what a search in `text` takes at worst.
fn compiled(
    context: &mut Context<'_>,
    pattern: &str,
    text: &str,
) -> Result<Arc<Substitution>, Reason> {
    let expression = match context.budget.expressions.get(pattern) {
        Some(expression) => expression.clone(),
        None => {
            context.budget.charge(COMPILE_STEPS)?;
            let expression = Arc::new(Substitution::new(pattern, COMPILED_BYTES_MAX)?);
            if context.budget.expressions.len() >= EXPRESSIONS_MAX {
                context.budget.expressions.clear();
            }
            context.budget.expressions.insert(pattern.to_owned(), expression.clone());
            expression
        }
    };
    context.budget.charge_bytes(text.len(), factor(&expression))?;
    Ok(expression)
}

fn factor(expression: &Substitution) -> u64 {
    expression.bytes() as u64 / STEP_COMPILED_BYTES
}

fn quoted_pattern(pattern: &str) -> String {
    match crate::template::format::can_be_raw(pattern) {
        true => format!("`{pattern}`"),
        false => quoted(pattern),
    }
}

/// Returns the text with the first letter of each word in title case. Letters of scripts without
/// case do not begin words here, which Unicode's rules differ about.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut is_in_word, mut was_mark) = (false, false);
    for letter in text.chars() {
        // What joins letters to a word, but only one at a time.
        let is_mark = matches!(letter, '.' | '\'' | ':' | '\u{b7}' | '\u{2019}' | '\u{2024}');
        if is_mark && was_mark {
            is_in_word = false;
        }
        let is_title = matches!(letter, 'ǅ' | 'ǈ' | 'ǋ' | 'ǲ');
        if letter.is_lowercase() || letter.is_uppercase() || is_title {
            match is_in_word {
                true => out.push(letter),
                false => push_title(letter, &mut out),
            }
            is_in_word = true;
        } else {
            out.push(letter);
            let joins =
                letter == '_' || letter.is_numeric() || ('\u{300}'..='\u{36f}').contains(&letter);
            is_in_word &= is_mark || joins;
        }
        was_mark = is_mark;
    }
    out
}

fn push_title(letter: char, out: &mut String) {
    let title = match letter {
        'Ǆ'..='ǆ' => 'ǅ',
        'Ǉ'..='ǉ' => 'ǈ',
        'Ǌ'..='ǌ' => 'ǋ',
        'Ǳ'..='ǳ' => 'ǲ',
        _ => {
            let mut upper = letter.to_uppercase();
            match (upper.next(), upper.next()) {
                // A letter with several in upper case, such as `ß`, has one of them large.
                (Some(first), Some(second)) if first.is_lowercase() || first.is_uppercase() => {
                    out.push(first);
                    for letter in std::iter::once(second).chain(upper) {
                        out.extend(letter.to_lowercase());
                    }
                }
                _ => out.extend(letter.to_uppercase()),
            }
            return;
        }
    };
    out.push(title);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from Go's `golang.org/x/text/cases`.
    #[test]
    fn titles_are_gos() {
        for (text, expected) in [
            ("aa bb CC", "Aa Bb CC"),
            ("don't o'neil's", "Don't O'neil's"),
            ("foo_bar foo.bar foo:bar foo-bar", "Foo_bar Foo.bar Foo:bar Foo-Bar"),
            ("1st 3a k8s", "1St 3A K8s"),
            ("foo..bar foo. bar .a 'a _a", "Foo..Bar Foo. Bar .A 'A _A"),
            ("ǆabc ßa ﬁx über", "ǅabc Ssa Fix Über"),
            ("a,b (a)[b] foo/bar", "A,B (A)[B] Foo/Bar"),
            ("a日b x\nyy a\u{301}b", "A日B X\nYy A\u{301}b"),
        ] {
            assert_eq!(title(text), expected, "{text}");
        }
    }
}
