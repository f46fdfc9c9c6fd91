//! Collective operations on packed messages.
//!
//! A [`MessageWorld`] is a world for programs that use messages: packed values are sent from where
//! they lie, and a received message owns the memory it arrived in. All members create one from the
//! same world, and call the same operations in the same order, as in all of [`crate::collectives`].
//!
//! ```no_run
//! # fn main() -> landeck::Result<()> {
//! use landeck::message_world::Combining::Sum;
//! use landeck::{Job, Message, MessageWorld};
//!
//! let job = Job::join()?;
//! let mut members = MessageWorld::new(job.world());
//! let mut greeting = Message::new();
//! if members.world().rank() == 0 {
//!     greeting.pack_text("temperatures").pack(&[20.5, 21.0]);
//! }
//! members.broadcast(&mut greeting, 0)?;
//! let (mut own, mut sum) = (Message::new(), Message::new());
//! own.pack(&[members.world().rank() as u64]);
//! members.all_reduce(&own, &mut sum, Sum)?;
//! println!("{}: {}", greeting.unpack_text()?, sum.unpack_value::<u64>()?);
//! # Ok(()) }
//! ```
//!
//! Values that are reduced, or gathered by [`MessageWorld::gather`], are of one kind, and every
//! member has equally many. Those calls are the operations of [`World`] on the memory of the
//! messages, and match calls of them. In a broadcast and in a scatter only the root knows the
//! lengths of the messages. The other members learn them with the data, for which they have as much
//! room as the last such operation needed. A longer message follows in a second step.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

pub use landeck_arithmetic::Operation as Combining;
use landeck_arithmetic::{Element, Operator, Reduction};
use landeck_collectives::preset::Preset;
use landeck_collectives::{Operation, Order};
use landeck_kernel::Area;
use landeck_layout::{Family, Kind, Layout};
use landeck_memory::plain::{bytes_of, bytes_of_mut};
use landeck_memory::{Buffer, Bytes, NoMemory, room};

use crate::collectives::parts_of;
use crate::error::Result;
use crate::message::{Message, MessageError, tag_of_kind};
use crate::world::World;
use landeck_engine::{
    Blocks, CallBlocks, CallData, CallDescription, CallOptions, Fault, HEAD_BYTES, MessageData,
    ValueType,
};

/// Bytes of the lengths that replace a message for which there is no room.
const MORE_BYTES: usize = 16;
/// Bytes of room for the first message.
const FIRST_ROOM_BYTES: usize = 24;
/// Bytes of the longest message that the room grows for. Longer messages come in a second step,
/// which saves memory.
const MOST_ROOM_BYTES: usize = 64 << 10;
/// Bytes up to which the root packs its messages into one piece; longer data are sent from where
/// they lie.
const PACKED_BYTES: usize = 4096;
/// The bit of a head that marks parts of different lengths.
const IS_UNEVEN: u64 = 1 << 17;
/// The bit of a head that marks a message which follows in a second step; its lengths stand after
/// the head.
const FOLLOWS: u64 = 1 << 18;
/// The bits of a tag in a head.
const TAG_MASK: u64 = IS_UNEVEN - 1;
/// The position of the lengths in a head, each of as many bits; there is never room for longer
/// ones.
const BYTES_SHIFT: u32 = 20;
const LONGEST_SHIFT: u32 = 42;
const LENGTH_MASK: u64 = (1 << (LONGEST_SHIFT - BYTES_SHIFT)) - 1;

/// A world whose collective operations take messages.
#[derive(Clone)]
pub struct MessageWorld {
    world: World,
    preset: Option<Preset>,
    /// Bytes of room after the head in the next broadcast or scatter, equal at all members.
    room_bytes: usize,
}

/// The head of a message: one word, and two more if there is no room for the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    tag: u32,
    bytes: usize,
    /// Bytes of the longest of the messages that are sent together.
    longest: usize,
    is_uneven: bool,
}

/// A head as it is sent, with the lengths of a message that follows.
#[derive(Clone, Copy)]
struct HeadWords {
    words: [u64; 1 + MORE_BYTES / 8],
    bytes: usize,
}

