//! Admission by hand: a token is one line that lets one host in.
//!
//! The founder issues a token, and its user carries the line to the joining host (`landeck join`). The joining host
//! connects to the address, accepts the founder's key alone, and shows the secret inside that session. So nobody
//! between them learns the secret, and the founder admits the key of the session in which the secret came.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::crypto;
use crate::error::{JoinRefusal, JoinTokenError, TrustError};
use crate::key_hash::{KeyHash, parse_hex};

/// How long a token is good: 15 minutes.
pub const GOOD_NS: u64 = 15 * 60 * 1_000_000_000;
/// How many tokens a founder keeps at most. The oldest one is forgotten for a new one.
pub const TOKENS_MAX: usize = 4096;

const PREFIX: &str = "landeck-1:";

/// A line that lets one host in. Its text has a secret: it is not for logs, arguments or the environment.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// The address of the founder's daemon.
    pub address: SocketAddr,
    /// The key that the founder has.
    pub founder: KeyHash,
    /// The secret that the founder knows the token by.
    pub secret: [u8; 16],
}

impl JoinToken {
    /// The token as a line: `landeck-1:ADDRESS:KEY:SECRET`. It is not `Display`, so that no message has it by accident.
    #[must_use]
    pub fn text(&self) -> String {
        let secret: String = self.secret.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{PREFIX}{}:{}:{secret}", self.address, self.founder)
    }
}

impl FromStr for JoinToken {
    type Err = JoinTokenError;

    fn from_str(text: &str) -> Result<Self, JoinTokenError> {
        let parts = text.trim().strip_prefix(PREFIX).ok_or(JoinTokenError::Prefix)?;
        // An address has colons of its own, so the parts are taken from the end.
        let (rest, secret) = parts.rsplit_once(':').ok_or(JoinTokenError::Parts)?;
        let (address, founder) = rest.rsplit_once(':').ok_or(JoinTokenError::Parts)?;
        Ok(Self {
            address: address.parse().map_err(|_| JoinTokenError::Address)?,
            founder: founder.parse().map_err(|_| JoinTokenError::Founder)?,
            secret: parse_hex(secret).ok_or(JoinTokenError::Secret)?,
        })
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JoinToken")
            .field("address", &self.address)
            .field("founder", &self.founder)
            .finish_non_exhaustive()
    }
}

/// The tokens that a founder has issued. It keeps hashes of their secrets alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JoinTokens {
    issued: Vec<Issued>,
}

/// A token as its founder keeps it.
#[derive(Clone, Serialize, Deserialize)]
struct Issued {
    hash: [u8; 32],
    issued_ns: u64,
    is_used: bool,
}

impl fmt::Debug for Issued {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = formatter.debug_struct("Issued");
        text.field("issued_ns", &self.issued_ns).field("is_used", &self.is_used);
        text.finish_non_exhaustive()
    }
}

impl JoinTokens {
    /// Issues a token for one host. All times are of one clock that never goes back.
    ///
    /// # Errors
    /// [`TrustError::Randomness`].
    pub fn issue(
        &mut self,
        now_ns: u64,
        address: SocketAddr,
        founder: KeyHash,
    ) -> Result<JoinToken, TrustError> {
        let secret = crypto::random()?;
        // A token that is over stays for as long again, so that its owner learns why it is refused.
        self.issued.retain(|one| now_ns.saturating_sub(one.issued_ns) < 2 * GOOD_NS);
        if self.issued.len() >= TOKENS_MAX {
            self.issued.remove(0);
        }
        self.issued.push(Issued { hash: crypto::hash(&secret), issued_ns: now_ns, is_used: false });
        Ok(JoinToken { address, founder, secret })
    }

