//! Metadata as bytes; the layout is in `engine/docs/format/head.md`.

use super::{Entry, METADATA_FAMILIES_MAX, Metadata, MetadataTable};
use crate::head::saved::{Bytes, SavedHeadError};
use std::cell::Cell;

impl MetadataTable {
    /// Appends the metadata of a family.
    pub(in crate::head) fn put_state(&self, family: &str, out: &mut Vec<u8>) {
        let Some(Entry { metadata, is_logged }) = self.families.get(family) else { return };
        out.push(u8::from(is_logged.get()));
        out.extend_from_slice(&metadata.metric_type.to_le_bytes());
        for text in [family, &metadata.help, &metadata.unit] {
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
    }

    /// Restores the metadata of a family.
    pub(in crate::head) fn take_state(
        &mut self,
        bytes: &mut Bytes<'_>,
    ) -> Result<(), SavedHeadError> {
        let (is_logged, metric_type) = (bytes.flag()?, bytes.u32()?);
        let family = bytes.text()?;
        let (help, unit) = (bytes.text()?, bytes.text()?);
        if self.families.len() < METADATA_FAMILIES_MAX {
            let metadata = Metadata::new(metric_type, help.as_bytes(), unit.as_bytes());
            let entry = Entry { metadata, is_logged: Cell::new(is_logged) };
            self.families.insert(family.into(), entry);
        }
        Ok(())
    }
}
