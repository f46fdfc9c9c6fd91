//! Messages within a host: a line, and for longer data a copy in and a copy out.
//!
//! The whole time of a message was measured for some lengths, but not the shares of its ends. Data that fit into a
//! ring are copied in and then out, in proportion to the rates of long copies. With longer data both happen at the
//! same time, unless both ends share a processor.
//!
//! A message keeps its sender busy after the receiver can have it. That does not delay this message, but those that
//! follow.

use landeck_collectives::{Calibration, CostParameters};

use crate::caches::{Rates, Whose};
use crate::footprint::CELL_BYTES_MIN;
use crate::platform::bytes_ps;

/// Data up to this length travel with their header.
const INLINE_BYTES: u64 = 48;
/// Data up to this length lie in a ring as a whole, if not in a cell. Longer data pass through a block in pieces of
/// this length.
const RING_BYTES: u64 = 16 * 1024;

/// The times of messages within a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near {
    figures: CostParameters,
    details: Calibration,
    /// The time of the sender and the receiver for each message, where they share processors.
    crowd_sends_ps: u64,
    crowd_receives_ps: u64,
    crowd_keeps_ps: u64,
    /// The times in calls that directly follow an equal one.
    sends_again_ps: u64,
    receives_again_ps: u64,
}

/// The pairs of members between which an operation's messages go. Each pair has places of its own, and those of many
/// pairs do not stay in the caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ways {
    pub(crate) used: u64,
    pub(crate) members: u64,
}

impl Ways {
    /// The extra time of a message, interpolated between one member's pairs and all pairs, given the extra time with
    /// all pairs.
    fn part_of(self, more_ps: u64) -> u64 {
        let of_one = self.members.saturating_sub(1);
        let others = of_one * of_one;
        let used = self.used.saturating_sub(of_one).min(others);
        (u128::from(more_ps) * u128::from(used) / u128::from(others.max(1))) as u64
    }
}

/// The route of a message within its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Both ends share one processor.
    pub(crate) is_beside: bool,
    /// Both ends share their processors with others.
    pub(crate) is_crowded: bool,
    /// The message lies in a cell.
    pub(crate) is_in_cell: bool,
    /// The sender has just touched the data.
    pub(crate) is_fresh: bool,
    /// The message belongs to a call that directly follows an equal one.
    pub(crate) is_again: bool,
}

impl Near {
    /// The times where this many members share a processor and messages go between these pairs.
    pub(crate) fn new(
        figures: CostParameters,
        details: Calibration,
        sharing: u64,
        ways: Ways,
    ) -> Self {
        let of_crowd = |measured| match sharing {
            ..=1 => 0,
            _ => Calibration::of_crowd(measured, sharing),
        };
        let by_ways =
            |near_ps: u64, far_ps: u64| near_ps + ways.part_of(far_ps.saturating_sub(near_ps));
        Self {
            figures,
            details,
            crowd_sends_ps: of_crowd(&details.crowd_sends_ps),
            crowd_receives_ps: of_crowd(&details.crowd_receives_ps),
            crowd_keeps_ps: of_crowd(&details.crowd_keeps_ps),
            sends_again_ps: by_ways(figures.message_ps / 2, of_crowd(&details.crowd_sends_far_ps)),
            receives_again_ps: by_ways(
                of_crowd(&details.crowd_receives_again_ps),
                of_crowd(&details.crowd_receives_far_ps),
            ),
        }
    }

    /// How long a sender is busy, and when the receiver can begin.
    pub(crate) fn send_ps(&self, bytes: u64, route: Route, rates: &Rates) -> (u64, u64) {
        let overhead_ps = self.end_ps(route, [self.crowd_sends_ps, self.sends_again_ps]);
        let busy_ps = overhead_ps.max(self.figures.message_ps / 2);
        let begin_ps = overhead_ps + self.figures.line_ps;
        let (in_ps, first_ps) = self.in_ps(bytes, route, rates);
        (busy_ps + in_ps, begin_ps + first_ps)
    }

