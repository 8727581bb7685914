//! Translates OpenTelemetry's names of metrics, units and attributes to Prometheus' names.
//!
//! Source: the compatibility page of the OpenTelemetry specification ("OTLP Metric points to
//! Prometheus"), in the reading of `github.com/prometheus/otlptranslator` v1, which Prometheus 3.15
//! uses with the defaults of its `otlp` section.

use super::beginning;
use clap::ValueEnum;

/// How names are translated; named as upstream's `otlp.translation_strategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Strategy {
    /// What is not a letter, digit or colon becomes an underscore; unit and type are appended
    #[default]
    #[value(name = "UnderscoreEscapingWithSuffixes")]
    EscapeWithSuffixes,
    /// The same, with nothing appended
    #[value(name = "UnderscoreEscapingWithoutSuffixes")]
    Escape,
    /// Names stay as they are; unit and type are appended
    #[value(name = "NoUTF8EscapingWithSuffixes")]
    KeepWithSuffixes,
    /// Names stay as they are
    #[value(name = "NoTranslation")]
    Keep,
}

/// Kind of a metric, on which the suffixes of its name depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A sum that only increases.
    Counter,
    /// A gauge. A sum that may decrease is `Other`.
    Gauge,
    Other,
}

/// Error of a name without any character that may be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name {0:?} has no letter or digit that Prometheus could call it by")]
pub struct NameError(pub String);

const UNITS: [(&str, &str); 24] = [
    ("d", "days"),
    ("h", "hours"),
    ("min", "minutes"),
    ("s", "seconds"),
    ("ms", "milliseconds"),
    ("us", "microseconds"),
    ("ns", "nanoseconds"),
    ("By", "bytes"),
    ("KiBy", "kibibytes"),
    ("MiBy", "mebibytes"),
    ("GiBy", "gibibytes"),
    ("TiBy", "tibibytes"),
    ("KBy", "kilobytes"),
    ("MBy", "megabytes"),
    ("GBy", "gigabytes"),
    ("TBy", "terabytes"),
    ("m", "meters"),
    ("V", "volts"),
    ("A", "amperes"),
    ("J", "joules"),
    ("W", "watts"),
    ("g", "grams"),
    ("Cel", "celsius"),
    ("Hz", "hertz"),
];

/// Units that are not plain words; the unit `1` appends no word.
const OTHER_UNITS: [(&str, &str); 2] = [("1", ""), ("%", "percent")];

const PER_UNITS: [(&str, &str); 7] = [
    ("s", "second"),
    ("m", "minute"),
    ("h", "hour"),
    ("d", "day"),
    ("w", "week"),
    ("mo", "month"),
    ("y", "year"),
];

impl Strategy {
    /// Returns whether names are limited to letters, digits, underscores and colons.
    pub fn escapes(self) -> bool {
        matches!(self, Strategy::EscapeWithSuffixes | Strategy::Escape)
    }

    fn appends(self) -> bool {
        matches!(self, Strategy::EscapeWithSuffixes | Strategy::KeepWithSuffixes)
    }

    pub fn metric(self, name: &str, unit: &str, kind: NameKind) -> Result<String, NameError> {
        let built = match (self.escapes(), self.appends()) {
            (true, true) => escaped_with_suffixes(name, unit, kind),
            // Unlike the strategy with suffixes, upstream keeps runs of underscores here.
            (true, false) => {
                let words: Vec<&str> = words(name, |c| is_plain(c) || c == '_').collect();
                not_with_digit(words.join("_"))
            }
            (false, true) => with_suffixes(name, unit, kind),
            (false, false) => name.to_owned(),
        };
        // A name of underscores only is valid if the sender wrote it so.
        let is_nothing = self.escapes() && built != name && built.chars().all(|c| c == '_');
        if built.is_empty() || is_nothing { Err(NameError(beginning(name))) } else { Ok(built) }
    }

    pub fn label(self, name: &str) -> Result<String, NameError> {
        let mut built = match self.escapes() {
            false => name.to_owned(),
            true => {
                let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
                name.chars().map(plain).collect()
            }
        };
        if self.escapes() {
            // A label must not begin with a digit, and Prometheus reserves two leading underscores.
            if built.starts_with(|c: char| c.is_ascii_digit()) {
                built.insert_str(0, "key_");
            } else if built.starts_with('_') && !built.starts_with("__") {
                built.insert_str(0, "key");
            }
        }
        let is_nothing = built.chars().all(|c| c == '_');
        if is_nothing { Err(NameError(beginning(name))) } else { Ok(built) }
    }
}

