//! Joining a machine by hand: the token names the founder's address and key, and carries the secret that admits one host.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use landeck_trust::{JoinToken, KeyHash, KeyPair, Session, TrustError};
use landeck_wire::preamble::{CHALLENGE_BYTES, Preamble};
use landeck_wire::{ControlMessage, HostIncarnation, HostNumber, MachineId};
use serde::{Deserialize, Serialize};

use crate::daemon_message::DaemonMessage;
use crate::trunks::envelope::{Envelope, EnvelopeClass, EnvelopeError, Splitter};

/// The time for each step of a host that joins by a token.
pub(crate) const STEP_TIME: Duration = Duration::from_secs(10);

/// The reason why a machine was not joined.
#[derive(Debug, thiserror::Error)]
pub enum MachineJoinError {
    /// The founder is not reached.
    #[error("the founding host is not reached at {address}: {source}")]
    NotReached {
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// The session failed.
    #[error("the founding host at {address}: {source}")]
    Trust {
        /// The address.
        address: SocketAddr,
        /// The error.
        source: TrustError,
    },
    /// The founder refuses.
    #[error("the founding host does not admit this one: {0}")]
    Refused(String),
    /// Its answer has an unknown form.
    #[error("the founding host answers in an unknown form: install one release on all hosts")]
    Form,
}

impl From<EnvelopeError> for MachineJoinError {
    fn from(_: EnvelopeError) -> Self {
        Self::Form
    }
}

/// An address that leads to the founder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FounderWay {
    /// The address.
    pub(crate) address: SocketAddr,
    /// It is that of a gateway, which passes connections on to the founder.
    pub(crate) is_gateway: bool,
}

/// Asks the founder, which has the key with this hash, for admission, and waits for its answer: for each step as long as given.
///
/// # Errors
/// [`MachineJoinError`].
pub(crate) fn ask(
    pair: &KeyPair,
    (founder, way): (KeyHash, FounderWay),
    request: &DaemonMessage,
    step_time: Duration,
) -> Result<DaemonMessage, MachineJoinError> {
    let address = way.address;
    let not_reached = |source| MachineJoinError::NotReached { address, source };
    let trust = |source| MachineJoinError::Trust { address, source };
    let mut stream = TcpStream::connect_timeout(&address, step_time).map_err(not_reached)?;
    stream.set_read_timeout(Some(step_time)).map_err(not_reached)?;
    stream.set_write_timeout(Some(step_time)).map_err(not_reached)?;
    // This host does not know the machine yet, nor its number.
    let (machine, none, arbiter) = (MachineId(0), HostNumber::NONE, HostNumber::ARBITER);
    let pass = way.is_gateway.then(|| Preamble::pass(machine, (none, none, arbiter), 0));
    for preamble in pass.into_iter().chain([Preamble::trunk(machine, none, arbiter)]) {
        let mut challenge = [0; CHALLENGE_BYTES];
        stream.read_exact(&mut challenge).map_err(not_reached)?;
        stream.write_all(&preamble.encode()).map_err(not_reached)?;
    }
    let mut session = Session::connect(pair, founder).map_err(trust)?;
    let content = request.encode();
    let envelope = Envelope {
        source: HostNumber::NONE,
        destination: HostNumber::ARBITER,
        class: EnvelopeClass::Daemon,
        hops: 0,
        length: content.len() as u32,
    };
    // It waits until the founder has shown its key.
    session.send(&[&envelope.encode()[..], &content].concat());
    let (mut splitter, mut plain) = (Splitter::default(), Vec::new());
    let mut buffer = [0; 16 << 10];
    loop {
        stream.write_all(session.output()).map_err(not_reached)?;
        session.sent(session.output().len());
        let count = stream.read(&mut buffer).map_err(not_reached)?;
        if count == 0 {
            return Err(not_reached(io::ErrorKind::ConnectionReset.into()));
        }
        let received = session.receive(&buffer[..count]);
        session.take_received(&mut plain);
        splitter.push(&std::mem::take(&mut plain));
        if let Some((_, content)) = splitter.next()? {
            return match DaemonMessage::decode(&content) {
                Ok(DaemonMessage::Refused { why }) => Err(MachineJoinError::Refused(why)),
                Ok(answer) => Ok(answer),
                Err(_) => Err(MachineJoinError::Form),
            };
        }
        received.map_err(trust)?;
    }
}

/// Puts the address first at which the founder was reached, whatever it thinks of its addresses.
pub(crate) fn prefer(addresses: &mut Vec<SocketAddr>, address: SocketAddr) {
    addresses.retain(|other| *other != address);
    addresses.insert(0, address);
}

/// The request of this host.
pub(crate) fn request(
    token: &JoinToken,
    name: String,
    incarnation: HostIncarnation,
    port: u16,
    addresses: Vec<std::net::IpAddr>,
) -> DaemonMessage {
    let (secret, facts) = (token.secret, crate::facts::HostFacts::here());
    DaemonMessage::Join { secret, name, incarnation, port, addresses, facts }
}