/// Heads, with the bodies for which there is room, as they are sent: equally long, one after the
/// other.
struct Slots {
    slot_bytes: usize,
    heads: Vec<HeadWords>,
    /// All slots in one piece, if they are short.
    packed: Vec<u8>,
    /// Padding after bodies that are shorter than the room.
    filler: Vec<u8>,
}

/// Values in one piece, of which each member gets `bytes` bytes.
struct EqualParts {
    kind: Kind,
    values: Buffer,
    bytes: usize,
}

/// The values that a member contributes to an operation.
enum Input {
    Piece(Buffer),
    Area(Area),
}

impl Input {
    fn bytes(&self) -> u64 {
        match self {
            Self::Piece(buffer) => buffer.len() as u64,
            Self::Area(area) => area.packed_bytes(),
        }
    }
}

impl MessageWorld {
    /// Creates a world whose collective operations take messages. All members create theirs at the
    /// same position among their collective operations.
    pub fn new(world: World) -> Self {
        Self { world, preset: None, room_bytes: FIRST_ROOM_BYTES }
    }

    /// Returns the underlying world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Selects how all later operations are done: by a named architecture, or as published for
    /// another library. `None` leaves the choice to the tuning table. All members select the same
    /// preset.
    pub fn go_by(&mut self, preset: Option<Preset>) {
        self.preset = preset;
    }

    /// Waits until all members have called this operation.
    ///
    /// # Errors
    /// As [`World::barrier`].
    pub fn barrier(&self) -> Result<()> {
        self.with(Operation::Barrier, World::barrier)
    }

    /// Sends the root's message to every other member, where it replaces the content of `message`.
    ///
    /// # Errors
    /// As [`World::broadcast`], and [`MessageError::NotAMessage`] when a member sends something
    /// else.
    pub fn broadcast(&mut self, message: &mut Message, root: usize) -> Result<()> {
        if self.world.rank() != root {
            return self.take(Operation::Broadcast, message, root);
        }
        let room_bytes = self.room_bytes;
        if let Some((kind, values)) = message.run_in_place()
            && values.len() <= room_bytes
        {
            return self.broadcast_values(kind, values, root);
        }
        let mut headers = Vec::new();
        let (tag, body) = message.outgoing_area(&mut headers);
        let heads = Head::of_parts(&[tag], std::slice::from_ref(&body));
        let mut slots = Slots::new(room_bytes, &heads, std::slice::from_ref(&body));
        let first = slots.areas(&heads, std::slice::from_ref(&body)).swap_remove(0);
        self.send_out((first, None), root)?;
        if heads[0].longest > room_bytes {
            self.send_out((body, None), root)?;
        }
        self.expect(&heads[0]);
        Ok(())
    }

    /// Distributes the values of the root's message equally among the members, in the order of
    /// ranks. At each member its part replaces the content of `own`. `all` is used at the root
    /// only; its parts are sent from where they lie.
    ///
    /// # Errors
    /// As [`World::scatter`]; at the root [`MessageError::UnevenParts`], before anything is sent.
    pub fn scatter(&mut self, all: &Message, own: &mut Message, root: usize) -> Result<()> {
        if self.world.rank() != root {
            return self.take(Operation::Scatter, own, root);
        }
        if let Some(values) = self.equal_parts(all) {
            return self.scatter_values(values, own, root);
        }
        let room_bytes = self.room_bytes;
        let parts = all.split(self.world.size())?;
        let mut headers = vec![Vec::new(); parts.len()];
        let outgoing = parts.iter().zip(&mut headers);
        let (tags, bodies): (Vec<_>, Vec<_>) =
            outgoing.map(|(part, headers)| part.outgoing_area(headers)).unzip();
        let heads = Head::of_parts(&tags, &bodies);
        let mut slots = Slots::new(room_bytes, &heads, &bodies);
        let mut room = own.room(HEAD_BYTES + room_bytes)?;
        let first = slots.blocks(&heads, &bodies);
        self.hand_out(first, (writable(&mut room), None), root, false)?;
        let head = Head::in_front_of(&room)?;
        if head.longest > room_bytes {
            let (long, own) = long_room(head.bytes, &mut room);
            self.hand_out(Blocks::Areas(bodies), (long, own), root, head.is_uneven)?;
        }
        self.finish(own, &head, room)
    }

