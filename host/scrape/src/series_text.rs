//! How texts name series. A text and its form are all that is remembered of a series' labels: they
//! are made again where they are needed.

use crate::error::{ScrapeError, parse_error};
use crate::labels::METRIC_NAME;
use tidepool_exposition as exposition;

/// Stands between the parts of a text. It is in no text of an exposition.
const BORDER: u8 = 0xff;

/// A series as a target exposes it.
pub trait Series {
    /// What identifies it: the same text is the same series in every scrape. Not empty.
    fn text(&self) -> &[u8];
    /// How the text is to be read.
    fn form(&self) -> Form;
    /// Its labels as they are given, the metric's name among them, in any order: some may be empty.
    /// An error is one of syntax.
    fn labels(&self) -> Result<Vec<(String, String)>, ScrapeError> {
        self.form().labels(self.text())
    }
}

/// How a text is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As a series in an exposition.
    Exposition(exposition::SeriesForm),
    /// As [`Parts`] write it.
    Parts,
}

impl Form {
    /// The labels of a text.
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

/// A series that is written from its parts: the name, then each label's name and value.
pub struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    /// Writes one; without a name, it is among the labels. `text` is used again by the next one.
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

    // With the place of what is wrong.
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
