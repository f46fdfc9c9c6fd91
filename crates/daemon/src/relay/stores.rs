//! The stores of this host: for each job the data of messages that stay here until their receivers fetch them.
//!
//! [`MessageStore`] decides. Its records and the data lie in the segment of the job, so the next run of the daemon goes on with
//! them. Nothing that comes is trusted: a process writes to what it has stored, and reads what is for it.

use std::collections::{HashMap, HashSet};

use landeck_memory::{Bytes, FarProcess, Segment, StoredRecord};
use landeck_protocols::hosts::{MessageStore, StoreRefusal, StoredMessage};
use landeck_wire::relay::RelayOutcome;
use landeck_wire::stored::StoredRequest;
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

use super::receivers::is_there;
use crate::machine::load;

/// The stores, by the segments of their jobs.
#[derive(Debug, Default)]
pub(super) struct Stores {
    all: HashMap<SegmentId, HostStore>,
}

/// The store of one job.
#[derive(Debug)]
struct HostStore {
    segment: Segment,
    store: MessageStore,
}

impl Stores {
    /// Does what a process asks; the data of the answer are appended to `answer`.
    pub(super) fn perform(
        &mut self,
        (segment, process): (&Segment, ProcessId),
        (number, request, bytes): (u32, StoredRequest, &[u8]),
        answer: &mut Vec<u8>,
    ) -> RelayOutcome {
        let its = self.all.entry(SegmentId(segment.plan().host));
        let its = its.or_insert_with(|| HostStore::of(segment));
        match its.perform((process, number), request, bytes, answer) {
            Ok(()) => RelayOutcome::Done,
            Err(outcome) => outcome,
        }
    }

    /// Goes on with the store that the relay of an earlier run has left in a segment, if there is one.
    pub(super) fn resume(&mut self, segment: &Segment) {
        if segment.stored_next() != 0 {
            self.all.insert(SegmentId(segment.plan().host), HostStore::of(segment));
        }
    }

    /// A process has ended, or a host is lost, as the segments say.
    pub(super) fn processes_ended(&mut self, ended: Option<ProcessId>) {
        self.all.values_mut().for_each(|its| its.sweep(ended));
    }

    /// The part of a job with this segment is over.
    pub(super) fn part_over(&mut self, segment: SegmentId) {
        self.all.remove(&segment);
    }
}

impl HostStore {
    /// The store of a segment, with the messages that are there.
    fn of(segment: &Segment) -> Self {
        let plan = segment.plan();
        let records = (0..plan.stored_records()).filter_map(|index| segment.stored_record(index));
        let messages = plan.stored_records() as usize;
        let (quota, next) = (plan.store_bytes(), segment.stored_next());
        let store = MessageStore::resumed(quota, messages, next, records.map(message_of));
        let mut its = Self { segment: segment.clone(), store };
        its.drop_unknown();
        its.sweep(None);
        its
    }

    fn perform(
        &mut self,
        (process, asked): (ProcessId, u32),
        request: StoredRequest,
        bytes: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), RelayOutcome> {
        let segment = self.segment.clone();
        let is_gone = |process| is_gone(&segment, process);
        match request {
            StoredRequest::Store { receiver, bytes } => {
                let stored = self.store.store((process, asked), receiver, bytes, is_gone);
                let message = match stored {
                    Ok(message) => message,
                    Err(refusal) => return Err(self.refused(refusal)),
                };
                // In this order: no run of the daemon gives the number again.
                self.segment.set_stored_next(self.store.next());
                self.record(message);
                append(answer, [message.number, message.place]);
            }
            StoredRequest::Put { number, offset } => {
                let range = (offset, bytes.len() as u64);
                let message = self.store.put(process, number, range).map_err(outcome_of)?;
                self.segment.write_stored(message.place + offset, Bytes::from(bytes));
            }
            StoredRequest::Seal { number } => match self.store.seal(process, number, is_gone) {
                Ok(message) => self.record(message),
                Err(refusal) => return Err(self.refused(refusal)),
            },
            StoredRequest::Get { number, offset, bytes } => {
                let message =
                    self.store.get(process, number, (offset, bytes)).map_err(outcome_of)?;
                let data = self.segment.stored_data(message.place + offset, bytes);
                data.ok_or(RelayOutcome::Gone)?.append_to(answer);
            }
            StoredRequest::Free { number } => {
                let freed = self.store.free(process, number);
                self.forget(freed);
            }
            StoredRequest::Look => {
                let load = load::here();
                let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
                let busy = u64::from(load.running_hundredths) / processors;
                let room = self.store.quota() - self.store.used();
                append(answer, [room, busy, load.available_kib]);
            }
        }
        Ok(())
    }