    /// Collects the values of all members at the root as one message, in the order of ranks. All
    /// members contribute equally many values of one kind. At the root the result replaces the
    /// content of `all`, which is used there only.
    ///
    /// # Errors
    /// As [`World::gather`]; [`MessageError::NotOneKind`], before anything is sent.
    pub fn gather(&self, own: &Message, all: &mut Message, root: usize) -> Result<()> {
        let all = (self.world.rank() == root).then_some(all);
        self.bring((Operation::Gather, root, None), own, all)
    }

    /// Collects the values of all members at every member, as [`MessageWorld::gather`] does at the
    /// root.
    ///
    /// # Errors
    /// As [`MessageWorld::gather`].
    pub fn all_gather(&self, own: &Message, all: &mut Message) -> Result<()> {
        self.bring((Operation::AllGather, 0, None), own, Some(all))
    }

    /// Collects the messages of all members at the root, of any content and length, in the order of
    /// ranks. Returns `None` at all other members. It takes one step more than
    /// [`MessageWorld::gather`].
    ///
    /// # Errors
    /// As [`World::gather_varying`], and [`MessageError::NotAMessage`].
    pub fn gather_any(&self, own: &Message, root: usize) -> Result<Option<Vec<Message>>> {
        self.any(own, Operation::Gather, root)
    }

    /// Collects the messages of all members at every member, as [`MessageWorld::gather_any`] does
    /// at the root.
    ///
    /// # Errors
    /// As [`MessageWorld::gather_any`].
    pub fn all_gather_any(&self, own: &Message) -> Result<Vec<Message>> {
        Ok(self.any(own, Operation::AllGather, 0)?.unwrap_or_default())
    }

    /// Combines the values of all members element by element at the root, where the result replaces
    /// the content of `result`. All members contribute equally many values of one kind.
    ///
    /// # Errors
    /// As [`World::reduce`]; [`MessageError::NotOneKind`] and [`crate::ErrorKind::Reduction`],
    /// before anything is sent.
    pub fn reduce(
        &self,
        own: &Message,
        result: &mut Message,
        combine: Combining,
        root: usize,
    ) -> Result<()> {
        let result = (self.world.rank() == root).then_some(result);
        self.bring((Operation::Reduce, root, Some(combine)), own, result)
    }

    /// Combines the values of all members element by element, and stores the result in `result` at
    /// every member.
    ///
    /// # Errors
    /// As [`MessageWorld::reduce`].
    pub fn all_reduce(
        &self,
        own: &Message,
        result: &mut Message,
        combine: Combining,
    ) -> Result<()> {
        self.bring((Operation::AllReduce, 0, Some(combine)), own, Some(result))
    }

