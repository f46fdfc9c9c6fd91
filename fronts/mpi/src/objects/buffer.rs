//! Buffers of the program, in which messages of buffered sends wait.
//!
//! A message that can go at once does not enter the buffer. One that waits is packed into it, and lies
//! there until it has left: calls that need room check for that, and calls that wait.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landeck::raw::{self, Memory};
use landeck::{Tag, World};

use crate::abi::{BUFFER_AUTOMATIC, ERR_BUFFER, ERR_NO_MEM};
use crate::mistake::Mistake;
use crate::objects::request::WaitsFor;

/// The place of an object where its buffer is.
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<Option<Arc<Buffer>>>);

/// A buffer. When it goes, the messages in it leave first.
pub(crate) struct Buffer {
    /// The program's memory; none where the library provides it.
    memory: Option<Attached>,
    messages: Mutex<Messages>,
}

/// Memory of the program, which leaves it to the library until it is detached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attached {
    pub(crate) start: *mut u8,
    pub(crate) bytes: usize,
}

// SAFETY: the memory is the library's, and messages have parts of their own in it.
unsafe impl Send for Attached {}
// SAFETY: as above.
unsafe impl Sync for Attached {}

/// The messages in a buffer, in the order of their places.
#[derive(Default)]
struct Messages {
    list: Vec<BufferMessage>,
    /// The number of the next one.
    next: u64,
}

/// A message that has not left yet.
struct BufferMessage {
    number: u64,
    place: BufferPlace,
    operation: raw::Operation,
    world: World,
}

/// Where a message lies.
enum BufferPlace {
    /// In the program's memory.
    Part(Range<usize>),
    /// In memory of its own, which goes with it.
    Own(Box<[MaybeUninit<u8>]>),
}

/// The messages that were in a buffer at some moment.
pub(crate) struct Flush {
    buffer: Arc<Buffer>,
    world: World,
    /// The number of the first one after them.
    end: u64,
}

/// Messages begin at multiples of this.
const ALIGNMENT: usize = 8;

/// The buffer of the process.
pub(crate) static PROCESS: Slot = Slot::new();

/// Where the library itself buffers.
pub(crate) static LIBRARY: Buffer = Buffer::new(None);

impl Slot {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The buffer that is there.
    pub(crate) fn get(&self) -> Option<Arc<Buffer>> {
        self.lock().clone()
    }

    /// Attaches memory of the program; none for memory of the library.
    pub(crate) fn attach(&self, memory: Option<Attached>) -> Result<(), Mistake> {
        let mut place = self.lock();
        if place.is_some() {
            let text = "there is a buffer already; detach it before you attach another";
            return Err(Mistake::new(ERR_BUFFER, text));
        }
        *place = Some(Arc::new(Buffer::new(memory)));
        Ok(())
    }

    /// Takes the buffer away, after all messages in it have left; gives its address and length.
    pub(crate) fn detach(&self) -> Result<(usize, usize), Mistake> {
        let buffer = self.get().ok_or_else(|| {
            Mistake::new(ERR_BUFFER, "there is no buffer; attach one before you detach it")
        })?;
        buffer.wait_until(u64::MAX)?;
        *self.lock() = None;
        let memory = buffer.memory.map(|memory| (memory.start.expose_provenance(), memory.bytes));
        Ok(memory.unwrap_or((BUFFER_AUTOMATIC, 0)))
    }

    /// Waits until the messages that are in the buffer have left.
    pub(crate) fn flush(&self) -> Result<(), Mistake> {
        self.get().map_or(Ok(()), |buffer| {
            let end = buffer.lock().next;
            buffer.wait_until(end)
        })
    }

