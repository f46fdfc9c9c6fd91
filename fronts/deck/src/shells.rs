//! The functions as C sees them. Made by `cargo xtask deck`.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::entry::{shell, shell_of_all, value};
use crate::functions::group::Options;
use crate::functions::mailbox::Event;
use crate::functions::*;
use crate::handle::Handle;
use crate::objects::thread::Body;

shell! {
    fn deck_init(argc: *mut c_int, argv: *mut *mut *mut c_char) => environment::init(argc, argv)
}

shell! {
    fn deck_init_flags(argc: *mut c_int, argv: *mut *mut *mut c_char, flags: c_uint) => environment::init_flags(argc, argv, flags)
}

shell! {
    fn deck_done() => environment::done()
}

shell! {
    fn deck_node(node: *mut c_int) => environment::node(node)
}

shell! {
    fn deck_node_num(nodes: *mut c_int) => environment::node_num(nodes)
}

shell_of_all! {
    fn deck_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int) => environment::version(major, minor, patch)
}

shell_of_all! {
    fn deck_abort(code: c_int, text: *const c_char) => environment::abort(code, text)
}

value! {
    fn deck_strerror(error: c_int) -> *const c_char => environment::strerror(error)
}

value! {
    fn deck_error_name(error: c_int) -> *const c_char => environment::error_name(error)
}

value! {
    fn deck_error_text() -> *const c_char => environment::error_text()
}

value! {
    fn deck_check(error: c_int, file: *const c_char, line: c_int) -> () => environment::check(error, file, line)
}

shell! {
    fn deck_thread_create(t: *mut Handle, body: Body, argument: *mut c_void) => thread::create(t, body, argument)
}

shell! {
    fn deck_thread_create_with(t: *mut Handle, body: Body, argument: *mut c_void, name: *const c_char, stack_bytes: usize) => thread::create_with(t, body, argument, name, stack_bytes)
}

shell! {
    fn deck_thread_join(t: *mut Handle, result: *mut *mut c_void) => thread::join(t, result)
}

shell! {
    fn deck_thread_self(t: *mut Handle) => thread::self_(t)
}

shell! {
    fn deck_sem_create(s: *mut Handle, name: *const c_char, units: c_int) => semaphore::create(s, name, units)
}

shell! {
    fn deck_sem_fetch(s: *mut Handle, name: *const c_char) => semaphore::fetch(s, name)
}

shell! {
    fn deck_sem_p(s: *mut Handle) => semaphore::p(s)
}

shell! {
    fn deck_sem_p_timed(s: *mut Handle, timeout_ms: c_int) => semaphore::p_timed(s, timeout_ms)
}

shell! {
    fn deck_sem_p_try(s: *mut Handle) => semaphore::p_try(s)
}

shell! {
    fn deck_sem_v(s: *mut Handle) => semaphore::v(s)
}

shell! {
    fn deck_sem_spend(s: *mut Handle) => semaphore::spend(s)
}

shell! {
    fn deck_sem_value(s: *const Handle, units: *mut c_int) => semaphore::value(s, units)
}

shell! {
    fn deck_sem_recover(s: *mut Handle, units: *mut c_int) => semaphore::recover(s, units)
}

shell! {
    fn deck_sem_destroy(s: *mut Handle) => semaphore::destroy(s)
}

shell! {
    fn deck_msg_create(m: *mut Handle, size: usize) => message::create(m, size)
}

shell! {
    fn deck_msg_destroy(m: *mut Handle) => message::destroy(m)
}

shell! {
    fn deck_msg_clear(m: *mut Handle) => message::clear(m)
}

shell! {
    fn deck_msg_size(m: *const Handle, bytes: *mut usize) => message::size(m, bytes)
}

shell! {
    fn deck_msg_count(m: *const Handle, values: *mut usize) => message::count_(m, values)
}

shell! {
    fn deck_msg_pack(m: *mut Handle, kind: c_int, data: *const c_void, count: usize) => message::pack(m, kind, data, count)
}

shell! {
    fn deck_msg_unpack(m: *mut Handle, kind: c_int, data: *mut c_void, count: usize) => message::unpack(m, kind, data, count)
}

shell! {
    fn deck_msg_pack_string(m: *mut Handle, text: *const c_char) => message::pack_string(m, text)
}

shell! {
    fn deck_msg_unpack_string(m: *mut Handle, text: *mut c_char, room: usize, length: *mut usize) => message::unpack_string(m, text, room, length)
}

