//! The return ticket of a host: with it its daemon comes back to the machine, once the host was lost.
//!
//! It lies on the local disk, in `/var/tmp/landeck-UID`, which only its user may enter. Hosts that share the folder have
//! files of their own.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use ipnet::IpNet;
use landeck_host::private_directory;
use landeck_launch::hosts_options::PortRange;
use landeck_launch::machine::MachineName;
use landeck_wire::{ControlMessage, HostNumber};
use serde::{Deserialize, Serialize};

use crate::facts::RELEASE;
use crate::join::FounderWay;

/// The mode of the file.
const SECRET: u32 = 0o600;

/// Everything that a daemon needs to come back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReturnTicket {
    /// The release that has written it. It comes first, so that each release can read it.
    pub(crate) release: String,
    /// The number of the host in the machine.
    pub(crate) host: HostNumber,
    /// The name of the host there.
    pub(crate) name: String,
    /// The hash of the founder's key.
    pub(crate) founder: [u8; 32],
    /// The addresses that lead to the founder's daemon, best first.
    pub(crate) ways: Vec<FounderWay>,
    /// The secret that the founder knows the host by.
    pub(crate) secret: [u8; 16],
    /// The ports that the daemon may use.
    pub(crate) ports: Option<PortRange>,
    /// The networks that it prefers.
    pub(crate) networks: Vec<IpNet>,
}

impl ControlMessage for ReturnTicket {
    const NAME: &'static str = "a return ticket";
    const BYTES_MAX: usize = 64 << 10;
}

/// The reason why a ticket is not read.
#[derive(Debug, thiserror::Error)]
pub enum TicketError {
    /// There is none, or it cannot be read.
    #[error(
        "the return ticket of {machine} on this host is not read: {source}; landeck vm add, on another host of {machine}, adds this one"
    )]
    System {
        /// The machine.
        machine: MachineName,
        /// The kernel's error.
        source: io::Error,
    },
    /// It is not understood.
    #[error(
        "the return ticket of {machine} on this host is that of another release, and this one is {RELEASE}: install one release on all hosts"
    )]
    Form {
        /// The machine.
        machine: MachineName,
    },
}

impl ReturnTicket {
    /// Reads the ticket of this host in a machine.
    ///
    /// # Errors
    /// [`TicketError`].
    pub(crate) fn read(machine: &MachineName) -> Result<Self, TicketError> {
        let bytes = fs::read(path(machine))
            .map_err(|source| TicketError::System { machine: machine.clone(), source })?;
        let ticket = Self::decode(&bytes).ok().filter(|ticket| ticket.release == RELEASE);
        ticket.ok_or_else(|| TicketError::Form { machine: machine.clone() })
    }

    /// Writes it in the place of the one before.
    ///
    /// # Errors
    /// The kernel's error; the folder is not for this user alone.
    pub(crate) fn write(&self, machine: &MachineName) -> io::Result<()> {
        private_directory::create(&folder()).map_err(io::Error::other)?;
        let path = path(machine);
        let unfinished = path.with_extension("new");
        let options =
            OpenOptions::new().write(true).create(true).truncate(true).mode(SECRET).to_owned();
        let written = options.open(&unfinished).and_then(|mut file: File| {
            file.write_all(&self.encode())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&unfinished, path)).inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })
    }

    /// Removes the ticket of this host in a machine: it does not come back.
    pub(crate) fn remove(machine: &MachineName) {
        // There may be none.
        let _ = fs::remove_file(path(machine));
    }
}

fn folder() -> PathBuf {
    PathBuf::from(format!("/var/tmp/landeck-{}", rustix::process::geteuid().as_raw()))
}

fn path(machine: &MachineName) -> PathBuf {
    let host = crate::host_name();
    folder().join(format!("{machine}@{host}.ticket"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_written_read_and_removed() {
        let machine: MachineName = format!("ticket-{}", std::process::id()).parse().unwrap();
        assert!(matches!(ReturnTicket::read(&machine), Err(TicketError::System { .. })));
        let ticket = ReturnTicket {
            release: RELEASE.to_owned(),
            host: HostNumber(3),
            name: "n3".to_owned(),
            founder: [7; 32],
            ways: vec![FounderWay { address: "10.0.0.1:7000".parse().unwrap(), is_gateway: false }],
            secret: [9; 16],
            ports: None,
            networks: vec!["10.0.0.0/8".parse().unwrap()],
        };
        ticket.write(&machine).unwrap();
        assert_eq!(ReturnTicket::read(&machine).unwrap(), ticket);
        let other = ReturnTicket { release: "0.0.0".to_owned(), ..ticket };
        other.write(&machine).unwrap();
        assert!(matches!(ReturnTicket::read(&machine), Err(TicketError::Form { .. })));
        ReturnTicket::remove(&machine);
        assert!(matches!(ReturnTicket::read(&machine), Err(TicketError::System { .. })));
    }
}
