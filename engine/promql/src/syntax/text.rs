//! String values, which need not be UTF-8.

use super::quote::{push_letters, push_quoted};

/// A string value. Escapes such as `\xff` can make bytes that are not UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// The text, with replacement characters where it is not UTF-8.
    shown: String,
    /// The bytes, if they are not UTF-8.
    bytes: Option<Box<[u8]>>,
}

impl Text {
    /// Makes a text of these bytes.
    pub fn new(bytes: Vec<u8>) -> Text {
        match String::from_utf8(bytes) {
            Ok(shown) => Text { shown, bytes: None },
            Err(error) => {
                let bytes = error.into_bytes();
                let shown = String::from_utf8_lossy(&bytes).into_owned();
                Text { shown, bytes: Some(bytes.into()) }
            }
        }
    }

    /// Returns the text, with replacement characters where it is not UTF-8.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// Returns the text, if it is UTF-8.
    pub fn utf8(&self) -> Option<&str> {
        self.bytes.is_none().then_some(&self.shown)
    }

    /// Returns the text, if it can be the name of a label.
    pub fn label_name(&self) -> Option<&str> {
        self.utf8().filter(|name| !name.is_empty())
    }

    /// Returns the text in double quotes, without loss of bytes.
    pub fn quoted(&self) -> String {
        let mut out = String::with_capacity(self.shown.len() + 2);
        match &self.bytes {
            None => push_quoted(&self.shown, &mut out),
            Some(bytes) => {
                out.push('"');
                for chunk in bytes.utf8_chunks() {
                    push_letters(chunk.valid(), &mut out);
                    for byte in chunk.invalid() {
                        out.push_str(&format!("\\x{byte:02x}"));
                    }
                }
                out.push('"');
            }
        }
        out
    }
}

impl From<String> for Text {
    fn from(shown: String) -> Text {
        Text { shown, bytes: None }
    }
}
