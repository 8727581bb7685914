//! Results as JUnit XML.
//!
//! Source: `util/junitxml` of Prometheus 3.16, and Go's `encoding/xml`.

use super::Suite;
use std::fmt::Write as _;

/// Case of a file whose tests did not run.
const UNKNOWN: &str = "unknown";

/// Returns the results of all files as JUnit XML.
pub fn junit(suites: &[Suite]) -> String {
    let mut xml = String::from("<testsuites>");
    // Writing to a text does not fail.
    for suite in suites {
        let (errors, cases) = match suite.aborted {
            Some(_) => (1, suite.cases.len().max(1)),
            None => (0, suite.cases.len()),
        };
        let _ = write!(
            xml,
            "<testsuite name=\"{}\" tests=\"{cases}\" failures=\"{}\" errors=\"{errors}\" \
             skipped=\"0\" timestamp=\"{}\">",
            escaped(&suite.name),
            suite.failure_count(),
            escaped(&suite.time),
        );
        for case in &suite.cases {
            let _ = write!(xml, "<testcase name=\"{}\">", escaped(&case.name));
            for failure in &case.failures {
                let _ = write!(xml, "<failure>{}</failure>", escaped(failure));
            }
            xml.push_str("</testcase>");
        }
        if let Some(error) = &suite.aborted {
            let error = escaped(error);
            let _ = write!(xml, "<testcase name=\"{UNKNOWN}\"><error>{error}</error></testcase>");
        }
        xml.push_str("</testsuite>");
    }
    xml.push_str("</testsuites>");
    xml
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\t' => out.push_str("&#x9;"),
            '\n' => out.push_str("&#xA;"),
            '\r' => out.push_str("&#xD;"),
            // XML has no other control characters, not even escaped.
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            _ => out.push(letter),
        }
    }
    out
}
