//! MPI_Allreduce. Predefined operations are a collective of the library. The program's own go to
//! rank 0 along a binomial tree, in the order of the ranks, and back.
//!
//! Rank r collects what the ranks r to r + 2^k - 1 have, as the left side of each combination, so
//! an operation that does not commute gives the result that the ranks in order would.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use landeck::arithmetic::Reduction;
use landeck::collectives::Operation as Collective;
use landeck::raw::collective::{self, Asked, Data};
use landeck::raw::{receive, send};
use landeck::{Tag, World};

use super::whole;
use crate::abi::{ERR_BUFFER, ERR_NO_MEM, ERR_OP, ERR_TRUNCATE, Handle, IN_PLACE};
use crate::arguments::Items;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::operation::{self, Function, Operation, Own};
use crate::walk::{Call, Walk};

/// The tag of what the members say among themselves: one operation follows the other, and between
/// two ranks messages keep their order.
const INSIDE: Tag = Tag(0);

/// Reduces to all.
pub(crate) unsafe fn allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Result<Walk, Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let output = Items::new("recvbuf", recvbuf, ("count", count), datatype)?;
    let operation = operation::get("op", op)?;
    let input = match sendbuf.addr() {
        IN_PLACE => None,
        _ => Some(Items::new("sendbuf", sendbuf, ("count", count), datatype)?),
    };
    if sendbuf.addr() == recvbuf.addr() && count > 0 {
        return Err(Mistake::new(
            ERR_BUFFER,
            format_args!(
                "sendbuf and recvbuf are both {recvbuf:p}; pass MPI_IN_PLACE as sendbuf instead"
            ),
        ));
    }
    match operation {
        // SAFETY: the program leaves both buffers to this call.
        Operation::Predefined(operation) => unsafe {
            predefined(communicator, operation, input, output)
        },
        // SAFETY: as above.
        Operation::Own(own) => unsafe { own_operation(communicator, own, input, output, datatype) },
    }
}

/// Reduces with an operation of the library.
unsafe fn predefined(
    communicator: &Communicator,
    operation: landeck::arithmetic::Operation,
    input: Option<Items>,
    output: Items,
) -> Result<Walk, Mistake> {
    let element = output.datatype.element.ok_or_else(|| {
        Mistake::new(ERR_OP, "op is predefined, but datatype is one that the program made")
    })?;
    let asked = Asked {
        operation: Collective::AllReduce,
        root: 0,
        input: input.as_ref().map_or(Data::InPlace, whole),
        output: whole(&output),
        operator: Some(Reduction::new(operation, element)?.into()),
    };
    // SAFETY: both buffers were checked, and the program leaves them to this call.
    unsafe { collective::call(&communicator.world, &asked)? };
    Ok(Walk::Done)
}

/// Reduces with an operation of the program.
unsafe fn own_operation(
    communicator: &Arc<Communicator>,
    own: Own,
    input: Option<Items>,
    output: Items,
    handle: Handle,
) -> Result<Walk, Mistake> {
    let bytes = output.dense_bytes().ok_or_else(Mistake::unsupported)?;
    if let Some(input) = input
        && bytes > 0
    {
        // SAFETY: both ranges hold `bytes` bytes, says the program; `copy` allows overlap.
        unsafe { std::ptr::copy(input.start, output.start, bytes) };
    }
    communicator.inside()?;
    let mut tree = Tree {
        communicator: Arc::clone(communicator),
        function: own.function,
        datatype: handle,
        count: output.count,
        result: output.start,
        bytes,
        other: Vec::new(),
        distance: 1,
        call: None,
    };
    Ok(Walk::new(move || tree.step()))
}

/// One application of the program's operation: `inout = in op inout`. It lives on the heap.
struct Combination {
    function: Function,
    input: *mut c_void,
    inout: *mut c_void,
    count: u64,
    datatype: Handle,
}

impl Combination {
    unsafe extern "C-unwind" fn run(data: *mut c_void) {
        // SAFETY: `combine` passes such a combination; it is copied out.
        let Self { function, input, inout, count, mut datatype } =
            unsafe { data.cast::<Self>().read() };
        match function {
            Function::Short(function) => {
                let mut count = count as c_int;
                // SAFETY: the program gave the function for this; both buffers hold `count` items.
                unsafe { function(input, inout, &raw mut count, &raw mut datatype) };
            }
            Function::Large(function) => {
                let mut count = count as i64;
                // SAFETY: as above.
                unsafe { function(input, inout, &raw mut count, &raw mut datatype) };
            }
        }
    }
}

/// One rank's part in the reduction.
struct Tree {
    communicator: Arc<Communicator>,
    function: Function,
    datatype: Handle,
    count: u64,
    /// What has been collected so far; in the end the result.
    result: *mut u8,
    bytes: usize,
    /// What another rank has collected, aligned for every datatype.
    other: Vec<u128>,
    /// The distance to the partner of this round.
    distance: u32,
    /// What the program combines into `other` at the moment.
    call: Option<Box<Combination>>,
}

impl Tree {
    /// Goes on until the program must combine, or to the end.
    fn step(&mut self) -> Result<Option<Call>, Mistake> {
        if self.call.take().is_some() {
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
                return Ok(Some(self.combine()));
            }
        }
        self.spread()?;
        Ok(None)
    }

    /// `result = result op other`, by the program.
    fn combine(&mut self) -> Call {
        let call = self.call.insert(Box::new(Combination {
            function: self.function,
            input: self.result.cast(),
            inout: self.other.as_mut_ptr().cast(),
            count: self.count,
            datatype: self.datatype,
        }));
        Call { run: Combination::run, data: (&raw mut **call).cast() }
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
        let world = self.communicator.inside()?;
        // SAFETY: the buffer was checked; it stays during the call.
        unsafe { send(world, self.result, self.bytes, to as usize, INSIDE) }.map_err(Mistake::from)
    }

    fn receive_result(&self, from: u32) -> Result<(), Mistake> {
        // SAFETY: as above.
        unsafe { receive_exactly(self.communicator.inside()?, self.result, self.bytes, from) }
    }

    fn receive_other(&mut self, from: u32) -> Result<(), Mistake> {
        if self.other.is_empty() {
            let (bytes, count) = (self.bytes, self.bytes.div_ceil(size_of::<u128>()));
            self.other.try_reserve_exact(count).map_err(|_| no_memory(bytes))?;
            self.other.resize(count, 0);
        }
        let other = self.other.as_mut_ptr().cast();
        // SAFETY: `other` has `bytes` bytes and stays during the call.
        unsafe { receive_exactly(self.communicator.inside()?, other, self.bytes, from) }
    }
}

#[cold]
fn no_memory(bytes: usize) -> Mistake {
    Mistake::new(
        ERR_NO_MEM,
        format_args!(
            "there is no memory for {bytes} bytes of intermediate results; reduce fewer at once"
        ),
    )
}

/// Receives exactly so many bytes.
unsafe fn receive_exactly(
    world: &World,
    start: *mut u8,
    bytes: usize,
    from: u32,
) -> Result<(), Mistake> {
    // SAFETY: the caller leaves so many bytes to this call.
    let status = unsafe { receive(world, start, bytes, from as usize, INSIDE)? };
    if status.bytes() == bytes as u64 {
        return Ok(());
    }
    let theirs = status.bytes();
    Err(Mistake::new(
        ERR_TRUNCATE,
        format_args!(
            "rank {from} contributes {theirs} bytes and this rank {bytes}; \
             give the same count and datatype everywhere"
        ),
    ))
}
