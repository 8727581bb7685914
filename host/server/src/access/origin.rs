//! Origins of browser pages that may read responses (CORS).

use std::str::FromStr;
use std::sync::Arc;
use tidepool_relabel::Pattern;

/// The allowed origins, as a regular expression that must match the whole origin.
#[derive(Clone, Debug)]
pub struct CorsOrigin {
    expression: String,
    pattern: Arc<Pattern>,
}

impl CorsOrigin {
    pub fn expression(&self) -> &str {
        &self.expression
    }

    pub fn is_any(&self) -> bool {
        self.pattern.takes_all()
    }

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