shell! {
    fn deck_msg_pack_mbox(m: *mut Handle, mb: *const Handle) => message::pack_mbox(m, mb)
}

shell! {
    fn deck_msg_unpack_mbox(m: *mut Handle, mb: *mut Handle) => message::unpack_mbox(m, mb)
}

shell! {
    fn deck_msg_rewind(m: *mut Handle) => message::rewind(m)
}

shell! {
    fn deck_msg_next(m: *const Handle, kind: *mut c_int, count: *mut usize) => message::next(m, kind, count)
}

shell! {
    fn deck_msg_copy(copy: *mut Handle, m: *const Handle) => message::copy(copy, m)
}

shell! {
    fn deck_msg_part(part: *mut Handle, m: *const Handle, first: usize, count: usize) => message::part(part, m, first, count)
}

shell! {
    fn deck_msg_split(parts: *mut Handle, m: *const Handle, count: c_int) => message::split(parts, m, count)
}

shell! {
    fn deck_msg_join(m: *mut Handle, other: *const Handle) => message::join(m, other)
}

shell! {
    fn deck_mbox_create(mb: *mut Handle, name: *const c_char) => mailbox::create(mb, name)
}

shell! {
    fn deck_mbox_fetch(mb: *mut Handle, name: *const c_char) => mailbox::fetch(mb, name)
}

shell! {
    fn deck_mbox_store(mb: *mut Handle, place: *const c_char) => mailbox::store(mb, place)
}

shell! {
    fn deck_mbox_post(mb: *mut Handle, m: *const Handle) => mailbox::post(mb, m)
}

shell! {
    fn deck_mbox_post_timed(mb: *mut Handle, m: *const Handle, timeout_ms: c_int) => mailbox::post_timed(mb, m, timeout_ms)
}

shell! {
    fn deck_mbox_post_try(mb: *mut Handle, m: *const Handle) => mailbox::post_try(mb, m)
}

shell! {
    fn deck_mbox_retrv(mb: *mut Handle, m: *mut Handle) => mailbox::retrv(mb, m)
}

shell! {
    fn deck_mbox_retrv_timed(mb: *mut Handle, m: *mut Handle, timeout_ms: c_int) => mailbox::retrv_timed(mb, m, timeout_ms)
}

shell! {
    fn deck_mbox_retrv_try(mb: *mut Handle, m: *mut Handle) => mailbox::retrv_try(mb, m)
}

shell! {
    fn deck_mbox_event(mb: *mut Handle, e: *mut Event) => mailbox::event(mb, e)
}

shell! {
    fn deck_mbox_event_timed(mb: *mut Handle, e: *mut Event, timeout_ms: c_int) => mailbox::event_timed(mb, e, timeout_ms)
}

shell! {
    fn deck_mbox_event_try(mb: *mut Handle, e: *mut Event) => mailbox::event_try(mb, e)
}

shell! {
    fn deck_mbox_descriptor(mb: *mut Handle, descriptor: *mut c_int) => mailbox::descriptor(mb, descriptor)
}

shell! {
    fn deck_mbox_destroy(mb: *mut Handle) => mailbox::destroy(mb)
}

shell! {
    fn deck_segment_create(g: *mut Handle, name: *const c_char, bytes: usize) => segment::create(g, name, bytes)
}

shell! {
    fn deck_segment_fetch(g: *mut Handle, name: *const c_char) => segment::fetch(g, name)
}

shell! {
    fn deck_segment_address(g: *const Handle, start: *mut *mut c_void, bytes: *mut usize) => segment::address(g, start, bytes)
}

shell! {
    fn deck_segment_destroy(g: *mut Handle) => segment::destroy(g)
}

shell! {
    fn deck_group_create(g: *mut Handle, g_name: *const c_char, min: c_int) => group::create(g, g_name, min)
}

shell! {
    fn deck_group_create_with(g: *mut Handle, g_name: *const c_char, min: c_int, options: *const Options) => group::create_with(g, g_name, min, options)
}

shell! {
    fn deck_group_open(g: *mut Handle, name: *const c_char) => group::open(g, name)
}

shell! {
    fn deck_group_join(g: *mut Handle, mb: *mut Handle, name: *const c_char) => group::join(g, mb, name)
}

shell! {
    fn deck_group_leave(g: *mut Handle) => group::leave(g)
}

shell! {
    fn deck_group_bcast(g: *mut Handle, msg: *const Handle) => group::bcast(g, msg)
}

