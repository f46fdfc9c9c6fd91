//! Reductions in which values are brought together first and combined then: with operations of the
//! program, which may leave in any way, and of what another group brings.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landeck::layout::{Kind, Layout};
use landeck::raw::Memory;
use landeck::raw::collective::Data;
use landeck::raw::folding::{Application, Collected, Folding, Share, Values};
use landeck::unstable::collectives::Operation as Collective;
use landeck::unstable::memory::NoMemory;

use super::asked::{Asked, Below, Combines, Role};
use super::side::Side;
use crate::abi::Handle;
use crate::arguments::Items;
use crate::mistake::Mistake;
use crate::objects::datatype::Datatype;
use crate::objects::operation::{Function, Own};
use crate::walk::{Call, Walk};

/// The collected values of several processes, and their combination.
pub(crate) struct Fold {
    collected: Collected,
    /// The layout of an item in the collected values.
    layout: Layout,
    /// Items of a value.
    length: u64,
    combines: Combines,
    /// The type of the items. The program's functions receive it, also when it has been freed.
    _datatype: Arc<Datatype>,
    result: Outcome,
    /// The combination that the program computes at the moment.
    call: Option<Box<Combination>>,
}

/// The destination of the result: its items, which begin so many items into the value.
struct Outcome {
    start: *mut u8,
    layout: Layout,
    count: u64,
    from: u64,
}

// SAFETY: the pointers lead to memory of the program, which it leaves to the operation, and to that
// of the fold itself.
unsafe impl Send for Fold {}

/// A fold that the request and its starter share.
pub(crate) type Shared = Arc<Mutex<Fold>>;

/// One application of the program's operation: `inout = in op inout`. It lives on the heap.
#[derive(Clone, Copy)]
pub(crate) struct Combination {
    pub(crate) own: Own,
    pub(crate) input: *mut c_void,
    pub(crate) inout: *mut c_void,
    pub(crate) count: u64,
    pub(crate) datatype: Handle,
    /// From an item to the next one.
    pub(crate) extent_bytes: i64,
}

/// A function for short counts gets at most so many items in a call; more take several calls.
const MOST_AT_ONCE: u64 = c_int::MAX as u64;

impl Combination {
    /// As a call of a walk, which keeps this.
    pub(crate) fn call(&mut self) -> Call {
        Call { run: Self::run, data: (&raw mut *self).cast() }
    }

    unsafe extern "C-unwind" fn run(data: *mut c_void) {
        // SAFETY: `call` passes such a combination; it is copied out.
        let whole = unsafe { data.cast::<Self>().read() };
        match whole.own.function {
            Function::Short(function) => {
                let mut done = 0;
                while done < whole.count {
                    let Self { input, inout, count, mut datatype, .. } = whole.piece(done);
                    let mut length = count as c_int;
                    // SAFETY: the program gave the function for this; both hold so many items.
                    unsafe { function(input, inout, &raw mut length, &raw mut datatype) };
                    done += count;
                }
            }
            Function::Large(function) => {
                let Self { input, inout, count, mut datatype, .. } = whole;
                let mut count = count as i64;
                // SAFETY: as above.
                unsafe { function(input, inout, &raw mut count, &raw mut datatype) };
            }
        }
    }

    /// The part behind so many items that one call combines.
    fn piece(self, done: u64) -> Self {
        let bytes = self.extent_bytes.wrapping_mul(done as i64) as isize;
        Self {
            input: self.input.wrapping_byte_offset(bytes),
            inout: self.inout.wrapping_byte_offset(bytes),
            count: (self.count - done).min(MOST_AT_ONCE),
            ..self
        }
    }
}

impl Fold {
    /// That of a call; none where the layer below combines.
    pub(super) fn of(asked: &Asked) -> Result<Option<Self>, Mistake> {
        let far = asked.communicator.remote.is_some();
        match asked.combines {
            Combines::Not => return Ok(None),
            Combines::Predefined(_) if !far => return Ok(None),
            _ => {}
        }
        let Some(items) = asked.items() else { return Ok(None) };
        let layout = match asked.combines {
            Combines::Own(..) => items.datatype.layout.clone(),
            // They are packed, as the loops want them.
            _ => Layout::elements(Kind::BYTE, items.datatype.size_bytes)?,
        };
        let (held, combined) = asked.held();
        let length = asked.value_count();
        let result = Outcome {
            start: asked.result_start(),
            layout: items.datatype.layout.clone(),
            count: asked.result_count(),
            from: asked.result_from,
        };
        let collected = Collected::new(&layout, length, held, combined)?;
        let combines = asked.combines;
        let _datatype = Arc::clone(items.datatype);
        Ok(Some(Self { collected, layout, length, combines, _datatype, result, call: None }))
    }