/// Returns the unit for metadata, which does not depend on the strategy.
pub fn unit_word(unit: &str) -> String {
    let (main, per) = unit_words(unit);
    let (main, per) = (escaped_unit(&main), escaped_unit(&per));
    let both = match (main.is_empty(), per.is_empty()) {
        (false, false) => format!("{main}_{per}"),
        _ => main + &per,
    };
    let unit = both.strip_prefix('_').unwrap_or(&both);
    unit.strip_suffix('_').unwrap_or(unit).to_owned()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == ':'
}

/// Returns the runs of characters for which `stays` is true.
fn words(name: &str, stays: impl Fn(char) -> bool) -> impl Iterator<Item = &str> {
    name.split(move |c| !stays(c)).filter(|word| !word.is_empty())
}

fn not_with_digit(name: String) -> String {
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

fn escaped_with_suffixes(name: &str, unit: &str, kind: NameKind) -> String {
    let mut built: Vec<&str> = words(name, is_plain).collect();
    let (main, per) = unit_words(unit);
    let (main, per) = (escaped_unit(&main), escaped_unit(&per));
    // The name may contain the unit already.
    let mut main = if built.contains(&main.as_str()) { "" } else { &main };
    // Escaping can leave an underscore at the end, which joining would double.
    let per = if per == "per_" { "" } else { per.strip_suffix('_').unwrap_or(&per) };
    let per = if built.contains(&per) { "" } else { per };
    if !per.is_empty() {
        main = main.strip_suffix('_').unwrap_or(main);
    }
    built.extend([main, per].into_iter().filter(|word| !word.is_empty()));
    let end = match kind {
        NameKind::Counter => Some("total"),
        NameKind::Gauge if unit == "1" => Some("ratio"),
        NameKind::Gauge | NameKind::Other => None,
    };
    if let Some(end) = end {
        // The suffix must be at the end, and only there.
        built.retain(|word| *word != end);
        built.push(end);
    }
    not_with_digit(built.join("_"))
}

fn with_suffixes(name: &str, unit: &str, kind: NameKind) -> String {
    let (main, per) = unit_words(unit);
    let is_ratio = unit == "1" && kind == NameKind::Gauge;
    let mut ends = Vec::new();
    let mut built = name;
    // As upstream, suffixes are removed in this order and appended in reverse order.
    for (is_wanted, end) in
        [(is_ratio, "ratio"), (kind == NameKind::Counter, "total"), (!per.is_empty(), per.as_str())]
    {
        if is_wanted {
            built = without_end(built, end);
            ends.push(end);
        }
    }
    if !main.is_empty() && !built.ends_with(main.as_str()) {
        ends.push(&main);
    }
    let mut built = built.to_owned();
    for end in ends.into_iter().rev() {
        built.push('_');
        built.push_str(end);
    }
    built
}

/// Removes an ending and the character before it, whatever character that is.
fn without_end<'a>(name: &'a str, end: &str) -> &'a str {
    let Some(rest) = name.strip_suffix(end) else { return name };
    let mut chars = rest.chars();
    // A name that equals the ending is kept.
    match (chars.next_back(), chars.as_str()) {
        (Some(_), shorter) if !shorter.is_empty() => shorter,
        _ => name,
    }
}

/// Returns the words for the unit and for the unit after the slash, such as `per_second`.
fn unit_words(unit: &str) -> (String, String) {
    let (main, per) = unit.split_once('/').unwrap_or((unit, ""));
    let main = unit_word_of(main, UNITS.iter().chain(&OTHER_UNITS));
    let per = unit_word_of(per, PER_UNITS.iter());
    let per = if per.is_empty() { per } else { format!("per_{per}") };
    (main, per)
}

fn unit_word_of<'a>(
    unit: &'a str,
    mut known: impl Iterator<Item = &'a (&'static str, &'static str)>,
) -> String {
    let unit = unit.trim();
    // Braces enclose an annotation, which is not a unit.
    if unit.contains(['{', '}']) {
        return String::new();
    }
    known.find(|(short, _)| *short == unit).map_or(unit, |(_, word)| *word).to_owned()
}

/// Replaces each run of invalid characters by an underscore; removes one at the front.
fn escaped_unit(unit: &str) -> String {
    let mut escaped = String::with_capacity(unit.len());
    for c in unit.chars() {
        let c = if is_plain(c) { c } else { '_' };
        if c != '_' || !escaped.ends_with('_') {
            escaped.push(c);
        }
    }
    escaped.strip_prefix('_').map(str::to_owned).unwrap_or(escaped)
}

#[cfg(test)]
mod tests {
    use super::NameKind::{Counter, Gauge, Other};
    use super::Strategy::{Escape, EscapeWithSuffixes, Keep, KeepWithSuffixes};
    use super::*;

