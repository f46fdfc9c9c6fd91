//! The grants of one receiver to many senders.
//!
//! Many senders that answer one receiver at once overrun the buffer of the last port in front of it. Lost packets then
//! cost a sender 200 ms each. So the receiver grants: a sender sends a long message only up to the position that it was
//! granted. At most a few senders are *under way* at once, and all of them together have at most so many bytes that are
//! granted and not received. The message with the smallest rest goes first, unless another one has waited for long.
//!
//! A sender may compute, or its packets may be lost. Then what it was granted would keep others waiting. So it is
//! counted as *stalled* when twice the limit has come from others since its last byte, because no port holds more in
//! front of it. If nothing comes from anybody for a while, all senders under way are stalled. A stalled sender keeps its
//! grant, but neither its place nor its bytes count until it goes on.
//!
//! The grants know no clock: the time is an argument.

use std::time::Duration;

/// The usual limits of granted bytes and of senders under way.
pub const CREDIT_BYTES: u64 = 128 << 10;
/// The usual number of senders under way, and the parts into which longer messages divide any credit.
pub const CREDIT_PLACES: u32 = 4;
/// The least bytes of a grant, and the most of one part of a message that is granted in parts. A receiver counts whole
/// parts. So a sender has two of them at least on their way, and its next grant comes before it has sent the last one.
pub const PIECE_BYTES: u64 = 16 << 10;
/// If nothing comes for so long, all senders under way are stalled.
const QUIET: Duration = Duration::from_millis(50);
/// A message that has waited for so long goes before shorter ones.
const PATIENCE: Duration = Duration::from_millis(100);

/// The limits of a receiver's grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantLimits {
    /// The most senders under way.
    pub places: u32,
    /// The most bytes that are granted and not received. Without it, messages are granted whole.
    pub bytes: Option<u64>,
}

impl GrantLimits {
    /// The limits of credit with so many bytes. A longer credit than usual has room for more short messages at once.
    #[must_use]
    pub const fn credit(bytes: u64) -> Self {
        let places = bytes / (CREDIT_BYTES / CREDIT_PLACES as u64);
        let is_long = places > CREDIT_PLACES as u64;
        Self { places: if is_long { places as u32 } else { CREDIT_PLACES }, bytes: Some(bytes) }
    }

    /// So many senders at once, each with its whole message.
    #[must_use]
    pub const fn senders(places: u32) -> Self {
        Self { places, bytes: None }
    }
}

/// One message that comes by grants.
#[derive(Clone, Debug)]
struct Coming<K> {
    key: K,
    total: u64,
    granted: u64,
    received: u64,
    /// The time since which it waits for a grant, while nothing of it is under way.
    since: Duration,
    /// The count of all received bytes when it last moved.
    mark: u64,
    is_stalled: bool,
}

impl<K> Coming<K> {
    const fn ahead(&self) -> u64 {
        self.granted - self.received
    }

    const fn is_under_way(&self) -> bool {
        self.ahead() > 0 && !self.is_stalled
    }
}

/// The grants of one receiver. `K` names a message.
#[derive(Clone, Debug)]
pub struct Grants<K> {
    limits: GrantLimits,
    coming: Vec<Coming<K>>,
    /// The bytes that all messages have brought.
    received: u64,
    /// The time of the last grant or arrival.
    last_move: Duration,
}

impl<K: Copy + PartialEq> Grants<K> {
    /// Creates the grants of a receiver that expects nothing.
    #[must_use]
    pub const fn new(limits: GrantLimits) -> Self {
        Self { limits, coming: Vec::new(), received: 0, last_move: Duration::ZERO }
    }

    /// Sets other limits. What is granted stays granted.
    pub const fn set_limits(&mut self, limits: GrantLimits) {
        self.limits = limits;
    }

    /// The limits.
    #[must_use]
    pub const fn limits(&self) -> GrantLimits {
        self.limits
    }

    /// Adds a message of so many bytes, of which nothing is granted yet. A message without bytes needs no grant.
    pub fn add(&mut self, key: K, bytes: u64, now: Duration) {
        if bytes > 0 {
            let (granted, received, mark) = (0, 0, self.received);
            let (total, since, is_stalled) = (bytes, now, false);
            let one = Coming { key, total, granted, received, since, mark, is_stalled };
            self.coming.push(one);
        }
    }

