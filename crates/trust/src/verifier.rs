//! The rules of TLS on trunks: which version, ciphers and certificates count.
//!
//! A certificate is a wrapping of a public key. Its names, times and own signature are not looked at: the handshake
//! proves that the other side has the private key, and the host table says which key is admitted.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ParsedCertificate};
use rustls::sign::SingleCertAndKey;
use rustls::time_provider::TimeProvider;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    PeerIncompatible, ServerConfig, SignatureScheme, version,
};

use crate::crypto::{self, tls};
use crate::error::TrustError;
use crate::key_hash::KeyHash;

/// The longest certificate that is looked at; those of daemons have less than 400 bytes.
const CERTIFICATE_BYTES_MAX: usize = 2048;

/// The name of the other side, which TLS wants and nothing looks at.
const NAME: &str = "landeckd";

/// The algorithms of trunks: one key exchange, one kind of signature, two ciphers.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            tls::cipher_suite::TLS13_AES_256_GCM_SHA384,
            tls::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![tls::kx_group::X25519],
        ..tls::default_provider()
    })
}

/// The hash of the public key in a certificate.
pub(crate) fn key_of(certificate: &CertificateDer<'_>) -> Result<KeyHash, TrustError> {
    if certificate.len() > CERTIFICATE_BYTES_MAX {
        return Err(TrustError::Certificate);
    }
    let parsed = ParsedCertificate::try_from(certificate).map_err(|_| TrustError::Certificate)?;
    Ok(KeyHash(crypto::hash(&parsed.subject_public_key_info())))
}

/// The rules of the dialling side, which knows the key that it wants.
pub(crate) fn client(
    own: Arc<SingleCertAndKey>,
    expected: KeyHash,
    application: &[u8],
) -> Result<(Arc<ClientConfig>, ServerName<'static>), TrustError> {
    let provider = provider();
    let verifier = PinnedKey { expected: Some(expected), provider: Arc::clone(&provider) };
    let mut config = ClientConfig::builder_with_details(provider, Arc::new(NoTime))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(library)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(own);
    config.alpn_protocols = vec![application.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    config.enable_sni = false;
    config.enable_early_data = false;
    let name =
        ServerName::try_from(NAME).map_err(|error| TrustError::Library(error.to_string()))?;
    Ok((Arc::new(config), name))
}

/// The rules of the listening side. Without an expected key every key is accepted, and the caller decides.
pub(crate) fn server(
    own: Arc<SingleCertAndKey>,
    expected: Option<KeyHash>,
    application: &[u8],
) -> Result<Arc<ServerConfig>, TrustError> {
    let provider = provider();
    let verifier = PinnedKey { expected, provider: Arc::clone(&provider) };
    let mut config = ServerConfig::builder_with_details(provider, Arc::new(NoTime))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(library)?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(own);
    config.alpn_protocols = vec![application.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}

pub(crate) fn library(error: Error) -> TrustError {
    TrustError::Library(error.to_string())
}

/// The reason behind an error of the TLS library.
pub(crate) fn reason(error: &Error) -> TrustError {
    match error {
        Error::InvalidCertificate(CertificateError::Other(OtherError(ours))) => {
            ours.downcast_ref::<TrustError>().cloned().unwrap_or(TrustError::Certificate)
        }
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented => TrustError::Certificate,
        Error::NoApplicationProtocol
        | Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol) => {
            TrustError::Application
        }
        Error::AlertReceived(alert) => TrustError::Refused(format!("{alert:?}")),
        other => TrustError::Malformed(other.to_string()),
    }
}

/// A clock that stands still: certificates of daemons have no times that count, and sessions are not resumed.
#[derive(Debug)]
struct NoTime;

impl TimeProvider for NoTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(std::time::Duration::ZERO))
    }
}

/// Accepts a certificate whose public key has the expected hash, or any that a daemon may have made.
#[derive(Debug)]
struct PinnedKey {
    expected: Option<KeyHash>,
    provider: Arc<CryptoProvider>,
}

impl PinnedKey {
    fn check(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
    ) -> Result<(), Error> {
        let found =
            if others.is_empty() { key_of(certificate) } else { Err(TrustError::Certificate) };
        let checked = found.and_then(|found| match self.expected {
            Some(expected) if expected != found => Err(TrustError::WrongKey { expected, found }),
            _ => Ok(()),
        });
        checked.map_err(|ours| CertificateError::Other(OtherError(Arc::new(ours))).into())
    }

    fn check_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if signed.scheme != SignatureScheme::ED25519 {
            return Err(PeerIncompatible::NoSignatureSchemesInCommon.into());
        }
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }
}

impl ServerCertVerifier for PinnedKey {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(certificate, others).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

impl ClientCertVerifier for PinnedKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(certificate, others).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}
