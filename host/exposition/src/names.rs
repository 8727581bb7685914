//! Names of metrics and labels: which names are valid, and how names that are valid only since
//! Prometheus 3 are escaped.
//!
//! Source: `model/metric.go` in prometheus/common.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Validation scheme for names of metrics and labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameValidation {
    /// Any UTF-8 text that is not empty.
    #[default]
    Utf8,
    /// Letters, digits, `_` and, for metrics, `:`.
    Legacy,
}

/// Escaping scheme for names that are not valid under [`NameValidation::Legacy`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameEscaping {
    #[default]
    AllowUtf8,
    /// `_` replaces each invalid character.
    Underscores,
    /// `_dot_` replaces a dot, `__` an underscore and each other invalid character.
    Dots,
    /// `U__` is the prefix; `__` replaces an underscore, `_HEX_` each invalid character.
    Values,
}

impl NameValidation {
    /// Parses the name used in configuration files.
    pub fn from_name(name: &str) -> Option<NameValidation> {
        match name {
            "utf8" => Some(NameValidation::Utf8),
            "legacy" => Some(NameValidation::Legacy),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            NameValidation::Utf8 => "utf8",
            NameValidation::Legacy => "legacy",
        }
    }

    pub fn is_metric_name(self, name: &str) -> bool {
        !name.is_empty() && (self == NameValidation::Utf8 || is_legacy(name))
    }

    pub fn is_label_name(self, name: &str) -> bool {
        self.is_metric_name(name) && (self == NameValidation::Utf8 || !name.contains(':'))
    }
}

impl NameEscaping {
    /// Parses the name used in configuration files and in content types (`escaping=`).
    pub fn from_name(name: &str) -> Option<NameEscaping> {
        match name {
            "allow-utf-8" => Some(NameEscaping::AllowUtf8),
            "underscores" => Some(NameEscaping::Underscores),
            "dots" => Some(NameEscaping::Dots),
            "values" => Some(NameEscaping::Values),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            NameEscaping::AllowUtf8 => "allow-utf-8",
            NameEscaping::Underscores => "underscores",
            NameEscaping::Dots => "dots",
            NameEscaping::Values => "values",
        }
    }

    /// Escapes a name. [`NameEscaping::Dots`] also changes names that are already valid.
    pub fn escape(self, name: &str) -> Cow<'_, str> {
        // Unescaping `Dots` halves double underscores, so they are doubled in valid names, too.
        let is_kept = match self {
            NameEscaping::AllowUtf8 => true,
            NameEscaping::Underscores | NameEscaping::Values => is_legacy(name),
            NameEscaping::Dots => false,
        };
        if is_kept || name.is_empty() {
            return Cow::Borrowed(name);
        }
        let mut escaped = String::with_capacity(name.len() + 8);
        if self == NameEscaping::Values {
            escaped.push_str("U__");
        }
        for (at, part) in name.char_indices() {
            match self {
                NameEscaping::Dots if part == '.' => escaped.push_str("_dot_"),
                NameEscaping::Dots | NameEscaping::Values if part == '_' => escaped.push_str("__"),
                _ if is_legacy_part(at, part) => escaped.push(part),
                NameEscaping::Dots => escaped.push_str("__"),
                NameEscaping::Values => {
                    // Writing to a string does not fail.
                    let _ = write!(escaped, "_{:x}_", u32::from(part));
                }
                NameEscaping::AllowUtf8 | NameEscaping::Underscores => escaped.push('_'),
            }
        }
        Cow::Owned(escaped)
    }

    /// Returns the original of an escaped name, if it can be restored, or the name itself.
    pub fn unescape(self, name: &str) -> Cow<'_, str> {
        match self {
            // An underscore may replace any character, so nothing can be restored.
            NameEscaping::AllowUtf8 | NameEscaping::Underscores => Cow::Borrowed(name),
            NameEscaping::Dots => Cow::Owned(name.replace("_dot_", ".").replace("__", "_")),
            NameEscaping::Values => match name.strip_prefix("U__").and_then(unescape_values) {
                Some(unescaped) => Cow::Owned(unescaped),
                None => Cow::Borrowed(name),
            },
        }
    }
}

