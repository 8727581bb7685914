//! A table of numbered places in pages, which grows without moving items and frees empty pages.

use std::marker::PhantomData;

const PAGE_PLACES: usize = 256;

/// A newtype of place numbers, so that places of different tables are not mixed up.
pub trait SlabIndex: Copy {
    fn of(number: u32) -> Self;
    fn number(self) -> u32;
}

/// Returns the capacity above which a table of `len` items is shrunk.
pub fn shrink_above(len: usize) -> usize {
    4 * len.max(PAGE_PLACES)
}

pub struct Slab<P, T> {
    pages: Vec<Page<T>>,
    /// Pages with free places, each listed once.
    open: Vec<u32>,
    len: usize,
    places: PhantomData<P>,
}

struct Page<T> {
    /// Empty while the page holds nothing.
    places: Box<[Option<T>]>,
    used: u32,
    /// No place below this one is free.
    free_from: u32,
    is_open: bool,
}

impl<P, T> Default for Slab<P, T> {
    fn default() -> Slab<P, T> {
        Slab { pages: Vec::new(), open: Vec::new(), len: 0, places: PhantomData }
    }
}

impl<P: SlabIndex, T> Slab<P, T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn place_count(&self) -> u32 {
        (self.pages.len() * PAGE_PLACES) as u32
    }

    #[inline]
    pub fn get(&self, place: P) -> Option<&T> {
        let place = place.number() as usize;
        self.pages.get(place / PAGE_PLACES)?.places.get(place % PAGE_PLACES)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, place: P) -> Option<&mut T> {
        let place = place.number() as usize;
        self.pages.get_mut(place / PAGE_PLACES)?.places.get_mut(place % PAGE_PLACES)?.as_mut()
    }

    /// Stores an item and returns its place.
    pub fn insert(&mut self, held: T) -> P {
        let number = match self.open.last() {
            Some(number) => *number,
            None => {
                let (places, used, free_from) = (Box::default(), 0, 0);
                self.pages.push(Page { places, used, free_from, is_open: true });
                let number = self.pages.len() as u32 - 1;
                self.open.push(number);
                number
            }
        };
        let page = &mut self.pages[number as usize];
        if page.places.is_empty() {
            // The page is new, or became empty and freed its places.
            page.places = (0..PAGE_PLACES).map(|_| None).collect();
            page.free_from = 0;
        }
        let from = page.free_from as usize;
        let free = page.places[from..].iter().position(Option::is_none).unwrap_or(0);
        let at = from + free;
        page.places[at] = Some(held);
        page.free_from = at as u32 + 1;
        page.used += 1;
        self.len += 1;
        if page.used as usize == PAGE_PLACES {
            page.is_open = false;
            // The full page is the last of `open`, from which `number` was taken.
            self.open.pop();
        }
        P::of(number * PAGE_PLACES as u32 + at as u32)
    }

    pub fn remove(&mut self, place: P) -> Option<T> {
        let place = place.number();
        let (number, at) = (place as usize / PAGE_PLACES, place as usize % PAGE_PLACES);
        let page = self.pages.get_mut(number)?;
        let held = page.places.get_mut(at)?.take()?;
        page.used -= 1;
        page.free_from = page.free_from.min(at as u32);
        self.len -= 1;
        if page.used == 0 {
            page.places = Box::default();
        }
        // A page is listed once, however many of its places are free.
        if !page.is_open {
            page.is_open = true;
            self.open.push(number as u32);
        }
        Some(held)
    }

    /// Upper bound of place numbers, exclusive.
    pub fn end(&self) -> u32 {
        (self.pages.len() * PAGE_PLACES) as u32
    }

    pub fn iter(&self) -> impl Iterator<Item = P> + '_ {
        self.all().filter(|place| self.get(*place).is_some())
    }

    pub fn all(&self) -> impl Iterator<Item = P> + use<P, T> {
        (0..self.end()).map(P::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SlabIndex for u32 {
        fn of(number: u32) -> u32 {
            number
        }

        fn number(self) -> u32 {
            self
        }
    }

    #[test]
    fn places_are_used_again_and_empty_pages_are_given_back() {
        let mut slab = Slab::<u32, u32>::default();
        let given: Vec<u32> = (0..600).map(|number| slab.insert(number)).collect();
        assert_eq!(given, (0..600).collect::<Vec<_>>());
        assert_eq!(slab.remove(7), Some(7));
        assert!(slab.remove(7).is_none() && slab.get(7).is_none());
        assert!(slab.get(100_000).is_none());
        assert_eq!((slab.len(), slab.iter().count()), (599, 599));
        assert_eq!(slab.insert(9), 7);
        for place in 256..512 {
            assert_eq!(slab.remove(place), Some(place));
        }
        assert!(slab.pages[1].places.is_empty() && slab.get(300).is_none());
        assert_eq!((slab.len(), slab.iter().count()), (344, 344));
        let again: std::collections::BTreeSet<u32> = (0..500).map(|n| slab.insert(n)).collect();
        assert_eq!((again.len(), slab.len()), (500, 844));
        assert!(again.iter().all(|place| !(0..256).contains(place)), "those were in use");
    }

    /// Against a plain map, over random operations.
    #[test]
    fn it_holds_what_a_map_holds() {
        let (mut slab, mut map) = (Slab::<u32, u32>::default(), std::collections::BTreeMap::new());
        let mut state = 7u64;
        for step in 0..20_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = (state >> 33) as u32;
            let is_growing = step % 4000 < 2400;
            if (random % 100 < 70) == is_growing {
                let place = slab.insert(step);
                assert_eq!(map.insert(place, step), None, "place {place} was in use");
            } else {
                let place = map.keys().nth(random as usize % map.len().max(1)).copied();
                let place = place.unwrap_or(random);
                assert_eq!(slab.remove(place), map.remove(&place));
            }
            assert_eq!(slab.len(), map.len());
        }
        assert!(slab.iter().eq(map.keys().copied()));
        assert!(map.iter().all(|(place, held)| slab.get(*place) == Some(held)));
    }
}