    /// The options of an operation: those of the world, or those of the preset.
    #[inline]
    fn options(&self, operation: Operation) -> Cow<'_, CallOptions> {
        let of_world = &self.world.options;
        match &self.preset {
            None => Cow::Borrowed(of_world),
            Some(preset) => Cow::Owned(CallOptions {
                way: Some(preset.way(operation)),
                is_late: preset.order(operation) == Some(Order::Late),
                ..of_world.clone()
            }),
        }
    }

    /// Runs a call on a world with the options for this operation.
    fn with<R>(&self, operation: Operation, call: impl FnOnce(&World) -> Result<R>) -> Result<R> {
        let Cow::Owned(options) = self.options(operation) else { return call(&self.world) };
        let mut world = self.world.clone();
        world.options = options;
        call(&world)
    }

    /// Describes an operation with a root and without an operator.
    #[inline]
    fn rooted<'a>(
        &'a self,
        operation: Operation,
        data: CallData<'a>,
        root: usize,
    ) -> CallDescription<'a> {
        let asked = CallDescription::new(operation, data, &self.world.options).rooted(root);
        CallDescription { options: self.options(operation), ..asked }
    }

    /// The values of a message, if they lie in one piece, divide equally among the members, and fit into the room.
    #[inline]
    fn equal_parts(&self, all: &Message) -> Option<EqualParts> {
        let ((kind, values), members) = (all.run_in_place()?, self.world.size());
        let bytes = values.len() / members;
        let is_even = bytes * members == values.len();
        let is_whole = (bytes as u64).is_multiple_of(kind.size_bytes());
        (is_even && is_whole && bytes <= self.room_bytes).then_some(EqualParts {
            kind,
            values,
            bytes,
        })
    }

    /// Broadcasts values that lie in one piece and fit into the room.
    #[inline]
    fn broadcast_values(&mut self, kind: Kind, values: Buffer, root: usize) -> Result<()> {
        let (room_bytes, bytes) = (self.room_bytes, values.len());
        let head = Head { tag: tag_of_kind(kind), bytes, longest: bytes, is_uneven: false };
        let word = Cell::new(head.to_word());
        let mut slots = None;
        let mut in_blocks = || {
            let body = [Area::contiguous(values)];
            let slots = slots.insert(Slots::new(room_bytes, &[head], &body));
            let output = Blocks::whole(slots.areas(&[head], &body).swap_remove(0));
            Ok(CallBlocks::apart(Blocks::Nothing, output))
        };
        let (head_word, input, output) = (&word, values, Buffer::EMPTY);
        let message =
            MessageData { head: head_word, room_bytes, input, output, in_blocks: &mut in_blocks };
        let data = CallData::Message(message);
        self.world.collective(self.rooted(Operation::Broadcast, data, root))?;
        self.expect(&head);
        Ok(())
    }

    /// Scatters values that lie in one piece and fit into the room.
    #[inline]
    fn scatter_values(&mut self, all: EqualParts, own: &mut Message, root: usize) -> Result<()> {
        let EqualParts { kind, values, bytes } = all;
        let (room_bytes, members) = (self.room_bytes, self.world.size());
        let head = Head { tag: tag_of_kind(kind), bytes, longest: bytes, is_uneven: false };
        let (word, output) = (Cell::new(head.to_word()), buffer_of(own.own_room(bytes)?));
        let (mut slots, mut room) = (None, None);
        let mut in_blocks = || {
            let part = |member| Area::contiguous(values.part(member * bytes, bytes));
            let bodies: Vec<Area> = (0..members).map(part).collect();
            let heads = vec![head; members];
            let slots = slots.insert(Slots::new(room_bytes, &heads, &bodies));
            let room = room.insert(own.room(HEAD_BYTES + room_bytes).map_err(Fault::NoMemory)?);
            let output = Blocks::whole(writable(room));
            Ok(CallBlocks::apart(slots.blocks(&heads, &bodies), output))
        };
        let message = MessageData {
            head: &word,
            room_bytes,
            input: values,
            output,
            in_blocks: &mut in_blocks,
        };
        let data = CallData::Message(message);
        self.world.collective(self.rooted(Operation::Scatter, data, root))?;
        match room {
            Some(room) => self.finish(own, &head, room),
            None => {
                self.expect(&head);
                own.receive_run(kind, bytes);
                Ok(())
            }
        }
    }

    /// Receives the message that the root broadcasts, or this member's part of what it scatters.
    fn take(&mut self, operation: Operation, message: &mut Message, root: usize) -> Result<()> {
        let (room_bytes, word) = (self.room_bytes, Cell::new(0));
        let here = buffer_of(message.own_room(room_bytes)?);
        let mut room = None;
        let mut in_blocks = || {
            let room = room.insert(message.room(HEAD_BYTES + room_bytes).map_err(Fault::NoMemory)?);
            Ok(CallBlocks::apart(Blocks::Nothing, Blocks::whole(writable(room))))
        };
        let data = MessageData {
            head: &word,
            room_bytes,
            input: Buffer::EMPTY,
            output: here,
            in_blocks: &mut in_blocks,
        };
        self.world.collective(self.rooted(operation, CallData::Message(data), root))?;
        let (head, mut room) = match room {
            Some(room) => (Head::in_front_of(&room)?, room),
            None => {
                let head = Head::read(word.get(), here.bytes())?;
                if head.longest <= room_bytes {
                    self.expect(&head);
                    return Ok(message.receive_here(head.tag, head.bytes)?);
                }
                (head, Vec::new())
            }
        };
        if head.longest > room_bytes {
            let long = long_room(head.bytes, &mut room);
            match operation {
                Operation::Scatter => {
                    self.hand_out(Blocks::Nothing, long, root, head.is_uneven)?;
                }
                _ => self.send_out(long, root)?,
            }
        }
        self.finish(message, &head, room)
    }

    /// Broadcasts data with their heads, or the data of a message that did not fit into the room.
    fn send_out(&self, (data, missing): (Area, Option<NoMemory>), root: usize) -> Result<()> {
        let data = match data.as_buffer() {
            Some(data) => CallData::Pieces { input: data, output: data },
            None => CallData::Blocks(CallBlocks::apart(Blocks::Nothing, Blocks::whole(data))),
        };
        let asked = self.rooted(Operation::Broadcast, data, root);
        self.world.collective(CallDescription { missing, ..asked })
    }

    /// Scatters data with their heads, or the data of messages that did not fit into the room.
    fn hand_out(
        &self,
        blocks: Blocks,
        (own, missing): (Area, Option<NoMemory>),
        root: usize,
        is_varying: bool,
    ) -> Result<()> {
        let input = match &blocks {
            Blocks::Equal { buffer, .. } => Some(*buffer),
            Blocks::Nothing => Some(Buffer::EMPTY),
            _ => None,
        };
        let data = match (input, own.as_buffer()) {
            (Some(input), Some(output)) if !is_varying => CallData::Pieces { input, output },
            _ => {
                let blocks = CallBlocks::apart(blocks, Blocks::whole(own));
                CallData::Blocks(CallBlocks { is_varying, ..blocks })
            }
        };
        let asked = self.rooted(Operation::Scatter, data, root);
        self.world.collective(CallDescription { missing, ..asked })
    }

    /// Finishes a message that came in this room, and sizes the room for the next one by it.
    fn finish(&mut self, message: &mut Message, head: &Head, room: Vec<u8>) -> Result<()> {
        let start = if head.longest > self.room_bytes { 0 } else { HEAD_BYTES };
        self.expect(head);
        if head.bytes > room.len() - start {
            let what = "it is longer than it says";
            return Err(MessageError::NotAMessage { what }.into());
        }
        Ok(message.receive_part(head.tag, room, start, head.bytes)?)
    }

    fn expect(&mut self, head: &Head) {
        let is_short = head.longest <= MOST_ROOM_BYTES;
        self.room_bytes =
            if is_short { head.longest.max(FIRST_ROOM_BYTES) } else { FIRST_ROOM_BYTES };
    }

    /// Bytes of the result of an operation with this many bytes from each member, if they can
    /// exist.
    #[inline]
    fn result_bytes(&self, operation: Operation, bytes: u64) -> Result<usize> {
        let is_collected = matches!(operation, Operation::Gather | Operation::AllGather);
        let members = if is_collected { self.world.size() as u64 } else { 1 };
        let all = bytes.checked_mul(members).and_then(|all| isize::try_from(all).ok());
        Ok(all.map(|all| all as usize).ok_or(NoMemory { bytes: usize::MAX })?)
    }

    /// Runs an operation to which all members contribute equally many values of one kind. A member
    /// that has a result gets it in `result`.
    fn bring(
        &self,
        (operation, root, combine): (Operation, usize, Option<Combining>),
        own: &Message,
        mut result: Option<&mut Message>,
    ) -> Result<()> {
        let (kind, input) = match own.run_in_place() {
            Some((kind, input)) => (kind, Input::Piece(input)),
            None => own.run().map(|(kind, area)| (kind, Input::Area(area)))?,
        };
        let operator = combine.map(|combine| operator(combine, kind)).transpose()?;
        let input_bytes = input.bytes();
        let bytes = self.result_bytes(operation, input_bytes)?;
        let (output, missing) = place_in(&mut result, bytes);
        let data = match input {
            Input::Piece(input) => CallData::Pieces { input, output },
            Input::Area(input) => {
                let has_none = output.is_empty() && self.world.rank() != root;
                let output = match operation {
                    _ if has_none => Blocks::Nothing,
                    Operation::Gather | Operation::AllGather => {
                        let (block_bytes, count) = (input_bytes as usize, self.world.size() as u32);
                        Blocks::Equal { buffer: output, block_bytes, count }
                    }
                    _ => Blocks::of(output),
                };
                CallData::Blocks(CallBlocks::apart(Blocks::whole(input), output))
            }
        };
        let value_type = match self.world.options.is_checked {
            true => ValueType::of_layout(&Layout::element(kind), input_bytes / kind.size_bytes()),
            false => ValueType::default(),
        };
        let (operator, asked) = (operator.as_ref(), self.rooted(operation, data, root));
        self.world.collective(CallDescription { operator, missing, value_type, ..asked })?;
        if let Some(result) = result {
            result.receive_run(kind, bytes);
        }
        Ok(())
    }

    /// Distributes all lengths, and then the messages to the members that receive them.
    fn any(
        &self,
        own: &Message,
        operation: Operation,
        root: usize,
    ) -> Result<Option<Vec<Message>>> {
        let mut headers = Vec::new();
        let (tag, body) = own.outgoing_area(&mut headers);
        let own_head = [u64::from(tag), body.packed_bytes()];
        let mut heads = vec![[0u64; 2]; self.world.size()];
        self.with(Operation::AllGather, |world| world.all_gather(&[own_head], &mut heads))?;
        let has_all = operation == Operation::AllGather || self.world.rank() == root;
        let places = if has_all { places_of(&heads)? } else { Vec::new() };
        let (mut room, bytes) = (Vec::new(), places.last().map_or(0, |place| place.end));
        let (output, missing) = long_buffer(bytes, &mut room);
        let parts = parts_of::<u8>(output, &places);
        let output = match has_all {
            true => self.world.described(parts.blocks(operation, "output"))?,
            false => Blocks::Nothing,
        };
        let data = CallData::Blocks(CallBlocks::varying(Blocks::whole(body), output));
        let asked = self.rooted(operation, data, root);
        self.world.collective(CallDescription { missing, ..asked })?;
        let message = |(head, place): (&[u64; 2], &Range<usize>)| {
            let mut message = Message::new();
            message.receive_own(head[0] as u32, room::copy(Bytes::from(&room[place.clone()]))?)?;
            Ok(message)
        };
        let messages = heads.iter().zip(&places).map(message).collect::<Result<Vec<_>>>()?;
        Ok(has_all.then_some(messages))
    }
}

