//! Series on their way through the operators, and what the caller gets.

use super::budget::Held;
use super::column::Column;
use crate::functions::Dropped;
use crate::model::{Labels, NAME, Samples, drop_metadata};

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

/// A series of the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultSeries {
    /// Its labels.
    pub labels: Labels,
    /// Its samples: one at most for an instant query, but for those that select a range.
    pub samples: Samples,
}
