//! The head's series by slot, in pages, so that the table grows without moving what it holds.

use super::series::{Series, Slot};

/// Series of a page.
const PAGE_SERIES: usize = 256;

/// The table.
#[derive(Default)]
pub struct Slots {
    pages: Vec<Box<[Option<Series>]>>,
    /// Slots that were used and are not, and those of the last page that never were.
    free: Vec<Slot>,
}

impl Slots {
    /// How many series there are.
    pub fn len(&self) -> usize {
        self.pages.len() * PAGE_SERIES - self.free.len()
    }

    /// The series in a slot, if there is one.
    #[inline]
    pub fn get(&self, slot: Slot) -> Option<&Series> {
        let place = slot.0 as usize;
        self.pages.get(place / PAGE_SERIES)?[place % PAGE_SERIES].as_ref()
    }

    /// The series in a slot, if there is one.
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Series> {
        let place = slot.0 as usize;
        self.pages.get_mut(place / PAGE_SERIES)?[place % PAGE_SERIES].as_mut()
    }

    /// Gives a series a slot.
    pub fn insert(&mut self, series: Series) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| self.add_page());
        let place = slot.0 as usize;
        if let Some(page) = self.pages.get_mut(place / PAGE_SERIES) {
            page[place % PAGE_SERIES] = Some(series);
        }
        slot
    }

    /// Adds a page and gives its first slot.
    fn add_page(&mut self) -> Slot {
        let first = (self.pages.len() * PAGE_SERIES) as u32;
        self.pages.push((0..PAGE_SERIES).map(|_| None).collect());
        let others = first + 1..first + PAGE_SERIES as u32;
        self.free.extend(others.rev().map(Slot));
        Slot(first)
    }

    /// Takes a series out.
    pub fn remove(&mut self, slot: Slot) -> Option<Series> {
        let place = slot.0 as usize;
        let series = self.pages.get_mut(place / PAGE_SERIES)?[place % PAGE_SERIES].take()?;
        self.free.push(slot);
        Some(series)
    }

    /// Slots in use, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        self.all().filter(|slot| self.get(*slot).is_some())
    }

    /// Slots in use or not, ascending.
    pub fn all(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..(self.pages.len() * PAGE_SERIES) as u32).map(Slot)
    }
}

#[cfg(test)]
mod tests {
    use super::super::label_names::NameLists;
    use super::super::series::SeriesKey;
    use super::*;

    #[test]
    fn slots_are_used_again_from_the_lowest_page_on() {
        let mut slots = Slots::default();
        let mut names = NameLists::default();
        let mut series = |number| {
            let labels = names.labels(Box::default(), Box::default());
            Series::new(number, SeriesKey::default(), labels)
        };
        let given: Vec<u32> = (0..600).map(|number| slots.insert(series(number)).0).collect();
        assert_eq!(given, (0..600).collect::<Vec<_>>());
        assert_eq!(slots.remove(Slot(7)).map(|series| series.series_ref), Some(7));
        assert!(slots.remove(Slot(7)).is_none() && slots.get(Slot(7)).is_none());
        assert!(slots.get(Slot(100_000)).is_none());
        assert_eq!((slots.len(), slots.iter().count()), (599, 599));
        assert_eq!(slots.insert(series(9)), Slot(7));
    }
}