impl std::fmt::Debug for MessageWorld {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rank, size) = (self.world.rank(), self.world.size());
        formatter
            .debug_struct("MessageWorld")
            .field("rank", &rank)
            .field("size", &size)
            .field("preset", &self.preset.as_ref().map(Preset::to_string))
            .finish_non_exhaustive()
    }
}

impl Head {
    /// The heads of messages that are sent together.
    fn of_parts(tags: &[u32], bodies: &[Area]) -> Vec<Self> {
        let bytes = |body: &Area| body.packed_bytes() as usize;
        let longest = bodies.iter().map(bytes).max().unwrap_or(0);
        let is_uneven = bodies.iter().any(|body| bytes(body) != longest);
        let head = |(&tag, body)| Self { tag, bytes: bytes(body), longest, is_uneven };
        tags.iter().zip(bodies).map(head).collect()
    }

    /// Bytes of its body that are sent with it if there is this much room.
    fn beside(&self, room_bytes: usize) -> usize {
        if self.longest <= room_bytes { self.bytes } else { 0 }
    }

    /// Returns the head as one word, for a message that fits the room.
    #[inline]
    fn to_word(self) -> u64 {
        let uneven = if self.is_uneven { IS_UNEVEN } else { 0 };
        let lengths = (self.bytes as u64) << BYTES_SHIFT | (self.longest as u64) << LONGEST_SHIFT;
        u64::from(self.tag) | uneven | lengths
    }

