//! The share of the processors' time that the measurement had.
//!
//! A measurement never rests until it is done. Missing time went to other programs or a virtual machine's host, or a
//! container has a limit. A process switch then takes until the others have had their turn, which is milliseconds.

use landeck::{Result, Sum, World};
use landeck_measure::clock;
use landeck_memory::system;

/// A share of the processors' time, in permille.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Share(u64);

impl Share {
    /// All of the time.
    pub(crate) const WHOLE: Self = Self(1000);
    /// A measurement with less has measured the others as well.
    const LEAST: Self = Self(750);

    /// A share of at most 1,000 permille.
    pub(super) fn of_permille(permille: u64) -> Self {
        Self(permille.min(1000))
    }

    /// A warning if the share is too small for figures.
    pub(crate) fn trouble(self) -> Option<String> {
        let percent = self.0 / 10;
        (self < Self::LEAST).then(|| {
            format!(
                "while this host was measured, others used its processors, or a limit kept them from us: of \
                 their time we had {percent}% in the best round"
            )
        })
    }
}

/// A measurement in progress.
pub(super) struct Begun {
    used_ns: u64,
    at_ns: u64,
}

impl Begun {
    /// Begins in all processes of a job at once.
    ///
    /// # Errors
    ///
    /// Those of [`World::barrier`].
    pub(super) fn together(world: &World) -> Result<Self> {
        world.barrier()?;
        let [used_ns, at_ns] = now_ns();
        Ok(Self { used_ns, at_ns })
    }

    /// The share of these processors that all processes of the job have used since the beginning, in permille. Only
    /// rank 0 learns it.
    ///
    /// # Errors
    ///
    /// Those of [`World::reduce`].
    pub(super) fn permille(self, world: &World, processors: u32) -> Result<u64> {
        let [used_ns, at_ns] = now_ns();
        let mut all_used_ns = [0u64];
        world.reduce(&[used_ns - self.used_ns], &mut all_used_ns, Sum, 0)?;
        Ok(permille(all_used_ns[0], at_ns - self.at_ns, processors))
    }
}

fn permille(used_ns: u64, passed_ns: u64, processors: u32) -> u64 {
    let whole_ns = u128::from(passed_ns.max(1)) * u128::from(processors.max(1));
    u64::try_from(u128::from(used_ns) * 1000 / whole_ns).unwrap_or(u64::MAX)
}

/// The processor time of this process, and the time.
fn now_ns() -> [u64; 2] {
    [clock::process_ns(), system::now_ns()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_the_time_of_all_processors() {
        assert_eq!(permille(1_500, 1_000, 2), 750);
        assert_eq!(permille(1_500, 1_000, 1), 1_500, "clocks differ by a little");
        assert_eq!((permille(7, 0, 0), permille(0, 9, 1)), (7_000, 0));
        assert_eq!(Share::of_permille(1_500), Share::WHOLE);
    }

    #[test]
    fn less_than_three_quarters_is_said() {
        assert_eq!(Share::WHOLE.trouble(), None);
        assert_eq!(Share::of_permille(750).trouble(), None);
        let said = Share::of_permille(749).trouble().unwrap();
        assert!(said.ends_with("we had 74% in the best round"), "{said}");
    }
}
