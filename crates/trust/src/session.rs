//! The TLS 1.3 session of a trunk, as bytes in and bytes out.
//!
//! A session holds no more received data than the bytes that it was given. What it has to send waits until the caller
//! has written it: a caller that sees more than [`UNSENT_BYTES_LIMIT`] unsent stops sending, and ends a peer that does
//! not read.

use std::fmt;
use std::io::{Read, Write};

use rustls::{ClientConnection, Connection, ServerConnection};

use crate::error::TrustError;
use crate::key::KeyPair;
use crate::key_hash::KeyHash;
use crate::verifier;

/// The name of the protocol inside TLS (ALPN), with its version.
pub const APPLICATION: &[u8] = b"landeck/1";
/// The unsent bytes above which a caller sends nothing more: 1 MiB.
pub const UNSENT_BYTES_LIMIT: usize = 1 << 20;

/// One side of a trunk's TLS session.
pub struct Session {
    tls: Connection,
    is_open: bool,
    is_closed: bool,
    has_peer_closed: bool,
    failure: Option<TrustError>,
    /// Data to send that came before the session was open.
    early: Vec<u8>,
    received: Vec<u8>,
    output: Vec<u8>,
    /// The length of the part of the output that the network has.
    sent: usize,
}

impl Session {
    /// Begins a session as the dialling side. The other side must have the expected key.
    ///
    /// # Errors
    /// [`TrustError::Library`].
    pub fn connect(own: &KeyPair, expected: KeyHash) -> Result<Self, TrustError> {
        Self::connect_for(own, expected, APPLICATION)
    }

    /// Begins a session as the listening side. It accepts every key, so the caller looks at [`Session::peer_key`] and
    /// admits or refuses it before it sends or believes anything.
    ///
    /// # Errors
    /// [`TrustError::Library`].
    pub fn accept(own: &KeyPair) -> Result<Self, TrustError> {
        Self::accept_for(own, None, APPLICATION)
    }

    /// Begins a session as the listening side, which accepts the expected key alone.
    ///
    /// # Errors
    /// [`TrustError::Library`].
    pub fn accept_from(own: &KeyPair, expected: KeyHash) -> Result<Self, TrustError> {
        Self::accept_for(own, Some(expected), APPLICATION)
    }

    fn connect_for(
        own: &KeyPair,
        expected: KeyHash,
        application: &[u8],
    ) -> Result<Self, TrustError> {
        let (config, name) = verifier::client(own.identity(), expected, application)?;
        let connection = ClientConnection::new(config, name).map_err(verifier::library)?;
        Self::over(Connection::Client(connection))
    }

    fn accept_for(
        own: &KeyPair,
        expected: Option<KeyHash>,
        application: &[u8],
    ) -> Result<Self, TrustError> {
        let config = verifier::server(own.identity(), expected, application)?;
        let connection = ServerConnection::new(config).map_err(verifier::library)?;
        Self::over(Connection::Server(connection))
    }

    fn over(mut tls: Connection) -> Result<Self, TrustError> {
        // The output is taken out at once, so the library's own limit would only cut long data.
        tls.set_buffer_limit(None);
        let mut session = Self {
            tls,
            is_open: false,
            is_closed: false,
            has_peer_closed: false,
            failure: None,
            early: Vec::new(),
            received: Vec::new(),
            output: Vec::new(),
            sent: 0,
        };
        session.collect_output()?;
        Ok(session)
    }

