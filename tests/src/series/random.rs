//! A small seeded generator (SplitMix64, Steele, Lea and Flood 2014): the same seed gives the same
//! numbers on every machine and with every version of every library.

#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Makes a generator for one purpose; different streams of one seed are unrelated.
    pub fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random { state: seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95) };
        random.next_u64();
        random
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a whole number below the bound, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a fraction in `[0, 1)`.
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns true once in this number of times on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns one of the items.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_inside_their_bounds() {
        let mut random = Random::new(1, 2);
        for _ in 0..1_000 {
            assert!(random.below(3) < 3);
            assert!((0.0..1.0).contains(&random.fraction()));
        }
    }

    #[test]
    fn streams_differ() {
        assert_ne!(Random::new(1, 1).next_u64(), Random::new(1, 2).next_u64());
    }
}
