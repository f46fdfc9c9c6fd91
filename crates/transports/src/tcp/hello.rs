//! The hello of a connection: the identities of both sides, and the proof that both belong to the job.
//!
//! ```text
//! connector                                   acceptor
//! greeting (48 bytes)                    ->
//!                                        <-   greeting (48 bytes)
//! proof (16 bytes)                       ->
//!                                        <-   proof (16 bytes), once it admits the connector
//!
//! greeting   magic (8) | version (4) | 0 (4) | host (8) | slot (4) | incarnation (4) | nonce (16)
//! proof      keyed hash of the role, the connector's and the acceptor's greeting
//! ```
//!
//! The job's secret itself does not travel, and an acceptor computes nothing from it for a connector that has not
//! proven itself. The hello is a state machine of bytes in and bytes out. It reads exactly the bytes that it needs, so
//! nothing behind the hello is read with it.

use landeck_wire::{HostId, Incarnation, ProcessId, Slot};

use super::proof::{PROOF_BYTES, Token, is_same};

const MAGIC: &[u8; 8] = b"LANDECK\n";
/// The version of the formats of everything that travels on a connection.
const VERSION: u32 = 1;
const GREETING_BYTES: usize = 48;
/// The length of a nonce.
pub(super) const NONCE_BYTES: usize = 16;

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Connector,
    Acceptor,
}

/// The reason why a hello failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The other side speaks another protocol.
    #[error("the other side does not speak Landeck: check the address")]
    NotLandeck,
    /// The other side speaks an older or newer version.
    #[error(
        "the other side speaks version {0} of the protocol, this one version {VERSION}: run the same release on both"
    )]
    OtherVersion(u32),
    /// The other side does not know our secret.
    #[error(
        "the other side belongs to another job: it did not prove that it knows this job's secret"
    )]
    OtherJob,
}

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More must be read.
    Reading,
    /// The other side has proven its identity.
    Proven(ProcessId),
}

/// One side of one hello.
pub(super) struct Hello {
    role: Role,
    token: Token,
    own: [u8; GREETING_BYTES],
    theirs: Option<[u8; GREETING_BYTES]>,
    input: [u8; GREETING_BYTES],
    input_bytes: usize,
    output: Vec<u8>,
}

impl Hello {
    pub(super) fn new(role: Role, own: ProcessId, nonce: [u8; NONCE_BYTES], token: &Token) -> Self {
        let own = greeting(own, nonce);
        let output = if role == Role::Connector { own.to_vec() } else { Vec::new() };
        let input = [0; GREETING_BYTES];
        Self { role, token: token.clone(), own, theirs: None, input, input_bytes: 0, output }
    }

    /// The room to read into: exactly the bytes that are needed next.
    pub(super) fn room(&mut self) -> &mut [u8] {
        let wanted = self.wanted();
        &mut self.input[self.input_bytes..wanted]
    }

    /// Records that so many bytes were read.
    pub(super) fn filled(&mut self, bytes: usize) -> Result<Progress, HelloError> {
        self.input_bytes += bytes;
        self.check_magic()?;
        if self.input_bytes < self.wanted() {
            return Ok(Progress::Reading);
        }
        self.input_bytes = 0;
        match self.theirs {
            None => self.greeted().map(|()| Progress::Reading),
            Some(theirs) => self.proven(&theirs).map(Progress::Proven),
        }
    }

    /// Queues the acceptor's proof for a proven connector that it admits.
    pub(super) fn admit(&mut self) {
        if let (Role::Acceptor, Some(theirs)) = (self.role, self.theirs) {
            let proof = self.proof_of(Role::Acceptor, &theirs);
            self.output.extend_from_slice(&proof);
        }
    }

    /// The bytes to be sent.
    pub(super) fn output(&self) -> &[u8] {
        &self.output
    }

    /// Records that so many bytes were sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.output.drain(..bytes);
    }

    fn wanted(&self) -> usize {
        if self.theirs.is_none() { GREETING_BYTES } else { PROOF_BYTES }
    }

    /// Refuses as early as possible: a stranger may never send a whole greeting.
    fn check_magic(&self) -> Result<(), HelloError> {
        let seen = self.input_bytes.min(MAGIC.len());
        let is_right = self.theirs.is_some() || self.input[..seen] == MAGIC[..seen];
        is_right.then_some(()).ok_or(HelloError::NotLandeck)
    }

    fn greeted(&mut self) -> Result<(), HelloError> {
        let theirs = self.input;
        let version = number(&theirs[8..12]) as u32;
        if version != VERSION {
            return Err(HelloError::OtherVersion(version));
        }
        self.theirs = Some(theirs);
        match self.role {
            Role::Acceptor => self.output.extend_from_slice(&self.own),
            Role::Connector => {
                let proof = self.proof_of(Role::Connector, &theirs);
                self.output.extend_from_slice(&proof);
            }
        }
        Ok(())
    }

    fn proven(&self, theirs: &[u8; GREETING_BYTES]) -> Result<ProcessId, HelloError> {
        let mut claimed = [0; PROOF_BYTES];
        claimed.copy_from_slice(&self.input[..PROOF_BYTES]);
        let their_role = match self.role {
            Role::Connector => Role::Acceptor,
            Role::Acceptor => Role::Connector,
        };
        if !is_same(&claimed, &self.proof_of(their_role, theirs)) {
            return Err(HelloError::OtherJob);
        }
        Ok(ProcessId {
            host: HostId(number(&theirs[16..24])),
            slot: Slot(number(&theirs[24..28]) as u32),
            incarnation: Incarnation(number(&theirs[28..32]) as u32),
        })
    }

    fn proof_of(&self, prover: Role, theirs: &[u8; GREETING_BYTES]) -> [u8; PROOF_BYTES] {
        let (connector, acceptor) = match self.role {
            Role::Connector => (&self.own, theirs),
            Role::Acceptor => (theirs, &self.own),
        };
        self.token.prove(&[&[prover as u8], connector, acceptor])
    }
}

