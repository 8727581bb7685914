//! Texts that identify series. Of a series' labels, only its text and the text's form (its syntax)
//! are kept; the labels are parsed from the text when needed.

use crate::error::{ScrapeError, parse_error};
use crate::labels::METRIC_NAME;
use tidepool_exposition as exposition;

/// Separates the parts of a text. UTF-8 never contains this byte.
const BORDER: u8 = 0xff;

/// A series as a target exposes it.
pub trait Series {
    /// Returns the text that identifies the series, the same in every scrape. It is not empty.
    fn text(&self) -> &[u8];
    /// Returns the syntax of the text.
    fn form(&self) -> Form;
    /// Returns the exposed labels, including the metric's name, in any order; values may be empty.
    /// Fails on a syntax error.
    fn labels(&self) -> Result<Vec<(String, String)>, ScrapeError> {
        self.form().labels(self.text())
    }
}

/// Syntax of a text that identifies a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A series as an exposition writes it.
    Exposition(exposition::SeriesForm),
    /// Parts that [`Parts::write`] joined.
    Parts,
}

impl Form {
    pub fn labels(self, text: &[u8]) -> Result<Vec<(String, String)>, ScrapeError> {
        match self {
            Form::Exposition(form) => {
                let text = std::str::from_utf8(text).map_err(parse_error)?;
                form.given_labels(text).map_err(parse_error)
            }
            Form::Parts => {
                let mut parts = text
                    .split(|byte| *byte == BORDER)
                    .map(|part| String::from_utf8_lossy(part).into_owned());
                // An empty first part means that the metric's name is among the labels.
                let name = parts.next().filter(|name| !name.is_empty());
                let mut labels: Vec<(String, String)> =
                    name.map(|name| (METRIC_NAME.to_owned(), name)).into_iter().collect();
                while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
                    labels.push((name, value));
                }
                Ok(labels)
            }
        }
    }
}

/// Text of a series joined from parts: the metric's name, then each label's name and value.
pub struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    /// Joins the parts of a series in the buffer `text`. An empty `name` means that the metric's
    /// name is among the labels.
    pub fn write<'l>(
        text: &'a mut Vec<u8>,
        name: &str,
        labels: impl Iterator<Item = (&'l str, &'l str)>,
    ) -> Parts<'a> {
        text.clear();
        text.extend_from_slice(name.as_bytes());
        for part in labels.flat_map(|(name, value)| [name, value]) {
            text.push(BORDER);
            text.extend_from_slice(part.as_bytes());
        }
        Parts(text)
    }
}

impl Series for Parts<'_> {
    fn text(&self) -> &[u8] {
        self.0
    }

    fn form(&self) -> Form {
        Form::Parts
    }
}

impl Series for exposition::Series<'_> {
    fn text(&self) -> &[u8] {
        exposition::Series::text(self).as_bytes()
    }

    fn form(&self) -> Form {
        Form::Exposition(exposition::Series::form(self))
    }

    // Overridden, because this error has the position in the body.
    fn labels(&self) -> Result<Vec<(String, String)>, ScrapeError> {
        exposition::Series::given_labels(self).map_err(parse_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let mut text = Vec::new();
        let labels = [("a", "1"), ("empty", ""), ("ü", "{}\n")];
        let expected = |name: &[(&str, &str)]| {
            let pairs = name.iter().chain(&labels);
            pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let named = Parts::write(&mut text, "m", labels.into_iter());
        assert_eq!(named.labels(), Ok(expected(&[(METRIC_NAME, "m")])));
        let unnamed = Parts::write(&mut text, "", labels.into_iter());
        assert_eq!(unnamed.labels(), Ok(expected(&[])));
        assert_eq!(
            Parts::write(&mut text, "m", std::iter::empty()).labels().map(|l| l.len()),
            Ok(1)
        );
    }
}
