//! Which pages in a browser may read answers, by the origin that the browser names.

use regex_automata::meta::Regex;
use std::str::FromStr;

/// The origins that are allowed: those that an expression matches as a whole.
#[derive(Clone, Debug)]
pub struct CorsOrigin {
    expression: String,
    /// `None` allows all.
    regex: Option<Regex>,
}

impl CorsOrigin {
    /// The expression, as it was given.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Whether all origins are allowed.
    pub fn is_any(&self) -> bool {
        self.regex.is_none()
    }

    /// Whether an origin is allowed.
    pub fn matches(&self, origin: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(origin))
    }
}

impl FromStr for CorsOrigin {
    type Err = String;

    fn from_str(expression: &str) -> Result<CorsOrigin, String> {
        let allowing = |regex| CorsOrigin { expression: expression.to_owned(), regex };
        if expression == ".*" {
            return Ok(allowing(None));
        }
        // Compiled alone first, so that one like `a)(b` cannot close the group.
        let compile = |text: &str| {
            Regex::new(text).map_err(|error| {
                format!("{expression:?} is not a valid regular expression: {error}")
            })
        };
        compile(expression)?;
        let regex = compile(&format!("^(?:{expression})$"))?;
        Ok(allowing(Some(regex)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_matched_as_a_whole() -> Result<(), String> {
        let origins: CorsOrigin = "https?://(a|b)\\.example".parse()?;
        assert!(!origins.is_any());
        assert!(origins.matches("http://a.example") && origins.matches("https://b.example"));
        assert!(
            !origins.matches("https://b.example.org") && !origins.matches("x https://b.example")
        );
        assert!(".*".parse::<CorsOrigin>()?.is_any());
        assert!("a)(b".parse::<CorsOrigin>().is_err());
        Ok(())
    }
}
