//! Silences as text.

use serde_json::Value;
use tidepool_model::MatchOp;
use tidepool_notify::matchers::Matcher;

pub fn ids(silences: &[Value]) -> String {
    silences.iter().map(|silence| text(&silence["id"]) + "\n").collect()
}

/// Returns a table with a heading.
pub fn table(silences: &[Value], is_extended: bool) -> String {
    let columns = match is_extended {
        true => &[
            ("ID", "id"),
            ("State", "status"),
            ("Matchers", "matchers"),
            ("Starts At", "startsAt"),
            ("Ends At", "endsAt"),
            ("Updated At", "updatedAt"),
            ("Created By", "createdBy"),
            ("Comment", "comment"),
        ][..],
        false => &[
            ("ID", "id"),
            ("Matchers", "matchers"),
            ("Ends At", "endsAt"),
            ("Created By", "createdBy"),
            ("Comment", "comment"),
        ],
    };
    let heading = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let row = |silence: &Value| columns.iter().map(|(_, key)| cell(key, &silence[*key])).collect();
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(silences.iter().map(row)).collect();
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        out += cells.collect::<Vec<_>>().join("  ").trim_end();
        out.push('\n');
    }
    out
}

fn cell(key: &str, value: &Value) -> String {
    match key {
        "status" => text(&value["state"]),
        "matchers" => {
            let matchers = value.as_array().map(Vec::as_slice).unwrap_or_default();
            matchers.iter().map(matcher).collect::<Vec<_>>().join(" ")
        }
        // Whole seconds suffice.
        "startsAt" | "endsAt" | "updatedAt" => text(value).replace(".000Z", "Z"),
        _ => text(value),
    }
}

fn matcher(value: &Value) -> String {
    let is = |key: &str, default: bool| value[key].as_bool().unwrap_or(default);
    let op = match (is("isRegex", false), is("isEqual", true)) {
        (false, true) => MatchOp::Equal,
        (false, false) => MatchOp::NotEqual,
        (true, true) => MatchOp::Regex,
        (true, false) => MatchOp::NotRegex,
    };
    let (name, wanted) = (text(&value["name"]), text(&value["value"]));
    match Matcher::new(op, &name, &wanted) {
        Ok(matcher) => matcher.to_string(),
        // Another server may have expressions that are none here.
        Err(_) => format!("{name}{}{wanted:?}", op.name()),
    }
}

/// Returns a text without characters that would control the terminal.
fn text(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_have_a_line_for_each_silence() {
        let silences = [
            json!({
                "id": "7", "status": {"state": "active"}, "createdBy": "ada",
                "comment": "new\n\u{1b}[31mdisk", "updatedAt": "2026-11-08T11:00:00.000Z",
                "startsAt": "2026-11-08T11:00:00.000Z", "endsAt": "2026-11-08T13:00:00.000Z",
                "matchers": [
                    {"isEqual": true, "isRegex": false, "name": "job", "value": "node"},
                    {"isEqual": false, "isRegex": true, "name": "a b", "value": "("},
                ],
            }),
            json!({}),
        ];
        let expected = "\
ID  Matchers             Ends At               Created By  Comment
7   job=\"node\" a b!~\"(\"  2026-11-08T13:00:00Z  ada         new  [31mdisk

";
        assert_eq!(table(&silences, false), expected);
        assert!(table(&silences, true).starts_with("ID  State   Matchers"));
        assert_eq!(ids(&silences), "7\n\n");
    }
}
