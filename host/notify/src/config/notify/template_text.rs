//! Texts of the configuration that are templates.

use std::fmt;
use std::sync::Arc;
use tidepool_rules::template::{Limits, NotificationView, Template, TemplateError};

/// A template that parses. `Debug` shows a checksum in place of the text, which may have a token.
#[derive(Clone, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct TemplateText {
    text: String,
    template: Arc<Template>,
}

impl TemplateText {
    pub fn parse(text: &str) -> Result<TemplateText, TemplateError> {
        // Errors show no name, as in upstream's templates, which have none.
        let template = Arc::new(Template::of_notification("", text)?);
        Ok(TemplateText { text: text.to_owned(), template })
    }

    pub fn expand(
        &self,
        view: &NotificationView,
        limits: &Limits,
    ) -> Result<String, TemplateError> {
        self.template.expand_notification(view, limits)
    }
}

impl TryFrom<String> for TemplateText {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<TemplateText, TemplateError> {
        TemplateText::parse(&text)
    }
}

impl PartialEq for TemplateText {
    fn eq(&self, other: &TemplateText) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for TemplateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<template {:08x}>", crc32c::crc32c(self.text.as_bytes()))
    }
}
