//! A table of the values that C programs hold by handle. Any thread may use it without a lock, and all values are
//! of one kind. A handle that was freed, or is of another kind, is noticed, even if its slot has been used again.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use thiserror::Error;

use crate::reserve;
use crate::room::{self, NoRoom};

/// Why a handle leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HandleError {
    /// No such handle was ever given out.
    #[error("{0:#x} is no handle of this kind: pass one that was given out")]
    Unknown(u64),
    /// It is a handle of a table of another kind.
    #[error("{0:#x} is a handle of another kind: pass one of the kind that is wanted")]
    OtherKind(u64),
    /// The object of the handle was freed.
    #[error("the handle {0:#x} was used after it was freed: use it no more, and make a new one")]
    Stale(u64),
}

/// Everything of one kind that is held by handle.
///
/// A handle is a number of 64 bits: kind, generation, index. It is never less than 2^32, so it is
/// no small constant and no null. The generation of a place is odd while it is used; it changes
/// with every use, and comes round after 2^23 of them.
#[derive(Debug)]
pub struct Table<T> {
    kind: u8,
    /// Chunk `k` has 64 x 2^k places, and is never moved or freed.
    chunks: [AtomicPtr<HandlePlace<T>>; CHUNKS],
    /// How many places there are.
    length: AtomicU32,
    /// There was memory for so many places when it was last asked for. Most objects that room is made for need none.
    asked: AtomicU32,
    /// The place that was freed last: a count that changes with every use, and index + 1.
    free: AtomicU64,
}

#[derive(Debug)]
struct HandlePlace<T> {
    generation: AtomicU32,
    /// The place that was freed before this one: index + 1.
    next: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// A place that has no value yet, in a table that one thread uses: [`Table::vacant_alone`].
#[derive(Debug)]
pub struct Vacant<'a, T> {
    table: &'a Table<T>,
    place: &'a HandlePlace<T>,
    index: u32,
    /// The head of the list of free places, which this one is the first of.
    head: u64,
}

// SAFETY: a place is written by the thread that has it from the list of free ones, and read by
// others only after its generation says so.
unsafe impl<T: Send + Sync> Sync for Table<T> {}
// SAFETY: a table owns its values.
unsafe impl<T: Send> Send for Table<T> {}

const CHUNKS: usize = 26;
const FIRST_CHUNK: u32 = 64;
const GENERATIONS: u32 = 1 << 24;
/// Of so many new places one asks whether there is memory for more.
const PLACES_PER_QUESTION: u32 = 16;
/// Memory of a value elsewhere, about, with the lists and tables that hold it and double.
const BYTES_EACH: usize = 1 << 10;

