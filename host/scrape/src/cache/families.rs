//! Metadata of a target's metric families (type, help, unit) from its expositions.

use crate::store::FamilyMetadata;
use std::collections::HashMap;
use tidepool_exposition::MetricType;

/// Number of iterations that metadata is kept after its family was last exposed.
const ITERATIONS_KEPT: u32 = 10;

/// Metadata by the name of the family.
#[derive(Debug, Default)]
pub struct Families {
    families: HashMap<Box<str>, Family>,
    iteration: u32,
    /// Number of families that have changed since [`Families::take_changed`].
    changed: usize,
    /// Bytes of all types, helps and units.
    bytes: usize,
    /// Bytes of the names of all families.
    name_bytes: usize,
}

#[derive(Debug, Default)]
struct Family {
    kind: MetricType,
    help: Box<str>,
    unit: Box<str>,
    /// The last iteration that had the family.
    seen: u32,
    is_changed: bool,
}

impl Family {
    fn bytes(&self) -> usize {
        self.help.len() + self.unit.len() + self.kind.as_str().len()
    }
}

impl Families {
    pub fn set_kind(&mut self, family: &str, kind: MetricType) {
        self.update(family, |known| match known.kind == kind {
            true => false,
            false => {
                known.kind = kind;
                true
            }
        });
    }

    pub fn set_help(&mut self, family: &str, help: &str) {
        self.update(family, |known| replace(&mut known.help, help));
    }

    pub fn set_unit(&mut self, family: &str, unit: &str) {
        self.update(family, |known| replace(&mut known.unit, unit));
    }

    fn update(&mut self, name: &str, update: impl FnOnce(&mut Family) -> bool) {
        let family = match self.families.get_mut(name) {
            Some(family) => family,
            None => {
                // A new family is stored even if its metadata is the default.
                let family = Family { is_changed: true, ..Family::default() };
                self.changed += 1;
                self.bytes += family.bytes();
                self.name_bytes += name.len();
                self.families.entry(name.into()).or_insert(family)
            }
        };
        family.seen = self.iteration;
        let before = family.bytes();
        if update(family) {
            self.bytes = self.bytes - before + family.bytes();
            self.changed += usize::from(!family.is_changed);
            family.is_changed = true;
        }
    }

    /// Returns the metadata that has changed since the last call.
    pub fn take_changed(&mut self) -> Vec<FamilyMetadata> {
        // The usual case looks at no family: none has changed.
        if self.changed == 0 {
            return Vec::new();
        }
        self.changed = 0;
        let families = self.families.iter_mut().filter(|(_, family)| family.is_changed);
        families
            .map(|(name, family)| {
                family.is_changed = false;
                shown(name, family)
            })
            .collect()
    }

    /// Makes [`Families::take_changed`] return everything again, because its result was not stored.
    pub fn change_all(&mut self) {
        self.families.values_mut().for_each(|family| family.is_changed = true);
        self.changed = self.families.len();
    }

    /// Ends an iteration. If the cache is flushed, removes families not exposed for ten iterations.
    pub(super) fn finish(&mut self, is_flushed: bool) {
        if is_flushed {
            let iteration = self.iteration;
            self.retain(|family| iteration - family.seen <= ITERATIONS_KEPT);
        }
        self.iteration += 1;
    }

    /// Removes families whose last change is not stored yet, and frees their memory.
    pub(super) fn remove_changed(&mut self) {
        self.retain(|family| !family.is_changed);
        self.families.shrink_to_fit();
    }

    fn retain(&mut self, is_kept: impl Fn(&Family) -> bool) {
        let Families { families, bytes, name_bytes, changed, .. } = self;
        families.retain(|name, family| {
            let is_kept = is_kept(family);
            if !is_kept {
                *bytes -= family.bytes();
                *name_bytes -= name.len();
                *changed -= usize::from(family.is_changed);
            }
            is_kept
        });
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.name_bytes + self.families.capacity() * size_of::<(Box<str>, Family)>()
    }

    pub fn get(&self, family: &str) -> Option<FamilyMetadata> {
        self.families.get(family).map(|found| shown(family, found))
    }

    /// Returns all metadata by ascending name.
    pub fn list(&self) -> Vec<FamilyMetadata> {
        let mut list: Vec<FamilyMetadata> =
            self.families.iter().map(|(name, family)| shown(name, family)).collect();
        list.sort_by(|a, b| a.family.cmp(&b.family));
        list
    }

    pub fn len(&self) -> usize {
        self.families.len()
    }

    pub fn is_empty(&self) -> bool {
        self.families.is_empty()
    }

    /// Bytes of types, helps and units.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

fn replace(known: &mut Box<str>, text: &str) -> bool {
    if **known == *text {
        return false;
    }
    *known = text.into();
    true
}

fn shown(name: &str, family: &Family) -> FamilyMetadata {
    FamilyMetadata {
        family: name.to_owned(),
        kind: family.kind,
        help: family.help.to_string(),
        unit: family.unit.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_kept_for_ten_scrapes_and_told_once() {
        let mut families = Families::default();
        families.set_kind("a_total", MetricType::Counter);
        families.set_help("a_total", "help");
        families.set_unit("b", "bytes");
        let a = FamilyMetadata {
            family: "a_total".into(),
            kind: MetricType::Counter,
            help: "help".into(),
            unit: String::new(),
        };
        assert_eq!(families.get("a_total"), Some(a.clone()));
        assert_eq!((families.len(), families.bytes()), (2, "counterhelpunknownbytes".len()));
        assert_eq!(families.take_changed().len(), 2);
        families.finish(true);
        for _ in 0..ITERATIONS_KEPT {
            families.set_help("a_total", "help");
            families.finish(true);
        }
        assert!(families.take_changed().is_empty());
        assert_eq!(families.len(), 2);
        families.set_help("a_total", "other");
        families.finish(true);
        assert_eq!(families.take_changed(), [FamilyMetadata { help: "other".into(), ..a }]);
        assert_eq!((families.len(), families.bytes()), (1, "counterother".len()));
    }
}
