//! The runs of a daemon within one incarnation of its host, and the numbers of what each sends.
//!
//! The first run is 0. A daemon that is started again has the next run, and knows nothing of what the one before has sent. So the
//! numbers of a run are above all of those before it, and what comes late from an earlier run is recognised.

/// A run has so many bits of numbers for itself.
const RUN_SHIFT: u32 = 32;

/// The number below all that a run of a daemon gives to heartbeats and requests.
#[must_use]
pub const fn numbers_before(run: u32) -> u64 {
    (run as u64) << RUN_SHIFT
}

/// The run of the daemon that has given this number.
#[must_use]
pub const fn run_of(number: u64) -> u32 {
    (number >> RUN_SHIFT) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_run_are_above_those_of_the_run_before() {
        assert_eq!((numbers_before(0), numbers_before(1)), (0, 1 << 32));
        let last_of_first = numbers_before(1) - 1;
        assert_eq!([last_of_first, last_of_first + 1, u64::MAX].map(run_of), [0, 1, u32::MAX]);
    }
}
