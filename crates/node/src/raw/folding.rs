//! Reductions whose caller applies the operator, for functions that may leave by a jump or an
//! exception.
//!
//! A function of a C program may jump or throw, so that no frame between it and the program is
//! cleaned up. So it cannot be called from inside a collective operation, which has entered the
//! endpoint. Here the members first collect their values, by one operation without a function. Then
//! the caller applies the function to pairs of values while the endpoint is not entered and no
//! operation is outstanding. A caller that gives up in between does not leave other members
//! waiting, as long as the values fit in one segment; longer ones take several.
//!
//! Values combine in the order of ranks and in the association of all reductions: the binary tree
//! that splits at the largest power of two. The same function gives the same bits either way.

use landeck_arithmetic::{Operator, Scratch};
use landeck_collectives::Operation as What;
use landeck_kernel::Failure;
use landeck_layout::{Layout, LayoutError};
use landeck_memory::{NoMemory, room};

use super::Memory;
use super::collective::{Asked, Data, call};
use crate::error::{Error, ErrorKind, Result};
use crate::world::World;

/// The members that get a result, and the values in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Every member gets the values of all (allreduce).
    All,
    /// This member gets the values of all, the others nothing (reduce).
    Root(usize),
    /// Every member gets the values of the members up to itself (inclusive scan).
    UpToOwn,
    /// Every member gets the values of the members before it, the first one nothing (exclusive
    /// scan).
    BeforeOwn,
}

/// The values of a member and the place for its result. Addresses are those of the items' base, as
/// in [`Data`].
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// The contribution of this member; it may be the place of the result.
    pub own: *const u8,
    /// The place of the result, if this member gets one.
    pub result: *mut u8,
    /// The layout of one item.
    pub layout: &'a Layout,
    /// The number of items.
    pub count: u64,
}

/// One application of the function: `right = left op right`, item by item. Both are private copies
/// in the layout of the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Application {
    /// The operand of the lower ranks.
    pub left: *mut u8,
    /// The operand of the higher ranks, and the result.
    pub right: *mut u8,
    /// The number of items.
    pub count: u64,
}

/// The collected values of several members, which the caller then combines.
#[derive(Debug)]
pub struct Collected {
    layout: Layout,
    extent_bytes: i64,
    /// The number of items of a value.
    length: u64,
    /// The memory, accessed only through `first`.
    _memory: Vec<u128>,
    missing: Option<NoMemory>,
    /// The base of the first item in the memory.
    first: *mut u8,
    /// The pairs of members whose values combine, in this order; a combined value stands in the
    /// place of its last member.
    merges: Vec<(u32, u32)>,
    next: usize,
    members: u32,
}

// SAFETY: the pointer leads to memory that this owns and nobody else uses.
unsafe impl Send for Collected {}

impl Collected {
    /// Allocates room for the values of `members` members, each of `length` items of a layout, one
    /// after the other. The first `combined` of them are to become one. Without enough memory the
    /// values are only counted: see [`Collected::missing`].
    ///
    /// # Errors
    /// [`ErrorKind::OutsideBuffer`] for layouts that exceed the address space.
    pub fn new(layout: &Layout, length: u64, members: u32, combined: u32) -> Result<Self> {
        let span = layout.span(length.saturating_mul(u64::from(members))).map_err(too_large)?;
        let bytes = span.extent().and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.unwrap_or(usize::MAX);
        let allocated = room::zeroes::<u128>(bytes.div_ceil(size_of::<u128>()));
        let missing = allocated.as_ref().err().copied();
        let mut memory = allocated.unwrap_or_default();
        let start = memory.as_mut_ptr().cast::<u8>();
        Ok(Self {
            layout: layout.clone(),
            extent_bytes: layout.extent_bytes().map_err(too_large)?,
            length,
            first: start.wrapping_offset(span.lower.saturating_neg() as isize),
            _memory: memory,
            missing,
            merges: merges(combined),
            next: 0,
            members: combined,
        })
    }

    /// Returns the missing memory, if there was not enough for the values.
    pub fn missing(&self) -> Option<NoMemory> {
        self.missing
    }

    /// Returns an error if its memory is missing.
    fn is_there(&self) -> Result<()> {
        self.missing.map_or(Ok(()), |no_memory| Err(no_memory.into()))
    }

    /// Returns the base of the first item, where the values are to be stored.
    pub fn start(&self) -> *mut u8 {
        self.first
    }

    /// Stores the value of a member.
    ///
    /// # Errors
    /// [`ErrorKind::NoMemory`]; [`ErrorKind::OutsideBuffer`] for items that exceed the address space.
    ///
    /// # Safety
    /// The items are readable.
    pub unsafe fn put(&mut self, member: u32, value: &Memory<'_>) -> Result<()> {
        self.is_there()?;
        let place = Memory { start: self.value(member), layout: &self.layout, count: self.length };
        // SAFETY: the value is as the caller promises, the place is memory of this.
        let (value, place) = unsafe { (value.area(), place.area()) };
        value.map_err(outside)?.copy_to(&place.map_err(outside)?);
        Ok(())
    }

