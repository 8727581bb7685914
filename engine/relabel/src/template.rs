//! Templates with references to groups, in the syntax of Go's `Regexp.Expand`: `$1`, `${1}`,
//! `$name`, `${name}`; `$$` is a dollar, and a dollar before anything else stays.

use regex_automata::util::captures::Captures;

#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Literal text of the template.
    Text(&'a str),
    Number(usize),
    Name(&'a str),
}

/// Passes the parts of a template to `take`, in order.
pub fn parts<'a>(mut template: &'a str, mut take: impl FnMut(Part<'a>)) {
    while let Some((before, after)) = template.split_once('$') {
        take(Part::Text(before));
        template = after;
        if let Some(after) = after.strip_prefix('$') {
            take(Part::Text("$"));
            template = after;
        } else if let Some((group, after)) = group(after) {
            take(group);
            template = after;
        } else {
            take(Part::Text("$"));
        }
    }
    take(Part::Text(template));
}

/// Passes the pieces of a template to `put`, with the groups of a match of `text` inserted. `names`
/// has the names of groups with their numbers.
pub fn insert_groups(
    template: &str,
    names: &[(String, usize)],
    captures: &Captures,
    text: &str,
    mut put: impl FnMut(&str),
) {
    let text_of = |group: usize| text.get(captures.get_group(group)?.range());
    parts(template, |part| {
        let found = match part {
            Part::Text(text) => Some(text),
            Part::Number(number) => text_of(number),
            // Like Go, uses the first group of this name that is part of the match.
            Part::Name(name) => {
                let mut named = names.iter().filter(|(known, _)| known == name);
                named.find_map(|(_, number)| text_of(*number))
            }
        };
        // Groups that do not exist or did not match are empty, as in Go's `Expand`.
        put(found.unwrap_or_default());
    });
}

/// Returns the group that is named after a dollar, and the rest of the text.
fn group(text: &str) -> Option<(Part<'_>, &str)> {
    let braced = text.strip_prefix('{');
    let text = braced.unwrap_or(text);
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    // Without the closing brace this is no reference, and the dollar stays.
    let rest = if braced.is_some() { rest.strip_prefix('}')? } else { rest };
    if name.is_empty() {
        return None;
    }
    // Go reads digits below 10^8 without leading zeros as a number, other digits as a name.
    let is_number = name.len() < 9 && name.bytes().all(|byte| byte.is_ascii_digit());
    let number =
        if is_number && (name == "0" || !name.starts_with('0')) { name.parse().ok() } else { None };
    Some((number.map_or(Part::Name(name), Part::Number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found() {
        for (template, expected) in [
            ("a$1-${2}", "[a]<1>[-]<2>[]"),
            ("$1x ${n}_$é", "[]{1x}[ ]{n}[_]{é}[]"),
            ("$$1 $ ${ ${} ${a b}", "[][$][1 ][$][ ][$][{ ][$][{} ][$][{a b}]"),
            ("${01}$0", "[]{01}[]<0>[]"),
        ] {
            let mut found = String::new();
            parts(template, |part| {
                found += &match part {
                    Part::Text(text) => format!("[{text}]"),
                    Part::Number(number) => format!("<{number}>"),
                    Part::Name(name) => format!("{{{name}}}"),
                };
            });
            assert_eq!(found, expected, "{template}");
        }
    }
}
