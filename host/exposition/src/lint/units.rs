//! Units in the names of metrics (`validations/units.go`).

/// Units, each with its base unit.
const UNITS: [(&str, &str); 24] = [
    ("amperes", "amperes"),
    ("bytes", "bytes"),
    ("celsius", "celsius"),
    ("grams", "grams"),
    ("joules", "joules"),
    ("kelvin", "kelvin"),
    ("meters", "meters"),
    ("metres", "metres"),
    ("seconds", "seconds"),
    ("volts", "volts"),
    ("minutes", "seconds"),
    ("hours", "seconds"),
    ("days", "seconds"),
    ("weeks", "seconds"),
    ("kelvins", "kelvin"),
    ("fahrenheit", "celsius"),
    ("rankine", "celsius"),
    ("inches", "meters"),
    ("yards", "meters"),
    ("miles", "meters"),
    ("bits", "bytes"),
    ("calories", "joules"),
    ("pounds", "grams"),
    ("ounces", "grams"),
];

/// Prefixes of units; `mibi` is upstream's spelling.
const PREFIXES: [&str; 18] = [
    "pico", "nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo", "kibi", "mega",
    "mibi", "giga", "gibi", "tera", "tebi", "peta", "pebi",
];

pub(super) const ABBREVIATIONS: [&str; 14] =
    ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"];

/// Returns the first unit in a name as written, and its base unit.
pub(super) fn unit_of(name: &str) -> Option<(&str, &'static str)> {
    let base = |unit: &str| UNITS.iter().find(|(known, _)| *known == unit).map(|(_, base)| *base);
    name.split('_').find_map(|part| {
        let prefixed = || PREFIXES.iter().find_map(|prefix| base(part.strip_prefix(prefix)?));
        base(part).or_else(prefixed).map(|base| (part, base))
    })
}
