//! Messages whose data stay on a host, step by step: their senders store them there, and their receivers fetch them.
//!
//! Both machines are pure: they ask the relay of that host through [`RelayRequests`], which somebody else carries.

use std::collections::VecDeque;

use landeck_channel::relay_requests::RelayRequests;
use landeck_wire::ProcessId;
use landeck_wire::relay::{RELAY_PART_BYTES, RelayOutcome};
use landeck_wire::stored::StoredRequest;

/// How often a message is stored from its beginning, because the relay has started again meanwhile.
const ATTEMPTS_MAX: u32 = 4;

/// The data of a message that is stored.
pub trait StoredData {
    /// Writes all of them to a place of the store, if this process can do so by itself.
    fn write_here(&mut self, place: u64) -> bool;

    /// Appends so many of them from a position on.
    fn append(&mut self, position: u64, bytes: usize, to: &mut Vec<u8>);
}

/// A message that its sender stores.
#[derive(Debug)]
pub struct Storing {
    receiver: ProcessId,
    bytes: u64,
    step: Step,
    is_wanted: bool,
    attempts_left: u32,
    /// The part that is asked for. The memory is used again.
    part: Vec<u8>,
}

#[derive(Debug)]
enum Step {
    /// It asks for room.
    Room(Option<u32>),
    /// It writes the data from a position on, and seals them behind the last.
    Data {
        number: u64,
        place: u64,
        position: u64,
        waiting: VecDeque<u32>,
        is_sealing: bool,
    },
    /// It frees what is stored, as nobody wants it.
    Free(u64),
    Over,
}

/// The end of a step.
enum Turn {
    Next(Step),
    Wait,
    End(StoringState),
}

/// The state of a message that its sender stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoringState {
    /// An answer has not come.
    Waits,
    /// It is stored under a number, at a place.
    Stored {
        /// The number.
        number: u64,
        /// The place.
        place: u64,
    },
    /// It is not stored: the relay has refused that, or it was given up.
    Refused(RelayOutcome),
}

impl Storing {
    /// A message of so many bytes to a process.
    #[must_use]
    pub const fn new(receiver: ProcessId, bytes: u64) -> Self {
        Self {
            receiver,
            bytes,
            step: Step::Room(None),
            is_wanted: true,
            attempts_left: ATTEMPTS_MAX,
            part: Vec::new(),
        }
    }

    /// Nobody wants it stored any more. It goes on until everything that was stored is freed.
    pub const fn give_up(&mut self) {
        self.is_wanted = false;
    }

    /// Goes on as far as answers and room for requests allow. After another state than [`StoringState::Waits`] it is over.
    pub fn advance(
        &mut self,
        requests: &mut RelayRequests,
        data: &mut dyn StoredData,
    ) -> StoringState {
        loop {
            let turn = match std::mem::replace(&mut self.step, Step::Over) {
                Step::Room(asked) => self.ask_for_room(asked, requests, data),
                step @ Step::Data { .. } => self.write(step, requests, data),
                Step::Free(number) => self.free(number, requests),
                Step::Over => Turn::End(StoringState::Refused(RelayOutcome::Gone)),
            };
            match turn {
                Turn::Next(step) => self.step = step,
                Turn::Wait => return StoringState::Waits,
                Turn::End(state) => return state,
            }
        }
    }

    fn ask_for_room(
        &mut self,
        asked: Option<u32>,
        requests: &mut RelayRequests,
        data: &mut dyn StoredData,
    ) -> Turn {
        let room = StoredRequest::Store { receiver: self.receiver, bytes: self.bytes };
        let asked = match asked {
            None if !self.is_wanted => return Turn::End(StoringState::Refused(RelayOutcome::Gone)),
            None => requests.ask_stored(&room, &[]),
            asked => asked,
        };
        let Some((outcome, answer)) = asked.and_then(|number| requests.take(number)) else {
            self.step = Step::Room(asked);
            return Turn::Wait;
        };
        match (outcome, answer.as_chunks::<8>().0) {
            (RelayOutcome::Done, &[number, place]) => {
                let [number, place] = [number, place].map(u64::from_le_bytes);
                let is_here = self.is_wanted && data.write_here(place);
                let position = if is_here { self.bytes } else { 0 };
                let (waiting, is_sealing) = (VecDeque::new(), false);
                Turn::Next(Step::Data { number, place, position, waiting, is_sealing })
            }
            (RelayOutcome::Done, _) => Turn::End(StoringState::Refused(RelayOutcome::Senseless)),
            (outcome, _) => self.again_after(outcome),
        }
    }

