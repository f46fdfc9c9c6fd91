//! Return tickets: a host that was admitted once comes back unasked after it was lost.
//!
//! The founder gives each host a secret when it is connected, and another one each time that it comes back. It keeps hashes
//! alone. A host that is lost before the new one arrives still has the one that it came back with, so that stays good until
//! the new one is used.

use std::collections::BTreeMap;
use std::fmt;

use landeck_wire::HostNumber;
use serde::{Deserialize, Serialize};

use crate::crypto;
use crate::error::TrustError;

/// The return tickets that a founder has given.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct ReturnTickets {
    hosts: BTreeMap<HostNumber, Given>,
}

/// The tickets of one host, as hashes of their secrets.
#[derive(Clone, Serialize, Deserialize)]
struct Given {
    newest: [u8; 32],
    /// The one that the host came back with.
    used: Option<[u8; 32]>,
}

impl fmt::Debug for ReturnTickets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.hosts.keys()).finish()
    }
}

impl ReturnTickets {
    /// Gives a host a ticket. The one that it came back with stays good as well.
    ///
    /// # Errors
    /// [`TrustError::Randomness`].
    pub fn issue(&mut self, host: HostNumber) -> Result<[u8; 16], TrustError> {
        let secret = crypto::random()?;
        let newest = crypto::hash(&secret);
        let used = self.hosts.get(&host).and_then(|given| given.used);
        self.hosts.insert(host, Given { newest, used });
        Ok(secret)
    }

    /// Whether a host may come back with this secret. It may ask again: the answer may be lost. From now on every other
    /// ticket of the host is void.
    pub fn is_good(&mut self, host: HostNumber, secret: &[u8; 16]) -> bool {
        let shown = crypto::hash(secret);
        let Some(given) = self.hosts.get_mut(&host) else { return false };
        let is_newest = crypto::equal(&given.newest, &shown);
        let is_used = given.used.is_some_and(|used| crypto::equal(&used, &shown));
        if is_newest || is_used {
            *given = Given { newest: shown, used: Some(shown) };
        }
        is_newest || is_used
    }

    /// Makes the tickets of a host void: it was removed.
    pub fn void(&mut self, host: HostNumber) {
        self.hosts.remove(&host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostNumber = HostNumber(3);

    #[test]
    fn a_host_comes_back_with_its_newest_ticket_or_with_the_one_it_came_with() {
        let mut tickets = ReturnTickets::default();
        let first = tickets.issue(HOST).unwrap();
        assert!(!tickets.is_good(HostNumber(4), &first), "that of another host");
        assert!(tickets.is_good(HOST, &first) && tickets.is_good(HOST, &first));
        // The second one is on its way when the host is lost.
        let second = tickets.issue(HOST).unwrap();
        assert!(tickets.is_good(HOST, &first) && !tickets.is_good(HOST, &second));
        let third = tickets.issue(HOST).unwrap();
        assert!(tickets.is_good(HOST, &third));
        assert!(!tickets.is_good(HOST, &first), "a newer one was used");
    }

    #[test]
    fn the_tickets_of_a_removed_host_are_void_and_nothing_shows_a_secret() {
        let mut tickets = ReturnTickets::default();
        let ticket = tickets.issue(HOST).unwrap();
        assert_eq!(format!("{tickets:?}"), "{HostNumber(3)}");
        assert!(!tickets.is_good(HOST, &[0; 16]));
        tickets.void(HOST);
        assert!(!tickets.is_good(HOST, &ticket));
    }
}
