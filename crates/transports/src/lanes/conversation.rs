//! The conversation with the daemon. A daemon that starts again is told what the run before it knew.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use landeck_channel::{Channel, Sink};
use landeck_memory::Segment;
use landeck_wire::handover::Handover;
use landeck_wire::way::PathWish;
use rustix::event::epoll::{self, EventData, EventFlags};

use super::daemon::{DaemonSocket, Heard};
use super::{DAEMON, HEARD_MAX, Lanes, OfferedLane};

impl Lanes {
    /// Connects to the daemon of this host by `connect`, which must not wait, when the socket to it has ended: it may have
    /// started again. Where nobody listens, that is tried some times.
    pub fn reconnect_by(&mut self, connect: impl FnMut() -> io::Result<OwnedFd> + Send + 'static) {
        self.daemon.connect_by(Box::new(connect));
    }

    /// Tells the daemon at the other end of `socket` that a process has left that has had no lanes.
    pub fn tell_departure_of(segment: &Segment, slot: u32, socket: OwnedFd) {
        let incarnation = segment.slot_record(slot).incarnation;
        let mut daemon = DaemonSocket::new(socket);
        daemon.say(Handover::Hello { slot, incarnation, lanes_max: 0 });
        daemon.say(Handover::Left);
    }

    /// Tells the daemon, which knows nothing of this process, who it is, what it has, and what it waits for.
    pub(super) fn introduce(&mut self) {
        let (slot, incarnation, lanes_max) = self.own;
        self.daemon.say(Handover::Hello { slot, incarnation, lanes_max });
        for (far, place) in (0..).zip(&self.places) {
            let incarnation = place.incarnation;
            let has = place.last.map(|lane| Handover::Has { far, incarnation, lane });
            let report = self.unexplained.get(&far).cloned();
            let is_missing = place.lane.is_none() || report.is_some();
            let wants = place.is_wanted && !place.is_refused && is_missing;
            let want = wants.then_some(Handover::Want { far });
            has.into_iter().chain(report).chain(want).for_each(|it| self.daemon.say(it));
        }
        if let Some(relayed) = &mut self.relayed {
            relayed.introduce(&mut self.daemon);
        }
        if self.segment.as_ref().is_some_and(Segment::needs_group_numbers) {
            self.daemon.say(Handover::Numbers);
        }
        if self.has_told {
            self.daemon.say(Handover::Left);
        }
    }

    /// Connects to the next run of the daemon, if that is due. Without one everything goes on as it is.
    #[cold]
    pub(super) fn reconnect(&mut self) {
        let now = self.clock();
        if let Some(socket) = self.daemon.reconnect(now) {
            let watched = EventData::new_u64(DAEMON);
            // If it fails, this process has no memory, and hears of no lane.
            let _ = epoll::add(&self.epoll, socket, watched, EventFlags::IN);
            self.introduce();
            self.watch_daemon();
        }
        // Lanes that came before may wait there.
        self.is_welcome = !self.daemon.is_connected();
    }

    /// Does what is due by the time.
    #[cold]
    pub(super) fn look_at_time(&mut self) {
        if self.daemon.is_missed() {
            self.reconnect();
        }
        self.look_at_silences();
    }

    /// Tells the daemon that a lane is missing. The next run of the daemon is told too, unless there is a lane by then.
    pub(super) fn report(&mut self, far: u32, report: Handover) {
        self.daemon.say(report.clone());
        self.unexplained.insert(far, report);
    }

    #[cold]
    pub(super) fn hear_daemon<S: Sink + ?Sized>(&mut self, sink: &mut S) {
        for _ in 0..HEARD_MAX {
            match self.daemon.hear() {
                Some(Heard::Message(Handover::Lane { far, incarnation, lane, keys }, socket)) => {
                    self.accept(OfferedLane { far, incarnation, number: lane, keys, socket }, sink);
                }
                Some(Heard::Message(Handover::Unreachable { far }, _)) => self.refused(far),
                Some(Heard::Message(Handover::Relayed { host, keys }, socket)) => {
                    if let Some(relayed) = &mut self.relayed {
                        relayed.connected(host, &keys, socket, &mut self.daemon, &self.epoll);
                    }
                }
                Some(Heard::Message(Handover::NoRelay { host }, _)) => {
                    if let Some(relayed) = &mut self.relayed {
                        relayed.refused(host, &mut self.daemon);
                    }
                }
                Some(Heard::Message(Handover::RelayRestarted, _)) => {
                    if let Some(relayed) = &mut self.relayed {
                        relayed.restarted(sink, &mut self.daemon);
                    }
                }
                Some(Heard::Message(Handover::Welcome { silence_ms }, _)) => {
                    self.is_welcome = true;
                    self.daemon.welcomed();
                    self.silence = Some(Duration::from_millis(silence_ms.into()));
                }
                Some(Heard::Message(..) | Heard::Noise) => {}
                Some(Heard::End(socket)) => {
                    let _ = epoll::delete(&self.epoll, socket.as_fd());
                    return self.reconnect();
                }
                None => return,
            }
        }
    }

    /// No lane to a far process can be had. Without relays the arbiter decides what follows.
    fn refused(&mut self, far: u32) {
        let Some(place) = self.places.get_mut(far as usize) else { return };
        place.is_refused = true;
        let has_none = place.lane.as_ref().is_none_or(|lane| lane.is_over());
        if place.is_wanted && self.wish == PathWish::Lane && has_none {
            let lane = place.last.unwrap_or(0);
            let (incarnation, errno) = (self.incarnation_of(far), libc::EHOSTUNREACH);
            self.report(far, Handover::Broken { far, incarnation, lane, errno });
        }
    }
}