    /// Starts again with new values, as many as before.
    pub fn begin_again(&mut self) {
        self.next = 0;
    }

    /// Returns the next application of a function; `None` when one value is left. The caller has
    /// done the previous application before it calls this again.
    pub fn next_application(&mut self) -> Option<Application> {
        let is_any = self.length > 0 && self.missing.is_none();
        let &(left, right) = self.merges.get(self.next).filter(|_| is_any)?;
        self.next += 1;
        let (left, right) = (self.value(left), self.value(right));
        Some(Application { left, right, count: self.length })
    }

    /// Combines all values with an operator; their items are packed elements.
    ///
    /// # Errors
    /// [`ErrorKind::Reduction`] when the items are not whole elements.
    pub fn combine(&mut self, operator: &Operator) -> Result<()> {
        let mut scratch = Scratch::new();
        let bytes = self.layout.packed_bytes(self.length).map_err(too_large)? as usize;
        while let Some(Application { left, right, .. }) = self.next_application() {
            // SAFETY: both values lie in memory of this, each so long, and apart from each other.
            unsafe { operator.combine_raw(left, right, right, bytes, &mut scratch) }?;
        }
        Ok(())
    }

    /// Copies the combined value, starting at item `from`, to `result`: as many packed bytes as the
    /// result has.
    ///
    /// # Errors
    /// [`ErrorKind::NoMemory`]; [`ErrorKind::OutsideBuffer`] for results that exceed the address space.
    ///
    /// # Safety
    /// The result is writable, and nobody else uses it.
    pub unsafe fn deliver(&self, from: u64, result: &Memory<'_>) -> Result<()> {
        self.is_there()?;
        let Some(last) = self.members.checked_sub(1) else { return Ok(()) };
        let start = self.item(self.value(last), from);
        let value = Memory { start, layout: &self.layout, count: self.length.saturating_sub(from) };
        // SAFETY: the value is memory of this, the result is as the caller promises.
        let (value, result) = unsafe { (value.area(), result.area()) };
        value.map_err(outside)?.copy_to(&result.map_err(outside)?);
        Ok(())
    }

    /// Returns the address of a member's value.
    fn value(&self, member: u32) -> *mut u8 {
        self.item(self.first, u64::from(member) * self.length)
    }

    /// Returns the base of the item that lies `items` after another.
    fn item(&self, base: *mut u8, items: u64) -> *mut u8 {
        base.wrapping_offset(self.extent_bytes.wrapping_mul(items as i64) as isize)
    }
}

/// A reduction whose caller applies the operator. Giving it up, even without dropping it, costs at
/// most its memory.
#[derive(Debug)]
pub struct Folding {
    share: Share,
    own: *const u8,
    result: *mut u8,
    count: u64,
    /// The first item of the current segment, and the largest number of items of one.
    from: u64,
    at_once: u64,
    /// The values of all members for the current segment, if this member gets a result.
    collected: Collected,
    is_begun: bool,
    /// The error that lost the result, while this member still takes part for the sake of the
    /// others.
    lost: Option<Error>,
}

/// Approximate bytes of the values of all members that are held at once.
const HELD_BYTES: u64 = 16 << 20;

impl Folding {
    /// Creates a reduction without starting it. All members give the same share, count and root.
    ///
    /// # Errors
    /// As [`Collected::new`].
    ///
    /// # Safety
    /// The memory that `values` names stays mapped until the reduction is complete or given up. The
    /// result is writable and unused by others, and nothing writes to the contribution of this
    /// member.
    pub unsafe fn new(world: &World, share: Share, values: &Values<'_>) -> Result<Self> {
        let Values { own, result, layout, count } = *values;
        let (size, rank) = (world.size() as u64, world.rank());
        let item_bytes = layout.packed_bytes(1).map_err(too_large)?.max(1);
        let at_once = (HELD_BYTES / size / item_bytes).max(1).min(count);
        let held = if share.gives_values(rank) { size as u32 } else { 0 };
        let members = share.members(rank, world.size());
        let collected = Collected::new(layout, at_once, held, members)?;
        let (from, is_begun, lost) = (0, false, None);
        Ok(Self { share, own, result, count, from, at_once, collected, is_begun, lost })
    }

