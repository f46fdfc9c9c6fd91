//! The contents that come out of trunks, and their consequences.

use std::time::Duration;

use landeck_trust::KeyHash;
use landeck_wire::{ControlMessage, HostNumber};
use tracing::info;

use super::{Attempt, SECRET_LABEL, Trunks, TrunksEvent, Use};

use crate::heartbeats::peer_address;
use crate::reactor::Reactor;
use crate::trunks::envelope::{Envelope, EnvelopeClass, HOPS_MAX};
use crate::trunks::link::Parcel;
use crate::trunks::trunk::{Receipt, TrunkError, TrunkEvent};

impl Trunks {
    /// Handles what a trunk has read, in order, and its end.
    pub(super) fn digest(
        &mut self,
        reactor: &Reactor,
        token: u64,
        events: Vec<TrunkEvent>,
        outcome: Result<(), TrunkError>,
        now: Duration,
    ) {
        for event in events {
            if let Err(error) = self.handle(reactor, token, event, now) {
                return self.end(reactor, token, &error, now);
            }
            if !self.trunks.contains_key(&token) {
                return;
            }
        }
        if let Err(error) = outcome {
            return self.end(reactor, token, &error, now);
        }
        self.unwritten.insert(token);
    }

    fn handle(
        &mut self,
        reactor: &Reactor,
        token: u64,
        event: TrunkEvent,
        now: Duration,
    ) -> Result<(), TrunkError> {
        match event {
            TrunkEvent::Authenticated(key) => self.authenticated(token, key, now),
            TrunkEvent::Came(envelope, content) => {
                self.came(reactor, token, envelope, content, now)
            }
            TrunkEvent::Open(receipt) => self.opened(reactor, token, receipt, now),
        }
    }

    /// The other side has shown a key. The session has compared it with the host table, except that of a guest.
    fn authenticated(&mut self, token: u64, key: KeyHash, now: Duration) -> Result<(), TrunkError> {
        let Some(one) = self.trunks.get_mut(&token) else { return Ok(()) };
        one.key = Some(key);
        let Use::Link { host, .. } = one.serves else { return Ok(()) };
        let link = self.links.get(&host).ok_or(TrunkError::Order)?;
        if link.entry.key != key.0 {
            return Err(TrunkError::Order);
        }
        one.trunk.believe(link.receipt(), now);
        if one.stranger.take().is_some() {
            self.events.push_back(TrunksEvent::Recognised(token));
        }
        Ok(())
    }

    fn opened(
        &mut self,
        reactor: &Reactor,
        token: u64,
        theirs: Receipt,
        now: Duration,
    ) -> Result<(), TrunkError> {
        let Some(one) = self.trunks.get(&token) else { return Ok(()) };
        let Use::Link { host, by } = one.serves else { return Err(TrunkError::Order) };
        let secret = one.trunk.export(SECRET_LABEL)?;
        let address = one.direct_socket().and_then(peer_address);
        if let Some(socket) = one.trunk.socket() {
            self.tune(socket, true);
        }
        let link = self.links.get_mut(&host).ok_or(TrunkError::Order)?;
        if link.has_outlived(theirs.run) {
            return Err(TrunkError::FormerRun);
        }
        match link.loser(token, (by, theirs.run), now) {
            Some(loser) if loser == token => {
                self.drop_trunk(reactor, token);
                return Ok(());
            }
            Some(older) => self.drop_trunk(reactor, older),
            None => {}
        }
        let Some(link) = self.links.get_mut(&host) else { return Ok(()) };
        if let Some(address) = address {
            link.learn(address);
        }
        if link.meet(theirs.run) {
            self.events.push_back(TrunksEvent::Restarted(host, theirs.run));
        }
        let is_right = link.carry((token, by), theirs, secret, now);
        match link.attempt {
            Attempt::Dial(dial) => drop(self.dials.remove(&dial)),
            // The other one that this side has begun is judged when it opens, too.
            Attempt::Opening(_) | Attempt::Pause(_) => {}
        }
        link.attempt = Attempt::Pause(now);
        if !is_right {
            return Err(TrunkError::Order);
        }
        self.is_reached(host, now);
        self.events.push_back(TrunksEvent::Up(host));
        Ok(())
    }

