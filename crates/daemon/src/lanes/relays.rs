//! Connections to the relays of other hosts: dialled for processes of this host, and taken from processes elsewhere.
//!
//! They need no agreement of both daemons, as lanes do: a relay serves every process of the job, and a process that finds
//! its connection closed asks again.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use landeck_trust::{LaneEnd, lane_keys};
use landeck_wire::handover::{Handover, LaneKeys};
use landeck_wire::preamble::{Preamble, Purpose};
use landeck_wire::{HostNumber, Incarnation, ProcessId, Slot};

use super::{LaneTools, Lanes};
use crate::dial::Dial;
use crate::listener::Caller;
use crate::relay::RelayCaller;

/// The connections that are being opened.
#[derive(Debug, Default)]
pub(super) struct RelayDials {
    pub(super) dials: HashMap<u64, (Dial, Wish)>,
    awaited: Vec<Wish>,
    /// Numbers them.
    last: u32,
}

/// A process's wish for a relay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// The process's connection to this daemon.
    resident: u64,
    pub(super) own: ProcessId,
    /// A process of the other host, which names its segment.
    there: ProcessId,
    host: HostNumber,
    /// The place of the next address in the host's entry.
    address: usize,
    /// It is for messages, and not for regions.
    is_for_messages: bool,
}

impl Lanes {
    /// A process wants the relay of a host. `Err` if no process asks so.
    pub(super) fn relay_wanted(
        &mut self,
        tools: &mut LaneTools,
        resident: u64,
        (slot, incarnation, host): (u32, u32, u32),
    ) -> Result<(), ()> {
        let Some(one) = self.residents.get(&resident) else { return Ok(()) };
        let part = tools.parts.get(one.job).ok_or(())?;
        let is_known =
            slot < part.segment.plan().slots() && part.segment.incarnation(slot) == incarnation;
        let host = u16::try_from(host).map(HostNumber).map_err(drop)?;
        let is_there = |far: &u32| part.host_of(*far) == host;
        let far = (0..part.far.len() as u32).find(is_there).filter(|_| is_known).ok_or(())?;
        let there = part.far[far as usize];
        let (slot, incarnation) = (Slot(slot), Incarnation(incarnation));
        let own = ProcessId { host: part.host_id(), slot, incarnation };
        let is_for_messages = one.process.is_some();
        if one.process.is_some_and(|process| process != own) {
            return Err(());
        }
        self.dial_relay(tools, Wish { resident, own, there, host, address: 0, is_for_messages });
        Ok(())
    }

    /// Dials the next address of a relay's host.
    fn dial_relay(&mut self, tools: &mut LaneTools, mut wish: Wish) {
        if tools.trunks.newest_secret(wish.host).is_none() {
            tools.trunks.want(wish.host, tools.now);
            return self.relays.awaited.push(wish);
        }
        loop {
            let address = tools.trunks.addresses(wish.host).get(wish.address).copied();
            let Some(address) = address else { return self.refuse_relay(tools, wish) };
            wish.address += 1;
            let token = tools.reactor.token();
            if let Ok(dial) = Dial::begin(tools.reactor, token, address, tools.now) {
                self.relays.dials.insert(token, (dial, wish));
                return;
            }
        }
    }

    fn refuse_relay(&mut self, tools: &LaneTools, wish: Wish) {
        let host = u32::from(wish.host.0);
        let message = match wish.is_for_messages {
            true => Handover::NoRelay { host },
            false => Handover::Unreachable { far: host },
        };
        self.tell(tools.reactor, wish.resident, &message, None);
    }

    /// Goes on with a connection to a relay that is ready.
    pub(super) fn relay_dialled(&mut self, tools: &mut LaneTools, token: u64) {
        let Some((dial, _)) = self.relays.dials.get_mut(&token) else { return };
        match dial.go_on(tools.reactor, token) {
            Ok(false) => {}
            Ok(true) => {
                let Some((dial, wish)) = self.relays.dials.remove(&token) else { return };
                match self.answer_relay(tools, dial, wish) {
                    Some((socket, lane, keys)) => {
                        let host = u32::from(wish.host.0);
                        let message = match wish.is_for_messages {
                            true => Handover::Relayed { host, keys },
                            false => Handover::Lane { far: host, lane, keys },
                        };
                        self.tell(tools.reactor, wish.resident, &message, Some(socket));
                    }
                    None => self.dial_relay(tools, wish),
                }
            }
            Err(_) => self.relay_failed(tools, token),
        }
    }

    fn relay_failed(&mut self, tools: &mut LaneTools, token: u64) {
        if let Some((_, wish)) = self.relays.dials.remove(&token) {
            self.dial_relay(tools, wish);
        }
    }

    /// Answers a challenge with the preamble of a relay.
    fn answer_relay(
        &mut self,
        tools: &LaneTools,
        dial: Dial,
        wish: Wish,
    ) -> Option<(OwnedFd, u32, LaneKeys)> {
        let (job, _) = tools.parts.with_segment(wish.own.host)?;
        let (key_generation, secret) = tools.trunks.newest_secret(wish.host)?;
        self.relays.last = self.relays.last.wrapping_add(1);
        let (lane, challenged) = (self.relays.last, dial.challenged());
        let preamble = Preamble {
            purpose: Purpose::Relay,
            machine: self.machine,
            job,
            wanted: wish.there,
            own: wish.own,
            lane,
            key_generation,
            to: wish.host,
            from: self.own,
            is_plain: self.is_plain,
        };
        let cipher = self.cipher(tools.trunks, wish.host);
        let keys = challenged.prove(&preamble, secret, cipher).ok()?;
        tools.reactor.unwatch(&challenged.socket).ok()?;
        Some((challenged.socket, lane, keys))
    }

    /// The trunk to a host is new.
    pub(super) fn relay_host_up(&mut self, tools: &mut LaneTools, host: HostNumber) {
        for wish in self.awaited_relays(host) {
            self.dial_relay(tools, wish);
        }
    }

    /// No trunk to a host could be opened, or the host is lost.
    pub(super) fn relay_host_down(&mut self, tools: &LaneTools, host: HostNumber) {
        for wish in self.awaited_relays(host) {
            self.refuse_relay(tools, wish);
        }
    }

    fn awaited_relays(&mut self, host: HostNumber) -> Vec<Wish> {
        self.relays.awaited.extract_if(.., |wish| wish.host == host).collect()
    }

    /// Gives up connections that take too long.
    pub(super) fn look_at_relays(&mut self, tools: &mut LaneTools) {
        let late = self.relays.dials.iter().filter(|(_, (dial, _))| tools.now >= dial.deadline());
        for token in late.map(|(token, _)| *token).collect::<Vec<_>>() {
            self.relay_failed(tools, token);
        }
    }

    /// Takes a caller that wants this host's relay. `Err` is the reason why it was refused.
    pub(crate) fn relay_called(
        &mut self,
        tools: &mut LaneTools,
        caller: Caller,
    ) -> Result<RelayCaller, &'static str> {
        let secret = self.verified(tools, &caller)?;
        let (preamble, host) = (&caller.preamble, caller.preamble.from);
        let part = tools.parts.get(preamble.job).ok_or("its job has no part here")?;
        let far = part.place(preamble.own).ok_or("its process is none of the job")?;
        let cipher = self.cipher(tools.trunks, host);
        let keys = lane_keys(&secret, &caller.challenge, preamble, cipher, LaneEnd::Acceptor);
        let segment = part.segment.clone();
        let process = preamble.own;
        let _ = tools.reactor.unwatch(&caller.socket);
        Ok(RelayCaller { socket: caller.socket, keys, process, far, segment, host })
    }
}
