//! MPI_Allreduce. Predefined operations are a collective of the library. With one of the program the
//! values are brought together first; then the entry point calls it, between the steps, in a frame
//! that owns nothing: it may jump or throw.

use std::ffi::{c_int, c_void};
use std::mem::needs_drop;

use landeck::arithmetic::Reduction;
use landeck::collectives::Operation as Collective;
use landeck::layout::{Kind, Layout};
use landeck::raw;
use landeck::raw::collective::{Asked, Data};
use landeck::raw::folding::{Application, Folding, Share, Values};
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
    let own = if call.sendbuf.addr() == IN_PLACE {
        result.cast_const()
    } else {
        check_own_part(call.sendbuf.cast(), result, bytes)?;
        call.sendbuf.cast()
    };
    let layout = layout_of(&call, datatype)?;
    let values = Values { own, result, layout: &layout, count: count as u64 };
    let world = communicator.messages();
    // SAFETY: both buffers were checked, and the program leaves them to this call.
    let mut folding = unsafe { Folding::new(world, Share::All, &values) }.map_err(failure)?;
    Ok(Steps::new(move || match folding.next(world) {
        Ok(Some(Application { left, right, count })) => {
            let (input, inout) = (left.cast(), right.cast());
            let (count, datatype) = (count as c_int, datatype.handle); // at most the call's own
            Next::Call(Combination { function, input, inout, count, datatype })
        }
        Ok(None) => Next::Done(SUCCESS),
        Err(error) => Next::Done(entry::handle(FUNCTION, &failure(error))),
    }))
}

/// An item as the library sees it.
fn layout_of(call: &Call, datatype: Datatype) -> Result<Layout, Mistake> {
    Layout::elements(Kind::BYTE, datatype.size_bytes as u64)
        .map_err(|_| Mistake::Count { value: call.count })
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
    let layout = layout_of(call, datatype)?;
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
