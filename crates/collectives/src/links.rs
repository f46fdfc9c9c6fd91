//! The cost of messages between hosts, by pair of hosts.
//!
//! The daemons of a job measure the pairs before its first process starts, and write one table into the segments of all
//! hosts. A pair that was not measured has no entry: then a common network is assumed ([`Link::assumed`]).

use crate::cost_parameters::{CostParameters, TIME_MAX_PS};

/// The connection between two hosts. Times are in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// A message of some bytes, half of a round trip.
    pub latency_ps: u64,
    /// The time from one short message to the next, where many follow each other.
    pub gap_ps: u64,
    /// 1,024 bytes of long data.
    pub kib_ps: u64,
}

impl Link {
    /// The number of words.
    pub const WORDS: usize = 3;

    /// The link that is assumed where none was measured.
    pub const fn assumed(figures: &CostParameters) -> Self {
        let (latency_ps, kib_ps) = (figures.far_message_ps, figures.far_kib_ps);
        Self { latency_ps, gap_ps: latency_ps / 4, kib_ps }
    }

    /// Returns the link as words.
    pub const fn to_words(self) -> [u64; Self::WORDS] {
        [self.latency_ps, self.gap_ps, self.kib_ps]
    }

    /// Reads a link from arbitrary words; `None` if the latency was not measured, or if no network has such times. Of the
    /// other figures, 0 means that the assumed one holds.
    pub fn from_words(words: [u64; Self::WORDS], figures: &CostParameters) -> Option<Self> {
        let [latency_ps, gap_ps, kib_ps] = words;
        let assumed = Self::assumed(figures);
        let or = |word, otherwise| if word == 0 { otherwise } else { word };
        let is_possible = latency_ps != 0 && words.iter().all(|&word| word <= TIME_MAX_PS);
        is_possible.then_some(Self {
            latency_ps,
            gap_ps: or(gap_ps, assumed.gap_ps),
            kib_ps: or(kib_ps, assumed.kib_ps),
        })
    }

    /// Returns the rate of long data in MB/s.
    pub fn rate_mb_s(&self) -> f64 {
        1024e6 / self.kib_ps as f64
    }
}

/// The links between some hosts, which are numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// By pair: those of host 1 with the hosts before it, then those of host 2, and so on.
    pairs: Vec<Option<Link>>,
}

impl Links {
    /// Sets the link between two hosts. A host has none to itself.
    pub fn set(&mut self, one: usize, other: usize, link: Link) {
        if one == other {
            return;
        }
        let place = place(one, other);
        if self.pairs.len() <= place {
            self.pairs.resize(place + 1, None);
        }
        self.pairs[place] = Some(link);
    }

    /// Returns the link between two hosts; `None` if it was not measured.
    pub fn between(&self, one: usize, other: usize) -> Option<Link> {
        if one == other {
            return None;
        }
        self.pairs.get(place(one, other)).copied().flatten()
    }

    /// Returns the links among some of these hosts, which are numbered anew in this order.
    #[must_use]
    pub fn among(&self, hosts: &[usize]) -> Self {
        let mut links = Self::default();
        for (number, &host) in hosts.iter().enumerate() {
            for (other, &other_host) in hosts[..number].iter().enumerate() {
                if let Some(link) = self.between(host, other_host) {
                    links.set(number, other, link);
                }
            }
        }
        links
    }

    /// Whether no pair was measured.
    pub fn is_empty(&self) -> bool {
        self.pairs.iter().all(Option::is_none)
    }
}

const fn place(one: usize, other: usize) -> usize {
    let (low, high) = if one < other { (one, other) } else { (other, one) };
    high * (high - 1) / 2 + low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(latency_ps: u64) -> Link {
        Link { latency_ps, gap_ps: 1, kib_ps: 2 }
    }

    #[test]
    fn each_pair_has_one_link() {
        let mut links = Links::default();
        let pairs = (0..5usize).flat_map(|high| (0..high).map(move |low| (low, high)));
        for (number, (low, high)) in (1..).zip(pairs.clone()) {
            links.set(high, low, link(number));
        }
        for (number, (low, high)) in (1..).zip(pairs) {
            assert_eq!(links.between(low, high), Some(link(number)));
            assert_eq!(links.between(high, low), Some(link(number)));
        }
        links.set(2, 2, link(9));
        assert_eq!([links.between(2, 2), links.between(4, 5)], [None; 2]);
    }

    #[test]
    fn some_hosts_keep_their_links() {
        let mut links = Links::default();
        links.set(1, 3, link(13));
        links.set(0, 3, link(3));
        let some = links.among(&[3, 2, 1]);
        assert_eq!(some.between(0, 2), Some(link(13)));
        assert_eq!(some.between(0, 1), None);
        assert!(links.among(&[2]).is_empty() && !some.is_empty());
    }

    #[test]
    fn impossible_words_are_no_link_and_missing_ones_are_assumed() {
        let figures = CostParameters::default();
        let (usual, assumed) = (link(5), Link::assumed(&figures));
        let read = |words| Link::from_words(words, &figures);
        assert_eq!(read(usual.to_words()), Some(usual));
        assert_eq!(read([5, 0, 2]), Some(Link { gap_ps: assumed.gap_ps, ..usual }));
        assert_eq!(read([5, 1, 0]), Some(Link { kib_ps: assumed.kib_ps, ..usual }));
        assert_eq!(read([0, 1, 2]), None);
        for place in 0..Link::WORDS {
            let mut words = usual.to_words();
            words[place] = u64::MAX;
            assert_eq!(read(words), None);
        }
    }
}
