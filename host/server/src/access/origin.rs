//! Which pages in a browser may read answers, by the origin that the browser names.

use std::str::FromStr;
use std::sync::Arc;
use tidepool_relabel::Pattern;

/// The origins that are allowed: those that an expression matches as a whole.
#[derive(Clone, Debug)]
pub struct CorsOrigin {
    expression: String,
    pattern: Arc<Pattern>,
}

impl CorsOrigin {
    /// The expression, as it was given.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Whether all origins are allowed.
    pub fn is_any(&self) -> bool {
        self.pattern.takes_all()
    }

    /// Whether an origin is allowed.
    pub fn matches(&self, origin: &str) -> bool {
        self.pattern.is_match(origin)
    }
}

impl FromStr for CorsOrigin {
    type Err = String;

    fn from_str(expression: &str) -> Result<CorsOrigin, String> {
        let pattern = Pattern::new(expression).map_err(|error| {
            format!("{expression:?} is not a valid regular expression: {error}")
        })?;
        Ok(CorsOrigin { expression: expression.to_owned(), pattern: Arc::new(pattern) })
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
