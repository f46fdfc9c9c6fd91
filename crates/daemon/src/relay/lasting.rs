//! The part of a relay that outlives connections: how far each process has come, with messages and with requests about
//! regions and stored data.
//!
//! A connection may break at any byte. The process opens another one, which takes the place of the older one: that is
//! closed unread. Messages go on behind the last piece that was taken. Requests go on behind the last one whose answer
//! came, and those that were done are answered again. So nothing is lost, and no change is done twice.
//!
//! The relay itself may start again with its daemon. Senders keep what their receivers have not taken, so the receivers say
//! how many pieces came ([`Lasting::resume`]), and the senders go on behind them. A sender waits for its connection until
//! all have said so.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use landeck_channel::BrokenPeer;
use landeck_channel::relay_requests::AnsweredRequests;
use landeck_memory::Segment;
use landeck_memory::waiter::Doorbell;
use landeck_transports::lanes::relay::RelayEnd;
use landeck_wire::{Header, HostNumber, Incarnation, ProcessId, SegmentId, Slot};

use super::receivers::Receivers;
use super::source::RelaySource;
use super::stores::Stores;

/// A connection with its process.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) token: u64,
    pub(super) process: ProcessId,
    /// The place of the process in the segment's table of far processes; `None` for a process of this host.
    pub(super) far: Option<u32>,
    pub(super) segment: Segment,
    pub(super) host: HostNumber,
    /// The number that the process's daemon has given it: later ones are higher.
    pub(super) number: u32,
}

/// The way in which a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The process may open another one.
    Broken,
    /// The process has sent what no process sends: it gets no further one.
    Refused,
    /// The process is gone.
    Gone,
}

/// The progress of the processes elsewhere.
#[derive(Debug, Default)]
pub(super) struct Lasting {
    /// The processes of this host, for which messages are laid.
    pub(super) receivers: Receivers,
    /// The data that stay on this host.
    pub(super) stores: Stores,
    sources: HashMap<ProcessId, SourceProcess>,
    /// Connections in whose place there is another one.
    replaced: Vec<u64>,
    /// The processes of this host that have not said how many messages came over the relay of an earlier run.
    untold: BTreeSet<ProcessId>,
}

/// A process elsewhere.
#[derive(Debug)]
struct SourceProcess {
    checks: RelaySource,
    requests: AnsweredRequests,
    /// The newest connection, and its token while it is there.
    connection: Connection,
    is_connected: bool,
    is_refused: bool,
}

impl Lasting {
    /// Serves a process over a connection from now on. Returns the frames of the answer.
    ///
    /// # Errors
    /// [`RelayEnd::Broken`] if no process opens like that.
    pub(super) fn open_source(
        &mut self,
        from: &Connection,
        asked: u32,
    ) -> Result<Vec<(Header, Vec<u8>)>, RelayEnd> {
        let source = self.sources.entry(from.process).or_insert_with(|| {
            if let Some(far) = from.far {
                let word = from.segment.far_relayed(far);
                word.store(from.process.incarnation.0, Ordering::Release);
            }
            let checks = RelaySource::new(from.segment.plan());
            SourceProcess::new(checks, Connection { token: 0, number: 0, ..from.clone() })
        });
        if source.is_refused {
            return Ok(vec![(Header::GOODBYE, Vec::new())]);
        }
        let is_first = source.connection.token == 0;
        if is_first && source.checks.is_resuming() {
            source.requests.resume(asked);
        }
        let is_later = from.number.wrapping_sub(source.connection.number).cast_signed() >= 0;
        let is_newer = from.token != source.connection.token && (is_first || is_later);
        if !is_newer {
            return Err(BrokenPeer::Form.into());
        }
        if source.is_connected {
            self.replaced.push(source.connection.token);
        }
        source.connection = from.clone();
        source.is_connected = true;
        let positions = source.checks.connected().into_iter();
        let mut frames: Vec<_> = positions.map(|(frame, data)| (frame, data.to_vec())).collect();
        frames.push((Header::RELAY_OPEN, Vec::new()));
        Ok(frames)
    }

    /// Goes on with the processes elsewhere that the relay of an earlier run has served for a segment. `untold` are the
    /// processes here that have still to say how many messages came.
    pub(super) fn resume(&mut self, segment: &Segment, untold: Vec<ProcessId>) {
        self.untold.extend(untold);
        self.stores.resume(segment);
        for far in 0..segment.plan().far {
            let record = segment.far_record(far);
            let there = record.process;
            let open = segment.far_relayed(far).load(Ordering::Acquire);
            // Nobody accesses a region for the process now.
            segment.far_hazard(far).store(0, Ordering::Release);
            if open == 0 {
                continue;
            }
            let (slot, incarnation) = (Slot(there.slot), Incarnation(open));
            let process = ProcessId { segment: SegmentId(there.host), slot, incarnation };
            let host = HostNumber(record.host_number);
            let segment = segment.clone();
            let connection =
                Connection { token: 0, process, far: Some(far), segment, host, number: 0 };
            let checks = RelaySource::resumed(connection.segment.plan());
            let source = SourceProcess::new(checks, connection);
            if there.incarnation != open || record.state.is_gone() {
                source.close();
            } else {
                self.sources.insert(process, source);
            }
        }
    }

    /// A process of this host has said how many messages came.
    pub(super) fn told(&mut self, process: ProcessId) {
        self.untold.remove(&process);
    }

    /// Whether all processes of a segment have said how many messages came.
    pub(super) fn may_open(&self, segment: &Segment) -> bool {
        self.untold.iter().all(|process| process.segment.0 != segment.plan().host)
    }

