//! MPI_Allreduce. Predefined operations are a collective of the library. The program's own go to
//! rank 0 along a binomial tree, in the order of the ranks, and back.
//!
//! Rank r collects what the ranks r to r + 2^k - 1 have, as the left side of each combination, so
//! an operation that does not commute gives the result that the ranks in order would.
//!
//! The program's own operation is called by the entry point, between the steps, in a frame that
//! owns nothing: it may jump or throw.

use std::ffi::{c_int, c_void};
use std::mem::needs_drop;

use landeck::arithmetic::Reduction;
use landeck::collectives::Operation as Collective;
use landeck::layout::{Kind, Layout};
use landeck::raw;
use landeck::raw::collective::{Asked, Data};
use landeck_c_boundary::{Next, Steps, guarded, pointer};

use crate::abi::{ErrorClass, Handle, IN_PLACE, SUCCESS, UserFunction};
use crate::arguments::{communicator, count_of, datatype_of};
use crate::communicator::{Communicator, failure};
use crate::datatype::Datatype;
use crate::entry;
use crate::job;
use crate::mistake::Mistake;
use crate::operation::{self, Operation};

/// Reduces to all.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn MPI_Allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: c_int,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> c_int {
    // SAFETY: as the caller promises; this frame owns nothing.
    unsafe { all_reduce(Call { sendbuf, recvbuf, count, datatype, op, comm }) }
}

/// Reduces to all.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn PMPI_Allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: c_int,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> c_int {
    // SAFETY: as above.
    unsafe { all_reduce(Call { sendbuf, recvbuf, count, datatype, op, comm }) }
}

/// The name in messages.
const FUNCTION: &str = "MPI_Allreduce";

/// The arguments of a call.
#[derive(Clone, Copy)]
struct Call {
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: c_int,
    datatype: Handle,
    op: Handle,
    comm: Handle,
}

/// One application of the program's operation: `inout = in op inout`.
#[derive(Clone, Copy)]
struct Combination {
    function: UserFunction,
    input: *mut c_void,
    inout: *mut c_void,
    count: c_int,
    datatype: Handle,
}

// The frame below owns nothing, so a callback may leave it in any way.
const _: () = assert!(
    !needs_drop::<Call>()
        && !needs_drop::<Combination>()
        && !needs_drop::<Steps<Combination, c_int>>()
);

/// The body of the entry points: every local is a plain value.
unsafe fn all_reduce(call: Call) -> c_int {
    let failed = Next::Done(ErrorClass::Internal.code());
    // SAFETY: as the caller promises.
    let mut steps = match guarded(FUNCTION, Err(ErrorClass::Internal.code()), || unsafe {
        begin(call).map_err(|mistake| entry::handle(FUNCTION, &mistake))
    }) {
        Ok(steps) => steps,
        Err(code) => job::abort(code, "the library failed; see above"),
    };
    loop {
        match guarded(FUNCTION, failed, || steps.advance()) {
            Next::Call(combination) => {
                let Combination { function, input, inout, mut count, mut datatype } = combination;
                // SAFETY: the program gave the function for this; both buffers hold `count` items.
                unsafe { function(input, inout, &raw mut count, &raw mut datatype) };
            }
            Next::Done(SUCCESS) => return SUCCESS,
            Next::Done(code) => job::abort(code, "the library failed; see above"),
        }
    }
}

/// Checks the arguments and makes the steps.
unsafe fn begin(call: Call) -> Result<Steps<Combination, c_int>, Mistake> {
    let communicator = communicator(call.comm)?;
    let count = count_of(call.count)?;
    let datatype = datatype_of(call.datatype)?;
    let operation = operation::of(call.op)?;
    let bytes = count * datatype.size_bytes;
    let result = call.recvbuf.cast::<u8>();
    pointer::check("recvbuf", result, bytes).map_err(Mistake::Buffer)?;
    let function = match operation {
        Operation::Users(function) => function,
        Operation::Predefined(operation) => {
            let reduction = Reduction::new(operation, datatype.element)?;
            // SAFETY: the buffer of the result was checked, and the rest is as the caller promises.
            unsafe { predefined(&call, communicator, reduction, (count, datatype))? };
            return Ok(Steps::new(|| Next::Done(SUCCESS)));
        }
    };
    if call.sendbuf.addr() != IN_PLACE {
        // SAFETY: checked above and as the caller promises; both hold `bytes` bytes.
        unsafe { copy_own_part(call.sendbuf.cast(), result, bytes)? };
    }
    let mut tree = Tree {
        communicator,
        function,
        datatype,
        count: call.count,
        result,
        bytes,
        other: Vec::new(),
        distance: 1,
        combined: false,
    };
    Ok(Steps::new(move || match tree.step() {
        Ok(next) => next,
        Err(mistake) => Next::Done(entry::handle(FUNCTION, &mistake)),
    }))
}

