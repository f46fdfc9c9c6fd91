//! The system calls of lanes.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use landeck_channel::silence::ConnectionSight;
use landeck_memory::{Buffer, Bytes};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, sockopt};

/// The most bytes that the system keeps of a lane before they are on their way. A message is refused beyond, so an
/// urgent one never has more than this in front of it in this process.
const NOT_SENT_BYTES_MAX: libc::c_int = 64 * 1024;
/// The longest time between two attempts of the system to reach the other host, in milliseconds. Where it cannot be set
/// (before Linux 6.15) it grows to two minutes.
const RETRY_INTERVAL_MAX_MS: libc::c_int = 5_000;
const TCP_RTO_MAX_MS: libc::c_int = 44;
/// Firewalls forget a connection that is idle for some minutes, so the system asks the other one this often.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// The answers that may be missing before the connection has ended.
const KEEPALIVE_ANSWERS: u32 = 3;
/// Hosts whose packets take no longer there and back, in microseconds, are near each other.
const NEAR_US: u32 = 1_000;

/// The result of a system call on a socket.
pub(super) enum Moved {
    /// So many bytes were moved.
    Bytes(usize),
    /// None can be moved now.
    Later,
    /// The other side sends no more.
    Closed,
}

/// Prepares a connected socket. All calls on it say for themselves that they do not wait.
pub(super) fn set_up(socket: &OwnedFd) -> Result<(), Errno> {
    sockopt::set_tcp_nodelay(socket, true)?;
    // A system that does not know one of these refuses it, and the lane works without.
    set_number(socket, libc::TCP_NOTSENT_LOWAT, NOT_SENT_BYTES_MAX);
    set_number(socket, TCP_RTO_MAX_MS, RETRY_INTERVAL_MAX_MS);
    leave_pacing(socket);
    ask_when_idle(socket, KEEPALIVE);
    Ok(())
}

/// Has the system ask the other one for a sign of life when nothing has come for this long.
pub(super) fn ask_when_idle(socket: &OwnedFd, time: Duration) {
    let time = time.max(Duration::from_secs(1)); // the system counts seconds
    // A system that lacks one of them notices later.
    let _ = sockopt::set_socket_keepalive(socket, true);
    let _ = sockopt::set_tcp_keepidle(socket, time);
    let _ = sockopt::set_tcp_keepintvl(socket, time);
    let _ = sockopt::set_tcp_keepcnt(socket, KEEPALIVE_ANSWERS);
}

/// Has a connection of near hosts send as soon as it may. Where BBR is the system's congestion control, it spreads packets
/// over time, by the rate that it has seen. A lane carries bursts with pauses between them, from which it learns too low a
/// rate: 1 MiB then took three times as long. Over long ways the system's choice stays.
fn leave_pacing(socket: &OwnedFd) {
    let is_paced = sockopt::tcp_congestion(socket).is_ok_and(|name| name.starts_with("bbr"));
    if is_paced && shortest_round_trip_us(socket).is_some_and(|us| us < NEAR_US) {
        // Every system has this one and allows it; otherwise the lane works with the other.
        let _ = sockopt::set_tcp_congestion(socket, "reno");
    }
}

/// The shortest time there and back that the system has measured, in microseconds.
fn shortest_round_trip_us(socket: &OwnedFd) -> Option<u32> {
    let (info, bytes) = facts(socket)?;
    let end = std::mem::offset_of!(libc::tcp_info, tcpi_min_rtt) + size_of::<u32>();
    // Not yet measured is all ones.
    (bytes >= end).then_some(info.tcpi_min_rtt)
}

/// The packets that came out of order so far (since Linux 5.4).
pub(super) fn out_of_order(socket: &OwnedFd) -> Option<u32> {
    let (info, bytes) = facts(socket)?;
    let end = std::mem::offset_of!(libc::tcp_info, tcpi_rcv_ooopack) + size_of::<u32>();
    (bytes >= end).then_some(info.tcpi_rcv_ooopack)
}

/// The facts of the bytes that wait on a connection. `None` if it is none of TCP.
pub(super) fn sight(socket: &OwnedFd) -> Option<ConnectionSight> {
    let waiting_bytes = unacknowledged(socket);
    if waiting_bytes == 0 {
        return Some(ConnectionSight::default());
    }
    let (info, bytes) = facts(socket)?;
    let has = |end: usize| bytes >= end + size_of::<u32>();
    let in_flight = info.tcpi_unacked > 0;
    let is_window_open = match has(std::mem::offset_of!(libc::tcp_info, tcpi_snd_wnd)) {
        true if in_flight => info.tcpi_snd_wnd > 0,
        // Less than a segment waits until there is room for one.
        true => info.tcpi_snd_wnd >= info.tcpi_snd_mss,
        // Before Linux 5.4 the window is not told.
        false => in_flight,
    };
    let is_newer = info.tcpi_last_data_sent < info.tcpi_last_ack_recv;
    Some(ConnectionSight {
        waiting_bytes,
        acknowledged_bytes: info.tcpi_bytes_acked,
        is_window_open,
        is_asked: info.tcpi_probes > 1 || in_flight && is_newer,
        answer_age: Duration::from_millis(info.tcpi_last_ack_recv.into()),
    })
}