    /// Returns the next application of the function; `None` when this member's part is complete.
    /// The caller has done the previous application before it calls this again.
    ///
    /// # Errors
    /// As the methods of [`World`].
    pub fn next(&mut self, world: &World) -> Result<Option<Application>> {
        loop {
            if self.is_begun {
                if self.lost.is_none() {
                    if let Some(application) = self.collected.next_application() {
                        return Ok(Some(application));
                    }
                    self.deliver()?;
                }
                if self.from + self.collected.length == self.count {
                    return self.lost.take().map_or(Ok(None), Err);
                }
            }
            match self.gather(world) {
                // The others bring values to this member alone: they do not know of it, and bring the rest.
                Err(error) if matches!(self.share, Share::Root(_)) && is_about_memory(&error) => {
                    self.lost.get_or_insert(error);
                }
                gathered => gathered?,
            }
        }
    }

    /// Collects the next segment of all members.
    fn gather(&mut self, world: &World) -> Result<()> {
        if self.is_begun {
            self.from += self.collected.length;
        }
        let count = self.at_once.min(self.count - self.from);
        self.collected.length = count;
        let (operation, root) = match self.share {
            Share::Root(root) => (What::Gather, root),
            _ => (What::AllGather, 0),
        };
        let start = self.collected.item(self.own.cast_mut(), self.from);
        let layout = &self.collected.layout;
        let input = Data::Whole { start, layout, count };
        let output = match self.share.gives_values(world.rank()) {
            true => Data::Blocks { start: self.collected.start(), layout, count },
            false => Data::Nothing,
        };
        let missing = self.collected.missing;
        let asked = Asked { operation, root, input, output, operator: None, missing };
        self.is_begun = true;
        // SAFETY: the input is as the maker of this promised; the output is memory of this.
        unsafe { call(world, &asked) }?;
        self.collected.begin_again();
        Ok(())
    }

    /// Stores the result of a segment.
    fn deliver(&self) -> Result<()> {
        let start = self.collected.item(self.result, self.from);
        let (layout, count) = (&self.collected.layout, self.collected.length);
        // SAFETY: the result is as the maker of this promised.
        unsafe { self.collected.deliver(0, &Memory { start, layout, count }) }
    }
}

impl Share {
    /// Returns whether this member receives the values of others.
    fn gives_values(self, rank: usize) -> bool {
        !matches!(self, Self::Root(root) if root != rank)
    }

    /// Returns the number of members, from the first one, whose values are in this member's result.
    fn members(self, rank: usize, size: usize) -> u32 {
        let members = match self {
            Self::All => size,
            Self::Root(root) => {
                if root == rank {
                    size
                } else {
                    0
                }
            }
            Self::UpToOwn => rank + 1,
            Self::BeforeOwn => rank,
        };
        members as u32
    }
}

/// Returns whether a member had no memory, after which the world stays usable.
fn is_about_memory(error: &Error) -> bool {
    matches!(
        error.kind,
        ErrorKind::NoMemory(_) | ErrorKind::Heap(_) | ErrorKind::PeerHeapFull { .. }
    )
}

fn too_large(_: LayoutError) -> Error {
    ErrorKind::OutsideBuffer { buffer_bytes: usize::MAX }.into()
}

fn outside(_: Failure) -> Error {
    ErrorKind::OutsideBuffer { buffer_bytes: usize::MAX }.into()
}

/// Returns the pairs of values that combine, for this many members: those of two runs of ranks,
/// each named by its last member, where its value stands.
fn merges(members: u32) -> Vec<(u32, u32)> {
    let mut all = Vec::with_capacity(members.saturating_sub(1) as usize);
    merge_run(0, members, &mut all);
    all
}

