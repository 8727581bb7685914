//! Label names of series, each list stored once: the series of a target share a few lists.

use super::symbols::SymbolId;
use std::collections::HashSet;
use std::rc::Rc;

/// Label names in ascending order of their text. A thin pointer, since every series has one.
pub type NameList = Rc<Box<[SymbolId]>>;

pub struct SeriesLabels {
    names: NameList,
    values: Box<[SymbolId]>,
}

#[derive(Default)]
pub struct NameLists {
    lists: HashSet<NameList, rustc_hash::FxBuildHasher>,
}

impl NameLists {
    /// Returns labels with these names and as many values.
    pub fn labels(&mut self, names: Box<[SymbolId]>, values: Box<[SymbolId]>) -> SeriesLabels {
        SeriesLabels { names: self.list(names), values }
    }

    pub fn list(&mut self, names: Box<[SymbolId]>) -> NameList {
        let names = Rc::new(names);
        match self.lists.get(&names) {
            Some(known) => Rc::clone(known),
            None => {
                self.lists.insert(Rc::clone(&names));
                names
            }
        }
    }

    /// Releases the labels of a dropped series, and the list of their names if no series has it.
    pub fn release(&mut self, labels: SeriesLabels) {
        // Two references are left: `labels.names` and the one in `lists`.
        if Rc::strong_count(&labels.names) == 2 {
            self.lists.remove(&labels.names);
        }
    }
}

impl SeriesLabels {
    pub fn new(names: &NameList, values: Box<[SymbolId]>) -> SeriesLabels {
        SeriesLabels { names: Rc::clone(names), values }
    }

    pub fn names(&self) -> &NameList {
        &self.names
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (SymbolId, SymbolId)> + '_ {
        self.names.iter().copied().zip(self.values.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_stored_once_and_as_long_as_it_is_used() {
        let mut lists = NameLists::default();
        let symbols = |ids: &[u32]| ids.iter().copied().map(SymbolId).collect::<Box<[_]>>();
        let first = lists.labels(symbols(&[1, 2]), symbols(&[3, 4]));
        let second = lists.labels(symbols(&[1, 2]), symbols(&[5, 6]));
        assert!(Rc::ptr_eq(&first.names, &second.names));
        assert_eq!(
            second.iter().collect::<Vec<_>>(),
            [(SymbolId(1), SymbolId(5)), (SymbolId(2), SymbolId(6)),]
        );
        lists.release(first);
        assert_eq!((lists.lists.len(), second.len()), (1, 2));
        lists.release(second);
        assert!(lists.lists.is_empty());
    }
}