shell! {
    fn deck_group_bcast_timed(g: *mut Handle, msg: *const Handle, timeout_ms: c_int) => group::bcast_timed(g, msg, timeout_ms)
}

shell! {
    fn deck_group_bcast_try(g: *mut Handle, msg: *const Handle) => group::bcast_try(g, msg)
}

shell! {
    fn deck_group_bcast_others(g: *mut Handle, msg: *const Handle) => group::bcast_others(g, msg)
}

shell! {
    fn deck_group_bcast_wait(g: *mut Handle) => group::bcast_wait(g)
}

shell! {
    fn deck_group_bcast_wait_timed(g: *mut Handle, timeout_ms: c_int) => group::bcast_wait_timed(g, timeout_ms)
}

shell! {
    fn deck_group_sync(g: *mut Handle) => group::sync(g)
}

shell! {
    fn deck_group_sync_timed(g: *mut Handle, timeout_ms: c_int) => group::sync_timed(g, timeout_ms)
}

shell! {
    fn deck_group_id(g: *const Handle, id: *mut c_int) => group::id(g, id)
}

shell! {
    fn deck_group_number(g: *const Handle, number: *mut u64) => group::number(g, number)
}

shell! {
    fn deck_group_view(g: *const Handle, ids: *mut c_int, room: c_int, members: *mut c_int) => group::view(g, ids, room, members)
}

shell! {
    fn deck_group_destroy(g: *mut Handle) => group::destroy(g)
}

shell! {
    fn deck_group_destroy_timed(g: *mut Handle, timeout_ms: c_int) => group::destroy_timed(g, timeout_ms)
}

shell! {
    fn deck_group_close(g: *mut Handle) => group::close(g)
}

shell! {
    fn deck_group_world(g: *mut Handle) => group::world(g)
}

shell! {
    fn deck_group_rank(g: *mut Handle, rank: *mut c_int) => group::rank(g, rank)
}

shell! {
    fn deck_group_size(g: *mut Handle, members: *mut c_int) => group::size(g, members)
}

shell! {
    fn deck_view_members(v: *const Handle, ids: *mut c_int, room: c_int, members: *mut c_int) => view::members(v, ids, room, members)
}

shell! {
    fn deck_view_joined(v: *const Handle, ids: *mut c_int, room: c_int, joined: *mut c_int) => view::joined(v, ids, room, joined)
}

shell! {
    fn deck_view_departed(v: *const Handle, ids: *mut c_int, causes: *mut c_int, room: c_int, departed: *mut c_int) => view::departed(v, ids, causes, room, departed)
}

shell! {
    fn deck_view_destroy(v: *mut Handle) => view::destroy(v)
}

shell! {
    fn deck_collective_barrier(g: *mut Handle) => collective::barrier(g)
}

shell! {
    fn deck_collective_bcast(g: *mut Handle, m: *mut Handle, root: c_int) => collective::bcast(g, m, root)
}

shell! {
    fn deck_collective_scatter(g: *mut Handle, all: *const Handle, own: *mut Handle, root: c_int) => collective::scatter(g, all, own, root)
}

shell! {
    fn deck_collective_gather(g: *mut Handle, own: *const Handle, all: *mut Handle, root: c_int) => collective::gather(g, own, all, root)
}

shell! {
    fn deck_collective_gather_any(g: *mut Handle, own: *const Handle, all: *mut Handle, root: c_int) => collective::gather_any(g, own, all, root)
}

shell! {
    fn deck_collective_allgather(g: *mut Handle, own: *const Handle, all: *mut Handle) => collective::allgather(g, own, all)
}

shell! {
    fn deck_collective_allgather_any(g: *mut Handle, own: *const Handle, all: *mut Handle) => collective::allgather_any(g, own, all)
}

shell! {
    fn deck_collective_reduce(g: *mut Handle, own: *const Handle, result: *mut Handle, op: c_int, root: c_int) => collective::reduce(g, own, result, op, root)
}

shell! {
    fn deck_collective_allreduce(g: *mut Handle, own: *const Handle, result: *mut Handle, op: c_int) => collective::allreduce(g, own, result, op)
}

shell! {
    fn deck_collective_use(g: *mut Handle, architecture: *const c_char) => collective::use_(g, architecture)
}

shell! {
    fn deck_collective_pace(g: *mut Handle, pace: *const c_char) => collective::pace(g, pace)
}