fn merge_run(first: u32, count: u32, all: &mut Vec<(u32, u32)>) {
    if count < 2 {
        return;
    }
    let half = count.next_power_of_two() / 2;
    merge_run(first, half, all);
    merge_run(first + half, count - half, all);
    all.push((first + half - 1, first + count - 1));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use landeck_channel::Peer;
    use landeck_engine::context::WORLD_CONTEXT;
    use landeck_engine::{Progress, Shared};
    use landeck_layout::Kind;
    use landeck_memory::{Segment, SegmentPlan, ThreadMode};
    use landeck_testing::Watchdog;

    /// The definition: split at the largest power of two smaller than the number.
    fn defined(first: u32, count: u32, value: &impl Fn(u32) -> u64) -> u64 {
        if count == 1 {
            return value(first);
        }
        let split = (0..).map(|power| 1 << power).take_while(|&end| end < count).last().unwrap();
        combine(defined(first, split, value), defined(first + split, count - split, value))
    }

    /// Neither commutative nor associative.
    fn combine(left: u64, right: u64) -> u64 {
        left.wrapping_mul(3).wrapping_sub(right.rotate_left(7)) ^ 0x55
    }

    fn value(member: u32, item: u64) -> u64 {
        u64::from(member) * 1_000_003 + item * 17
    }

    fn item() -> Layout {
        Layout::elements(Kind::BYTE, 8).unwrap()
    }

    /// Every item of `values` that is an odd one belongs to somebody else.
    fn with_gaps() -> Layout {
        let item = item();
        item.resized(landeck_layout::Bounds { lower: 0, upper: 16 })
    }

    /// Folds to the end; what this member has then.
    fn fold(world: &World, share: Share, layout: &Layout, count: u64, at_once: u64) -> Vec<u64> {
        let stride = layout.extent_bytes().unwrap() as u64 / 8;
        let rank = world.rank() as u32;
        let mut values: Vec<u64> = (0..count * stride)
            .map(|at| if at % stride == 0 { value(rank, at / stride) } else { 1 })
            .collect();
        let place = values.as_mut_ptr().cast::<u8>();
        let asked = Values { own: place, result: place, layout, count };
        // SAFETY: the values stay, and nothing else uses them meanwhile.
        let mut folding = unsafe { Folding::new(world, share, &asked) }.unwrap();
        folding.at_once = folding.at_once.min(at_once);
        while let Some(Application { left, right, count }) = folding.next(world).unwrap() {
            for item in 0..(count * stride) as usize {
                // SAFETY: both hold so many items of the layout.
                let (left, right) =
                    unsafe { (*left.cast::<u64>().add(item), &mut *right.cast::<u64>().add(item)) };
                if (item as u64).is_multiple_of(stride) {
                    *right = combine(left, *right);
                }
            }
        }
        values
    }

    fn checked(world: &World, share: Share, layout: &Layout, count: u64, at_once: u64) {
        let members = share.members(world.rank(), world.size());
        let stride = layout.extent_bytes().unwrap() as u64 / 8;
        let found = fold(world, share, layout, count, at_once);
        for (at, found) in (0..).zip(found) {
            let item = at / stride;
            let expected = match members {
                _ if at % stride != 0 => 1,
                0 => value(world.rank() as u32, item),
                _ => defined(0, members, &|member| value(member, item)),
            };
            assert_eq!(found, expected, "{share:?} of {}, item {item}", world.size());
        }
    }

    /// Runs this on every member of a group of so many, each a thread.
    fn on_all(size: u32, body: impl Fn(&World) + Sync) {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, size) });
        let members: Arc<[Peer]> = (0..size).map(Peer).collect();
        thread::scope(|scope| {
            for slot in 0..size {
                let (segment, members, body) = (&segment, members.clone(), &body);
                scope.spawn(move || {
                    let (mode, progress) = (ThreadMode::Single, Progress::default());
                    let shared = Shared::new(segment, slot, mode, progress).unwrap();
                    body(&World::new(Arc::new(shared), WORLD_CONTEXT, members));
                });
            }
        });
    }

    #[test]
    fn a_reduction_combined_by_hand_gives_the_defined_result() {
        for size in [1, 2, 3, 5] {
            on_all(size, |world| {
                let shares = [Share::All, Share::Root(0), Share::UpToOwn, Share::BeforeOwn];
                for share in shares.into_iter().chain([Share::Root(world.size() - 1)]) {
                    for (count, at_once) in [(1, 1), (0, 1), (7, 3), (3_000, 1_000)] {
                        checked(world, share, &item(), count, at_once);
                        checked(world, share, &with_gaps(), count, at_once);
                    }
                }
            });
        }
    }

    #[test]
    fn a_member_that_gives_up_has_missed_nothing_and_goes_on() {
        on_all(3, |world| {
            for round in 0..20 {
                let mut own = value(world.rank() as u32, 0);
                let (place, layout) = ((&raw mut own).cast::<u8>(), item());
                let values = Values { own: place, result: place, layout: &layout, count: 1 };
                // SAFETY: the value stays, and nothing else uses it meanwhile.
                let mut folding = unsafe { Folding::new(world, Share::All, &values) }.unwrap();
                assert!(folding.next(world).unwrap().is_some());
                if round % 3 != world.rank() {
                    // As after a jump: nobody drops it.
                    std::mem::forget(folding);
                } else {
                    while folding.next(world).unwrap().is_some() {}
                }
                checked(world, Share::All, &layout, 2, 2);
                world.barrier().unwrap();
            }
        });
    }

    #[test]
    fn values_combine_in_the_association_of_all_reductions() {
        for count in 1..=70 {
            let mut values: Vec<u64> = (0..count).map(|member| value(member, 0)).collect();
            for (left, right) in merges(count) {
                values[right as usize] = combine(values[left as usize], values[right as usize]);
            }
            assert_eq!(values[count as usize - 1], defined(0, count, &|member| value(member, 0)));
        }
        assert!(merges(0).is_empty() && merges(1).is_empty());
    }
}
