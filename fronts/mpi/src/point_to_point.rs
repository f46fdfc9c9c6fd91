//! Sending and receiving between two processes, and waiting for it.

use std::ffi::{c_int, c_void};

use landeck_c_boundary::pointer;

use crate::abi::{Handle, REQUEST_NULL, REQUEST_OF_NOBODY, REQUEST_SENT, Status};
use crate::arguments::{
    Memory, Source, communicator, count_of, destination, source as source_of, tag as tag_of,
    wanted_tag,
};
use crate::entry::entry_points;
use crate::mistake::Mistake;
use crate::request;

entry_points! {
    /// Sends; returns when the buffer may be used again.
    fn MPI_Send / PMPI_Send(
        buf: *const c_void,
        count: c_int,
        datatype: Handle,
        dest: c_int,
        tag: c_int,
        comm: Handle,
    ) {
        let communicator = communicator(comm)?;
        let memory = Memory::new(buf, count, datatype)?;
        let tag = tag_of(tag)?;
        let Some(to) = destination(dest, &communicator)? else { return Ok(()) };
        // SAFETY: the caller keeps the buffer as it is until this returns.
        unsafe { communicator.send(to, tag, memory) }
    }

    /// Receives.
    fn MPI_Recv / PMPI_Recv(
        buf: *mut c_void,
        count: c_int,
        datatype: Handle,
        source: c_int,
        tag: c_int,
        comm: Handle,
        status: *mut Status,
    ) {
        let communicator = communicator(comm)?;
        let memory = Memory::new(buf, count, datatype)?;
        let tag = wanted_tag(tag)?;
        let received = match source_of(source, &communicator)? {
            Source::Nobody => Status::of_nobody(),
            // SAFETY: the caller leaves the buffer to us until this returns.
            from => unsafe { communicator.receive(from, tag, memory)? },
        };
        // SAFETY: the caller gives a writable status, or none.
        unsafe { tell(status, received) }
    }

    /// Starts to send.
    fn MPI_Isend / PMPI_Isend(
        buf: *const c_void,
        count: c_int,
        datatype: Handle,
        dest: c_int,
        tag: c_int,
        comm: Handle,
        request: *mut Handle,
    ) {
        let communicator = communicator(comm)?;
        let memory = Memory::new(buf, count, datatype)?;
        let tag = tag_of(tag)?;
        pointer::check("request", request, 1)?;
        let started = match destination(dest, &communicator)? {
            None => REQUEST_SENT,
            // SAFETY: the caller keeps the buffer as it is until the request is complete.
            Some(to) => unsafe { communicator.start_send(to, tag, memory)? },
        };
        // SAFETY: checked above; the caller says that it is writable.
        unsafe { request.write(started) };
        Ok(())
    }

    /// Starts to receive.
    fn MPI_Irecv / PMPI_Irecv(
        buf: *mut c_void,
        count: c_int,
        datatype: Handle,
        source: c_int,
        tag: c_int,
        comm: Handle,
        request: *mut Handle,
    ) {
        let communicator = communicator(comm)?;
        let memory = Memory::new(buf, count, datatype)?;
        let tag = wanted_tag(tag)?;
        pointer::check("request", request, 1)?;
        let started = match source_of(source, &communicator)? {
            Source::Nobody => REQUEST_OF_NOBODY,
            // SAFETY: the caller leaves the buffer to us until the request is complete.
            from => unsafe { communicator.start_receive(from, tag, memory)? },
        };
        // SAFETY: checked above; the caller says that it is writable.
        unsafe { request.write(started) };
        Ok(())
    }

    /// Waits until a request is complete.
    fn MPI_Wait / PMPI_Wait(request: *mut Handle, status: *mut Status) {
        // SAFETY: the caller gives the address of a request, or it is refused.
        let handle = unsafe { pointer::read("request", request)? };
        let result = request::wait(handle)?;
        // SAFETY: read above; the caller says that it is writable too, and a status, or none.
        unsafe {
            request.write(REQUEST_NULL);
            tell(status, result)
        }
    }

    /// Waits until all of some requests are complete.
    fn MPI_Waitall / PMPI_Waitall(
        count: c_int,
        array_of_requests: *mut Handle,
        array_of_statuses: *mut Status,
    ) {
        let count = count_of(count)?;
        // SAFETY: the caller gives an array of so many requests.
        let requests =
            unsafe { pointer::slice_mut("array_of_requests", array_of_requests, count)? };
        if !array_of_statuses.is_null() {
            pointer::check("array_of_statuses", array_of_statuses, count)?;
        }
        for (index, request) in requests.iter_mut().enumerate() {
            let result = request::wait(*request)?;
            *request = REQUEST_NULL;
            if !array_of_statuses.is_null() {
                // SAFETY: checked above; the caller says that all are writable.
                unsafe { array_of_statuses.add(index).write(result) };
            }
        }
        Ok(())
    }
}

/// Fills the caller's status, unless it is MPI_STATUS_IGNORE.
unsafe fn tell(status: *mut Status, received: Status) -> Result<(), Mistake> {
    if status.is_null() {
        return Ok(());
    }
    // SAFETY: the caller says that it is writable.
    unsafe { pointer::write("status", status, received)? };
    Ok(())
}
