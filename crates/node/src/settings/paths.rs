//! The paths of messages to other hosts, as the settings of a job say.

use landeck_channel::incast::Incast;
use landeck_collectives::Settings;
use landeck_wire::stored::StoreSetting;
use landeck_wire::way::PathWish;

/// The wishes for paths, equal in all processes of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paths {
    pub(crate) wish: PathWish,
    /// The most lanes of a process, if the user says so.
    pub(crate) lanes_max: Option<u32>,
    pub(crate) incast: Incast,
    /// Where the data of long messages wait.
    pub(crate) store: StoreSetting,
}

impl Paths {
    /// The wishes as words of a job's settings.
    pub(crate) fn to_words(self) -> [u64; Settings::PATHS_WORDS] {
        let [pace, number] = self.incast.to_numbers();
        let lanes = u64::from(self.lanes_max.unwrap_or(0));
        let first = lanes << Settings::LANES_BIT | pace << 8 | self.wish as u64;
        [first, number, self.store.to_word()]
    }

    /// Reads them from arbitrary settings; what is no wish takes its default.
    pub(crate) fn of(settings: &Settings) -> Self {
        let [first, number, store] = settings.paths;
        Self {
            wish: PathWish::from_number(first as u8).unwrap_or_default(),
            lanes_max: settings.lanes_max(),
            incast: Incast::from_numbers([first >> 8 & 0xFF_FFFF, number]).unwrap_or_default(),
            store: StoreSetting::from_word(store),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_back_and_those_of_anybody_to_wishes() {
        let of = |paths| Paths::of(&Settings { paths, ..Settings::default() });
        let words =
            "none fixed:4 calibrated credit credit:64K tokens tokens:high tokens:reservation:high";
        for incast in words.split(' ').map(|words| Incast::from_words(words).unwrap()) {
            let wishes =
                [(PathWish::Relay, Some(7)), (PathWish::Lane, None), (PathWish::Daemons, None)];
            for (wish, lanes_max) in wishes {
                let paths = Paths { wish, lanes_max, incast, store: StoreSetting::from_text("n1") };
                assert_eq!(of(paths.to_words()), paths);
            }
        }
        assert_eq!(of([0; 3]), Paths::default());
        assert_eq!(of([u64::MAX; 3]).wish, PathWish::Auto);
        assert_eq!(of([u64::MAX; 3]).incast, Incast::default());
    }
}
