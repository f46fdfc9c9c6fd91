//! A host that stores data: its store and their bytes, which outlive a run of its relay, and the relay.

use std::collections::{BTreeMap, BTreeSet};

use landeck_channel::BrokenPeer;
use landeck_channel::relay_requests::{AnsweredRequests, Turn};
use landeck_protocols::hosts::{MessageStore, StoreRefusal};
use landeck_wire::relay::{RelayOutcome, RelayRequest};
use landeck_wire::stored::StoredRequest;
use landeck_wire::{Header, ProcessId};

use super::draw::Draw;

/// A part of the quotas. Most are full often.
const QUOTAS: [u64; 6] = [640, 2_000, 70_000, 140_000, 400_000, 1_000_000];

/// A host that stores data.
#[derive(Debug)]
pub(super) struct StoreHost {
    pub(super) store: MessageStore,
    /// The data of the store.
    pub(super) data: Vec<u8>,
    /// Its relay runs.
    pub(super) is_up: bool,
    /// The runs of the relay that have ended.
    pub(super) restarts: u32,
    messages_max: usize,
    /// The processes that are gone, as the host has heard.
    gone: BTreeSet<ProcessId>,
    /// The processes that this run of the relay serves, each over its newest connection.
    served: BTreeMap<ProcessId, (u32, AnsweredRequests)>,
}

impl StoreHost {
    /// Draws a host with an empty store.
    pub(super) fn new(draw: &mut Draw) -> Self {
        let messages_max = draw.pick(&[2, 4, 8, 30]);
        let store = MessageStore::new(draw.pick(&QUOTAS) + draw.below(100), messages_max);
        Self {
            data: vec![0; store.quota() as usize],
            store,
            is_up: true,
            restarts: 0,
            messages_max,
            gone: BTreeSet::new(),
            served: BTreeMap::new(),
        }
    }

    /// Its relay serves a process over a connection, if that is the newest one.
    pub(super) fn open(&mut self, process: ProcessId, connection: u32, asked: u32) -> bool {
        if !self.is_up || self.gone.contains(&process) {
            return false;
        }
        let is_resumed = self.restarts > 0;
        let (newest, _) = self.served.entry(process).or_insert_with(|| {
            let mut answered = AnsweredRequests::default();
            if is_resumed {
                answered.resume(asked);
            }
            (0, answered)
        });
        let is_newer = connection > *newest;
        *newest = connection.max(*newest);
        is_newer
    }

    /// Whether its relay serves a process over this connection.
    pub(super) fn serves(&self, process: ProcessId, connection: u32) -> bool {
        self.is_up && self.served.get(&process).is_some_and(|(newest, _)| *newest == connection)
    }

    /// It hears that a process is gone. Nothing comes from it any more.
    pub(super) fn ended(&mut self, process: ProcessId) {
        self.gone.insert(process);
        self.served.remove(&process);
        if self.is_up {
            self.store.end(|it| self.gone.contains(&it));
        }
    }

    /// A run of its relay ends.
    pub(super) fn stop(&mut self) {
        self.is_up = false;
        self.restarts += 1;
        self.served.clear();
    }

    /// The next run of its relay begins, with the records of the last one.
    pub(super) fn start(&mut self) {
        let records: Vec<_> = self.store.messages().copied().collect();
        let (quota, next) = (self.store.quota(), self.store.next());
        self.store = MessageStore::resumed(quota, self.messages_max, next, records);
        self.store.end(|it| self.gone.contains(&it));
        self.is_up = true;
    }

    /// Its relay answers a request of a process.
    pub(super) fn answer(
        &mut self,
        process: ProcessId,
        header: &Header,
        data: &[u8],
    ) -> Result<(Header, Vec<u8>), BrokenPeer> {
        let (request, bytes) = StoredRequest::decode(header, data).ok_or(BrokenPeer::Form)?;
        let (_, answered) = self.served.get_mut(&process).ok_or(BrokenPeer::Form)?;
        let turn = answered.turn(header.context, true)?;
        let is_new = !matches!(turn, Turn::Again(..));
        let known = match turn {
            Turn::Again(outcome, answer) if !request.reads() => Some((outcome, answer.to_vec())),
            Turn::Unknown => Some((RelayOutcome::Unknown, Vec::new())),
            Turn::New | Turn::Again(..) => None,
        };
        let (outcome, answer) =
            known.unwrap_or_else(|| self.perform((process, header.context), request, bytes));
        if let Some((_, answered)) = self.served.get_mut(&process).filter(|_| is_new) {
            answered.done(outcome, if request.reads() { &[] } else { &answer });
        }
        Ok((RelayRequest::answer(header.context, outcome, answer.len()), answer))
    }

    fn perform(
        &mut self,
        (process, number): (ProcessId, u32),
        request: StoredRequest,
        bytes: &[u8],
    ) -> (RelayOutcome, Vec<u8>) {
        let mut answer = Vec::new();
        let is_gone = |it| self.gone.contains(&it);
        let done = match request {
            StoredRequest::Store { receiver, bytes } => {
                let message = self.store.store((process, number), receiver, bytes, is_gone);
                message.map(|message| {
                    answer.extend([message.number, message.place].map(u64::to_le_bytes).concat());
                })
            }
            StoredRequest::Put { number, offset } => {
                let place = self.store.put(process, number, (offset, bytes.len() as u64));
                place.map(|message| {
                    let at = (message.place + offset) as usize;
                    self.data[at..at + bytes.len()].copy_from_slice(bytes);
                })
            }
            StoredRequest::Seal { number } => self.store.seal(process, number, is_gone).map(drop),
            StoredRequest::Get { number, offset, bytes } => {
                self.store.get(process, number, (offset, bytes)).map(|message| {
                    let at = (message.place + offset) as usize;
                    answer.extend_from_slice(&self.data[at..at + bytes as usize]);
                })
            }
            StoredRequest::Free { number } => {
                self.store.free(process, number);
                Ok(())
            }
            StoredRequest::Look => Ok(()),
        };
        let outcome = match done {
            Ok(()) => RelayOutcome::Done,
            Err(StoreRefusal::NoRoom) => RelayOutcome::NoRoom,
            Err(StoreRefusal::ReceiverGone) => RelayOutcome::OwnerGone,
            Err(StoreRefusal::Gone) => RelayOutcome::Gone,
            Err(StoreRefusal::Outside { .. }) => RelayOutcome::Outside,
        };
        (outcome, answer)
    }
}
