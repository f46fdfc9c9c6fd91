//! Looks at a connection: whether it carries what it is given.

use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_channel::silence::Silence;
use landeck_wire::handover::LaneSilence;

use super::socket;

/// The segments that pass where packets of 1,280 bytes do, the least that a network of IPv6 carries. Longer ones vanish on
/// some ways: a tunnel on the way is narrower than its ends, and its word of that is lost.
pub const SHORT_SEGMENT_BYTES: u32 = 1_200;

/// A connection on which so many bytes were acknowledged has carried long packets too.
const CARRIED_BYTES: u64 = 64 << 10;

/// Has a socket that is not connected yet send and get no longer segments than this.
pub fn keep_segments_short(socket: &OwnedFd) {
    socket::set_number(socket, libc::TCP_MAXSEG, SHORT_SEGMENT_BYTES as libc::c_int);
}

/// Whether the silence shows that long packets may not pass: it began with the connection, whose opening passed, and
/// longer ones wait.
#[must_use]
pub fn may_be_of_long_packets(silence: &LaneSilence) -> bool {
    silence.is_from_begin && silence.unsent_bytes > SHORT_SEGMENT_BYTES.into()
}

/// Whether bytes are under way on a connection that the other host is not known to have.
#[must_use]
pub fn has_unacknowledged(socket: &OwnedFd) -> bool {
    socket::has_unacknowledged(socket)
}

/// The looks at one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilenceLooks {
    silence: Silence,
    /// The time of the first look.
    begun: Option<Duration>,
}

impl SilenceLooks {
    /// Looks at a time of the monotonic clock. Returns the silence if the connection has carried nothing for `limit`: then
    /// it is broken, and its end will be a reset.
    pub fn look(
        &mut self,
        socket: &OwnedFd,
        now: Duration,
        limit: Duration,
    ) -> Option<LaneSilence> {
        let sight = socket::sight(socket)?;
        let begun = *self.begun.get_or_insert(now);
        self.silence.look(now, &sight);
        let silent = self.silence.longer_than(limit, now)?;
        // An end in good order would wait behind the bytes that nobody gets.
        socket::reset_at_close(socket);
        Some(LaneSilence {
            silent_ms: u32::try_from(silent.as_millis()).unwrap_or(u32::MAX),
            unsent_bytes: sight.waiting_bytes,
            is_from_begin: now.saturating_sub(silent) < begun + limit
                && sight.acknowledged_bytes < CARRIED_BYTES,
            is_hopeless: false,
        })
    }

    /// Whether there was no look yet.
    pub(super) fn is_new(&self) -> bool {
        self.begun.is_none()
    }

    /// Since when nothing gets through, by the last look.
    pub(super) fn since(&self) -> Option<Duration> {
        self.silence.since()
    }
}
