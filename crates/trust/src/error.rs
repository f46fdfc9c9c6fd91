//! The errors of this crate.

use crate::key_hash::KeyHash;

/// The reason why a key, a session or a seal is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The system gives no random bytes.
    #[error("the system gives no random bytes (getrandom failed): no key can be made on this host")]
    Randomness,
    /// The library makes no key pair, certificate or TLS configuration.
    #[error(
        "the TLS library of this daemon does not work: {0}. This is a fault of Landeck: report it"
    )]
    Library(String),
    /// The certificate of the other side is not one that a daemon makes.
    #[error("the other side shows a certificate that no daemon of Landeck makes")]
    Certificate,
    /// The other side has another key than the host table says.
    #[error(
        "the other side has the key {found}, and {expected} was admitted: another daemon answers at this \
         address. Start the job again, and check the address if that does not help"
    )]
    WrongKey {
        /// The key that was admitted.
        expected: KeyHash,
        /// The key that the other side has.
        found: KeyHash,
    },
    /// The other side speaks TLS, but not for Landeck or for another version of its protocol.
    #[error(
        "the other side does not speak \"landeck/1\" over TLS: install one release on all hosts"
    )]
    Application,
    /// The other side ended the handshake or the session with an alert.
    #[error("the other side refused the connection: {0}. Its own log has the reason")]
    Refused(String),
    /// The bytes are no TLS 1.3, or were changed on their way.
    #[error("the other side sent bytes that are no valid TLS 1.3: {0}. The connection is ended")]
    Malformed(String),
    /// The handshake is not complete, or the session has failed.
    #[error("the session is not open, so no secret can be taken from it yet")]
    NotOpen,
    /// Frames in clear have no seal.
    #[error("frames of a plain lane have no seal, so no key can be made for them")]
    NoSeal,
    /// The data are longer than the cipher seals at once.
    #[error("the data are too long to be sealed at once")]
    TooLong,
    /// Data, header or tag were changed, repeated, left out or put in another order.
    #[error("sealed data do not open: they were changed, repeated or lost on their way")]
    Seal,
    /// A number that may be used once only comes again, or is too old to tell.
    #[error("the number {number} of a heartbeat was used before")]
    Repeated {
        /// The number.
        number: u64,
    },
    /// The bytes are no heartbeat from this host to that host.
    #[error("a datagram is no heartbeat of the expected host")]
    NoHeartbeat,
}

/// The reason why a text is no token.
///
/// No message repeats a part of the text, since it may end in a log and the text has a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The text does not begin as a token does.
    #[error(
        "the token does not begin with \"landeck-1:\": copy the whole line that the founding host printed"
    )]
    Prefix,
    /// A part is missing.
    #[error(
        "the token has not all of its parts (landeck-1:ADDRESS:KEY:SECRET): copy the whole line"
    )]
    Parts,
    /// The address is none.
    #[error(
        "the token's address is none: an IP address with a port is wanted, such as 10.0.0.1:7000"
    )]
    Address,
    /// The hash of the founder's key is none.
    #[error("the token's key is not 64 hexadecimal digits: copy the whole line")]
    Founder,
    /// The secret is none.
    #[error("the token's secret is not 32 hexadecimal digits: copy the whole line")]
    Secret,
}

/// The reason why the founder does not admit the owner of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// No such token was issued, or it is long over.
    #[error("the token is unknown here: ask the founding host for a new one")]
    Unknown,
    /// The token has admitted a host already.
    #[error(
        "the token was used before, and admits one host only: ask the founding host for another one"
    )]
    Used,
    /// The token is older than 15 minutes.
    #[error("the token is older than 15 minutes: ask the founding host for a new one")]
    Late,
}