/// Reduces with an operation of the library.
unsafe fn predefined(
    call: &Call,
    communicator: Communicator,
    reduction: Reduction,
    (count, datatype): (usize, Datatype),
) -> Result<(), Mistake> {
    let own = call.sendbuf.cast::<u8>();
    let in_place = own.addr() == IN_PLACE;
    if !in_place {
        check_own_part(own, call.recvbuf.cast(), count * datatype.size_bytes)?;
    }
    let layout = Layout::elements(Kind::BYTE, datatype.size_bytes as u64)
        .map_err(|_| Mistake::Count { value: call.count })?;
    let whole = |start| Data::Whole { start, layout: &layout, count: count as u64 };
    let asked = Asked {
        operation: Collective::AllReduce,
        root: 0,
        input: if in_place { Data::InPlace } else { whole(own) },
        output: whole(call.recvbuf.cast()),
        operator: Some(reduction.into()),
    };
    // SAFETY: both buffers were checked, and the program leaves them to this call.
    unsafe { raw::collective::call(communicator.messages(), &asked) }.map_err(failure)
}

/// Checks what this rank contributes.
fn check_own_part(own: *const u8, result: *const u8, bytes: usize) -> Result<(), Mistake> {
    pointer::check("sendbuf", own, bytes).map_err(Mistake::Buffer)?;
    if own.addr() == result.addr() && bytes > 0 {
        return Err(Mistake::SameBuffer { address: own.addr() });
    }
    Ok(())
}

/// Puts what this rank contributes where the result will be.
unsafe fn copy_own_part(own: *const u8, result: *mut u8, bytes: usize) -> Result<(), Mistake> {
    check_own_part(own, result, bytes)?;
    if bytes > 0 {
        // SAFETY: the caller says that both ranges hold `bytes` bytes; `copy` allows overlap.
        unsafe { std::ptr::copy(own, result, bytes) };
    }
    Ok(())
}

/// One rank's part in the reduction.
struct Tree {
    communicator: Communicator,
    function: UserFunction,
    datatype: Datatype,
    count: c_int,
    /// What has been collected so far; in the end the result.
    result: *mut u8,
    bytes: usize,
    /// What another rank has collected, aligned for every datatype.
    other: Vec<u128>,
    /// The distance to the partner of this round.
    distance: u32,
    /// The program has combined into `other`.
    combined: bool,
}

impl Tree {
    /// Goes on until the program must combine, or to the end.
    fn step(&mut self) -> Result<Next<Combination, c_int>, Mistake> {
        if std::mem::take(&mut self.combined) {
            self.take_over();
        }
        let (rank, size) = (self.communicator.rank, self.communicator.size);
        while self.distance < size && self.bytes > 0 {
            let distance = self.distance;
            self.distance *= 2;
            if rank & distance != 0 {
                self.send(rank - distance)?;
                break;
            }
            if rank + distance < size {
                self.receive_other(rank + distance)?;
                return Ok(self.combine());
            }
        }
        self.spread()?;
        Ok(Next::Done(SUCCESS))
    }

    /// `result = result op other`, by the program.
    fn combine(&mut self) -> Next<Combination, c_int> {
        self.combined = true;
        Next::Call(Combination {
            function: self.function,
            input: self.result.cast(),
            inout: self.other.as_mut_ptr().cast(),
            count: self.count,
            datatype: self.datatype.handle,
        })
    }

    /// Takes what the program combined as what has been collected.
    fn take_over(&mut self) {
        // SAFETY: `other` has `bytes` bytes, and `begin` checked the buffer of the result.
        unsafe {
            std::ptr::copy_nonoverlapping(self.other.as_ptr().cast(), self.result, self.bytes);
        };
    }

    /// Passes the result on, from rank 0 down the tree by which it was collected.
    fn spread(&mut self) -> Result<(), Mistake> {
        let (rank, size) = (self.communicator.rank, self.communicator.size);
        if self.bytes == 0 {
            return Ok(());
        }
        // The lowest set bit of the rank is the distance to where it sent.
        let reach = if rank == 0 { size.next_power_of_two() } else { rank & rank.wrapping_neg() };
        if rank != 0 {
            self.receive_result(rank - reach)?;
        }
        let mut distance = reach / 2;
        while distance > 0 {
            if rank + distance < size {
                self.send(rank + distance)?;
            }
            distance /= 2;
        }
        Ok(())
    }

    fn send(&self, to: u32) -> Result<(), Mistake> {
        // SAFETY: `begin` checked the buffer; it stays during the call.
        unsafe { self.communicator.send_inside(to, self.result, self.bytes) }
    }

    fn receive_result(&self, from: u32) -> Result<(), Mistake> {
        // SAFETY: as above.
        unsafe { self.communicator.receive_inside(from, self.result, self.bytes) }
    }

    fn receive_other(&mut self, from: u32) -> Result<(), Mistake> {
        if self.other.is_empty() {
            let (bytes, count) = (self.bytes, self.bytes.div_ceil(size_of::<u128>()));
            self.other.try_reserve_exact(count).map_err(|_| Mistake::NoMemory { bytes })?;
            self.other.resize(count, 0);
        }
        // SAFETY: `other` has `bytes` bytes and stays during the call.
        unsafe {
            self.communicator.receive_inside(from, self.other.as_mut_ptr().cast(), self.bytes)
        }
    }
}