    /// Takes bytes from the network, all of them. After an error the session is over, but its last output is still to
    /// be written: it tells the other side. Bytes behind the other side's end are ignored.
    ///
    /// # Errors
    /// [`TrustError::WrongKey`], [`TrustError::Certificate`], [`TrustError::Application`], [`TrustError::Refused`],
    /// [`TrustError::Malformed`]. A session that has failed returns its first error again.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), TrustError> {
        let mut rest = bytes;
        while !rest.is_empty() && !self.has_peer_closed {
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            let taken = self.take_some(&mut rest);
            self.record(taken)?;
        }
        Ok(())
    }

    fn take_some(&mut self, rest: &mut &[u8]) -> Result<(), TrustError> {
        let malformed = |error: std::io::Error| TrustError::Malformed(error.to_string());
        self.tls.read_tls(rest).map_err(malformed)?;
        let processed = self.tls.process_new_packets();
        self.collect_output()?;
        let state = processed.map_err(|error| verifier::reason(&error))?;
        self.has_peer_closed = state.peer_has_closed();
        let old = self.received.len();
        self.received.resize(old + state.plaintext_bytes_to_read(), 0);
        self.tls.reader().read_exact(&mut self.received[old..]).map_err(malformed)?;
        if !self.is_open && !self.tls.is_handshaking() {
            self.open()?;
        }
        Ok(())
    }

    /// Ends the handshake. A side that offers no protocol at all passes the library's own check.
    fn open(&mut self) -> Result<(), TrustError> {
        if self.tls.alpn_protocol() != Some(APPLICATION) {
            return Err(TrustError::Application);
        }
        self.is_open = true;
        let early = std::mem::take(&mut self.early);
        self.write(&early)
    }

    /// Sends data. Before the session is open they wait; after its end, or a failure, they are dropped.
    pub fn send(&mut self, plain: &[u8]) {
        if self.is_closed || self.failure.is_some() {
            return;
        }
        if self.is_open {
            let written = self.write(plain);
            // The next call of `receive` returns a failure.
            let _ = self.record(written);
        } else {
            self.early.extend_from_slice(plain);
        }
    }

    fn write(&mut self, plain: &[u8]) -> Result<(), TrustError> {
        let library = |error: std::io::Error| TrustError::Library(error.to_string());
        self.tls.writer().write_all(plain).map_err(library)?;
        self.collect_output()
    }

    fn collect_output(&mut self) -> Result<(), TrustError> {
        while self.tls.wants_write() {
            let written = self.tls.write_tls(&mut self.output);
            written.map_err(|error| TrustError::Library(error.to_string()))?;
        }
        Ok(())
    }

    /// Keeps the first failure, after which nothing that came counts.
    fn record(&mut self, result: Result<(), TrustError>) -> Result<(), TrustError> {
        if let Err(failure) = &result {
            self.failure = Some(failure.clone());
            self.received.clear();
            self.early.clear();
        }
        result
    }

    /// The bytes for the network.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Notes that the network has taken so many bytes of the output.
    pub fn sent(&mut self, bytes: usize) {
        self.sent = (self.sent + bytes).min(self.output.len());
        // Moving the rest at most once for each half keeps long output linear.
        if self.sent * 2 >= self.output.len() {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// The number of bytes that wait for the network, or for the session to be open.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.output.len() - self.sent + self.early.len()
    }

    /// Appends the data that have come.
    pub fn take_received(&mut self, into: &mut Vec<u8>) {
        if self.is_open() {
            into.append(&mut self.received);
        }
    }

    /// Whether the handshake is complete and nothing has failed since. It stays true after the ends of both sides.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open && self.failure.is_none()
    }

    /// The hash of the other side's public key, whose private part it has proven to have. `None` until the session is
    /// open.
    #[must_use]
    pub fn peer_key(&self) -> Option<KeyHash> {
        let certificate = self.tls.peer_certificates().and_then(<[_]>::first);
        certificate.filter(|_| self.is_open()).and_then(|one| verifier::key_of(one).ok())
    }

    /// Exports a secret that both sides have and nobody else (RFC 8446, 7.5).
    ///
    /// # Errors
    /// [`TrustError::NotOpen`].
    pub fn export(&self, label: &[u8], context: &[u8]) -> Result<[u8; 32], TrustError> {
        if !self.is_open() {
            return Err(TrustError::NotOpen);
        }
        let exported = self.tls.export_keying_material([0; 32], label, Some(context));
        exported.map_err(|_| TrustError::NotOpen)
    }

    /// Ends the own direction in order. The output then has the end mark.
    pub fn close(&mut self) {
        if !self.is_closed && self.failure.is_none() {
            self.is_closed = true;
            self.early.clear();
            self.tls.send_close_notify();
            let collected = self.collect_output();
            // The next call of `receive` returns a failure.
            let _ = self.record(collected);
        }
    }

    /// Whether the other side ended its direction in order. A stream that ends without this was cut.
    #[must_use]
    pub fn has_peer_closed(&self) -> bool {
        self.has_peer_closed
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("peer_key", &self.peer_key())
            .field("unsent_bytes", &self.unsent_bytes())
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