    /// Where the values are brought together, as one side of the operation that does it.
    pub(super) fn collected(&self) -> Data<'_> {
        let start = self.collected.start();
        Data::Blocks { start, layout: &self.layout, count: self.length }
    }

    /// The memory for the values that there is none of.
    pub(super) fn missing(&self) -> Option<NoMemory> {
        self.collected.missing()
    }

    /// The place and the layout of the values, and how many items each has.
    pub(super) fn place(&self) -> (*mut u8, &Layout, u64) {
        (self.collected.start(), &self.layout, self.length)
    }

    fn step(&mut self) -> Result<Option<Call>, Mistake> {
        match self.combines {
            Combines::Own(own, datatype) => {
                if let Some(Application { left, right, count }) = self.collected.next_application()
                {
                    let (input, inout) = (left.cast(), right.cast());
                    let extent_bytes = self.layout.extent_bytes()?;
                    let combination =
                        Combination { own, input, inout, count, datatype, extent_bytes };
                    return Ok(Some(self.call.insert(Box::new(combination)).call()));
                }
            }
            Combines::Predefined(reduction) => self.collected.combine(&reduction.into())?,
            Combines::Not => {}
        }
        let Outcome { start, ref layout, count, from } = self.result;
        // SAFETY: the program leaves the place of the result to the operation.
        unsafe { self.collected.deliver(from, &Memory { start, layout, count })? };
        Ok(None)
    }
}

/// The next step of a fold whose values are there.
pub(crate) fn step(fold: &Shared) -> Result<Option<Call>, Mistake> {
    lock(fold).step()
}

/// New values are on their way.
pub(super) fn begin_again(fold: &Shared) {
    lock(fold).collected.begin_again();
}

pub(super) fn lock(fold: &Shared) -> MutexGuard<'_, Fold> {
    fold.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A reduction by an operation of the program among the members of one group, in segments: the
/// steps of all of it. None for other calls.
pub(super) fn in_segments(asked: &Asked) -> Result<Option<Walk>, Mistake> {
    let Combines::Own(own, datatype) = asked.combines else { return Ok(None) };
    let share = match (asked.operation, asked.role) {
        _ if asked.communicator.remote.is_some() => return Ok(None),
        (Collective::AllReduce, _) => Share::All,
        (Collective::Scan, _) => Share::UpToOwn,
        (Collective::ExclusiveScan, _) => Share::BeforeOwn,
        (Collective::Reduce, Role::RootIs(root)) => Share::Root(root),
        (Collective::Reduce, _) => Share::Root(asked.communicator.rank as usize),
        _ => return Ok(None),
    };
    let Some(items) = asked.items() else { return Ok(None) };
    let own_part = match &asked.input {
        Side::Whole(items) => items.start,
        _ => items.start,
    };
    let layout = &items.datatype.layout;
    let extent_bytes = layout.extent_bytes()?;
    let result = asked.result_start();
    let values = Values { own: own_part, result, layout, count: items.count };
    let communicator = Arc::clone(asked.communicator);
    // SAFETY: the program leaves both buffers to this call.
    let mut folding = unsafe { Folding::new(&communicator.world, share, &values)? };
    let mut kept = None;
    Ok(Some(Walk::new(move || {
        let Some(application) = folding.next(&communicator.world)? else { return Ok(None) };
        let Application { left, right, count } = application;
        let (input, inout) = (left.cast(), right.cast());
        let combination = Combination { own, input, inout, count, datatype, extent_bytes };
        Ok(Some(kept.insert(Box::new(combination)).call()))
    })))
}

/// Brings the values of one group together.
pub(super) fn collect<R>(
    asked: &Asked,
    folds: &Shared,
    use_it: impl FnOnce(&Below<'_>) -> Result<R, Mistake>,
) -> Result<R, Mistake> {
    let fold = lock(folds);
    let mut below = Below { operator: None, missing: fold.missing(), ..asked.plain() };
    below.operation = match asked.operation {
        Collective::Reduce => Collective::Gather,
        Collective::ReduceScatter => Collective::AllToAll,
        _ => Collective::AllGather,
    };
    if matches!(below.input, Data::InPlace) {
        below.input = below.output;
    }
    below.output = match asked.role {
        Role::RootIs(_) => Data::Nothing,
        _ => fold.collected(),
    };
    use_it(&below)
}

impl Asked {
    /// The items that are combined, where this process has any.
    fn items(&self) -> Option<Items> {
        [&self.output, &self.input].into_iter().find_map(|side| match side {
            Side::Whole(items) | Side::Blocks(items) | Side::Varying { items, .. } => Some(*items),
            _ => None,
        })
    }

    /// How many values come together here, and how many of them become one.
    fn held(&self) -> (u32, u32) {
        let (rank, size) = (self.communicator.rank, self.communicator.messages().1);
        match (self.operation, self.role) {
            (Collective::Reduce, Role::RootIs(_) | Role::Bystander) => (0, 0),
            (Collective::Scan, _) => (size, rank + 1),
            (Collective::ExclusiveScan, _) => (size, rank),
            _ => (size, size),
        }
    }

    /// How many items a value has.
    fn value_count(&self) -> u64 {
        let far = self.communicator.remote.is_some();
        match (&self.input, &self.output) {
            (Side::Whole(items), _) | (_, Side::Whole(items)) if far => items.count,
            _ => self.result_count(),
        }
    }

    /// How many items the result has that this process gets.
    fn result_count(&self) -> u64 {
        match (&self.input, &self.output) {
            (_, Side::Whole(items)) | (Side::Whole(items) | Side::Blocks(items), _) => items.count,
            (Side::Varying { counts, .. }, _) => {
                counts.get(self.communicator.rank as usize).copied().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Where the result goes.
    fn result_start(&self) -> *mut u8 {
        match (&self.input, &self.output) {
            (_, Side::Whole(items)) => items.start,
            (Side::Blocks(items) | Side::Varying { items, .. }, _) => items.start,
            _ => std::ptr::null_mut(),
        }
    }
}
