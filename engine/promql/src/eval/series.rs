//! Series inside the pipeline, and series of the answer.

use super::budget::Usage;
use super::column::Column;
use crate::functions::Dropped;
use crate::model::{Labels, NAME, Samples, drop_metadata};

/// A series in the pipeline, with its values at all steps.
#[derive(Clone, Debug, Default)]
pub struct Series {
    pub labels: Labels,
    /// Whether name, type and unit are to be dropped at the end.
    pub drop_name: bool,
    pub column: Column,
}

impl Series {
    pub fn scalar(column: Column) -> Series {
        Series { column, ..Series::default() }
    }

    pub fn held(&self) -> Usage {
        Usage {
            bytes: size_of::<Series>() + self.labels.bytes() + self.column.bytes(),
            samples: self.column.samples(),
        }
    }

    /// Drops name and metadata, or marks the series if removal is delayed.
    pub fn drop(&mut self, dropped: Dropped, is_delayed: bool) {
        match dropped {
            Dropped::Nothing => {}
            _ if is_delayed => self.drop_name = true,
            Dropped::Name => self.labels.remove(NAME),
            Dropped::Metadata => drop_metadata(&mut self.labels),
        }
    }
}

/// A series of the answer, with its samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultSeries {
    /// Label set; unique within an answer.
    pub labels: Labels,
    /// Samples: at most one for an instant query, unless the query selects a range.
    pub samples: Samples,
}
