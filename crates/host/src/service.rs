//! The manager of services that has started this process, such as systemd: it learns when the service is ready.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Tells the manager of services that this service is ready: `READY=1` to the socket that `NOTIFY_SOCKET` names (the manual page
/// sd_notify(3)). Without that variable there is nobody to tell, and a manager that has gone needs to know nothing. It may be
/// told again.
pub fn tell_ready() {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        let _ = tell(&socket, b"READY=1");
    }
}

/// Sends a text to a socket for datagrams: a file, or a name without one behind `@`.
fn tell(socket: &OsStr, text: &[u8]) -> io::Result<usize> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(text, &address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_to_a_file_and_to_a_name() {
        let own = std::process::id();
        let file = std::env::temp_dir().join(format!("landeck-service-{own}"));
        let name = format!("landeck-service-{own}");
        let sockets = [
            (UnixDatagram::bind(&file).unwrap(), file.clone().into_os_string()),
            (
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
                format!("@{name}").into(),
            ),
        ];
        for (socket, place) in sockets {
            tell(&place, b"READY=1").unwrap();
            let mut bytes = [0; 16];
            let count = socket.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..count], b"READY=1");
        }
        std::fs::remove_file(file).unwrap();
        assert!(tell(OsStr::new("/nowhere/at/all"), b"READY=1").is_err());
    }
}