    #[test]
    fn metrics_are_named_as_upstream_names_them() {
        for (name, unit, kind, escaped, kept) in [
            (
                "http.server.duration",
                "s",
                Other,
                "http_server_duration_seconds",
                "http.server.duration_seconds",
            ),
            ("requests", "1", Counter, "requests_total", "requests_total"),
            ("total.requests", "", Counter, "requests_total", "total.requests_total"),
            ("requests.total", "", Counter, "requests_total", "requests_total"),
            ("usage", "1", Gauge, "usage_ratio", "usage_ratio"),
            ("ratio.usage.ratio", "1", Gauge, "usage_ratio", "ratio.usage_ratio"),
            ("up", "1", Other, "up", "up"),
            ("disk.io", "By/s", Gauge, "disk_io_bytes_per_second", "disk.io_bytes_per_second"),
            ("disk.bytes", "By", Counter, "disk_bytes_total", "disk.bytes_total"),
            ("queue", "{items}", Gauge, "queue", "queue"),
            ("rate", "{items}/m", Gauge, "rate_per_minute", "rate_per_minute"),
            ("rate", "{items}/{host}", Gauge, "rate", "rate"),
            ("temp", "Cel", Gauge, "temp_celsius", "temp_celsius"),
            ("load", "%", Gauge, "load_percent", "load_percent"),
            ("2xx", "", Gauge, "_2xx", "2xx"),
            ("a__b..c:d", "", Gauge, "a_b_c:d", "a__b..c:d"),
            (".a.", " s ", Gauge, "a_seconds", ".a._seconds"),
            ("speed", "k_m/h", Gauge, "speed_k_m_per_hour", "speed_k_m_per_hour"),
            ("x", "m²/_", Gauge, "x_m_", "x_m²_per__"),
            ("x", "foo_/s", Gauge, "x_foo_per_second", "x_foo__per_second"),
            ("größe", "By", Gauge, "gr_e_bytes", "größe_bytes"),
        ] {
            let named = |strategy: Strategy| strategy.metric(name, unit, kind);
            assert_eq!(named(EscapeWithSuffixes).as_deref(), Ok(escaped), "{name} {unit}");
            assert_eq!(named(KeepWithSuffixes).as_deref(), Ok(kept), "{name} {unit}");
            assert_eq!(named(Keep).as_deref(), Ok(name));
        }
        let plain = |name: &str| Escape.metric(name, "s", Counter);
        assert_eq!(plain("a..b__c"), Ok("a_b__c".into()));
        assert_eq!(plain("2.x"), Ok("_2_x".into()));
        assert_eq!(plain("_"), Ok("_".into()));
        for nothing in ["", "..", "ä"] {
            assert!(EscapeWithSuffixes.metric(nothing, "", Gauge).is_err(), "{nothing:?}");
            assert!(Escape.metric(nothing, "", Gauge).is_err(), "{nothing:?}");
        }
        assert!(Keep.metric("", "", Gauge).is_err());
        assert!(EscapeWithSuffixes.metric("_.", "", Gauge).is_err());
    }

    #[test]
    fn labels_are_named_as_upstream_names_them() {
        for (name, escaped) in [
            ("http.method", "http_method"),
            ("a..b__c", "a__b__c"),
            ("2xx", "key_2xx"),
            ("_private", "key_private"),
            (".dot", "key_dot"),
            ("__reserved__", "__reserved__"),
            ("größe", "gr__e"),
            ("a:b", "a_b"),
        ] {
            assert_eq!(EscapeWithSuffixes.label(name).as_deref(), Ok(escaped));
            assert_eq!(Escape.label(name).as_deref(), Ok(escaped));
            assert_eq!(Keep.label(name).as_deref(), Ok(name));
        }
        for nothing in ["", "__"] {
            assert!(Keep.label(nothing).is_err(), "{nothing:?}");
            assert!(Escape.label(nothing).is_err(), "{nothing:?}");
        }
        assert!(Keep.label("_").is_err());
        assert!(Escape.label("..").is_err());
        assert_eq!(Escape.label("_"), Ok("key_".into()));
    }

    #[test]
    fn units_are_words() {
        for (unit, word) in [
            ("s", "seconds"),
            ("By/s", "bytes_per_second"),
            ("1", ""),
            ("{requests}/s", "per_second"),
            ("MiBy", "mebibytes"),
            ("foo bar", "foo_bar"),
            ("_x_", "x"),
        ] {
            assert_eq!(unit_word(unit), word, "{unit:?}");
        }
    }
}
