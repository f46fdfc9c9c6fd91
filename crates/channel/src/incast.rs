//! The wish for many-to-one steps between hosts, and the trial runs of its calibration.
//!
//! Davies and Matloff (1997) had sender n wait k·n in a many-to-one step, with k "based on information from trial runs
//! of the application". [`PaceTrials`] does that for the number of senders at once: the first steps are trials with
//! different numbers, and then the best one stays.

use std::time::Duration;

use landeck_wire::way::bytes_from_words;

use crate::grants::{CREDIT_BYTES, GrantLimits};
use crate::tokens::{Priority, TokenWish};

/// The way in which many senders answer one receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Incast {
    /// All at once, as the network allows.
    None,
    /// So many senders at once.
    Fixed(u32),
    /// As many senders at once as the first steps show to be best.
    Calibrated,
    /// The receiver grants parts, so that at most so many bytes are granted and not received.
    Credit(u64),
    /// Likewise, with 128 KiB at first, and up to 8 MiB where the network carries them within milliseconds and loses nothing
    /// ([`GrowingCredit`](crate::credit::GrowingCredit)).
    #[default]
    GrowingCredit,
    /// All messages of the group between hosts need tokens, also those of the program itself.
    Tokens(TokenWish),
}

impl Incast {
    /// The words that users may write.
    pub const WORDS: &str =
        "none, fixed:K, calibrated, credit, credit:BYTES (32K at least) or tokens is wanted";

    /// The way with this name: `none`, `fixed:K`, `calibrated`, `credit` or `credit:BYTES` (K and M stand for KiB and
    /// MiB; at least 32K), `tokens`. The last is followed by `:segmentation`, `:reservation` or `:BYTES` (in chunks up to
    /// there) for another choice than that by size, and by `:high` for high priority.
    #[must_use]
    pub fn from_words(words: &str) -> Option<Self> {
        if let Some(places) = words.strip_prefix("fixed:") {
            return places.parse().ok().filter(|places| *places > 0).map(Self::Fixed);
        }
        if let Some(bytes) = words.strip_prefix("credit:") {
            const LEAST: u64 = 32 << 10;
            return bytes_from_words(bytes).filter(|bytes| *bytes >= LEAST).map(Self::Credit);
        }
        if let Some(words) = words.strip_prefix("tokens:") {
            return tokens_from(words).map(Self::Tokens);
        }
        Some(match words {
            "tokens" => Self::Tokens(TokenWish::default()),
            "none" => Self::None,
            "calibrated" => Self::Calibrated,
            "credit" => Self::GrowingCredit,
            _ => return None,
        })
    }

    /// The way as two numbers, the first below 2^24, for the settings of a job.
    #[must_use]
    pub const fn to_numbers(self) -> [u64; 2] {
        match self {
            Self::GrowingCredit => [0, 0],
            Self::None => [1, 0],
            Self::Fixed(places) => [2, places as u64],
            Self::Calibrated => [3, 0],
            Self::Credit(bytes) => [4, bytes],
            Self::Tokens(wish) => [5 | (wish.priority as u64) << 8, wish.chunks_up_to],
        }
    }

    /// The way of these numbers; `None` if they are none of one.
    #[must_use]
    pub fn from_numbers([way, number]: [u64; 2]) -> Option<Self> {
        let is_high = way >> 8 == Priority::High as u64;
        let priority = if is_high { Priority::High } else { Priority::Low };
        let found = match way & 0xFF {
            0 => Self::GrowingCredit,
            1 => Self::None,
            2 => Self::Fixed(u32::try_from(number).ok().filter(|places| *places > 0)?),
            3 => Self::Calibrated,
            4 => Self::Credit(number),
            5 => Self::Tokens(TokenWish { chunks_up_to: number, priority }),
            _ => return None,
        };
        (found.to_numbers() == [way, number]).then_some(found)
    }

    /// The longest data that each of so many senders sends without being asked: all together are at most the credit.
    #[must_use]
    pub const fn unscheduled_bytes(self, senders: u32) -> u64 {
        let bytes = match self {
            Self::None | Self::Tokens(_) => return u64::MAX,
            Self::Credit(bytes) => bytes,
            Self::Fixed(_) | Self::Calibrated | Self::GrowingCredit => CREDIT_BYTES,
        };
        bytes / if senders == 0 { 1 } else { senders as u64 }
    }
}

fn tokens_from(words: &str) -> Option<TokenWish> {
    let (way, priority) = match words.strip_suffix("high") {
        Some("") => return Some(TokenWish { priority: Priority::High, ..TokenWish::default() }),
        Some(way) => (way.strip_suffix(':')?, Priority::High),
        None => (words, Priority::Low),
    };
    let wish = match way {
        "segmentation" => TokenWish::SEGMENTATION,
        "reservation" => TokenWish::RESERVATION,
        bytes => TokenWish::up_to(bytes_from_words(bytes)?),
    };
    Some(TokenWish { priority, ..wish })
}