impl<T> Table<T> {
    /// An empty table. Tables of different kinds have different numbers; zero is a number too.
    pub const fn new(kind: u8) -> Self {
        Self {
            kind,
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS],
            length: AtomicU32::new(0),
            asked: AtomicU32::new(0),
            free: AtomicU64::new(0),
        }
    }

    /// Makes sure, before a value is made, that there is a place and memory for it.
    ///
    /// # Errors
    /// [`NoRoom`].
    #[inline(always)]
    pub fn make_room(&self) -> Result<(), NoRoom> {
        match self.free.load(Ordering::Relaxed) as u32 {
            1.. if !reserve::is_in_use() => Ok(()),
            _ => self.make_more_room(),
        }
    }

    #[cold]
    fn make_more_room(&self) -> Result<(), NoRoom> {
        if reserve::is_in_use() {
            room::for_bytes(0)?;
        }
        if self.free.load(Ordering::Relaxed) as u32 > 0 {
            return Ok(());
        }
        let index = self.length.load(Ordering::Relaxed);
        if index >= i32::MAX as u32 {
            return Err(NoRoom { bytes: usize::MAX });
        }
        let is_there = self.place(index).is_some();
        if !is_there || index >= self.asked.load(Ordering::Relaxed) {
            room::for_bytes((index as usize).saturating_mul(BYTES_EACH))?;
            self.asked.store(index + PLACES_PER_QUESTION, Ordering::Relaxed);
        }
        if is_there { Ok(()) } else { self.add_chunk((index / FIRST_CHUNK + 1).ilog2()) }
    }

    /// Keeps a value and gives out its handle. [`Table::make_room`] has found room for it.
    ///
    /// # Panics
    /// When 2^31 values are kept at once.
    pub fn insert(&self, value: T) -> u64 {
        let index = self.take_free().unwrap_or_else(|| self.add_place());
        let place = self.place(index).expect("the place was just found");
        // SAFETY: nobody else has this place: it was taken from the free ones, or is new.
        unsafe { (*place.value.get()).write(value) };
        let generation = (place.generation.load(Ordering::Relaxed) + 1) % GENERATIONS;
        place.generation.store(generation, Ordering::Release);
        self.handle(generation, index)
    }

    /// A place for one more value, in a process in which one thread alone uses the table: it is spared
    /// what keeps threads apart. None when no place was freed before: then [`Table::insert`] it.
    ///
    /// # Safety
    /// No other thread uses the table meanwhile, and nothing is kept before the place is filled.
    #[inline(always)]
    pub unsafe fn vacant_alone(&self) -> Option<Vacant<'_, T>> {
        let head = self.free.load(Ordering::Relaxed);
        let index = (head as u32).checked_sub(1)?;
        let place = self.place(index)?;
        Some(Vacant { table: self, place, index, head })
    }

    /// Frees a handle and drops its value, for a process in which one thread alone uses the table.
    ///
    /// # Errors
    /// [`HandleError`].
    ///
    /// # Safety
    /// No other thread uses the table meanwhile, and nobody uses a reference to the value.
    #[inline(always)]
    pub unsafe fn discard_alone(&self, handle: u64) -> Result<(), HandleError> {
        // SAFETY: as the caller says; a place that could be vacated had a value, which nobody finds any
        // more.
        unsafe {
            let place = self.vacate_alone(handle)?;
            (*place.value.get()).assume_init_drop();
        }
        Ok(())
    }

    /// Frees a handle without dropping its value, which owns nothing; otherwise as [`Table::discard_alone`].
    ///
    /// # Errors
    /// [`HandleError`].
    ///
    /// # Safety
    /// As [`Table::discard_alone`].
    #[inline(always)]
    pub unsafe fn forget_alone(&self, handle: u64) -> Result<(), HandleError> {
        // SAFETY: as the caller says.
        unsafe { self.vacate_alone(handle) }.map(|_| ())
    }

    /// Takes a place out of use; its value is left as it is.
    ///
    /// # Safety
    /// As [`Table::discard_alone`]. No place is taken into use before the value is dropped or given up.
    #[inline(always)]
    unsafe fn vacate_alone(&self, handle: u64) -> Result<&HandlePlace<T>, HandleError> {
        let (index, place) = match self.place(handle as u32) {
            Some(place) if self.leads_to(handle, place) => (handle as u32, place),
            _ => return Err(self.blame(handle)),
        };
        let generation = (generation_of(handle) + 1) % GENERATIONS;
        place.generation.store(generation, Ordering::Relaxed);
        let head = self.free.load(Ordering::Relaxed);
        place.next.store(head as u32, Ordering::Relaxed);
        self.free.store(head_of(head, index + 1), Ordering::Relaxed);
        Ok(place)
    }

    /// Returns the value of a handle.
    ///
    /// # Errors
    /// [`HandleError`].
    ///
    /// # Safety
    /// Nobody removes the value while the reference is used.
    #[inline(always)]
    pub unsafe fn get(&self, handle: u64) -> Result<&T, HandleError> {
        // SAFETY: as the caller says.
        match unsafe { self.find(handle) } {
            Some(value) => Ok(value),
            None => Err(self.blame(handle)),
        }
    }

    /// Returns the value of a handle, or `None` if the handle is not valid.
    ///
    /// # Safety
    /// As [`Table::get`].
    #[inline(always)]
    pub unsafe fn find(&self, handle: u64) -> Option<&T> {
        let place = self.place(handle as u32)?;
        // SAFETY: a place of this generation has a value, which stays, says the caller.
        self.leads_to(handle, place).then(|| unsafe { (*place.value.get()).assume_init_ref() })
    }

    /// Whether a handle leads to something, which another thread may remove at any moment.
    #[inline(always)]
    pub fn is_there(&self, handle: u64) -> bool {
        self.place(handle as u32).is_some_and(|place| self.leads_to(handle, place))
    }

    /// Takes what a handle leads to; the handle is stale from now on. Of two threads that try, one
    /// gets it.
    ///
    /// # Errors
    /// [`HandleError`].
    pub fn remove(&self, handle: u64) -> Result<T, HandleError> {
        let place = self.place(handle as u32).ok_or_else(|| self.blame(handle))?;
        if !self.leads_to(handle, place) {
            return Err(self.blame(handle));
        }
        let generation = generation_of(handle);
        let next = (generation + 1) % GENERATIONS;
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        if place.generation.compare_exchange(generation, next, success, failure).is_err() {
            return Err(self.blame(handle));
        }
        // SAFETY: the place had a value, and the exchange above gave it to this thread alone.
        let value = unsafe { (*place.value.get()).assume_init_read() };
        self.give_back(handle as u32, place);
        Ok(value)
    }

    /// The handle as a number of 31 bits, which is negative.
    pub fn number(&self, handle: u64) -> i32 {
        !(handle as u32 as i32 & i32::MAX)
    }

    /// The handle of a number; one that leads nowhere if there is nothing behind the number.
    pub fn of_number(&self, number: i32) -> u64 {
        let index = !number as u32;
        let generation =
            self.place(index).map_or(0, |place| place.generation.load(Ordering::Acquire));
        self.handle(generation, index)
    }

    /// Whether a handle is, or was, one of this table's kind.
    pub fn is_of_kind(&self, handle: u64) -> bool {
        handle >> 56 == u64::from(self.kind) && generation_of(handle) > 0
    }

    fn handle(&self, generation: u32, index: u32) -> u64 {
        u64::from(self.kind) << 56 | u64::from(generation) << 32 | u64::from(index)
    }

    /// Whether a place is used, for this handle.
    #[inline(always)]
    fn leads_to(&self, handle: u64, place: &HandlePlace<T>) -> bool {
        let expected = self.handle(place.generation.load(Ordering::Acquire), handle as u32);
        expected == handle && generation_of(handle) % 2 == 1
    }

    /// Returns the error for a handle that is not valid.
    #[cold]
    fn blame(&self, handle: u64) -> HandleError {
        if generation_of(handle).is_multiple_of(2) || handle >> 56 == 0 {
            return HandleError::Unknown(handle);
        }
        if handle >> 56 != u64::from(self.kind) {
            return HandleError::OtherKind(handle);
        }
        if self
            .place(handle as u32)
            .is_some_and(|place| place.generation.load(Ordering::Acquire) >= generation_of(handle))
        {
            return HandleError::Stale(handle);
        }
        HandleError::Unknown(handle)
    }

    #[inline(always)]
    fn place(&self, index: u32) -> Option<&HandlePlace<T>> {
        let chunk = (u64::from(index) / u64::from(FIRST_CHUNK) + 1).ilog2();
        let start = self.chunks.get(chunk as usize)?.load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        let offset = u64::from(index) - u64::from(FIRST_CHUNK) * ((1 << chunk) - 1);
        // SAFETY: a chunk has as many places as this computation puts into it.
        Some(unsafe { &*start.add(offset as usize) })
    }

    /// A place that was freed.
    fn take_free(&self) -> Option<u32> {
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let index = (head as u32).checked_sub(1)?;
            let next = self.place(index)?.next.load(Ordering::Relaxed);
            let after = head_of(head, next);
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match self.free.compare_exchange_weak(head, after, success, failure) {
                Ok(_) => return Some(index),
                Err(current) => head = current,
            }
        }
    }

    fn give_back(&self, index: u32, place: &HandlePlace<T>) {
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            place.next.store(head as u32, Ordering::Relaxed);
            let after = head_of(head, index + 1);
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.free.compare_exchange_weak(head, after, success, failure) {
                Ok(_) => return,
                Err(current) => head = current,
            }
        }
    }

    /// A new place, and its chunk if that is the first of it.
    #[cold]
    fn add_place(&self) -> u32 {
        let index = self.length.fetch_add(1, Ordering::Relaxed);
        assert!(index < i32::MAX as u32, "fewer than 2^31 values are kept at once");
        if self.place(index).is_none() {
            let added = self.add_chunk((index / FIRST_CHUNK + 1).ilog2());
            added.expect("room is made before a value is kept");
        }
        index
    }

    /// The places of a chunk.
    #[cold]
    fn add_chunk(&self, chunk: u32) -> Result<(), NoRoom> {
        let length = (FIRST_CHUNK as usize) << chunk;
        let no_room = NoRoom { bytes: length.saturating_mul(size_of::<HandlePlace<T>>()) };
        let layout = Layout::array::<HandlePlace<T>>(length).map_err(|_| no_room)?;
        // SAFETY: places are not of no size, and there are some.
        let start = unsafe { std::alloc::alloc(layout) }.cast::<HandlePlace<T>>();
        if start.is_null() {
            return Err(no_room);
        }
        for at in 0..length {
            // SAFETY: the memory is for so many places, and nobody else has seen it.
            unsafe { start.add(at).write(HandlePlace::new()) };
        }
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let slot = &self.chunks[chunk as usize];
        if slot.compare_exchange(std::ptr::null_mut(), start, success, failure).is_err() {
            // Another thread has added it meanwhile.
            // SAFETY: allocated above with this layout, nobody else has seen it, and empty places own nothing.
            unsafe { std::alloc::dealloc(start.cast(), layout) };
        }
        Ok(())
    }
}

