//! Expressions that are an alternation of fixed strings.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Maximum memory of the strings that an expression is unfolded into, in bytes: enough for any
/// alternation of fixed strings within the maximum length of an expression.
const LITERALS_BYTES_MAX: usize = 1024 * 1024;

/// Maximum number of characters of a class; each becomes a string.
const CLASS_MAX: usize = 64;

/// Unfolds an expression into the strings that it matches, if they are few and fixed.
pub(crate) fn literals(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Empty => Some(vec![String::new()]),
        HirKind::Literal(literal) => Some(vec![String::from_utf8(literal.0.to_vec()).ok()?]),
        HirKind::Capture(capture) => literals(&capture.sub),
        HirKind::Class(class) => characters(class, CLASS_MAX),
        HirKind::Concat(parts) => {
            let mut all = vec![String::new()];
            for part in parts {
                let tails = literals(part)?;
                // The size is computed before the product is built, which may grow exponentially.
                let count = all.len().checked_mul(tails.len())?;
                let bytes = text_bytes(&all)
                    .checked_mul(tails.len())?
                    .checked_add(text_bytes(&tails).checked_mul(all.len())?)?;
                if !is_small(count, bytes) {
                    return None;
                }
                all =
                    all.iter().flat_map(|h| tails.iter().map(move |t| format!("{h}{t}"))).collect();
            }
            Some(all)
        }
        HirKind::Alternation(branches) => {
            let (mut all, mut count, mut bytes) = (Vec::new(), 0, 0);
            for branch in branches {
                let values = literals(branch)?;
                count += values.len();
                bytes += text_bytes(&values);
                if !is_small(count, bytes) {
                    return None;
                }
                all.extend(values);
            }
            Some(all)
        }
        HirKind::Repetition(_) | HirKind::Look(_) => None,
    }
}

/// Returns the characters of a class as strings, if there are at most `max`.
pub(crate) fn characters(class: &Class, max: usize) -> Option<Vec<String>> {
    let Class::Unicode(class) = class else { return None };
    if class.iter().map(|range| range.len()).sum::<usize>() > max {
        return None;
    }
    Some(class.iter().flat_map(|range| range.start()..=range.end()).map(String::from).collect())
}

pub(crate) fn text_bytes(values: &[String]) -> usize {
    values.iter().map(String::len).sum()
}

/// Returns whether strings of this number and total length may be kept.
fn is_small(count: usize, bytes: usize) -> bool {
    let headers = count.saturating_mul(size_of::<String>());
    headers.saturating_add(bytes) <= LITERALS_BYTES_MAX
}