    /// Counts bytes that a message has brought. A message that is whole leaves.
    pub fn received(&mut self, key: K, bytes: u64, now: Duration) {
        let Some(at) = self.coming.iter().position(|one| one.key == key) else { return };
        self.received += bytes;
        self.last_move = now;
        let one = &mut self.coming[at];
        one.received = (one.received + bytes).min(one.granted);
        (one.mark, one.since, one.is_stalled) = (self.received, now, false);
        if one.received == one.total {
            self.coming.remove(at);
        }
    }

    /// Removes a message that does not come any more.
    pub fn remove(&mut self, key: K) {
        self.coming.retain(|one| one.key != key);
    }

    /// Whether no message comes by grants.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.coming.is_empty()
    }

    /// Whether a message comes by grants.
    #[must_use]
    pub fn contains(&self, key: K) -> bool {
        self.coming.iter().any(|one| one.key == key)
    }

    /// Makes the next grant, if there can be one: the message, and the position up to which it may be sent now. To be
    /// called until it returns none, after each change and at [`Grants::wake_at`].
    pub fn next(&mut self, now: Duration) -> Option<(K, u64)> {
        self.find_stalled(now);
        let (places, bytes) = self.under_way();
        let window = self.window();
        let room = self.limits.bytes.map_or(u64::MAX, |most| most.saturating_sub(bytes));
        let has_place = places < self.limits.places;
        let step = (window / 4).max(PIECE_BYTES);
        let free = |one: &Coming<K>| room.min(window.saturating_sub(one.ahead()));
        let may = |one: &&mut Coming<K>| {
            let rest = one.total - one.granted;
            let fits = free(one) >= step.min(rest);
            rest > 0 && fits && !one.is_stalled && (one.ahead() > 0 || has_place)
        };
        // A message that has waited for long, the longest first; else the one with the smallest rest.
        let order = |one: &&mut Coming<K>| {
            let is_late = one.ahead() == 0 && now.saturating_sub(one.since) > PATIENCE;
            match is_late {
                true => (0, one.since.as_nanos()),
                false => (1, u128::from(one.total - one.granted)),
            }
        };
        let one = self.coming.iter_mut().filter(may).min_by_key(order)?;
        if one.ahead() == 0 {
            one.mark = self.received;
        }
        one.granted += free(one).min(one.total - one.granted);
        self.last_move = now;
        Some((one.key, one.granted))
    }

    /// Whether some message waits for a grant.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.coming.iter().any(|one| one.granted < one.total)
    }

    /// The time at which to ask for a grant again, if nothing comes until then and something waits for it.
    #[must_use]
    pub fn wake_at(&self) -> Option<Duration> {
        let is_under_way = self.coming.iter().any(Coming::is_under_way);
        (self.has_waiting() && is_under_way).then(|| self.last_move + QUIET)
    }

    /// The senders under way, and the bytes that they may send.
    fn under_way(&self) -> (u32, u64) {
        let moving = self.coming.iter().filter(|one| one.is_under_way());
        moving.fold((0, 0), |(places, bytes), one| (places + 1, bytes + one.ahead()))
    }

    /// The most bytes of one message that are granted and not received: an equal part for each that can be under way.
    fn window(&self) -> u64 {
        let Some(bytes) = self.limits.bytes else { return u64::MAX };
        let moving = self.coming.iter().filter(|one| !one.is_stalled).count() as u64;
        (bytes / moving.clamp(1, u64::from(CREDIT_PLACES))).max(2 * PIECE_BYTES)
    }

    fn find_stalled(&mut self, now: Duration) {
        let all_are = now.saturating_sub(self.last_move) >= QUIET;
        let most = self.limits.bytes.unwrap_or(u64::MAX).saturating_mul(2);
        for one in &mut self.coming {
            let is_passed = self.received - one.mark > most;
            one.is_stalled |= one.ahead() > 0 && (all_are || is_passed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const AT: Duration = Duration::from_secs(1);

    fn all<K: Copy + PartialEq>(grants: &mut Grants<K>, now: Duration) -> Vec<(K, u64)> {
        std::iter::from_fn(|| grants.next(now)).collect()
    }

    fn credit(messages: &[u64]) -> Grants<usize> {
        let mut grants = Grants::new(GrantLimits::credit(CREDIT_BYTES));
        messages.iter().enumerate().for_each(|(key, bytes)| grants.add(key, *bytes, AT));
        grants
    }

    #[test]
    fn a_few_senders_share_the_bytes_and_the_smallest_rest_goes_first() {
        let sizes = [800, 80, 700, 600, 500, 8].map(|kib| kib * KIB);
        let mut grants = credit(&sizes);
        let piece = 32 * KIB;
        assert_eq!(all(&mut grants, AT), [(5, 8 * KIB), (1, piece), (4, piece), (3, piece)]);
        grants.received(5, 8 * KIB, AT);
        assert_eq!(all(&mut grants, AT), [(2, piece)]);
        grants.received(1, 15 * KIB, AT);
        assert_eq!(all(&mut grants, AT), [], "no grant is that short");
        grants.received(1, KIB, AT);
        assert_eq!(all(&mut grants, AT), [(1, 48 * KIB)], "the other half is on its way");
        assert!(!grants.contains(5) && grants.contains(0));
    }

    #[test]
    fn one_sender_has_all_bytes() {
        let mut grants = credit(&[MIB]);
        assert_eq!(all(&mut grants, AT).last(), Some(&(0, CREDIT_BYTES)));
        grants.received(0, 32 * KIB, AT);
        assert_eq!(all(&mut grants, AT), [(0, CREDIT_BYTES + 32 * KIB)]);
        grants.received(0, 31 * KIB, AT);
        assert_eq!(all(&mut grants, AT), [], "no grant is shorter than a quarter");
    }

    #[test]
    fn a_credit_has_places_and_windows_by_its_length() {
        let places = [32 * KIB, CREDIT_BYTES, MIB].map(|bytes| GrantLimits::credit(bytes).places);
        assert_eq!(places, [4, 4, 32]);
        for (bytes, windows) in [(64 * KIB, [32 * KIB; 2].to_vec()), (MIB, [256 * KIB; 4].to_vec())]
        {
            let mut grants = Grants::new(GrantLimits::credit(bytes));
            (0..8).for_each(|key| grants.add(key, MIB, AT));
            let granted: Vec<u64> = all(&mut grants, AT).iter().map(|(_, upto)| *upto).collect();
            assert_eq!(granted, windows);
        }
    }

    #[test]
    fn a_short_rest_takes_the_last_room() {
        let mut grants = credit(&[120 * KIB]);
        assert_eq!(all(&mut grants, AT), [(0, 120 * KIB)]);
        grants.add(1, 0, AT);
        grants.add(2, 8 * KIB, AT);
        grants.add(3, 8 * KIB, AT);
        assert_eq!(all(&mut grants, AT), [(2, 8 * KIB)]);
        assert!(!grants.contains(1), "it has no bytes");
    }

    #[test]
    fn bytes_of_a_message_beyond_its_grant_do_not_count() {
        let mut grants = credit(&[MIB]);
        assert_eq!(all(&mut grants, AT), [(0, CREDIT_BYTES)]);
        grants.received(0, 2 * CREDIT_BYTES, AT);
        assert_eq!(all(&mut grants, AT), [(0, 2 * CREDIT_BYTES)]);
    }

    #[test]
    fn the_smallest_rest_goes_first_and_not_the_smallest_message() {
        let mut grants = credit(&[160 * KIB]);
        assert_eq!(all(&mut grants, AT), [(0, CREDIT_BYTES)]);
        grants.received(0, CREDIT_BYTES, AT);
        grants.add(1, 100 * KIB, AT);
        assert_eq!(grants.next(AT), Some((0, 160 * KIB)));
    }

    #[test]
    fn only_messages_that_have_nothing_under_way_are_late() {
        let late = AT + PATIENCE + Duration::from_millis(1);
        let mut grants = credit(&[MIB]);
        assert_eq!(grants.next(AT), Some((0, CREDIT_BYTES)));
        grants.received(0, 96 * KIB, AT);
        grants.add(1, 8 * KIB, late);
        grants.last_move = late;
        assert_eq!(grants.next(late), Some((1, 8 * KIB)), "of the other 32 KiB are under way");
        // It waits since its last byte, and not since its first one.
        let mut grants = credit(&[MIB]);
        assert_eq!(grants.next(AT), Some((0, CREDIT_BYTES)));
        grants.received(0, CREDIT_BYTES, late);
        grants.add(1, 8 * KIB, late);
        assert_eq!(grants.next(late), Some((1, 8 * KIB)));
        // Of two late ones, the one that has waited for longer.
        let mut grants = credit(&[]);
        grants.add(0, MIB, AT + Duration::from_nanos(1));
        grants.add(1, MIB, AT);
        grants.last_move = late;
        assert_eq!(grants.next(late), Some((1, 64 * KIB)));
    }

    #[test]
    fn a_receiver_wakes_for_messages_that_wait_behind_others() {
        let mut grants = credit(&[32 * KIB]);
        assert_eq!(all(&mut grants, AT), [(0, 32 * KIB)]);
        assert_eq!((grants.has_waiting(), grants.wake_at()), (false, None), "all is granted");
        let mut grants = credit(&[MIB; 5]);
        assert_eq!(all(&mut grants, AT).len(), 4);
        let later = AT + Duration::from_millis(1);
        grants.received(0, KIB, later);
        assert_eq!((grants.has_waiting(), grants.wake_at()), (true, Some(later + QUIET)));
        grants.find_stalled(later + QUIET);
        assert_eq!(grants.wake_at(), None, "none is under way");
    }

    #[test]
    fn a_sender_is_overtaken_by_what_came_since_its_grant_and_its_last_byte() {
        let mut grants = credit(&[&[64 * KIB; 8][..], &[MIB; 5][..]].concat());
        for key in 0..8 {
            while grants.contains(key) {
                all(&mut grants, AT);
                grants.received(key, 16 * KIB, AT);
            }
        }
        all(&mut grants, AT);
        assert_eq!(grants.under_way().0, 4, "the first bytes of all are under way");
        for _ in 0..20 {
            for key in 8..12 {
                grants.received(key, 16 * KIB, AT);
            }
            let next = all(&mut grants, AT);
            assert!(next.iter().all(|(key, _)| *key < 12), "none of them is stalled: {next:?}");
        }
    }

    #[test]
    fn a_fixed_number_of_senders_sends_whole_messages() {
        let mut grants = Grants::new(GrantLimits::senders(2));
        (0..3).for_each(|key| grants.add(key, MIB, AT));
        assert_eq!(all(&mut grants, AT), [(0, MIB), (1, MIB)]);
        grants.received(1, MIB - 1, AT);
        assert_eq!(all(&mut grants, AT), []);
        grants.received(1, 1, AT);
        assert_eq!(all(&mut grants, AT), [(2, MIB)]);
        grants.remove(0);
        grants.received(2, MIB, AT);
        assert!(grants.is_empty() && grants.wake_at().is_none());
    }

    #[test]
    fn a_stalled_sender_keeps_no_other_waiting() {
        let mut grants = credit(&[MIB; 6]);
        assert_eq!(all(&mut grants, AT).len(), 4);
        let later = grants.wake_at().expect("others wait");
        assert_eq!(all(&mut grants, later - Duration::from_nanos(1)), []);
        let next: Vec<_> = all(&mut grants, later).iter().map(|(key, _)| *key).collect();
        assert_eq!(next, [4, 5], "nothing came from the first four");
        grants.received(0, 32 * KIB, later);
        grants.received(4, 32 * KIB, later);
        assert_eq!(all(&mut grants, later), [(0, 64 * KIB)], "it goes on");
    }

    #[test]
    fn a_sender_that_others_overtake_by_twice_the_limit_is_stalled() {
        let mut grants = credit(&[MIB; 5]);
        assert_eq!(all(&mut grants, AT).len(), 4);
        for round in 0.. {
            assert!(round < 20, "sender 0 sends nothing, and keeps its place");
            for key in 1..4 {
                grants.received(key, 32 * KIB, AT);
            }
            if all(&mut grants, AT).iter().any(|(key, _)| *key == 4) {
                return assert_eq!(round, 2, "three times 96 KiB are more than twice the limit");
            }
        }
    }

    #[test]
    fn a_long_message_is_not_starved_by_short_ones() {
        let mut grants = credit(&[MIB]);
        let late = AT + PATIENCE + Duration::from_millis(1);
        (1..9).for_each(|key| grants.add(key, KIB, late));
        grants.last_move = late;
        assert_eq!(grants.next(late), Some((0, 32 * KIB)));
        assert_eq!(grants.next(late), Some((1, KIB)));
    }
}