    fn write(
        &mut self,
        mut step: Step,
        requests: &mut RelayRequests,
        data: &mut dyn StoredData,
    ) -> Turn {
        let Step::Data { number, place, position, waiting, is_sealing } = &mut step else {
            return Turn::Wait;
        };
        let (number, place) = (*number, *place);
        let mut fault = None;
        while let Some(first) = waiting.front()
            && let Some((outcome, _)) = requests.take(*first)
        {
            waiting.pop_front();
            fault = fault.or((outcome != RelayOutcome::Done).then_some(outcome));
        }
        if fault.is_some() || !self.is_wanted {
            waiting.iter().for_each(|number| requests.forget(*number));
            return fault.map_or(Turn::Next(Step::Free(number)), |fault| self.again_after(fault));
        }
        if *is_sealing && waiting.is_empty() {
            return Turn::End(StoringState::Stored { number, place });
        }
        while *position < self.bytes {
            let length = (self.bytes - *position).min(RELAY_PART_BYTES as u64) as usize;
            self.part.clear();
            data.append(*position, length, &mut self.part);
            let put = StoredRequest::Put { number, offset: *position };
            let Some(asked) = requests.ask_stored(&put, &self.part) else { break };
            waiting.push_back(asked);
            *position += length as u64;
        }
        if *position == self.bytes && !*is_sealing {
            let asked = requests.ask_stored(&StoredRequest::Seal { number }, &[]);
            *is_sealing = asked.is_some();
            waiting.extend(asked);
        }
        self.step = step;
        Turn::Wait
    }

    fn free(&mut self, number: u64, requests: &mut RelayRequests) -> Turn {
        match free(number, requests) {
            true => Turn::End(StoringState::Refused(RelayOutcome::Gone)),
            false => {
                self.step = Step::Free(number);
                Turn::Wait
            }
        }
    }

    /// Begins again if the relay has lost what it knew. Otherwise this is the end.
    fn again_after(&mut self, outcome: RelayOutcome) -> Turn {
        let is_lost = matches!(outcome, RelayOutcome::Unknown | RelayOutcome::Gone);
        self.attempts_left = self.attempts_left.saturating_sub(1);
        match is_lost && self.is_wanted && self.attempts_left > 0 {
            true => Turn::Next(Step::Room(None)),
            false => Turn::End(StoringState::Refused(outcome)),
        }
    }
}

/// Has the relay free a stored message; false if no request has room now.
pub fn free(number: u64, requests: &mut RelayRequests) -> bool {
    let asked = requests.ask_stored(&StoredRequest::Free { number }, &[]);
    asked.is_some_and(|asked| {
        requests.forget(asked);
        true
    })
}

/// The data of a stored message on their way to its receiver.
#[derive(Debug)]
pub struct Fetching {
    number: u64,
    bytes: u64,
    /// What was asked for, and what has come.
    asked: u64,
    come: u64,
    waiting: VecDeque<u32>,
}

/// The state of a message that its receiver fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchingState {
    /// An answer has not come.
    Waits,
    /// All data have come, and the relay is to free them.
    Fetched,
    /// They cannot be had.
    Refused(RelayOutcome),
}

impl Fetching {
    /// The message of this number and so many bytes.
    #[must_use]
    pub const fn new(number: u64, bytes: u64) -> Self {
        Self { number, bytes, asked: 0, come: 0, waiting: VecDeque::new() }
    }

    /// The bytes that were asked for.
    #[must_use]
    pub const fn asked(&self) -> u64 {
        self.asked
    }

    /// The requests whose answers are not needed if this one ends now.
    pub fn waiting(&self) -> impl Iterator<Item = u32> {
        self.waiting.iter().copied()
    }

    /// Goes on as far as answers and room for requests allow. `take` gets the data with their positions, in order.
    pub fn advance(
        &mut self,
        requests: &mut RelayRequests,
        take: &mut dyn FnMut(u64, &[u8]),
    ) -> FetchingState {
        while let Some(first) = self.waiting.front()
            && let Some((outcome, data)) = requests.take(*first)
        {
            self.waiting.pop_front();
            let is_right = data.len() == part_bytes(self.come, self.bytes);
            let fault = match outcome {
                RelayOutcome::Done if is_right => {
                    take(self.come, data);
                    self.come += data.len() as u64;
                    continue;
                }
                RelayOutcome::Done => RelayOutcome::Senseless,
                fault => fault,
            };
            self.waiting.drain(..).for_each(|number| requests.forget(number));
            return FetchingState::Refused(fault);
        }
        while self.asked < self.bytes {
            let (number, offset) = (self.number, self.asked);
            let length = part_bytes(offset, self.bytes);
            let get = StoredRequest::Get { number, offset, bytes: length as u64 };
            let Some(asked) = requests.ask_stored(&get, &[]) else { break };
            self.waiting.push_back(asked);
            self.asked += length as u64;
        }
        match self.come == self.bytes && free(self.number, requests) {
            true => FetchingState::Fetched,
            false => FetchingState::Waits,
        }
    }
}

/// The length of the part from an offset on.
fn part_bytes(offset: u64, bytes: u64) -> usize {
    (bytes - offset).min(RELAY_PART_BYTES as u64) as usize
}
