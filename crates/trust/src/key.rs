//! The key pair of a daemon.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::error::TrustError;
use crate::key_hash::KeyHash;
use crate::verifier;

/// The key pair of a daemon, with its self-signed certificate. It is in memory alone.
#[derive(Clone)]
pub struct KeyPair {
    certified: Arc<CertifiedKey>,
    hash: KeyHash,
    /// The private key, as PKCS #8.
    private: Arc<[u8]>,
}

impl KeyPair {
    /// Makes a key pair (Ed25519) and its certificate.
    ///
    /// # Errors
    /// [`TrustError::Library`] if the library makes none, for instance without randomness of the system.
    pub fn generate() -> Result<Self, TrustError> {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519);
        Self::of(&pair.map_err(|error| TrustError::Library(error.to_string()))?)
    }

    /// The key pair whose private key is this one, as [`KeyPair::private`] has given it.
    ///
    /// # Errors
    /// [`TrustError::Library`] if it is none.
    pub fn restored(private: &[u8]) -> Result<Self, TrustError> {
        let pair = rcgen::KeyPair::try_from(private);
        Self::of(&pair.map_err(|error| TrustError::Library(error.to_string()))?)
    }

    /// The private key, for the memory of a process that keeps it.
    #[must_use]
    pub fn private(&self) -> &[u8] {
        &self.private
    }

    fn of(pair: &rcgen::KeyPair) -> Result<Self, TrustError> {
        let library = |error: &dyn fmt::Display| TrustError::Library(error.to_string());
        let mut parameters = rcgen::CertificateParams::default();
        let mut name = rcgen::DistinguishedName::new();
        name.push(rcgen::DnType::CommonName, "landeckd");
        parameters.distinguished_name = name;
        let certificate = parameters.self_signed(pair).map_err(|error| library(&error))?;
        let certificate = certificate.der().clone();
        let hash = verifier::key_of(&certificate)?;
        let encoded = pair.serialize_der();
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(encoded.clone()));
        let provider = verifier::provider();
        let certified = CertifiedKey::from_der(vec![certificate], private, &provider)
            .map_err(|error| library(&error))?;
        Ok(Self { certified: Arc::new(certified), hash, private: encoded.into() })
    }

    /// The hash of the public key.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        self.hash
    }

    /// The certificate and the private key, as a session shows and uses them.
    pub(crate) fn identity(&self) -> Arc<SingleCertAndKey> {
        Arc::new(SingleCertAndKey::from(Arc::clone(&self.certified)))
    }

    /// This private key beside the certificate of another, as a thief of certificates would have it.
    #[cfg(test)]
    pub(crate) fn with_certificate_of(&self, other: &Self) -> Self {
        let (certificates, key) = (other.certified.cert.clone(), Arc::clone(&self.certified.key));
        let certified = Arc::new(CertifiedKey::new(certificates, key));
        Self { certified, hash: other.hash, private: self.private.clone() }
    }

    /// This key pair with a second certificate behind its own.
    #[cfg(test)]
    pub(crate) fn with_chain(&self) -> Self {
        let certificates = [&self.certified.cert[..]; 2].concat();
        let certified = CertifiedKey::new(certificates, Arc::clone(&self.certified.key));
        Self { certified: Arc::new(certified), hash: self.hash, private: self.private.clone() }
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KeyPair").field("hash", &self.hash).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_pairs_differ_and_do_not_show_their_private_part() {
        let (one, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        assert_ne!(one.hash(), other.hash());
        assert_eq!(format!("{one:?}"), format!("KeyPair {{ hash: {:?}, .. }}", one.hash()));
    }

    #[test]
    fn a_key_pair_is_made_again_from_its_private_key() {
        let pair = KeyPair::generate().unwrap();
        let again = KeyPair::restored(pair.private()).unwrap();
        assert_eq!((again.hash(), again.private()), (pair.hash(), pair.private()));
        assert!(KeyPair::restored(b"no key").is_err());
    }
}
