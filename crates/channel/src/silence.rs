//! How long a connection has carried nothing, from looks at what its system says of it.
//!
//! A connection whose packets vanish stays established, and the system goes on trying for a quarter of an hour. So its
//! owner looks now and then: bytes that wait while none of them is acknowledged are a silence. A receiver that does not
//! read closes its window, and its system still answers: that is no silence, however long it lasts.

use std::time::Duration;

/// The facts of a connection, as its system tells them at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionSight {
    /// The bytes that the other side has not acknowledged, sent or not.
    pub waiting_bytes: u64,
    /// The bytes that it has acknowledged since the connection began.
    pub acknowledged_bytes: u64,
    /// Whether it lets this side send more.
    pub is_window_open: bool,
    /// Whether it owes an answer: to bytes under way, or to two questions whether its window is open again, as one may be lost.
    pub is_asked: bool,
    /// The time since it last answered anything.
    pub answer_age: Duration,
}

/// The silence of one connection, as far as it was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    begun: Option<Begun>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Begun {
    /// Since when bytes wait and nothing shows that they get through.
    since: Duration,
    acknowledged_bytes: u64,
    /// The other side had to answer something at the last look.
    was_asked: bool,
}

impl Silence {
    /// Looks at the connection at a time. The time is of one clock for all looks, and never goes back.
    pub fn look(&mut self, now: Duration, sight: &ConnectionSight) {
        if sight.waiting_bytes == 0 {
            self.begun = None;
            return;
        }
        let ConnectionSight { acknowledged_bytes, is_asked, .. } = *sight;
        let before = self.begun.filter(|begun| begun.acknowledged_bytes == acknowledged_bytes);
        let mut since = before.map_or(now, |begun| begun.since);
        if !sight.is_window_open {
            // Each answer says that the window is closed. Between two questions nothing can be known.
            let is_unanswered = is_asked && before.is_some_and(|begun| begun.was_asked);
            let answered = if is_unanswered { now.saturating_sub(sight.answer_age) } else { now };
            since = since.max(answered);
        }
        self.begun = Some(Begun { since, acknowledged_bytes, was_asked: is_asked });
    }

    /// Since when nothing gets through, by the last look. `None` while nothing waits.
    #[must_use]
    pub fn since(&self) -> Option<Duration> {
        self.begun.map(|begun| begun.since)
    }

    /// How long nothing has got through by a time, if that is at least `limit`.
    #[must_use]
    pub fn longer_than(&self, limit: Duration, now: Duration) -> Option<Duration> {
        self.since().map(|since| now.saturating_sub(since)).filter(|silent| *silent >= limit)
    }
}

/// Connections of one pair that fell silent one after the other, and brought nothing over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Barren {
    /// The position at which the last silent connection began.
    began_at: Option<u64>,
    connections: u32,
}

impl Barren {
    /// So many connections in a row that bring nothing over are enough.
    pub const CONNECTIONS_MAX: u32 = 3;

    /// Counts a connection that fell silent. It began where the other side had received everything before `began_at`, and
    /// `has_more` says whether anything waits that is not known to be received. Returns whether there is no hope for
    /// further ones: several in a row began at one position.
    pub fn count(&mut self, began_at: u64, has_more: bool) -> bool {
        let is_same = has_more && self.began_at == Some(began_at);
        self.connections = if is_same { self.connections + 1 } else { 1 };
        self.began_at = has_more.then_some(began_at);
        self.connections >= Self::CONNECTIONS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(2);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn open(waiting_bytes: u64, acknowledged_bytes: u64) -> ConnectionSight {
        let (is_window_open, is_asked, answer_age) = (true, waiting_bytes > 0, at(9_000));
        ConnectionSight { waiting_bytes, acknowledged_bytes, is_window_open, is_asked, answer_age }
    }

    /// Looks once in 100 ms; returns when it was silent for the limit.
    fn silent_at(mut sight: impl FnMut(u64) -> ConnectionSight, until: u64) -> Option<u64> {
        let mut silence = Silence::default();
        (0..=until).step_by(100).find(|ms| {
            silence.look(at(*ms), &sight(*ms));
            silence.longer_than(LIMIT, at(*ms)).is_some()
        })
    }

    #[test]
    fn bytes_that_nobody_acknowledges_are_a_silence() {
        assert_eq!(silent_at(|_| open(100, 7), 9_000), Some(2_000));
        assert_eq!(silent_at(|ms| open(ms, 7), 9_000), Some(2_100), "more of them change nothing");
        assert_eq!(silent_at(|_| open(0, 7), 9_000), None, "nothing waits");
        assert_eq!(silent_at(|ms| open(100, ms / 1_900), 9_000), None, "some get through");
        assert_eq!(silent_at(|ms| open(ms / 1_900 % 2, 7), 9_000), None, "all had got through");
        assert_eq!(silent_at(|ms| open(9, u64::from(ms >= 500)), 9_000), Some(2_500));
    }

    #[test]
    fn a_receiver_that_does_not_read_is_no_silence_while_its_system_answers() {
        let closed = |is_asked, answer_age| ConnectionSight {
            is_window_open: false,
            is_asked,
            answer_age: at(answer_age),
            ..open(100, 7)
        };
        // It is asked once in five seconds, and answers after 100 ms.
        let answers = |ms: u64| closed(ms.is_multiple_of(5_000), ms.saturating_sub(100) % 5_000);
        assert_eq!(silent_at(answers, 60_000), None);
        // At 10 s the network dies: the question of that moment gets no answer.
        let dies = |ms| if ms < 10_000 { answers(ms) } else { closed(true, ms - 5_100) };
        assert_eq!(silent_at(dies, 60_000), Some(12_000));
        let opens = |ms| if ms < 10_000 { answers(ms) } else { open(100, 7) };
        assert_eq!(silent_at(opens, 60_000), Some(11_900));
        // A process that seldom looks may meet each question before its answer.
        let mut silence = Silence::default();
        for ms in (0..60_000).step_by(10_000) {
            silence.look(at(ms), &closed(ms.is_multiple_of(20_000), 4_999));
            assert_eq!(silence.longer_than(LIMIT, at(ms)), None);
        }
    }

    #[test]
    fn connections_in_a_row_that_bring_nothing_over_are_counted() {
        let mut barren = Barren::default();
        let counted = [
            ((5, true), false),
            ((9, true), false),
            ((9, true), false),
            ((9, false), false), // only words about positions wait
            ((9, true), false),
            ((9, true), false),
            ((9, true), true),
            ((10, true), false),
        ];
        for ((began_at, has_more), is_hopeless) in counted {
            assert_eq!(barren.count(began_at, has_more), is_hopeless, "{began_at} {has_more}");
        }
    }
}
