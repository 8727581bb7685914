//! Type, help and unit of metric families, as senders tell them.
//!
//! Kept in memory: senders repeat metadata, so a restart loses it for a minute at most.

use std::collections::BTreeMap;

/// Most metric families that metadata is kept for; later ones are not.
pub const METADATA_FAMILIES_MAX: usize = 100_000;

/// Longest help or unit text that is kept, in bytes; the rest is cut off.
const TEXT_BYTES_MAX: usize = 1024;

/// What a sender says of a metric family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Number of the type as in `prometheus.MetricMetadata.MetricType`; 0 is unknown.
    pub metric_type: u32,
    /// What the metric means.
    pub help: Box<str>,
    /// Its unit.
    pub unit: Box<str>,
}

/// Metadata by family name.
#[derive(Default)]
pub struct MetadataTable {
    families: BTreeMap<Box<str>, Metadata>,
}

impl MetadataTable {
    /// Takes what a sender says; the newest word counts. Text that is not UTF-8 is mended.
    pub fn set(&mut self, family: &[u8], metric_type: u32, help: &[u8], unit: &[u8]) {
        let family = String::from_utf8_lossy(family);
        if let Some(known) = self.families.get(&*family)
            && known.metric_type == metric_type
            && known.help.as_bytes() == help
            && known.unit.as_bytes() == unit
        {
            return;
        }
        if self.families.len() >= METADATA_FAMILIES_MAX && !self.families.contains_key(&*family) {
            return;
        }
        let metadata = Metadata { metric_type, help: text(help), unit: text(unit) };
        self.families.insert(family.into(), metadata);
    }

    /// All families by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Metadata)> {
        self.families.iter().map(|(family, metadata)| (&**family, metadata))
    }
}

fn text(bytes: &[u8]) -> Box<str> {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.into()
}
