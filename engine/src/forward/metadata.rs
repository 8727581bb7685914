//! Metadata of metric families, for requests of both versions.

use super::Forwarder;
use super::series::Metadata;
use crate::wire::put_family_metadata;

/// Largest number of metric families whose metadata is sent.
const FAMILIES_MAX: usize = 100_000;

impl Forwarder {
    pub(super) fn take_metadata<'m>(
        &mut self,
        rows: impl Iterator<Item = crate::wal::MetadataRecord<'m>>,
    ) {
        for row in rows {
            let (help, unit) =
                (self.series.symbols.intern(row.help), self.series.symbols.intern(row.unit));
            if let Some(at) = self.series.by_ref(row.series_ref)
                && let Some(series) = self.series.get_mut(at)
            {
                series.metadata = Some(Metadata { kind: row.kind, help, unit });
            }
            let is_known = self.families.contains_key(row.family);
            if !row.family.is_empty() && (is_known || self.families.len() < FAMILIES_MAX) {
                let said = (row.kind, row.help.to_owned(), row.unit.to_owned());
                self.families.insert(row.family.to_owned(), said);
            }
        }
    }

    /// Returns a 1.0 request with metadata of the families whose names follow `after`, and the last
    /// of these names; `None` at the end.
    pub fn metadata_request(&self, after: &str, families_max: usize) -> Option<(Vec<u8>, String)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let mut body = Vec::new();
        let mut last = None;
        let families = self.families.range::<str, _>((Excluded(after), Unbounded));
        for (family, (kind, help, unit)) in families.take(families_max.max(1)) {
            put_family_metadata(&mut body, *kind, family, help, unit);
            last = Some(family.clone());
        }
        Some((body, last?))
    }
}