    /// What was refused may have freed a message whose receiver is gone.
    fn refused(&self, refusal: StoreRefusal) -> RelayOutcome {
        if refusal != StoreRefusal::NoRoom {
            self.drop_unknown();
        }
        outcome_of(refusal)
    }

    /// Removes the records of messages that the store does not have.
    fn drop_unknown(&self) {
        let kept: HashSet<usize> = self.store.messages().map(StoredMessage::index).collect();
        let unknown = (0..self.segment.plan().stored_records())
            .filter(|index| !kept.contains(&(*index as usize)))
            .filter(|index| self.segment.stored_record(*index).is_some());
        unknown.for_each(|index| self.segment.set_stored_record(index, None));
        self.count();
    }

    fn sweep(&mut self, ended: Option<ProcessId>) {
        let segment = self.segment.clone();
        let freed = self.store.end(|process| Some(process) == ended || is_gone(&segment, process));
        self.forget(freed);
    }

    fn record(&self, message: StoredMessage) {
        let StoredMessage { number, sender, request, receiver, place, bytes, is_sealed } = message;
        let [sender, receiver] = [sender, receiver].map(|it| FarProcess {
            host: it.segment.0,
            slot: it.slot.0,
            incarnation: it.incarnation.0,
        });
        let record = StoredRecord { number, place, bytes, is_sealed, sender, request, receiver };
        self.segment.set_stored_record(message.index() as u32, Some(record));
        self.count();
    }

    fn count(&self) {
        self.segment.set_stored(self.store.messages().len() as u64, self.store.used());
    }

    fn forget(&self, freed: impl IntoIterator<Item = StoredMessage>) {
        for message in freed {
            self.segment.set_stored_record(message.index() as u32, None);
        }
        self.count();
    }
}

/// Whether a process is none of the job's living ones, as far as this host knows.
fn is_gone(segment: &Segment, process: ProcessId) -> bool {
    let plan = segment.plan();
    if process.segment.0 == plan.host {
        return !is_there(segment, process.slot.0, process.incarnation.0);
    }
    let it = FarProcess {
        host: process.segment.0,
        slot: process.slot.0,
        incarnation: process.incarnation.0,
    };
    let record = (0..plan.far).map(|far| segment.far_record(far)).find(|one| one.process == it);
    record.is_none_or(|record| record.state.is_gone())
}

fn message_of(record: StoredRecord) -> StoredMessage {
    let StoredRecord { number, place, bytes, is_sealed, sender, request, receiver } = record;
    let [sender, receiver] = [sender, receiver].map(|it| ProcessId {
        segment: SegmentId(it.host),
        slot: Slot(it.slot),
        incarnation: Incarnation(it.incarnation),
    });
    StoredMessage { number, sender, request, receiver, place, bytes, is_sealed }
}

const fn outcome_of(refusal: StoreRefusal) -> RelayOutcome {
    match refusal {
        StoreRefusal::NoRoom => RelayOutcome::NoRoom,
        StoreRefusal::ReceiverGone => RelayOutcome::OwnerGone,
        StoreRefusal::Gone => RelayOutcome::Gone,
        StoreRefusal::Outside { .. } => RelayOutcome::Outside,
    }
}

fn append<const WORDS: usize>(answer: &mut Vec<u8>, words: [u64; WORDS]) {
    words.iter().for_each(|word| answer.extend_from_slice(&word.to_le_bytes()));
}
