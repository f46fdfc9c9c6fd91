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
use crate::load;

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

    /// The outcome of what the store refuses. A message whose receiver is gone may have been freed by that.
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

#[cfg(test)]
mod tests {
    use landeck_memory::{FarRecord, SegmentPlan, SlotRecord, SlotState};

    use super::*;

    const OWN: u64 = 5;

    fn process(segment: u64, slot: u32) -> ProcessId {
        ProcessId { segment: SegmentId(segment), slot: Slot(slot), incarnation: Incarnation(1) }
    }

    /// A segment with two processes here and one elsewhere, and a store of 256 KiB.
    fn segment() -> Segment {
        let plan = SegmentPlan { heap_bytes_per_process: 512 << 10, ..SegmentPlan::new(OWN, 2) };
        let plan = SegmentPlan { ranks: 3, far: 1, hosts: 2, guests: 1, ..plan };
        let segment = Segment::local(&plan);
        let record =
            SlotRecord { incarnation: 1, state: SlotState::Alive, ..SlotRecord::default() };
        (0..2).for_each(|slot| segment.set_slot_record(slot, record));
        set_far(&segment, SlotState::Alive);
        segment
    }

    fn set_far(segment: &Segment, state: SlotState) {
        let process = FarProcess { host: 9, slot: 0, incarnation: 1 };
        segment.set_far_record(0, FarRecord { process, state, ..FarRecord::default() });
    }

    fn ask(
        stores: &mut Stores,
        segment: &Segment,
        (process, number): (ProcessId, u32),
        (request, bytes): (StoredRequest, &[u8]),
    ) -> (RelayOutcome, Vec<u8>) {
        let mut answer = Vec::new();
        let asked = (number, request, bytes);
        (stores.perform((segment, process), asked, &mut answer), answer)
    }

    /// Stores a message of the first process for the one elsewhere, and seals it. Returns its number.
    fn stored(stores: &mut Stores, segment: &Segment, data: &[u8]) -> u64 {
        let (sender, receiver) = (process(OWN, 0), process(9, 0));
        let mut ask = |request, bytes| ask(stores, segment, (sender, 3), (request, bytes));
        let room = StoredRequest::Store { receiver, bytes: data.len() as u64 };
        let (outcome, answer) = ask(room, &[]);
        assert_eq!((outcome, answer.len()), (RelayOutcome::Done, 16));
        let number = u64::from_le_bytes(*answer.first_chunk().unwrap());
        let put = StoredRequest::Put { number, offset: 0 };
        assert_eq!(ask(put, data).0, RelayOutcome::Done);
        assert_eq!(ask(StoredRequest::Seal { number }, &[]).0, RelayOutcome::Done);
        number
    }

    #[test]
    fn the_next_run_gives_what_this_one_has_stored() {
        let (segment, receiver) = (segment(), process(9, 0));
        let (mut stores, data) = (Stores::default(), [7; 1_000]);
        let number = stored(&mut stores, &segment, &data);
        assert_eq!(segment.stored_messages(), 1);
        let mut next = Stores::default();
        next.resume(&segment);
        let (offset, bytes) = (990, 10);
        let get = StoredRequest::Get { number, offset, bytes };
        let got = ask(&mut next, &segment, (receiver, 0), (get, &[]));
        assert_eq!(got, (RelayOutcome::Done, vec![7; 10]));
        let far = StoredRequest::Get { number, offset: 991, bytes };
        assert_eq!(ask(&mut next, &segment, (receiver, 0), (far, &[])).0, RelayOutcome::Outside);
        let other = ask(&mut next, &segment, (process(OWN, 1), 0), (get, &[]));
        assert_eq!(other, (RelayOutcome::Gone, vec![]), "it is another one's");
        let free = StoredRequest::Free { number };
        for _ in 0..2 {
            let freed = ask(&mut next, &segment, (receiver, 1), (free, &[]));
            assert_eq!(freed, (RelayOutcome::Done, vec![]), "it may be asked twice");
        }
        assert_eq!((segment.stored_messages(), segment.stored_record(0)), (0, None));
        let again = stored(&mut next, &segment, &data);
        assert_ne!(again, number, "no number comes twice");
    }

    #[test]
    fn what_nobody_fetches_is_freed_and_refused() {
        let (segment, sender) = (segment(), process(OWN, 0));
        let mut stores = Stores::default();
        stored(&mut stores, &segment, &[1; 100]);
        let begun = StoredRequest::Store { receiver: process(OWN, 1), bytes: 100 };
        assert_eq!(ask(&mut stores, &segment, (sender, 9), (begun, &[])).0, RelayOutcome::Done);
        stores.processes_ended(None);
        assert_eq!(segment.stored_messages(), 2, "all live");
        stores.processes_ended(Some(sender));
        assert_eq!(segment.stored_messages(), 1, "the sealed one survives its sender");
        set_far(&segment, SlotState::Dead);
        stores.processes_ended(None);
        assert_eq!((segment.stored_messages(), segment.stored_record(0)), (0, None));
        for receiver in [process(9, 0), process(9, 1), process(OWN, 7), process(8, 0)] {
            let room = StoredRequest::Store { receiver, bytes: 100 };
            let asked = ask(&mut stores, &segment, (sender, 10), (room, &[]));
            assert_eq!(asked.0, RelayOutcome::OwnerGone, "{receiver:?}");
        }
    }

    #[test]
    fn a_look_tells_of_the_room_that_is_left() {
        let segment = segment();
        let mut stores = Stores::default();
        let quota = segment.plan().store_bytes();
        let room = |stores: &mut Stores| {
            let asked = (process(9, 0), 0);
            let (outcome, answer) = ask(stores, &segment, asked, (StoredRequest::Look, &[]));
            assert_eq!((outcome, answer.len()), (RelayOutcome::Done, 24));
            u64::from_le_bytes(*answer.first_chunk().unwrap())
        };
        assert_eq!(room(&mut stores), quota);
        stored(&mut stores, &segment, &[1; 640]);
        assert_eq!(room(&mut stores), quota - 640);
        let receiver = process(9, 0);
        let whole = StoredRequest::Store { receiver, bytes: quota - 639 };
        let asked = ask(&mut stores, &segment, (receiver, 0), (whole, &[]));
        assert_eq!(asked.0, RelayOutcome::NoRoom);
    }
}