    fn drop_trunk(&mut self, reactor: &Reactor, token: u64) {
        if let Some(mut gone) = self.forget(token) {
            gone.trunk.close(reactor);
            self.leave_place(token, &gone);
        }
    }

    fn came(
        &mut self,
        reactor: &Reactor,
        token: u64,
        envelope: Envelope,
        content: Vec<u8>,
        now: Duration,
    ) -> Result<(), TrunkError> {
        let Some(one) = self.trunks.get_mut(&token) else { return Ok(()) };
        let (host, key) = match (one.serves, one.key) {
            (Use::Link { host, .. }, Some(_)) => (host, None),
            (Use::Guest, Some(key)) => (HostNumber::NONE, Some(key)),
            (_, None) => return Err(TrunkError::Order),
        };
        if let Some(key) = key {
            if envelope.class != EnvelopeClass::Daemon {
                return Err(TrunkError::Order);
            }
            self.events.push_back(TrunksEvent::Guest { trunk: token, key, content });
            return Ok(());
        }
        let (envelope, content) = match one.trunk.judge(envelope, content)? {
            None => return Ok(()),
            Some(TrunkEvent::Came(envelope, content)) => (envelope, content),
            Some(other) => return self.handle(reactor, token, other, now),
        };
        let link = self.links.get_mut(&host).ok_or(TrunkError::Order)?;
        match envelope.class {
            EnvelopeClass::Receipt => {
                let receipt = Receipt::decode(&content).map_err(|_| TrunkError::Order)?;
                if link.confirm(receipt) { Ok(()) } else { Err(TrunkError::Order) }
            }
            EnvelopeClass::Heartbeat => {
                let class = EnvelopeClass::Heartbeat;
                self.events.push_back(TrunksEvent::Content { from: host, class, content });
                Ok(())
            }
            EnvelopeClass::Daemon | EnvelopeClass::Job | EnvelopeClass::Bulk => {
                let begins = link.receive(envelope.class, &content);
                match begins.map_err(|()| TrunkError::Order)? {
                    None => Ok(()),
                    Some(at) => self.route(reactor, host, envelope, content[at..].to_vec(), now),
                }
            }
            EnvelopeClass::Probe => Err(TrunkError::Order),
        }
    }

    /// Keeps a content for this host, and relays another one. Only the arbiter speaks for other hosts.
    fn route(
        &mut self,
        reactor: &Reactor,
        through: HostNumber,
        envelope: Envelope,
        content: Vec<u8>,
        now: Duration,
    ) -> Result<(), TrunkError> {
        let Envelope { source, destination, class, hops, .. } = envelope;
        let is_own = source == through || through == HostNumber::ARBITER;
        if !is_own {
            return Err(TrunkError::Order);
        }
        if destination == self.own {
            self.events.push_back(TrunksEvent::Content { from: source, class, content });
        } else if self.own == HostNumber::ARBITER && hops < HOPS_MAX {
            let hops = hops + 1;
            self.post(
                reactor,
                Parcel { source, destination, class, hops, content: content.into() },
                now,
            );
        } else {
            return Err(TrunkError::Order);
        }
        Ok(())
    }

    /// Confirms the contents that have come on a trunk since the last receipt.
    fn confirm(&mut self, token: u64) {
        let Some(one) = self.trunks.get_mut(&token).filter(|one| one.trunk.is_open()) else {
            return;
        };
        let Use::Link { host, .. } = one.serves else { return };
        if let Some(receipt) = self.links.get_mut(&host).and_then(|link| link.due_receipt()) {
            one.trunk.put_own(EnvelopeClass::Receipt, &receipt.encode());
        }
    }

    /// Writes everything that was put into trunks since the last time. Nothing leaves before.
    pub(crate) fn write_out(&mut self, reactor: &Reactor, now: Duration) {
        while let Some(token) = self.unwritten.pop_first() {
            self.write(reactor, token, now);
        }
    }