    /// The time to put the data in, and until the receiver can begin to take them out.
    fn in_ps(&self, bytes: u64, route: Route, rates: &Rates) -> (u64, u64) {
        let Route { is_beside, is_crowded, is_in_cell, is_fresh, .. } = route;
        if bytes <= INLINE_BYTES {
            return (0, 0);
        }
        if is_beside || is_in_cell || is_crowded && bytes > RING_BYTES {
            let place = match (is_beside, is_in_cell) {
                (true, _) => Whose::Own,
                (false, true) => Whose::HandedOver,
                (false, false) => Whose::Others,
            };
            let kib_ps = rates.deposit_ps(place, is_fresh);
            // A receiver on another processor takes the first piece while the others are put in.
            let first_bytes = if is_beside { bytes } else { bytes.min(RING_BYTES) };
            return (bytes_ps(bytes, kib_ps), bytes_ps(first_bytes, kib_ps));
        }
        let (rest_ps, out_ps) = (self.rest_ps(bytes, false), self.out_ps(bytes));
        if bytes <= RING_BYTES {
            let first_ps = rest_ps - out_ps + bytes_ps(bytes, rates.deposit_more_ps(is_fresh));
            return (first_ps, first_ps);
        }
        // Both copies happen at the same time, through a few places that stay in the caches.
        let read_ps = rates.read_more_ps(is_fresh);
        let first_ps = rest_ps - out_ps + bytes_ps(RING_BYTES, read_ps);
        (rest_ps + bytes_ps(bytes, read_ps), first_ps)
    }

    /// How long a receiver is busy.
    pub(crate) fn receive_ps(&self, bytes: u64, route: Route, rates: &Rates) -> u64 {
        let overhead_ps = self.end_ps(route, [self.crowd_receives_ps, self.receives_again_ps]);
        if bytes <= INLINE_BYTES {
            return overhead_ps;
        }
        let more_ps = bytes_ps(bytes, rates.take_more_ps());
        let whole_ps = if route.is_beside {
            bytes_ps(bytes, rates.take_ps(Whose::Own))
        } else if route.is_crowded && (route.is_in_cell || bytes > RING_BYTES) {
            bytes_ps(bytes, rates.take_ps(Whose::Others))
        } else if route.is_in_cell {
            // The measured whole includes the sender's first piece.
            let first_ps =
                bytes_ps(bytes.min(RING_BYTES), rates.deposit_ps(Whose::HandedOver, true));
            self.rest_ps(bytes, true).saturating_sub(first_ps) + more_ps
        } else if bytes <= RING_BYTES {
            self.out_ps(bytes) + more_ps
        } else {
            self.out_ps(bytes) + bytes_ps(bytes, rates.write_more_ps())
        };
        overhead_ps + whole_ps
    }

    /// Added to the receiver's time for a message that came before its receive.
    pub(crate) const fn keep_ps(&self) -> u64 {
        self.crowd_keeps_ps
    }

    /// The time of one end. `crowd_ps` are its times in a crowd: usually, and in a call that follows an equal one.
    fn end_ps(&self, route: Route, crowd_ps: [u64; 2]) -> u64 {
        let crowd_ps = crowd_ps[usize::from(route.is_again)];
        self.overhead_ps().max(if route.is_crowded { crowd_ps } else { 0 })
    }

    /// The least time at each end of a message.
    fn overhead_ps(&self) -> u64 {
        self.figures.message_ps.saturating_sub(self.figures.line_ps) / 2
    }

    /// The time of a message beyond that of a line.
    fn rest_ps(&self, bytes: u64, is_in_cell: bool) -> u64 {
        let whole_ps = match is_in_cell || bytes < CELL_BYTES_MIN {
            true => self.details.message_ps(&self.figures, bytes),
            false => self.details.one_way_ps(&self.figures, bytes),
        };
        whole_ps.saturating_sub(self.figures.message_ps)
    }