/// The facts of a connection, and the bytes of them that this system knows.
fn facts(socket: &OwnedFd) -> Option<(libc::tcp_info, usize)> {
    // SAFETY: zeroes are a valid value of this structure of integers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut bytes = size_of_val(&info) as libc::socklen_t;
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
    (result == 0).then_some((info, bytes as usize))
}

#[inline]
pub(super) fn receive(socket: &OwnedFd, room: &mut [u8]) -> Result<Moved, Errno> {
    match net::recv(socket, room, RecvFlags::DONTWAIT) {
        Ok((0, _)) => Ok(Moved::Closed),
        Ok((bytes, _)) => Ok(Moved::Bytes(bytes)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Later),
        Err(error) => Err(error),
    }
}

/// Receives into a place, and what follows it into `room`.
#[inline]
pub(super) fn receive_to(socket: &OwnedFd, place: Buffer, room: &mut [u8]) -> Result<Moved, Errno> {
    let mut parts = [
        libc::iovec { iov_base: place.bytes().start().as_ptr().cast(), iov_len: place.len() },
        libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() },
    ];
    // SAFETY: a message header of zeroes names no address, no parts and no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    // SAFETY: the message and its parts live until the call returns, and the system writes nothing later. `room` is
    // exclusively ours. The sink has given the place since it was last called, so the receive that it belongs to has not
    // ended, and by the promise of `Buffer::new` its range stays mapped and nobody else writes there.
    let bytes = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    match usize::try_from(bytes) {
        Ok(0) => Ok(Moved::Closed),
        Ok(bytes) => Ok(Moved::Bytes(bytes)),
        Err(_) => match last_error() {
            Errno::AGAIN | Errno::INTR => Ok(Moved::Later),
            error => Err(error),
        },
    }
}

#[inline]
pub(super) fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<Moved, Errno> {
    sent(net::send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))
}

/// Sends bytes that wait, a head, and data that may be in shared memory, without joining them by a copy.
#[inline]
pub(super) fn send_parts(
    socket: &OwnedFd,
    waiting: &[u8],
    head: &[u8],
    data: Bytes<'_>,
) -> Result<Moved, Errno> {
    let part = |start: *const u8, length: usize| libc::iovec {
        iov_base: start.cast_mut().cast(),
        iov_len: length,
    };
    let mut parts = [
        part(waiting.as_ptr(), waiting.len()),
        part(head.as_ptr(), head.len()),
        part(data.start().as_ptr(), data.len()),
    ];
    let first = usize::from(waiting.is_empty());
    // SAFETY: a message header of zeroes names no address, no parts and no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts[first..].as_mut_ptr();
    message.msg_iovlen = (parts.len() - first - usize::from(data.is_empty())) as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the message and its parts live until the call returns; the system only reads them.
    let bytes = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    sent(usize::try_from(bytes).map_err(|_| last_error()))
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

/// Has the connection end by a reset when it is closed, and drop what waits.
pub(super) fn reset_at_close(socket: &OwnedFd) {
    // Otherwise the system goes on trying for some minutes, which disturbs nobody.
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

/// Ends sending. Bytes sent before are still delivered, and arriving bytes are still read.
pub(super) fn end_sending(socket: &OwnedFd) {
    // If there is no connection any more, reading reports it.
    let _ = net::shutdown(socket, net::Shutdown::Write);
}

/// Whether bytes, or the end of sending, are under way that the other host is not known to have.
pub(super) fn has_unacknowledged(socket: &OwnedFd) -> bool {
    unacknowledged(socket) > 0
}

/// The bytes, with the end of sending as one more, that are under way and that the other host is not known to have.
pub(super) fn unacknowledged(socket: &OwnedFd) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one integer to the given place.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { bytes.max(0) as u64 } else { 0 }
}

pub(super) fn set_number(socket: &OwnedFd, option: libc::c_int, number: libc::c_int) {
    // SAFETY: the system reads one integer, which lives until the call returns.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            (&raw const number).cast(),
            size_of_val(&number) as libc::socklen_t,
        );
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn a_receiver_that_does_not_read_has_a_closed_window_and_answers() {
        let _watchdog = landeck_testing::Watchdog::start(Duration::from_secs(60));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let socket = OwnedFd::from(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let (mut other, _) = listener.accept().unwrap();
        assert_eq!(sight(&socket), Some(ConnectionSight::default()), "nothing waits");
        let data = vec![7; 1 << 20];
        loop {
            while !matches!(send(&socket, &data).unwrap(), Moved::Later) {}
            let sight = sight(&socket).unwrap();
            assert!(sight.waiting_bytes > 0 && sight.acknowledged_bytes > 0, "{sight:?}");
            if !sight.is_window_open {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::spawn(move || std::io::copy(&mut other, &mut std::io::sink()));
        while sight(&socket).unwrap().waiting_bytes > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn only_the_pacing_of_near_hosts_is_left() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for algorithm in ["bbr", "reno"] {
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let socket = OwnedFd::from(stream);
            if sockopt::set_tcp_congestion(&socket, algorithm).is_err() {
                continue; // this system does not have it
            }
            assert!(shortest_round_trip_us(&socket).is_some_and(|us| us < 60_000_000));
            leave_pacing(&socket);
            let is_near = shortest_round_trip_us(&socket).is_some_and(|us| us < NEAR_US);
            let expected = if is_near { "reno" } else { algorithm };
            assert_eq!(sockopt::tcp_congestion(&socket).unwrap(), expected);
        }
    }
}
