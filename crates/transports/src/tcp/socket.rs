//! Non-blocking TCP sockets with the settings that connections of processes need.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_memory::Bytes;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

/// The number of connections that the system keeps until they are accepted.
const BACKLOG: i32 = 128;
/// The longest time between two attempts of the system to reach the other host, in milliseconds. Where it cannot be set
/// (before Linux 6.15) it grows to two minutes.
const RETRY_INTERVAL_MAX_MS: libc::c_int = 5_000;
const TCP_RTO_MAX_MS: libc::c_int = 44;
/// The number of successive unanswered attempts that indicate more than bad luck.
const UNANSWERED_MIN: u8 = 3;
/// The time without a byte after which the system probes the other host.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
/// The interval between such probes; after `KEEPALIVE_COUNT` of them the system gives up.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_COUNT: u32 = 5;

/// The result of a system call on a socket.
pub(super) enum Moved {
    /// So many bytes were moved.
    Bytes(usize),
    /// None can be moved now.
    Later,
    /// The other side sends no more.
    Closed,
}

/// Opens a listening socket; returns it with its address.
pub(super) fn listen(address: SocketAddr) -> Result<(OwnedFd, SocketAddr), Errno> {
    let socket = open(address)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    let bound = net::getsockname(&socket)?.try_into()?;
    Ok((socket, bound))
}

/// Opens a socket that begins to connect.
pub(super) fn connect(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let socket = open(address)?;
    set_up(&socket)?;
    match net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// Accepts the next connection of a listening socket. `None` if there is none, or if it ended before it was accepted.
pub(super) fn accept(listener: BorrowedFd<'_>) -> Result<Option<OwnedFd>, Errno> {
    match net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        Ok(socket) => Ok(set_up(&socket).ok().map(|()| socket)),
        Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn receive(socket: &OwnedFd, room: &mut [u8]) -> Result<Moved, Errno> {
    match net::recv(socket, room, RecvFlags::DONTWAIT) {
        Ok((0, _)) => Ok(Moved::Closed),
        Ok((bytes, _)) => Ok(Moved::Bytes(bytes)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Later),
        Err(error) => Err(error),
    }
}

pub(super) fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<Moved, Errno> {
    sent(net::send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))
}

/// Sends a head and data that may be in shared memory, without joining them by a copy.
pub(super) fn send_both(socket: &OwnedFd, head: &[u8], data: Bytes<'_>) -> Result<Moved, Errno> {
    let mut parts = [
        libc::iovec { iov_base: head.as_ptr().cast_mut().cast(), iov_len: head.len() },
        libc::iovec { iov_base: data.start().as_ptr().cast(), iov_len: data.len() },
    ];
    // SAFETY: a message header of zeroes names no address, no parts and no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = if data.is_empty() { 1 } else { 2 };
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the message and its parts live until the call returns; the system only reads them.
    let bytes = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    match usize::try_from(bytes) {
        Ok(bytes) => Ok(Moved::Bytes(bytes)),
        Err(_) => sent(Err(last_error())),
    }
}

/// Ends sending, and reads what has arrived: a socket that is closed with bytes unread would revoke its sent bytes.
pub(super) fn close_gently(socket: &OwnedFd) {
    const ROUNDS_MAX: u32 = 64;
    end_sending(socket);
    let mut unread = [0; 16 * 1024];
    for _ in 0..ROUNDS_MAX {
        if !matches!(receive(socket, &mut unread), Ok(Moved::Bytes(_))) {
            return;
        }
    }
}

/// Ends sending. Bytes sent before are still delivered, and arriving bytes are still read.
pub(super) fn end_sending(socket: &OwnedFd) {
    // If there is no connection any more, reading reports it.
    let _ = net::shutdown(socket, net::Shutdown::Write);
}

/// Whether bytes, or the end of sending, are under way that the other host is not known to have.
pub(super) fn has_unacknowledged(socket: &OwnedFd) -> bool {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one integer to the given place.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    result == 0 && bytes > 0
}

/// Whether the other host has left data or window probes unanswered for so long. The host answers, not the process: a
/// stopped process without room is not silent. The system's own limit for unacknowledged bytes (`TCP_USER_TIMEOUT`) is
/// not used, because it takes such a process for gone.
pub(super) fn is_silent(socket: &OwnedFd, longest: Duration) -> bool {
    information(socket).is_some_and(|info| {
        let unanswered = info.tcpi_retransmits.max(info.tcpi_probes);
        let silence_ms = info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv);
        unanswered >= UNANSWERED_MIN && Duration::from_millis(silence_ms.into()) >= longest
    })
}

/// Ends both directions. Data that have come are still read.
pub(super) fn cut(socket: &OwnedFd) {
    let _ = net::shutdown(socket, net::Shutdown::Both);
}

fn information(socket: &OwnedFd) -> Option<libc::tcp_info> {
    // SAFETY: zeroes are a valid value of this structure of integers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut bytes = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the system writes at most `bytes` bytes, which is the size of the structure.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut bytes,
        )
    };
    (result == 0).then_some(info)
}

/// Limits the time between attempts, if the system supports that.
fn retry_often(socket: BorrowedFd<'_>) {
    let longest = RETRY_INTERVAL_MAX_MS;
    // SAFETY: the system reads one integer, which lives until the call returns. A system that does not know the setting
    // refuses it.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_RTO_MAX_MS,
            (&raw const longest).cast(),
            size_of_val(&longest) as libc::socklen_t,
        );
    }
}

fn open(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    net::socket_with(family, SocketType::STREAM, flags, None)
}

fn set_up(socket: &impl AsFd) -> Result<(), Errno> {
    sockopt::set_tcp_nodelay(socket, true)?;
    retry_often(socket.as_fd());
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_COUNT)
}

fn sent(result: Result<usize, Errno>) -> Result<Moved, Errno> {
    match result {
        Ok(bytes) => Ok(Moved::Bytes(bytes)),
        Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(Moved::Later),
        Err(error) => Err(error),
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
