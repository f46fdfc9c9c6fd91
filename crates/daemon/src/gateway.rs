//! This host as a gateway: it passes connections on from one network to another.
//!
//! A host that does not reach another one calls a gateway, and names the next host ([`Purpose::Pass`]). The gateway opens a
//! connection there and then passes bytes on in both directions ([`splices`]), beginning with the challenge of the next
//! host. It decides nothing, keeps nothing and reads nothing: both ends seal what they send, and resume behind a break.
//!
//! Only hosts of the machine are passed on. A host that comes back has no secret yet that proves that it is one: some of
//! these are passed on to the arbiter, for a moment.
//!
//! [`Purpose::Pass`]: landeck_wire::preamble::Purpose::Pass

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_wire::HostNumber;
use rustix::process::{Resource, getrlimit};
use tracing::info;

use crate::calls::dial::Dial;
use crate::calls::listener::Caller;
use crate::reactor::Reactor;
use crate::trunks::{NoWay, Trunks};

mod splices;

use splices::Splices;

/// The strangers that are passed on at the same time.
const STRANGERS_MAX: usize = 16;
/// How long a stranger is passed on. The arbiter answers it in a moment.
const STRANGER_TIME: Duration = Duration::from_secs(10);
/// The part of its open files that a host uses for the connections of others.
const FILES_SHARE: u64 = 4;
/// A connection that is passed on has so many ends.
const ENDS: u64 = 2;

/// The parts of the daemon that a gateway needs.
pub(crate) struct GatewayTools<'a> {
    /// The descriptors.
    pub(crate) reactor: &'a mut Reactor,
    /// The ways to other hosts.
    pub(crate) trunks: &'a mut Trunks,
    /// The time.
    pub(crate) now: Duration,
}

/// A caller for whom a connection is being opened.
#[derive(Debug)]
struct Passing {
    dial: Dial,
    caller: OwnedFd,
    address: SocketAddr,
    next: HostNumber,
    /// The way that is tried if this one fails.
    way: usize,
    is_stranger: bool,
}

/// The connections that this host passes on.
#[derive(Debug)]
pub(crate) struct Gateway {
    passing: HashMap<u64, Passing>,
    splices: Splices,
    most: usize,
}

impl Gateway {
    /// A gateway that passes nothing on yet. A connection is broken when one of its ends has taken nothing for so long.
    pub(crate) fn new(silence: Duration) -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::from(u16::MAX));
        let most = usize::try_from(files / FILES_SHARE / ENDS).unwrap_or(usize::MAX);
        Self { passing: HashMap::new(), splices: Splices::new(silence), most }
    }

    /// Takes a caller that is to be passed on. `is_proven` says whether it is a host of the machine, or why it is none.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub(crate) fn called(
        &mut self,
        tools: &mut GatewayTools<'_>,
        caller: Caller,
        is_proven: Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        let next = u16::try_from(caller.preamble.lane).map_err(|_| "it names no host")?;
        let next = HostNumber(next);
        let is_stranger = caller.preamble.from == HostNumber::NONE;
        match is_stranger {
            true if next != HostNumber::ARBITER => return Err("it is no host of the machine"),
            true if self.strangers() >= STRANGERS_MAX => {
                return Err("this gateway passes on too many hosts that come back");
            }
            true => {}
            false => is_proven?,
        }
        if !tools.trunks.is_own_gateway() {
            return Err("this host is no gateway");
        }
        if self.count() >= self.most {
            return Err("this gateway passes on as many connections as it can");
        }
        let _ = tools.reactor.unwatch(&caller.socket);
        let (socket, address) = (caller.socket, caller.address);
        self.dial(tools, (socket, address), (next, 0), is_stranger);
        Ok(())
    }

    /// The connections that are passed on, or being opened for that.
    pub(crate) fn count(&self) -> usize {
        self.passing.len() + self.splices.count()
    }

    fn strangers(&self) -> usize {
        let passing = self.passing.values().filter(|one| one.is_stranger).count();
        passing + self.splices.strangers()
    }

    /// Opens the connection to the next host, on this way or a later one. The caller's connection ends if there is none.
    fn dial(
        &mut self,
        tools: &mut GatewayTools<'_>,
        (caller, address): (OwnedFd, SocketAddr),
        (next, mut way): (HostNumber, usize),
        is_stranger: bool,
    ) {
        loop {
            let token = tools.reactor.token();
            // A host of the machine names each gateway itself. A stranger knows this one alone.
            let begun = match is_stranger {
                true => tools.trunks.begin_dial(tools.reactor, token, (next, way), tools.now),
                false => tools.trunks.begin_direct(tools.reactor, token, (next, way), tools.now),
            };
            way += 1;
            match begun {
                Ok(dial) => {
                    let passing = Passing { dial, caller, address, next, way, is_stranger };
                    return drop(self.passing.insert(token, passing));
                }
                Err(NoWay::Over) => {
                    return info!("a connection of {address} to host {}: no way", next.0);
                }
                Err(NoWay::Unknown(_) | NoWay::Failed(_)) => {}
            }
        }
    }

    /// Whether a token is one of the connections that are being opened.
    pub(crate) fn has(&self, token: u64) -> bool {
        self.passing.contains_key(&token)
    }

    /// Goes on with a connection that is ready.
    pub(crate) fn ready(&mut self, tools: &mut GatewayTools<'_>, token: u64) {
        let Some(passing) = self.passing.get_mut(&token) else { return };
        match passing.dial.go_on(tools.reactor, token) {
            Ok(false) => {}
            Ok(true) => {
                let Some(passing) = self.passing.remove(&token) else { return };
                tools.trunks.dial_succeeded_on(&passing.dial);
                let challenged = passing.dial.challenged();
                let _ = tools.reactor.unwatch(&challenged.socket);
                let ends = [passing.caller, challenged.socket];
                let time = passing.is_stranger.then_some(STRANGER_TIME);
                self.splices.splice(ends, challenged.challenge, time);
            }
            Err(_) => self.failed(tools, token),
        }
    }

    fn failed(&mut self, tools: &mut GatewayTools<'_>, token: u64) {
        let Some(passing) = self.passing.remove(&token) else { return };
        tools.trunks.dial_failed_on(&passing.dial, tools.now);
        let Passing { caller, address, next, way, is_stranger, .. } = passing;
        self.dial(tools, (caller, address), (next, way), is_stranger);
    }

    /// Gives up connections that take too long.
    pub(crate) fn tick(&mut self, tools: &mut GatewayTools<'_>) {
        let late = self.passing.iter().filter(|(_, one)| tools.now >= one.dial.deadline());
        for token in late.map(|(token, _)| *token).collect::<Vec<_>>() {
            self.failed(tools, token);
        }
    }

    /// Passes on what is under way, until all connections have ended or the time is over.
    pub(crate) fn finish(&self, time: Duration) {
        self.splices.finish(time);
    }

    /// When [`Gateway::tick`] is due.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.passing.values().map(|one| one.dial.deadline()).min()
    }
}
