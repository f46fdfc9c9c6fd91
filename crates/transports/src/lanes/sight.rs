//! Since when a lane does not move, for observers. A process looks at its lanes now and then while it waits.

use landeck_memory::LaneRecord;

/// The load of a lane at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// The bytes that the other host has not taken.
    pub(super) unsent_bytes: u64,
    /// The messages that were sent.
    pub(super) sent: u64,
    /// Those of them that are known to be received.
    pub(super) received: u64,
}

/// A lane with unsent bytes, and since when none has moved as far as it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stall {
    load: Load,
    since_ns: u64,
}

impl Stall {
    /// The stall at a look, by that at the look before. `None` if nothing is unsent.
    pub(super) fn after(before: Option<Self>, load: Load, now_ns: u64) -> Option<Self> {
        let is_same = before.is_some_and(|before| !before.has_moved(load));
        let since_ns = before.filter(|_| is_same).map_or(now_ns, |before| before.since_ns);
        (load.unsent_bytes > 0).then_some(Self { load, since_ns })
    }

    /// Whether bytes have left. While new ones come, they have if there are not more now.
    fn has_moved(&self, now: Load) -> bool {
        let before = self.load;
        let has_new = now.sent != before.sent;
        now.received != before.received
            || now.unsent_bytes < before.unsent_bytes
            || has_new && now.unsent_bytes == before.unsent_bytes
    }

    /// The record for observers. `silent_since_ns` is the time since which the network acknowledges nothing, or 0.
    pub(super) fn record(&self, peer: u32, silent_since_ns: u64) -> LaneRecord {
        let Load { unsent_bytes, sent, received } = self.load;
        let open_messages = u32::try_from(sent.saturating_sub(received)).unwrap_or(u32::MAX);
        LaneRecord { peer, open_messages, unsent_bytes, since_ns: self.since_ns, silent_since_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(unsent_bytes: u64, sent: u64, received: u64) -> Load {
        Load { unsent_bytes, sent, received }
    }

    #[test]
    fn a_lane_stalls_from_the_look_behind_its_last_move_on() {
        let looks = [
            (load(0, 9, 9), None),
            (load(500, 10, 9), Some(20)),
            (load(500, 10, 9), Some(20)),
            (load(900, 12, 9), Some(20)), // filled up
            (load(900, 13, 9), Some(50)), // one has left for the new one
            (load(900, 13, 10), Some(60)),
            (load(800, 13, 10), Some(70)),
            (load(0, 13, 10), None),
            (load(1, 14, 10), Some(90)),
        ];
        let mut stall = None;
        for (at, (load, since_ns)) in (1..).zip(looks) {
            stall = Stall::after(stall, load, at * 10);
            assert_eq!(stall.map(|stall| stall.since_ns), since_ns, "{load:?}");
        }
        let record = LaneRecord {
            peer: 7,
            open_messages: 4,
            unsent_bytes: 1,
            since_ns: 90,
            silent_since_ns: 95,
        };
        assert_eq!(stall.unwrap().record(7, 95), record);
    }
}