    /// Returns the head as it is sent if there is this much room.
    fn to_words(self, room_bytes: usize) -> HeadWords {
        if self.longest <= room_bytes {
            return HeadWords { words: [self.to_word(), 0, 0], bytes: HEAD_BYTES };
        }
        let front = Self { bytes: 0, longest: 0, ..self }.to_word() | FOLLOWS;
        let words = [front, self.bytes as u64, self.longest as u64];
        HeadWords { words, bytes: HEAD_BYTES + MORE_BYTES }
    }

    /// Reads the head at the front of a received room.
    fn in_front_of(room: &[u8]) -> Result<Self> {
        let body = Bytes::from(room).part(HEAD_BYTES, room.len());
        Self::read(word_at(Bytes::from(room), 0), body)
    }

    /// Reads a head that another process wrote, and the lengths after it.
    #[inline]
    fn read(word: u64, body: Bytes<'_>) -> Result<Self> {
        let (bytes, longest) = match word & FOLLOWS {
            0 => (word >> BYTES_SHIFT & LENGTH_MASK, word >> LONGEST_SHIFT),
            _ => (word_at(body, 0), word_at(body, 8)),
        };
        if bytes > longest || longest > isize::MAX as u64 {
            return Err(MessageError::NotAMessage { what: "its length cannot be" }.into());
        }
        let (tag, is_uneven) = ((word & TAG_MASK) as u32, word & IS_UNEVEN != 0);
        Ok(Self { tag, bytes: bytes as usize, longest: longest as usize, is_uneven })
    }
}