fn greeting(own: ProcessId, nonce: [u8; NONCE_BYTES]) -> [u8; GREETING_BYTES] {
    let mut greeting = [0; GREETING_BYTES];
    greeting[..8].copy_from_slice(MAGIC);
    greeting[8..12].copy_from_slice(&VERSION.to_le_bytes());
    greeting[16..24].copy_from_slice(&own.host.0.to_le_bytes());
    greeting[24..28].copy_from_slice(&own.slot.0.to_le_bytes());
    greeting[28..32].copy_from_slice(&own.incarnation.0.to_le_bytes());
    greeting[32..].copy_from_slice(&nonce);
    greeting
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(slot: u32) -> ProcessId {
        ProcessId { host: HostId(u64::MAX - 7), slot: Slot(slot), incarnation: Incarnation(3) }
    }

    fn side(role: Role, token: &Token) -> Hello {
        Hello::new(role, process(role as u32), [role as u8; NONCE_BYTES], token)
    }

    /// Carries at most `piece` bytes from one side to the other.
    fn carry(from: &mut Hello, to: &mut Hello, piece: usize) -> Result<Progress, HelloError> {
        let bytes = from.output().len().min(to.room().len()).min(piece);
        to.room()[..bytes].copy_from_slice(&from.output()[..bytes]);
        from.sent(bytes);
        to.filled(bytes)
    }

    #[test]
    fn both_sides_learn_who_the_other_is_whatever_the_pieces() {
        let token = Token::random().unwrap();
        for piece in [1, 7, 48, 1000] {
            let (mut connector, mut acceptor) =
                (side(Role::Connector, &token), side(Role::Acceptor, &token));
            let mut proven = (None, None);
            while proven.0.is_none() || proven.1.is_none() {
                if let Progress::Proven(who) = carry(&mut connector, &mut acceptor, piece).unwrap()
                {
                    acceptor.admit();
                    proven.1 = Some(who);
                }
                if let Progress::Proven(who) = carry(&mut acceptor, &mut connector, piece).unwrap()
                {
                    proven.0 = Some(who);
                }
            }
            assert_eq!(proven, (Some(process(1)), Some(process(0))));
            assert!(connector.output().is_empty() && acceptor.output().is_empty());
        }
    }

    #[test]
    fn a_stranger_is_refused_at_the_first_wrong_byte() {
        let token = Token::random().unwrap();
        let mut acceptor = side(Role::Acceptor, &token);
        acceptor.room()[..5].copy_from_slice(b"GET /");
        assert_eq!(acceptor.filled(5), Err(HelloError::NotLandeck));
        assert!(acceptor.output().is_empty());
    }

    #[test]
    fn another_version_and_another_job_are_refused() {
        let token = Token::random().unwrap();
        let mut newer = side(Role::Connector, &token);
        newer.output[8] = 9;
        let mut acceptor = side(Role::Acceptor, &token);
        assert_eq!(carry(&mut newer, &mut acceptor, 48), Err(HelloError::OtherVersion(9)));

        let mut other = side(Role::Connector, &Token::random().unwrap());
        let mut acceptor = side(Role::Acceptor, &token);
        assert_eq!(carry(&mut other, &mut acceptor, 48), Ok(Progress::Reading));
        assert_eq!(carry(&mut acceptor, &mut other, 48), Ok(Progress::Reading));
        assert_eq!(carry(&mut other, &mut acceptor, 48), Err(HelloError::OtherJob));
        assert!(acceptor.output().is_empty(), "a stranger is told nothing");
    }

    #[test]
    fn what_one_side_said_is_no_answer_for_the_other() {
        let token = Token::random().unwrap();
        let mut connector = side(Role::Connector, &token);
        let said = connector.output().to_vec();
        connector.room().copy_from_slice(&said);
        assert_eq!(connector.filled(said.len()), Ok(Progress::Reading));
        connector.sent(said.len());
        let proof = connector.output().to_vec();
        connector.room().copy_from_slice(&proof);
        assert_eq!(connector.filled(proof.len()), Err(HelloError::OtherJob));
    }
}
