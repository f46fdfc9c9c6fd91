//! The paths of messages to other hosts, as the settings of a job say.

use landeck_channel::incast::Incast;
use landeck_collectives::Settings;
use landeck_wire::way::PathWish;
use rustix::process::{Resource, getrlimit};

/// The most lanes of a process if nothing says otherwise.
const LANES_MAX: u64 = 1024;

/// The wishes for paths, equal in all processes of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paths {
    pub(crate) wish: PathWish,
    /// The most lanes of a process, if the user says so.
    pub(crate) lanes_max: Option<u32>,
    pub(crate) incast: Incast,
}

impl Paths {
    /// The wishes as words of a job's settings.
    pub(crate) fn to_words(self) -> [u64; Settings::PATHS_WORDS] {
        let [pace, number] = self.incast.to_numbers();
        let lanes = u64::from(self.lanes_max.unwrap_or(0));
        [lanes << 32 | pace << 8 | self.wish as u64, number]
    }

    /// Reads them from arbitrary words; what is no wish takes its default.
    pub(crate) fn from_words([first, number]: [u64; Settings::PATHS_WORDS]) -> Self {
        Self {
            wish: PathWish::from_number(first as u8).unwrap_or_default(),
            lanes_max: Some((first >> 32) as u32).filter(|most| *most > 0),
            incast: Incast::from_numbers([first >> 8 & 0xFF_FFFF, number]).unwrap_or_default(),
        }
    }

    /// The most lanes of this process: without a wish half of the open files, so that the program has the other half.
    pub(crate) fn lanes_max(&self) -> u32 {
        self.lanes_max.unwrap_or_else(|| half_of(getrlimit(Resource::Nofile).current))
    }
}

fn half_of(descriptors: Option<u64>) -> u32 {
    descriptors.map_or(LANES_MAX, |most| (most / 2).clamp(1, LANES_MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_open_files_may_be_lanes() {
        let usual = [Some(256), Some(1), Some(1 << 20), None].map(half_of);
        assert_eq!(usual, [128, 1, 1_024, 1_024]);
        let wished = Paths { lanes_max: Some(3), ..Paths::default() };
        assert_eq!(wished.lanes_max(), 3);
    }

    #[test]
    fn words_lead_back_and_those_of_anybody_to_wishes() {
        let words =
            "none fixed:4 calibrated credit credit:64K tokens tokens:high tokens:reservation:high";
        for incast in words.split(' ').map(|words| Incast::from_words(words).unwrap()) {
            for (wish, lanes_max) in [(PathWish::Relay, Some(7)), (PathWish::Lane, None)] {
                let paths = Paths { wish, lanes_max, incast };
                assert_eq!(Paths::from_words(paths.to_words()), paths);
            }
        }
        assert_eq!(Paths::from_words([0; 2]), Paths::default());
        assert_eq!(Paths::from_words([u64::MAX; 2]).wish, PathWish::Auto);
        assert_eq!(Paths::from_words([u64::MAX; 2]).incast, Incast::default());
    }
}
