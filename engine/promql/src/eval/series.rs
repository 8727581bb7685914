//! Series on their way through the operators, and what the caller gets.

use super::budget::Held;
use super::column::Column;
use crate::functions::Dropped;
use crate::model::{Labels, Samples};

/// Labels that say what a metric is, beside its name.
const METADATA: [&str; 2] = ["__type__", "__unit__"];

/// The metric's name.
pub const NAME: &str = "__name__";

/// One series at all steps.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Its labels.
    pub labels: Labels,
    /// Whether name and metadata are to be taken out at the end.
    pub drop_name: bool,
    /// Its values.
    pub column: Column,
}

impl Series {
    /// A series without labels.
    pub fn scalar(column: Column) -> Series {
        Series { column, ..Series::default() }
    }

    /// What it takes.
    pub fn held(&self) -> Held {
        Held {
            bytes: size_of::<Series>() + self.labels.bytes() + self.column.bytes(),
            samples: self.column.samples(),
        }
    }

    /// Takes name and metadata out, or notes that for the end.
    pub fn drop(&mut self, dropped: Dropped, is_delayed: bool) {
        match dropped {
            Dropped::Nothing => {}
            _ if is_delayed => self.drop_name = true,
            Dropped::Name => self.labels.remove(NAME),
            Dropped::Metadata => drop_metadata(&mut self.labels),
        }
    }
}

/// Whether a label is the metric's name, type or unit.
pub fn is_metadata(name: &str) -> bool {
    name == NAME || METADATA.contains(&name)
}

/// Takes name, type and unit out.
pub fn drop_metadata(labels: &mut Labels) {
    labels.retain(|name, _| !is_metadata(name));
}

/// Whether there is a type or a unit.
pub fn has_metadata(labels: &Labels) -> bool {
    METADATA.iter().any(|name| !labels.get(name).is_empty())
}

/// Whether the first label beside the name comes behind type and unit. In the order of labels all
/// that follow have neither, so that series of one name differ in other labels.
pub fn begins_behind_metadata(labels: &Labels) -> bool {
    let first = labels.iter().map(|(name, _)| name).find(|name| *name != NAME);
    first.is_some_and(|first| METADATA.iter().all(|name| first > *name))
}

/// A series of the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultSeries {
    /// Its labels.
    pub labels: Labels,
    /// Its samples: one at most for an instant query, but for those that select a range.
    pub samples: Samples,
}