    /// The receiver's share of that, without a cell.
    fn out_ps(&self, bytes: u64) -> u64 {
        let rest_ps = self.rest_ps(bytes, false);
        let (both, out) = (self.figures.two_copy_kib_ps, self.figures.one_copy_kib_ps);
        if bytes <= RING_BYTES {
            return bytes_ps(rest_ps, 1024 * out / (both + out).max(1));
        }
        bytes_ps(bytes, out).min(rest_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::footprint::{Footprint, fits_cell};

    const LONG_BYTES: u64 = 1 << 20;
    const ALONE: Route = Route {
        is_beside: false,
        is_crowded: false,
        is_in_cell: false,
        is_fresh: false,
        is_again: false,
    };
    const CROWDED: Route = Route { is_crowded: true, ..ALONE };

    /// Where so many bytes go round.
    fn rates(details: &Calibration, own: u64) -> Rates {
        let touched = Footprint { members: 1, own, ..Footprint::default() };
        let (figures, details) = (CostParameters::default(), *details);
        let host = crate::platform::Host { processors: 2, figures, details };
        Rates::of(&host, &touched, &touched)
    }

    #[test]
    fn in_a_crowd_who_runs_elsewhere_takes_the_first_piece_and_who_shares_the_processor_all() {
        let figures = CostParameters::default();
        let details = Calibration::of(&figures);
        let rates = rates(&details, 0);
        let near = Near::new(figures, details, 4, Ways::default());
        let kib_ps = figures.local_copy_kib_ps;
        let busy_ps = figures.message_ps / 2;
        let (whole_ps, begin_ps) = (1024 * kib_ps, busy_ps + figures.line_ps);
        let piece_ps = 16 * kib_ps;
        let elsewhere = near.send_ps(LONG_BYTES, CROWDED, &rates);
        assert_eq!(elsewhere, (busy_ps + whole_ps, begin_ps + piece_ps));
        let beside = near.send_ps(LONG_BYTES, Route { is_beside: true, ..CROWDED }, &rates);
        assert_eq!(beside, (busy_ps + whole_ps, begin_ps + whole_ps));
        let in_cell = Route { is_in_cell: true, ..CROWDED };
        assert_eq!(near.send_ps(64 << 10, in_cell, &rates).0, busy_ps + 64 * kib_ps);
    }

    #[test]
    fn a_message_in_a_cell_takes_what_was_measured_of_those_that_come_back() {
        let figures = CostParameters::default();
        let usual = Calibration::of(&figures);
        let one_ways_ps = usual.one_ways_ps.map(|one_way_ps| 2 * one_way_ps);
        let details = Calibration { one_ways_ps, copies_kib_ps: [1_000; 10], ..usual };
        let (near, rates) = (Near::new(figures, details, 1, Ways::default()), rates(&details, 0));
        for bytes in [4096, 16_384, 65_536] {
            let took = |route| {
                let (_, there_ps) = near.send_ps(bytes, route, &rates);
                there_ps + near.receive_ps(bytes, route, &rates)
            };
            let in_cell = Route { is_in_cell: true, ..ALONE };
            assert_eq!(took(in_cell), details.message_ps(&figures, bytes), "{bytes}");
            assert_eq!(took(ALONE), details.one_way_ps(&figures, bytes), "{bytes}");
            assert_eq!(
                near.send_ps(bytes, in_cell, &rates).0,
                figures.message_ps / 2 + bytes * 1_000 / 1024
            );
        }
        assert_eq!(
            [4095, 4096, 128 << 10, (128 << 10) + 1].map(fits_cell),
            [false, true, true, false]
        );
    }

    #[test]
    fn a_message_within_one_processor_copies_nothing_from_afar() {
        let figures = CostParameters::default();
        let details = Calibration { deposit_kib_ps: 90_000, ..Calibration::of(&figures) };
        let (near, rates) = (Near::new(figures, details, 2, Ways::default()), rates(&details, 0));
        let of = |route| {
            let data_ps = |bytes| {
                (near.send_ps(bytes, route, &rates).0, near.receive_ps(bytes, route, &rates))
            };
            let ((sent_ps, taken_ps), (word_ps, word_taken_ps)) = (data_ps(LONG_BYTES), data_ps(8));
            [sent_ps - word_ps, taken_ps - word_taken_ps]
        };
        assert_eq!(of(CROWDED), [1024 * 90_000, 1024 * figures.one_copy_kib_ps]);
        assert_eq!(of(Route { is_beside: true, ..CROWDED }), [1024 * figures.local_copy_kib_ps; 2]);
    }

    #[test]
    fn each_of_many_messages_in_a_crowd_takes_what_was_measured_there() {
        let figures = CostParameters::default();
        let (crowd_sends_ps, crowd_receives_ps) = ([0, 0, 0, 160_000], [0, 0, 0, 500_000]);
        let details = Calibration {
            crowd_sends_ps,
            crowd_receives_ps,
            crowd_keeps_ps: [0, 0, 0, 70_000],
            ..Calibration::of(&figures)
        };
        let (near, rates) = (Near::new(figures, details, 16, Ways::default()), rates(&details, 0));
        assert_eq!(near.send_ps(8, CROWDED, &rates), (160_000, 160_000 + figures.line_ps));
        assert_eq!((near.receive_ps(8, CROWDED, &rates), near.keep_ps()), (500_000, 70_000));
        assert_eq!(Near::new(figures, details, 1, Ways::default()).keep_ps(), 0);
    }

    #[test]
    fn messages_that_go_many_ways_find_less_of_them_in_the_caches() {
        let figures = CostParameters::default();
        let details = Calibration {
            crowd_sends_ps: [300_000; 4],
            crowd_receives_ps: [900_000; 4],
            crowd_receives_again_ps: [500_000; 4],
            crowd_sends_far_ps: [54_000; 4],
            crowd_receives_far_ps: [590_000; 4],
            ..Calibration::of(&figures)
        };
        let rates = rates(&details, 0);
        let ends = |used, is_again| {
            let near = Near::new(figures, details, 2, Ways { used, members: 4 });
            let route = Route { is_again, ..CROWDED };
            (near.send_ps(8, route, &rates).0, near.receive_ps(8, route, &rates))
        };
        assert_eq!([0, 3].map(|used| ends(used, true)), [(45_000, 500_000); 2], "of one member");
        assert_eq!([6, 12].map(|used| ends(used, true)), [(48_000, 530_000), (54_000, 590_000)]);
        assert_eq!(ends(12, false), (300_000, 900_000), "after something else in any case");
    }

    #[test]
    fn a_message_of_a_call_that_follows_another_takes_what_was_measured_there() {
        let figures = CostParameters::default();
        let details = Calibration {
            crowd_sends_ps: [160_000; 4],
            crowd_receives_ps: [500_000; 4],
            crowd_receives_again_ps: [1; 4],
            ..Calibration::of(&figures)
        };
        let (near, rates) = (Near::new(figures, details, 4, Ways::default()), rates(&details, 0));
        let again = Route { is_again: true, ..CROWDED };
        let ends = |route| [near.send_ps(8, route, &rates).0, near.receive_ps(8, route, &rates)];
        let least_ps = (figures.message_ps - figures.line_ps) / 2;
        assert_eq!(
            [CROWDED, again].map(ends),
            [[160_000, 500_000], [figures.message_ps / 2, least_ps]]
        );
    }

    #[test]
    fn a_sender_of_several_messages_is_busy_beyond_the_arrival_of_one() {
        let figures = CostParameters::default();
        let details = Calibration::of(&figures);
        let rates = rates(&details, 0);
        let overhead_ps = (figures.message_ps - figures.line_ps) / 2;
        let there_ps = overhead_ps + figures.line_ps;
        assert_eq!(
            Near::new(figures, details, 1, Ways::default()).send_ps(8, ALONE, &rates),
            (figures.message_ps / 2, there_ps)
        );
    }

    #[test]
    fn copies_take_longer_where_much_goes_round() {
        let figures = CostParameters::default();
        let mut details = Calibration::of(&figures);
        (details.reads_kib_ps[9], details.writes_kib_ps[9]) =
            (details.reads_kib_ps[0] + 3_000, details.writes_kib_ps[0] + 5_000);
        let near = Near::new(figures, details, 1, Ways::default());
        let [few, many] = [0, u64::MAX].map(|bytes| rates(&details, bytes));
        // A sender reads its data and a receiver writes them; the place between them stays the same.
        let long_ps = [1024 * 3_000, 16 * 3_000, 1024 * 5_000];
        for (bytes, more_ps) in [(8, [0; 3]), (2048, [6_000, 6_000, 10_000]), (LONG_BYTES, long_ps)]
        {
            let later = |at: fn((u64, u64)) -> u64| {
                at(near.send_ps(bytes, ALONE, &many)) - at(near.send_ps(bytes, ALONE, &few))
            };
            let received_ps =
                near.receive_ps(bytes, ALONE, &many) - near.receive_ps(bytes, ALONE, &few);
            assert_eq!([later(|sent| sent.0), later(|sent| sent.1), received_ps], more_ps);
        }
    }

    #[test]
    fn a_receiver_is_never_busy_for_longer_than_the_message_takes() {
        let usual = CostParameters::default();
        let figures = CostParameters { one_copy_kib_ps: 1_000_000, ..usual };
        let details = Calibration::of(&usual);
        let (near, rates) = (Near::new(figures, details, 1, Ways::default()), rates(&details, 0));
        let overhead_ps = (usual.message_ps - usual.line_ps) / 2;
        let rest_ps = details.one_way_ps(&usual, LONG_BYTES) - usual.message_ps;
        assert_eq!(near.receive_ps(LONG_BYTES, ALONE, &rates), overhead_ps + rest_ps);
    }
}