impl Slots {
    fn new(room_bytes: usize, heads: &[Head], bodies: &[Area]) -> Self {
        let slot_bytes = HEAD_BYTES + room_bytes;
        let mut slots = Self {
            slot_bytes,
            heads: heads.iter().map(|head| head.to_words(room_bytes)).collect(),
            packed: Vec::new(),
            filler: Vec::new(),
        };
        if slot_bytes.saturating_mul(heads.len()) <= PACKED_BYTES {
            slots.pack(heads, bodies);
        } else {
            let rest = heads.iter().zip(&slots.heads);
            let rest = rest.map(|(head, words)| slot_bytes - words.bytes - head.beside(room_bytes));
            slots.filler = vec![0; rest.max().unwrap_or(0)];
        }
        slots
    }

    fn pack(&mut self, heads: &[Head], bodies: &[Area]) {
        self.packed.reserve(self.slot_bytes * heads.len());
        for ((words, head), body) in self.heads.iter().zip(heads).zip(bodies) {
            let end = self.packed.len() + self.slot_bytes;
            self.packed.extend_from_slice(&bytes_of(&words.words)[..words.bytes]);
            body.append_to(0, head.beside(self.slot_bytes - HEAD_BYTES), &mut self.packed);
            self.packed.resize(end, 0);
        }
    }

    /// Returns the blocks of the slots, valid as long as these slots and the bodies.
    fn blocks(&mut self, heads: &[Head], bodies: &[Area]) -> Blocks {
        if self.packed.is_empty() {
            return Blocks::Areas(self.areas(heads, bodies));
        }
        // SAFETY: whoever uses the blocks keeps the slots until the operation is over.
        let buffer = unsafe { Buffer::of_mut(&mut self.packed) };
        Blocks::Equal { buffer, block_bytes: self.slot_bytes, count: heads.len() as u32 }
    }

    /// Returns an area for each slot.
    fn areas(&mut self, heads: &[Head], bodies: &[Area]) -> Vec<Area> {
        if !self.packed.is_empty() {
            let slots = self.packed.chunks_exact_mut(self.slot_bytes);
            return slots.map(writable).collect();
        }
        let room_bytes = self.slot_bytes - HEAD_BYTES;
        let Self { heads: words, filler, .. } = self;
        let slots = words.iter_mut().zip(heads).zip(bodies);
        let areas = slots.map(|((words, head), body)| {
            let rest = room_bytes + HEAD_BYTES - words.bytes - head.beside(room_bytes);
            let rest = writable(&mut filler[..rest]);
            let bytes = words.bytes;
            // The words are sent and not written.
            let words = writable(&mut bytes_of_mut(&mut words.words)[..bytes]);
            match head.longest <= room_bytes {
                true => Area::joined([words, body.clone(), rest]),
                false => Area::joined([words, rest]),
            }
        });
        areas.collect()
    }
}