impl<T> Vacant<'_, T> {
    /// Keeps a value here and gives out its handle.
    #[inline(always)]
    pub fn fill(self, value: T) -> u64 {
        let Self { table, place, index, head } = self;
        let next = place.next.load(Ordering::Relaxed);
        table.free.store(head_of(head, next), Ordering::Relaxed);
        // SAFETY: the place is the first of the free ones, and only this thread uses the table.
        unsafe { (*place.value.get()).write(value) };
        let generation = (place.generation.load(Ordering::Relaxed) + 1) % GENERATIONS;
        place.generation.store(generation, Ordering::Relaxed);
        table.handle(generation, index)
    }
}

impl<T> HandlePlace<T> {
    fn new() -> Self {
        let value = UnsafeCell::new(MaybeUninit::uninit());
        Self { generation: AtomicU32::new(0), next: AtomicU32::new(0), value }
    }
}

#[inline]
fn generation_of(handle: u64) -> u32 {
    (handle >> 32) as u32 & (GENERATIONS - 1)
}

/// The next head of the list: its count changes, so a thread that was asleep notices.
fn head_of(before: u64, next: u32) -> u64 {
    ((before >> 32).wrapping_add(1) << 32) | u64::from(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    fn get<T: Copy>(table: &Table<T>, handle: u64) -> Result<T, HandleError> {
        // SAFETY: the value is copied at once; these tests remove nothing meanwhile.
        unsafe { table.get(handle) }.copied()
    }

    #[test]
    fn a_stale_handle_never_leads_to_anothers_value() {
        let table = Table::new(1);
        let first = table.insert("first");
        assert!(first >= 1 << 32);
        assert_eq!(table.remove(first), Ok("first"));
        let second = table.insert("second");
        assert_eq!(get(&table, first), Err(HandleError::Stale(first)));
        assert_eq!(table.remove(first), Err(HandleError::Stale(first)));
        assert_eq!(get(&table, second), Ok("second"));
        assert_eq!(second as u32, first as u32);
    }

    #[test]
    fn one_thread_alone_finds_the_same() {
        let (table, owned) = (Table::new(1), Arc::new(()));
        // SAFETY: no other thread has this table.
        unsafe {
            assert!(table.vacant_alone().is_none());
            let handles = [table.insert(owned.clone()), table.insert(owned.clone())];
            assert_eq!(table.discard_alone(handles[0]), Ok(()));
            assert_eq!(Arc::strong_count(&owned), 2);
            assert_eq!(table.discard_alone(handles[0]), Err(HandleError::Stale(handles[0])));
            let third = table.vacant_alone().unwrap().fill(owned.clone());
            assert_eq!(third as u32, handles[0] as u32);
            assert!(table.get(third).is_ok() && table.get(handles[0]).is_err());
            assert!(table.remove(third).is_ok() && table.discard_alone(third).is_err());
            assert_eq!(table.insert(owned.clone()) as u32, third as u32);
        }
    }

    #[test]
    fn a_handle_that_was_never_given_out_is_unknown() {
        let table: Table<u8> = Table::new(1);
        for bits in [0, 1, 0x101, 1 << 32, u64::MAX, 1 << 56 | 1 << 32] {
            assert!(get(&table, bits).is_err(), "{bits:#x}");
        }
        let handle = table.insert(1);
        assert_eq!(get(&table, handle + 1), Err(HandleError::Unknown(handle + 1)));
        let other = Table::new(2).insert(1);
        assert_eq!(get(&table, other), Err(HandleError::OtherKind(other)));
    }

    #[test]
    fn a_table_has_room_for_what_it_says_and_none_for_what_cannot_be() {
        let table = Table::new(1);
        for number in 0..200 {
            table.make_room().unwrap();
            table.insert(number);
        }
        table.make_room().unwrap();
        assert!(table.place(200).is_some());
        let large: Table<[u8; 1 << 50]> = Table::new(2);
        assert!(large.make_room().is_err() && large.place(0).is_none());
        table.length.store(i32::MAX as u32, Ordering::Relaxed);
        assert!(table.make_room().is_err());
    }

    #[test]
    fn a_handle_has_a_number() {
        let table = Table::new(3);
        let handles: Vec<_> = (0..1000).map(|value| table.insert(value)).collect();
        for (value, handle) in handles.into_iter().enumerate() {
            assert!(table.number(handle) < 0);
            assert_eq!(table.of_number(table.number(handle)), handle);
            assert_eq!(get(&table, handle), Ok(value));
        }
        assert!(get(&table, table.of_number(-2000)).is_err());
        assert!(get(&table, table.of_number(7)).is_err());
    }

    #[test]
    fn threads_never_get_each_others_places() {
        let table = Arc::new(Table::new(1));
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                let table = Arc::clone(&table);
                thread::spawn(move || {
                    for round in 0..10_000u64 {
                        let value = thread << 32 | round;
                        let handles = [table.insert(value), table.insert(!value)];
                        assert_eq!(table.remove(handles[0]), Ok(value));
                        assert_eq!(table.remove(handles[1]), Ok(!value));
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(table.length.load(Ordering::Relaxed) <= 8);
    }
}
