//! Beginning and end, the communicators' sizes, the clock, and the program's own operations.

use std::ffi::{c_char, c_int};
use std::io::Write;

use landeck_c_boundary::pointer;

use crate::abi::{
    Handle, OP_NULL, THREAD_FUNNELED, THREAD_MULTIPLE, THREAD_SERIALIZED, THREAD_SINGLE,
    UserFunction,
};
use crate::arguments::communicator;
use crate::entry::entry_points;
use crate::job;
use crate::mistake::Mistake;
use crate::operation;

entry_points! {
    /// Joins the job, for one thread.
    fn MPI_Init / PMPI_Init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) {
        job::start(THREAD_SINGLE)
    }

    /// Joins the job, for as many threads as are required.
    fn MPI_Init_thread / PMPI_Init_thread(
        _argc: *mut c_int,
        _argv: *mut *mut *mut c_char,
        required: c_int,
        provided: *mut c_int,
    ) {
        let levels = [THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED, THREAD_MULTIPLE];
        if !levels.contains(&required) {
            return Err(Mistake::ThreadLevel { value: required });
        }
        pointer::check("provided", provided, 1)?;
        job::start(required)?;
        // SAFETY: checked above; the caller says that it is writable.
        unsafe { provided.write(required) };
        Ok(())
    }

    /// Leaves the job.
    fn MPI_Finalize / PMPI_Finalize() {
        job::finish()
    }

    /// Ends the whole job.
    fn MPI_Abort / PMPI_Abort(comm: Handle, errorcode: c_int) {
        communicator(comm)?;
        let text = format!("{} called MPI_Abort with code {errorcode}", job::own_name());
        // Standard error may be closed; the job ends all the same.
        let _ = writeln!(std::io::stderr(), "{text}.");
        job::abort(errorcode, &text)
    }

    /// This process's rank.
    fn MPI_Comm_rank / PMPI_Comm_rank(comm: Handle, rank: *mut c_int) {
        let communicator = communicator(comm)?;
        // SAFETY: the caller gives a writable integer, or it is refused.
        unsafe { pointer::write("rank", rank, communicator.rank as c_int)? };
        Ok(())
    }

    /// How many processes there are.
    fn MPI_Comm_size / PMPI_Comm_size(comm: Handle, size: *mut c_int) {
        let communicator = communicator(comm)?;
        // SAFETY: the caller gives a writable integer, or it is refused.
        unsafe { pointer::write("size", size, communicator.size as c_int)? };
        Ok(())
    }

    /// Makes an operation of a function of the program.
    fn MPI_Op_create / PMPI_Op_create(
        user_fn: Option<UserFunction>,
        _commute: c_int,
        op: *mut Handle,
    ) {
        let function = user_fn.ok_or(Mistake::NoFunction)?;
        job::current()?;
        pointer::check("op", op, 1)?;
        // SAFETY: checked above; the caller says that it is writable.
        unsafe { op.write(operation::create(function)) };
        Ok(())
    }

    /// Frees an operation of the program.
    fn MPI_Op_free / PMPI_Op_free(op: *mut Handle) {
        job::current()?;
        // SAFETY: the caller gives the address of an operation, or it is refused.
        operation::free(unsafe { pointer::read("op", op)? })?;
        // SAFETY: read above; the caller says that it is writable too.
        unsafe { op.write(OP_NULL) };
        Ok(())
    }
}

/// Seconds since some moment in the past.
#[unsafe(no_mangle)]
extern "C" fn MPI_Wtime() -> f64 {
    seconds()
}

/// Seconds since some moment in the past.
#[unsafe(no_mangle)]
extern "C" fn PMPI_Wtime() -> f64 {
    seconds()
}

/// Of the clock that all processes of a host share.
fn seconds() -> f64 {
    landeck::memory::system::now_ns() as f64 * 1e-9
}