/// Returns memory of this call as an area, for an operation that is complete when the call returns.
fn writable(room: &mut [u8]) -> Area {
    // SAFETY: all callers keep the memory until the operation is over that they give the area to.
    Area::contiguous(unsafe { Buffer::of_mut(room) })
}

/// Returns memory of this call as a buffer, for an operation that is complete when the call
/// returns.
fn buffer_of(room: &mut [u8]) -> Buffer {
    // SAFETY: as above.
    unsafe { Buffer::of_mut(room) }
}

/// Reads the word that begins at a byte, as far as it is there.
fn word_at(bytes: Bytes<'_>, at: usize) -> u64 {
    let mut word = [0; 8];
    bytes.part(at, 8).copy_to_slice(&mut word);
    u64::from_ne_bytes(word)
}

/// Allocates memory of a length that another process gave, kept in `room`. The other members depend
/// on this one, so without memory it takes part without data.
fn long_buffer(bytes: usize, room: &mut Vec<u8>) -> (Buffer, Option<NoMemory>) {
    match room::zeroes(bytes) {
        Ok(long) => {
            *room = long;
            (buffer_of(room), None)
        }
        Err(no_memory) => (missing_buffer(bytes), Some(no_memory)),
    }
}

/// Allocates memory as [`long_buffer`] does, as an area.
fn long_room(bytes: usize, room: &mut Vec<u8>) -> (Area, Option<NoMemory>) {
    let (buffer, missing) = long_buffer(bytes, room);
    (Area::contiguous(buffer), missing)
}

/// Returns memory of a message for this many bytes of a result, if this member has one.
#[inline]
fn place_in(result: &mut Option<&mut Message>, bytes: usize) -> (Buffer, Option<NoMemory>) {
    let Some(result) = result else { return (Buffer::EMPTY, None) };
    match result.own_room(bytes) {
        Ok(room) => (buffer_of(room), None),
        Err(no_memory) => (missing_buffer(bytes), Some(no_memory)),
    }
}

fn missing_buffer(bytes: usize) -> Buffer {
    // SAFETY: it is the output of a call that says that its memory is missing, and only counted there.
    unsafe { Buffer::missing(bytes) }
}

/// Returns the ranges of messages of these lengths, one after the other.
fn places_of(heads: &[[u64; 2]]) -> Result<Vec<Range<usize>>> {
    let mut end = 0usize;
    let place = |head: &[u64; 2]| {
        let start = end;
        let length = usize::try_from(head[1]).ok();
        let next = length.and_then(|length| start.checked_add(length));
        end = next.ok_or(NoMemory { bytes: usize::MAX })?;
        Ok(start..end)
    };
    heads.iter().map(place).collect()
}

fn operator(combine: Combining, kind: Kind) -> Result<Operator> {
    let element = element_of(kind).ok_or(MessageError::NotOneKind)?;
    Ok(Reduction::new(combine, element)?.into())
}

/// The element type for combining values of a kind.
fn element_of(kind: Kind) -> Option<Element> {
    Some(match (kind.family(), kind.size_bytes()) {
        (Family::Signed, 1) => Element::I8,
        (Family::Signed, 2) => Element::I16,
        (Family::Signed, 4) => Element::I32,
        (Family::Signed, 8) => Element::I64,
        (Family::Unsigned, 1) => Element::U8,
        (Family::Unsigned, 2) => Element::U16,
        (Family::Unsigned, 4) => Element::U32,
        (Family::Unsigned, 8) => Element::U64,
        (Family::Float, 2) => Element::F16,
        (Family::Float, 4) => Element::F32,
        (Family::Float, 8) => Element::F64,
        (Family::Byte, 1) => Element::Byte,
        _ => return None,
    })
}