    /// Whether a process is served over this connection.
    pub(super) fn is_source(&self, process: ProcessId, token: u64) -> bool {
        let source = self.sources.get(&process);
        source.is_some_and(|it| it.is_connected && it.connection.token == token)
    }

    /// Checks a frame and lays its piece.
    ///
    /// # Errors
    /// [`RelayEnd::Broken`] if no process sends it, or not over this connection.
    pub(super) fn take(
        &mut self,
        (process, token): (ProcessId, u64),
        frame: &Header,
        data: &[u8],
    ) -> Result<(), RelayEnd> {
        let its = |it: &&mut SourceProcess| it.is_connected && it.connection.token == token;
        let source = self.sources.get_mut(&process).filter(its).ok_or(BrokenPeer::Form)?;
        let to = source.checks.take(frame, data).map_err(|_| BrokenPeer::Form)?;
        let Connection { far, segment, .. } = &source.connection;
        // Processes of this host have rings of their own.
        let far = far.ok_or(BrokenPeer::Form)?;
        self.receivers.lay(segment, to, (far, process.incarnation.0), frame.class, data);
        Ok(())
    }

    /// A process has said goodbye. It may say so again over another connection, if the answer was lost.
    ///
    /// # Errors
    /// [`RelayEnd::Broken`] if the process has sent no messages over this connection.
    pub(super) fn take_goodbye(&mut self, process: ProcessId, token: u64) -> Result<(), RelayEnd> {
        let its = |it: &&mut SourceProcess| it.is_connected && it.connection.token == token;
        let source = self.sources.get_mut(&process).filter(its).ok_or(BrokenPeer::Form)?;
        source.checks.leave();
        source.close();
        Ok(())
    }

    /// A receiver lets a process send up to a position. Returns the connection, and the frame that tells the process.
    pub(super) fn granted(
        &mut self,
        receiver: ProcessId,
        process: ProcessId,
        position: u64,
    ) -> Option<(u64, Header, Vec<u8>)> {
        let its = |it: &&mut SourceProcess| it.connection.segment.plan().host == receiver.segment.0;
        let source = self.sources.get_mut(&process).filter(its)?;
        let to = (receiver.slot.0, receiver.incarnation.0);
        let (header, position) = source.checks.grant(to, position)?;
        source.is_connected.then(|| (source.connection.token, header, position.to_vec()))
    }

    /// The requests that come over a connection, and what they may ask for; `None` if its process sends none any more.
    pub(super) fn requests(
        &mut self,
        (process, token): (ProcessId, u64),
    ) -> Option<(&mut AnsweredRequests, &mut Stores)> {
        let Self { sources, stores, .. } = self;
        let its = |it: &&mut SourceProcess| {
            it.is_connected && it.connection.token == token && !it.checks.has_left()
        };
        sources.get_mut(&process).filter(its).map(|it| (&mut it.requests, stores))
    }

    /// The connections that are to be closed because there are others in their place.
    pub(super) fn take_replaced(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.replaced)
    }

    /// A connection has ended. Everything that came over it has been laid, or is held.
    pub(super) fn disconnected(&mut self, process: ProcessId, token: u64, ending: Ending) {
        if !self.is_source(process, token) {
            return;
        }
        if ending == Ending::Gone {
            // It may have stored something behind the word on its end.
            self.stores.processes_ended(Some(process));
            return self.forget(|it| it.connection.process == process);
        }
        if let Some(source) = self.sources.get_mut(&process) {
            source.is_connected = false;
            if ending == Ending::Refused {
                source.is_refused = true;
                source.close();
            }
        }
    }

    /// A process has ended, here or elsewhere. A connection that it still has is read to its end first.
    pub(super) fn process_ended(&mut self, process: ProcessId) {
        self.receivers.process_ended(process);
        self.stores.processes_ended(Some(process));
        self.untold.remove(&process);
        self.forget(|it| it.connection.process == process && !it.is_connected);
    }

    /// A host is lost.
    pub(super) fn host_lost(&mut self, host: HostNumber) {
        self.stores.processes_ended(None);
        self.forget(|it| it.connection.host == host && !it.is_connected);
    }

    /// The part of a job with this segment is over.
    pub(super) fn part_over(&mut self, segment: SegmentId) {
        self.receivers.part_over(segment);
        self.stores.part_over(segment);
        self.untold.retain(|process| process.segment != segment);
        self.forget(|it| it.connection.segment.plan().host == segment.0);
    }

    fn forget(&mut self, is_over: impl Fn(&SourceProcess) -> bool) {
        self.sources.retain(|_, source| {
            let is_over = is_over(source);
            if is_over {
                source.close();
            }
            !is_over
        });
    }
}

impl SourceProcess {
    fn new(checks: RelaySource, connection: Connection) -> Self {
        let requests = AnsweredRequests::default();
        Self { checks, requests, connection, is_connected: false, is_refused: false }
    }

    /// Says that no more messages come, behind the last of them, to processes that wait for that.
    fn close(&self) {
        let Connection { segment, far, process, .. } = &self.connection;
        let Some(far) = *far else { return };
        let (word, incarnation) = (segment.far_relayed(far), process.incarnation.0);
        let closed = word.compare_exchange(incarnation, 0, Ordering::AcqRel, Ordering::Acquire);
        if closed.is_err() {
            return;
        }
        for slot in 0..segment.plan().slots() {
            if let Some(bell) = Doorbell::of(segment, slot) {
                bell.ring_fenced();
            }
        }
    }
}