/// The numbers of senders that are tried.
const TRIED: [u32; 6] = [1, 2, 4, 8, 16, u32::MAX];
/// The trials of each number. The best counts, since a disturbance only makes a trial slower.
const TRIALS_EACH: usize = 3;

/// The trial runs for the number of senders at once.
#[derive(Clone, Debug, Default)]
pub struct PaceTrials {
    /// The steps that were measured.
    done: usize,
    /// The best rate of each number, in bytes a second.
    best: [f64; TRIED.len()],
    begin: Duration,
    bytes: u64,
}

impl PaceTrials {
    /// The limits of the next step.
    #[must_use]
    pub fn limits(&self) -> GrantLimits {
        let number = match TRIED.get(self.done % TRIED.len()) {
            Some(number) if !self.is_over() => *number,
            _ => self.chosen(),
        };
        GrantLimits::senders(number)
    }

    /// Whether the number is chosen for good.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.done >= TRIED.len() * TRIALS_EACH
    }

    /// A step begins.
    pub const fn begin(&mut self, now: Duration) {
        (self.begin, self.bytes) = (now, 0);
    }

    /// Counts bytes of the step.
    pub const fn received(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// The step has ended.
    pub fn end(&mut self, now: Duration) {
        if self.is_over() {
            return;
        }
        let seconds = now.saturating_sub(self.begin).as_secs_f64().max(1e-9);
        let best = &mut self.best[self.done % TRIED.len()];
        *best = best.max(self.bytes as f64 / seconds);
        self.done += 1;
    }

    /// The number with the best rate. Of two equal ones it is the smaller.
    #[must_use]
    pub fn chosen(&self) -> u32 {
        let mut chosen = 0;
        for at in 1..TRIED.len() {
            if self.best[at] > self.best[chosen] {
                chosen = at;
            }
        }
        TRIED[chosen]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn high(wish: TokenWish) -> TokenWish {
        TokenWish { priority: Priority::High, ..wish }
    }

    #[test]
    fn ways_have_names() {
        for (words, way) in [
            ("none", Some(Incast::None)),
            ("fixed:3", Some(Incast::Fixed(3))),
            ("calibrated", Some(Incast::Calibrated)),
            ("credit", Some(Incast::GrowingCredit)),
            ("credit:128K", Some(Incast::Credit(128 << 10))),
            ("credit:64K", Some(Incast::Credit(64 << 10))),
            ("credit:1M", Some(Incast::Credit(1 << 20))),
            ("credit:40000", Some(Incast::Credit(40_000))),
            ("tokens", Some(Incast::Tokens(TokenWish::up_to(128 << 10)))),
            ("tokens:high", Some(Incast::Tokens(high(TokenWish::default())))),
            ("tokens:segmentation", Some(Incast::Tokens(TokenWish::SEGMENTATION))),
            ("tokens:reservation:high", Some(Incast::Tokens(high(TokenWish::RESERVATION)))),
            ("tokens:32K", Some(Incast::Tokens(TokenWish::up_to(32 << 10)))),
            ("tokens:32Khigh", None),
            ("tokens:", None),
            ("tokens:low", None),
            ("credit:4K", None),
            ("credit:K", None),
            ("credit:99999999999999999999M", None),
            ("fixed:0", None),
            ("fixed", None),
            ("fixed:-1", None),
            ("", None),
        ] {
            assert_eq!(Incast::from_words(words), way, "{words}");
        }
    }

    #[test]
    fn short_gathers_need_no_grant() {
        assert_eq!(Incast::default().unscheduled_bytes(4), 32 << 10);
        assert_eq!(Incast::default().unscheduled_bytes(0), 128 << 10);
        assert_eq!(Incast::Fixed(1).unscheduled_bytes(128), 1 << 10);
        assert_eq!(Incast::None.unscheduled_bytes(24), u64::MAX);
        assert_eq!(Incast::Tokens(TokenWish::default()).unscheduled_bytes(24), u64::MAX);
    }

    #[test]
    fn the_best_number_of_the_trials_stays() {
        let mut trials = PaceTrials::default();
        let mut now = Duration::ZERO;
        let mut tried = Vec::new();
        while !trials.is_over() {
            let places = trials.limits().places;
            tried.push(places);
            trials.begin(now);
            trials.received(1_000_000);
            // One trial of the best number is disturbed.
            let is_disturbed = tried.len() == 3;
            let wait =
                if places == 4 && !is_disturbed { 10 } else { 20 + u64::from(places.min(99)) };
            now += Duration::from_millis(wait);
            trials.end(now);
        }
        assert_eq!((tried.len(), &tried[..TRIED.len()]), (TRIED.len() * TRIALS_EACH, &TRIED[..]));
        assert_eq!((trials.chosen(), trials.limits()), (4, GrantLimits::senders(4)));
        trials.begin(now);
        trials.end(now + Duration::from_secs(9));
        assert_eq!(trials.chosen(), 4, "chosen for good");
    }
}