    /// The messages that are in the buffer, if any are.
    pub(crate) fn start_flush(&self) -> Result<Option<Flush>, Mistake> {
        let Some(buffer) = self.get() else { return Ok(None) };
        let end = buffer.lock().next;
        let going = buffer.first_before(end)?;
        Ok(going.map(|(_, world)| Flush { buffer, world, end }))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Buffer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    const fn new(memory: Option<Attached>) -> Self {
        let messages = Messages { list: Vec::new(), next: 0 };
        Self { memory, messages: Mutex::new(messages) }
    }

    /// Sends items, and does not wait for their receiver: if they cannot go at once, a copy waits.
    ///
    /// # Safety
    /// The items are readable.
    pub(crate) unsafe fn send(
        &self,
        world: &World,
        items: &Memory<'_>,
        to: usize,
        tag: Tag,
    ) -> Result<(), Mistake> {
        // SAFETY: as the caller says.
        if unsafe { send_at_once(world, items, to, tag)? } {
            return Ok(());
        }
        let bytes = items.layout.packed_bytes(items.count)?;
        let bytes = usize::try_from(bytes).map_err(|_| no_memory(bytes))?;
        let mut messages = self.lock();
        let (index, mut place) = self.make_room(&mut messages, bytes)?;
        let room = place.room(self.memory, bytes);
        // SAFETY: as the caller says; the buffer is no part of the items.
        unsafe { items.pack(0, room)? };
        // SAFETY: the copy stays where it is until it has left.
        let operation = unsafe { raw::start_send(world, room.as_ptr().cast(), bytes, to, tag)? };
        if let raw::Operation::Pending(_) = operation {
            let number = messages.next;
            messages.next += 1;
            let world = world.clone();
            messages.list.insert(index, BufferMessage { number, place, operation, world });
        }
        Ok(())
    }

    /// Room for a message, and where in the list it belongs.
    fn make_room(
        &self,
        messages: &mut Messages,
        bytes: usize,
    ) -> Result<(usize, BufferPlace), Mistake> {
        messages.let_go()?;
        let Some(memory) = self.memory else {
            let mut own = Vec::new();
            own.try_reserve_exact(bytes).map_err(|_| no_memory(bytes as u64))?;
            own.resize(bytes, MaybeUninit::uninit());
            return Ok((messages.list.len(), BufferPlace::Own(own.into_boxed_slice())));
        };
        let mut start = 0;
        for (index, message) in messages.list.iter().enumerate() {
            let BufferPlace::Part(part) = &message.place else { continue };
            if part.start - start >= bytes {
                return Ok((index, BufferPlace::Part(start..start + bytes)));
            }
            start = part.end.next_multiple_of(ALIGNMENT);
        }
        match memory.bytes.checked_sub(start) {
            Some(left) if left >= bytes => {
                Ok((messages.list.len(), BufferPlace::Part(start..start + bytes)))
            }
            _ => Err(too_small(memory.bytes, messages.list.len(), bytes)),
        }
    }

    /// Waits until the messages before a number have left.
    fn wait_until(&self, end: u64) -> Result<(), Mistake> {
        while let Some((operation, world)) = self.first_before(end)? {
            raw::wait_any(&world, &[Some(operation)])?;
        }
        Ok(())
    }

    /// The operation of a message before a number that has not left.
    fn first_before(&self, end: u64) -> Result<Option<(raw::Operation, World)>, Mistake> {
        let mut messages = self.lock();
        messages.let_go()?;
        let found = messages.list.iter().find(|message| message.number < end);
        Ok(found.map(|message| (message.operation, message.world.clone())))
    }

    fn lock(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Nobody is left to be told of an error, and after one no message is under way.
        let _ = self.wait_until(u64::MAX);
    }
}

impl Messages {
    /// Forgets the messages that have left. One whose receiver is gone has left too: its sender was
    /// told that it was sent.
    fn let_go(&mut self) -> Result<(), Mistake> {
        let mut index = 0;
        while let Some(message) = self.list.get(index) {
            match raw::test(&message.world, message.operation) {
                Ok(None) => index += 1,
                Err(error @ landeck::Error { kind: landeck::ErrorKind::Thread(_), .. }) => {
                    return Err(error.into());
                }
                Ok(Some(_)) | Err(_) => drop(self.list.remove(index)),
            }
        }
        Ok(())
    }
}

impl BufferPlace {
    fn room(&mut self, memory: Option<Attached>, bytes: usize) -> &mut [MaybeUninit<u8>] {
        match (self, memory) {
            (Self::Own(own), _) => own,
            (Self::Part(part), Some(memory)) if bytes > 0 => {
                let start = memory.start.wrapping_add(part.start).cast();
                // SAFETY: `make_room` found the part within the memory, which the program gave to
                // the library, and no other message has it.
                unsafe { std::slice::from_raw_parts_mut(start, bytes) }
            }
            _ => &mut [],
        }
    }
}

impl Flush {
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// Returns the operation that is to leave the buffer next.
    pub(crate) fn waits_for(&self) -> Result<WaitsFor, Mistake> {
        let first = self.buffer.first_before(self.end)?;
        Ok(first.map_or(WaitsFor::Nothing, |(operation, _)| WaitsFor::Operation(operation)))
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Buffer").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl fmt::Debug for Flush {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Flush").field("end", &self.end).finish_non_exhaustive()
    }
}

/// Sends items that lie one behind the other, if that is possible without waiting.
///
/// # Safety
/// The items are readable.
unsafe fn send_at_once(
    world: &World,
    items: &Memory<'_>,
    to: usize,
    tag: Tag,
) -> Result<bool, Mistake> {
    // One run of bytes, which most items are.
    let Some(piece) = items.layout.single_piece(items.count) else { return Ok(false) };
    let data: &[u8] = match piece.length {
        0 => &[],
        length => {
            let start = items.start.wrapping_offset(piece.offset as isize);
            // SAFETY: these are the bytes of the items, says the caller; they are only read.
            unsafe { std::slice::from_raw_parts(start, length) }
        }
    };
    match world.try_send(data, to, tag) {
        Ok(()) => Ok(true),
        Err(landeck::Error { kind: landeck::ErrorKind::WouldBlock, .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cold]
fn no_memory(bytes: u64) -> Mistake {
    let text = format!("there is no memory for a copy of the {bytes} bytes of the message");
    Mistake::new(ERR_NO_MEM, text)
}

#[cold]
fn too_small(buffer: usize, waiting: usize, bytes: usize) -> Mistake {
    let text = format!(
        "the buffer has {buffer} bytes, and no room for {bytes} more beside the {waiting} messages \
         that wait in it; attach a larger one, or flush it before"
    );
    Mistake::new(ERR_BUFFER, text)
}
