//! Parses matchers from arguments: `job=api`, `job!=api`, `job=~a.*`, `job!~a.*`.

use crate::bindings::tidepool::tsdb::types::{MatchOp, Matcher};

pub fn parse(argument: &str) -> Result<Matcher, String> {
    let mistake = || {
        format!(
            "`{argument}` is no matcher; write name=value, name!=value, name=~regex or name!~regex"
        )
    };
    let at = argument.find(['=', '!']).filter(|at| *at > 0).ok_or_else(mistake)?;
    let (name, rest) = argument.split_at(at);
    // `=` is the last, because it is a prefix of `=~`.
    let ops = [
        ("=~", MatchOp::Regex),
        ("!~", MatchOp::NotRegex),
        ("!=", MatchOp::NotEqual),
        ("=", MatchOp::Equal),
    ];
    let found = ops.into_iter().find_map(|(sign, op)| Some((op, rest.strip_prefix(sign)?)));
    let (op, value) = found.ok_or_else(mistake)?;
    Ok(Matcher { name: name.into(), op, value: value.into() })
}