fn unescape_values(mut rest: &str) -> Option<String> {
    /// Most hexadecimal digits of an escaped character.
    const DIGITS_MAX: usize = 5;
    let mut name = String::with_capacity(rest.len());
    while let Some((plain, after)) = rest.split_once('_') {
        name.push_str(plain);
        let (code, after) = after.split_once('_')?;
        match code {
            "" => name.push('_'),
            _ if code.len() > DIGITS_MAX || !code.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                return None;
            }
            // No escaped name has surrogates or numbers beyond Unicode.
            _ => name.push(u32::from_str_radix(code, 16).ok().and_then(char::from_u32)?),
        }
        rest = after;
    }
    name.push_str(rest);
    Some(name)
}

fn is_legacy(name: &str) -> bool {
    !name.is_empty() && name.char_indices().all(|(at, part)| is_legacy_part(at, part))
}

fn is_legacy_part(at: usize, part: char) -> bool {
    part.is_ascii_alphabetic() || matches!(part, '_' | ':') || (at > 0 && part.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_escaped_as_upstream_does() {
        for (name, underscores, dots, undotted, values) in [
            ("", "", "", "", ""),
            (
                "no:escaping_required",
                "no:escaping_required",
                "no:escaping__required",
                "no:escaping_required",
                "no:escaping_required",
            ),
            (
                "mysystem.prod.west.cpu.load_total",
                "mysystem_prod_west_cpu_load_total",
                "mysystem_dot_prod_dot_west_dot_cpu_dot_load__total",
                "mysystem.prod.west.cpu.load_total",
                "U__mysystem_2e_prod_2e_west_2e_cpu_2e_load__total",
            ),
            (
                "http.status:sum",
                "http_status:sum",
                "http_dot_status:sum",
                "http.status:sum",
                "U__http_2e_status:sum",
            ),
            (
                "label with 😱",
                "label_with__",
                "label__with____",
                "label_with__",
                "U__label_20_with_20__1f631_",
            ),
            ("花火", "__", "____", "__", "U___82b1__706b_"),
            (
                "label with \u{100}",
                "label_with__",
                "label__with____",
                "label_with__",
                "U__label_20_with_20__100_",
            ),
            ("1a", "_a", "__a", "_a", "U___31_a"),
        ] {
            assert_eq!(NameEscaping::AllowUtf8.escape(name), name);
            assert_eq!(NameEscaping::Underscores.escape(name), underscores);
            assert_eq!(NameEscaping::Underscores.unescape(underscores), underscores);
            assert_eq!(NameEscaping::Dots.escape(name), dots);
            assert_eq!(NameEscaping::Dots.unescape(dots), undotted);
            assert_eq!(NameEscaping::Values.escape(name), values);
            assert_eq!(NameEscaping::Values.unescape(values), name);
        }
    }

    #[test]
    fn what_was_not_escaped_stays() {
        for (name, unescaped) in [
            ("", ""),
            ("U__no:unescapingrequired", "no:unescapingrequired"),
            ("U__capitals_2E_ok", "capitals.ok"),
            ("U__underscores__doubled__", "underscores_doubled_"),
            ("U__underscores_doubled_", "U__underscores_doubled_"),
            ("U__underscores__doubled_", "U__underscores__doubled_"),
            (
                "U__my__hack_2e_attempt_872348732fabdabbab_",
                "U__my__hack_2e_attempt_872348732fabdabbab_",
            ),
            ("U__my__hack_2e", "U__my__hack_2e"),
            ("U__bad__utf_2eg_", "U__bad__utf_2eg_"),
            ("U__bad__utf_D900_", "U__bad__utf_D900_"),
        ] {
            assert_eq!(NameEscaping::Values.unescape(name), unescaped);
        }
    }

    #[test]
    fn names_are_valid_or_not() {
        use NameValidation::{Legacy, Utf8};
        for (name, legacy_metric, legacy_label) in [
            ("", false, false),
            ("a", true, true),
            ("_a1", true, true),
            (":a", true, false),
            ("1a", false, false),
            ("a.b", false, false),
            ("a\u{e9}", false, false),
        ] {
            assert_eq!(Legacy.is_metric_name(name), legacy_metric, "{name}");
            assert_eq!(Legacy.is_label_name(name), legacy_label, "{name}");
            assert_eq!(Utf8.is_metric_name(name), !name.is_empty(), "{name}");
            assert_eq!(Utf8.is_label_name(name), !name.is_empty(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn values_come_back(name in "\\PC*") {
            let escaped = NameEscaping::Values.escape(&name).into_owned();
            prop_assert!(name.is_empty() || NameValidation::Legacy.is_metric_name(&escaped));
            // A valid name that looks escaped is not escaped again.
            prop_assume!(!name.starts_with("U__"));
            prop_assert_eq!(NameEscaping::Values.unescape(&escaped), name);
        }
    }
}
