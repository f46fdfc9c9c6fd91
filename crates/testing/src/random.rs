//! Random numbers that can be replayed.

use std::time::{SystemTime, UNIX_EPOCH};

/// The seed of this test: `LANDECK_SEED` if it is set, otherwise a new one. It is printed, so that a failing test can
/// be repeated.
///
/// # Panics
/// If `LANDECK_SEED` is not a number.
pub fn seed() -> u64 {
    let seed = match std::env::var("LANDECK_SEED") {
        Ok(text) => text.parse().expect("LANDECK_SEED must be a number"),
        Err(_) => fresh_seed(),
    };
    println!("replay with LANDECK_SEED={seed}");
    seed
}

/// A small generator (splitmix64): the same seed gives the same numbers everywhere.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Creates a generator that starts at `seed`.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// True once in `n` times on the average.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Picks one of the items.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Random::new(now.as_nanos() as u64 ^ u64::from(std::process::id())).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            (0..8).map(|_| random.bits()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert_eq!(numbers(0)[0], 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn bounded_numbers_stay_below_and_reach_everything() {
        let mut random = Random::new(seed());
        let mut seen = [false; 10];
        (0..1_000).for_each(|_| seen[random.below(10) as usize] = true);
        assert_eq!(seen, [true; 10]);
        assert_eq!(random.below(0), 0);
    }
}