    /// Takes a token back: `Ok` admits one host, once. Every token is compared, and each in constant time.
    ///
    /// # Errors
    /// [`JoinRefusal`].
    pub fn redeem(&mut self, now_ns: u64, secret: &[u8; 16]) -> Result<(), JoinRefusal> {
        let hash = crypto::hash(secret);
        let mut found = None;
        for one in &mut self.issued {
            if crypto::equal(&one.hash, &hash) {
                found = Some(one);
            }
        }
        let one = found.ok_or(JoinRefusal::Unknown)?;
        if one.is_used {
            return Err(JoinRefusal::Used);
        }
        if now_ns.saturating_sub(one.issued_ns) >= GOOD_NS {
            return Err(JoinRefusal::Late);
        }
        one.is_used = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUNDER: KeyHash = KeyHash([0xab; 32]);
    const START_NS: u64 = 1_000;

    fn issue(tokens: &mut JoinTokens, now_ns: u64) -> JoinToken {
        tokens.issue(now_ns, "10.0.0.1:7000".parse().unwrap(), FOUNDER).unwrap()
    }

    #[test]
    fn a_token_survives_its_text() {
        for address in ["10.0.0.1:7000", "[2001:db8::1]:7000", "[fe80::1%3]:1"] {
            let token = JoinToken {
                address: address.parse().unwrap(),
                founder: FOUNDER,
                secret: [0x0f; 16],
            };
            let text = token.text();
            let wanted = format!("landeck-1:{address}:{}:{}", "ab".repeat(32), "0f".repeat(16));
            assert_eq!((&text, text.lines().count()), (&wanted, 1));
            assert_eq!(text.parse(), Ok(token.clone()));
            assert_eq!(format!("{text}\n").parse(), Ok(token));
        }
    }

    #[test]
    fn another_text_is_refused_by_its_wrong_part() {
        let (key, secret) = ("ab".repeat(32), "0f".repeat(16));
        for (text, error) in [
            (String::new(), JoinTokenError::Prefix),
            (format!("landeck-2:10.0.0.1:7000:{key}:{secret}"), JoinTokenError::Prefix),
            ("landeck-1:".into(), JoinTokenError::Parts),
            (format!("landeck-1:{secret}:"), JoinTokenError::Parts),
            (format!("landeck-1:{key}:{secret}"), JoinTokenError::Parts),
            (format!("landeck-1:10.0.0.1:{key}:{secret}"), JoinTokenError::Address),
            (format!("landeck-1:a.example:7000:{key}:{secret}"), JoinTokenError::Address),
            (format!("landeck-1:10.0.0.1:7000:{}:{secret}", &key[1..]), JoinTokenError::Founder),
            (format!("landeck-1:10.0.0.1:7000:{key}:{secret}0"), JoinTokenError::Secret),
            (format!("landeck-1:10.0.0.1:7000:{key}:{}", &secret[2..]), JoinTokenError::Secret),
        ] {
            let found = text.parse::<JoinToken>().unwrap_err();
            assert_eq!(found, error, "{text}");
            assert!(!found.to_string().contains(&secret[2..]));
        }
    }

    #[test]
    fn a_token_admits_one_host() {
        let mut tokens = JoinTokens::default();
        let (one, other) = (issue(&mut tokens, START_NS), issue(&mut tokens, START_NS));
        assert_ne!(one.secret, other.secret);
        assert_eq!(tokens.redeem(START_NS, &one.secret), Ok(()));
        assert_eq!(tokens.redeem(START_NS, &one.secret), Err(JoinRefusal::Used));
        assert_eq!(tokens.redeem(START_NS, &other.secret), Ok(()));
        assert_eq!(tokens.redeem(START_NS, &[0; 16]), Err(JoinRefusal::Unknown));
    }

    #[test]
    fn a_token_is_good_for_15_minutes() {
        let mut tokens = JoinTokens::default();
        let token = issue(&mut tokens, START_NS);
        assert_eq!(tokens.redeem(START_NS + GOOD_NS, &token.secret), Err(JoinRefusal::Late));
        assert_eq!(tokens.redeem(START_NS + GOOD_NS - 1, &token.secret), Ok(()));
        issue(&mut tokens, START_NS + 2 * GOOD_NS);
        let long_over = tokens.redeem(START_NS + 2 * GOOD_NS, &token.secret);
        assert_eq!((long_over, tokens.issued.len()), (Err(JoinRefusal::Unknown), 1));
    }

    #[test]
    fn a_founder_keeps_a_bounded_number_of_hashes() {
        let mut tokens = JoinTokens::default();
        let first = issue(&mut tokens, START_NS);
        let second = issue(&mut tokens, START_NS);
        for _ in 1..TOKENS_MAX {
            issue(&mut tokens, START_NS);
        }
        assert_eq!(tokens.issued.len(), TOKENS_MAX);
        assert_eq!(tokens.redeem(START_NS, &first.secret), Err(JoinRefusal::Unknown));
        assert_eq!(tokens.redeem(START_NS, &second.secret), Ok(()));
        assert!(tokens.issued.iter().all(|one| one.hash[..16] != second.secret));
    }

    #[test]
    fn nothing_shows_a_secret() {
        let mut tokens = JoinTokens::default();
        let token = issue(&mut tokens, START_NS);
        let text = format!("{token:?} {tokens:?}");
        assert!(!text.contains("secret") && !text.contains("hash"), "{text}");
    }
}
