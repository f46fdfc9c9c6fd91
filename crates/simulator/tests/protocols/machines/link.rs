//! Links between two hosts: datagrams that are lost, doubled and reordered, and a TCP connection with doubling retries.

use std::collections::VecDeque;
use std::time::Duration;

use super::draw::Draw;

/// The first retry of TCP comes after this time.
const RETRY_MIN: Duration = Duration::from_millis(200);
/// No two retries are further apart than this.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// The quality of a link, while it is not cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quality {
    pub(super) loss_permille: u32,
    pub(super) twice_permille: u32,
    pub(super) delay_min: Duration,
    /// A datagram takes any time up to this one, so that some overtake others.
    pub(super) delay_max: Duration,
}

impl Quality {
    /// When the copies of a datagram arrive that is sent now; none if it is lost.
    pub(super) fn datagram(self, now: Duration, draw: &mut Draw) -> Vec<Duration> {
        let copies = if draw.permille(self.twice_permille) { 2 } else { 1 };
        let mut arrivals = Vec::new();
        for _ in 0..copies {
            if !draw.permille(self.loss_permille) {
                arrivals.push(now + draw.time(self.delay_min, self.delay_max));
            }
        }
        arrivals
    }
}

/// One direction of a TCP connection.
#[derive(Debug)]
pub(super) struct TcpStream<M> {
    queue: VecDeque<M>,
    retry: Duration,
    is_trying: bool,
    last_arrival: Duration,
    /// The number of the connection. What is on its way when it changes is lost.
    pub(super) epoch: u32,
}

impl<M> Default for TcpStream<M> {
    fn default() -> Self {
        let (queue, last_arrival) = (VecDeque::new(), Duration::ZERO);
        Self { queue, retry: RETRY_MIN, is_trying: false, last_arrival, epoch: 0 }
    }
}

impl<M> TcpStream<M> {
    /// Accepts a message. Returns whether an attempt has to be planned now.
    pub(super) fn push(&mut self, message: M) -> bool {
        self.queue.push_back(message);
        !std::mem::replace(&mut self.is_trying, true)
    }

    /// Makes an attempt. Returns the messages with the time of their arrival, or the time of the next attempt.
    pub(super) fn attempt(
        &mut self,
        now: Duration,
        passes: bool,
        quality: Quality,
        draw: &mut Draw,
    ) -> Result<(Duration, Vec<M>), Duration> {
        if !passes || draw.permille(quality.loss_permille) {
            let next = now + self.retry;
            self.retry = (2 * self.retry).min(RETRY_MAX);
            return Err(next);
        }
        self.retry = RETRY_MIN;
        self.is_trying = false;
        let arrival = now + draw.time(quality.delay_min, quality.delay_max);
        self.last_arrival = self.last_arrival.max(arrival);
        Ok((self.last_arrival, self.queue.drain(..).collect()))
    }

    /// Ends the connection and begins another one.
    pub(super) fn reset(&mut self) {
        self.queue.clear();
        (self.retry, self.is_trying) = (RETRY_MIN, false);
        self.epoch += 1;
    }
}
