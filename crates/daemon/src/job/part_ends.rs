//! The order of a part's last events: the ends of its processes come first, and then that it is over.
//!
//! Output travels in another stream than events, and a part is over behind its last output. Over a connection that was
//! broken one stream may overtake the other. A launcher that heard first that all parts are over would miss failures.

use std::collections::BTreeSet;

use landeck_launch::events::Happened;
use landeck_launch::messages::PartEvent;
use landeck_wire::HostNumber;

/// The parts of a job of which one of the two last events has come.
#[derive(Debug, Default)]
pub(crate) struct PartEnds {
    /// All ends of their processes are known.
    ended: BTreeSet<HostNumber>,
    /// Their output is complete.
    over: BTreeSet<HostNumber>,
}

impl PartEnds {
    /// Takes an event of a host, and returns those that count now, in their order.
    pub(crate) fn in_order(&mut self, host: HostNumber, event: PartEvent) -> Vec<PartEvent> {
        match &event {
            // The host may be added again, and have another part.
            PartEvent::Over if !self.ended.remove(&host) => {
                self.over.insert(host);
                Vec::new()
            }
            PartEvent::Happened(Happened::AllEnded | Happened::GuardianGone) => {
                if self.over.remove(&host) {
                    return vec![event, PartEvent::Over];
                }
                self.ended.insert(host);
                vec![event]
            }
            _ => vec![event],
        }
    }

    /// Whether one of the last events of a host has come, and not the other one.
    pub(crate) fn is_ending(&self, host: HostNumber) -> bool {
        self.ended.contains(&host) || self.over.contains(&host)
    }

    /// Forgets a host that is lost: nothing more comes from its part.
    pub(crate) fn forget(&mut self, host: HostNumber) {
        self.ended.remove(&host);
        self.over.remove(&host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_over_behind_the_ends_of_its_processes_and_its_output() {
        let (one, two) = (HostNumber(1), HostNumber(2));
        let all_ended = || PartEvent::Happened(Happened::AllEnded);
        let mut ends = PartEnds::default();
        // The usual order, and the other one, where the host that is over early has a failure to tell.
        assert_eq!(ends.in_order(one, all_ended()), [all_ended()]);
        assert_eq!(ends.in_order(one, PartEvent::Over), [PartEvent::Over]);
        assert_eq!(ends.in_order(two, PartEvent::Over), []);
        let failure = || PartEvent::Happened(Happened::Stopped { rank: 1 });
        assert_eq!(ends.in_order(two, failure()), [failure()]);
        assert_eq!(ends.in_order(two, all_ended()), [all_ended(), PartEvent::Over]);
        // It was added again, was lost, and was added once more.
        assert_eq!(ends.in_order(one, PartEvent::Over), []);
        ends.forget(one);
        assert_eq!(ends.in_order(one, all_ended()), [all_ended()]);
        ends.forget(one);
        assert_eq!(ends.in_order(one, PartEvent::Over), []);
        // A guardian that was killed says nothing more.
        let gone = || PartEvent::Happened(Happened::GuardianGone);
        let mut ends = PartEnds::default();
        assert_eq!(ends.in_order(one, PartEvent::Over), []);
        assert_eq!(ends.in_order(one, gone()), [gone(), PartEvent::Over]);
    }
}