    /// Fills a trunk and writes it, again and again as long as the kernel takes everything.
    fn write(&mut self, reactor: &Reactor, token: u64, now: Duration) {
        self.confirm(token);
        loop {
            let Some(one) = self.trunks.get_mut(&token) else { return };
            let link = match one.serves {
                Use::Link { host, .. } => self.links.get_mut(&host),
                Use::Guest => None,
            };
            let link = link.filter(|link| link.trunk() == Some(token));
            let mut has_more = false;
            if let Some(link) = link {
                link.fill(&mut one.trunk);
                has_more = link.has_more();
            }
            if let Err(error) = one.trunk.write(reactor) {
                return self.end(reactor, token, &error, now);
            }
            if std::mem::take(&mut one.is_answered) {
                return self.drop_trunk(reactor, token);
            }
            if !has_more || !one.trunk.has_room() {
                return;
            }
        }
    }

    /// Ends a trunk, and counts or renews what follows from that.
    pub(super) fn end(&mut self, reactor: &Reactor, token: u64, error: &TrunkError, now: Duration) {
        let Some(mut gone) = self.forget(token) else { return };
        // A session that has failed still tells the other side why.
        let _ = gone.trunk.write(reactor);
        if let Some(address) = gone.stranger {
            self.events.push_back(TrunksEvent::Refused(token, refusal(error), address));
        }
        let Use::Link { host, by } = gone.serves else { return };
        if gone.trunk.is_narrow(error) {
            self.narrow(host);
        }
        let is_gateway = self.is_gateway(host);
        let Some(link) = self.links.get_mut(&host) else { return };
        let why = format!("{}: {error}", gone.address);
        if link.dropped(token, now) {
            info!("trunk to host {}: broken, and opened again if it can be: {why}", host.0);
            match gone.trunk.socket() {
                Some(_) => link.failures.push(why),
                None => link.lost_shell(why),
            }
            // The side that did not dial leaves the renewal to the other one for a moment.
            let by_other = by != self.own && host != HostNumber::ARBITER;
            link.attempt = Attempt::Pause(if by_other { now + super::COURTESY } else { now });
            let is_kept = [self.own, host].contains(&HostNumber::ARBITER) || is_gateway;
            if !is_kept {
                link.is_wanted = false;
            }
        } else if link.attempt == Attempt::Opening(token) {
            let ways = self.ways(host, now).len();
            if let Some(link) = self.links.get_mut(&host) {
                link.failed(why, false, ways, now);
            }
        }
    }

    /// A host's daemon has started again as this run, as the arbiter says. A trunk to the run before is over, whether or not its
    /// end has come, and secrets that only that had are of no use.
    pub(crate) fn host_restarted(
        &mut self,
        reactor: &Reactor,
        host: HostNumber,
        run: u32,
        now: Duration,
    ) {
        if let Some(token) = self.links.get_mut(&host).and_then(|link| link.outlive(run)) {
            self.end(reactor, token, &TrunkError::FormerRun, now);
        }
    }

    /// Gives up a host: its link ends with everything in it.
    pub(super) fn give_up(
        &mut self,
        reactor: &Reactor,
        host: HostNumber,
        why: String,
        now: Duration,
    ) {
        if self.own == HostNumber::ARBITER || host == HostNumber::ARBITER {
            self.remove_host(reactor, host);
        } else if let Some(link) = self.links.get_mut(&host) {
            // It may be reached when it is needed again.
            link.give_up(now);
        }
        self.events.push_back(TrunksEvent::Down(host, why));
    }
}

/// The reason in the words of the list of refusals.
fn refusal(error: &TrunkError) -> &'static str {
    match error {
        TrunkError::Trust(landeck_trust::TrustError::WrongKey { .. }) => {
            "it has another key than the host table says"
        }
        TrunkError::Trust(_) => "its TLS failed",
        TrunkError::Ended => "it ended within its handshake",
        TrunkError::FormerRun => "its daemon has been started again since",
        TrunkError::System(_) => "it broke within its handshake",
        TrunkError::Handshake => "it did not prove who it is in time",
        TrunkError::Envelope(_) | TrunkError::Order | TrunkError::Probe => {
            "it sent what no daemon sends"
        }
    }
}
