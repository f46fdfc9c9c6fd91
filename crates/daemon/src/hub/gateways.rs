//! The life of gateways and of the hosts behind them, which their kernels cannot show the arbiter.

use tracing::info;

use super::*;

/// The knowledge of the arbiter about hosts that it does not hear.
#[derive(Debug, Default)]
pub(super) struct Unheard {
    /// The gateways that all hosts were told about.
    told: BTreeSet<HostNumber>,
    /// The hosts that are not heard, and since when.
    doubted: BTreeMap<HostNumber, Duration>,
}

impl Hub {
    /// Looks at the hosts that are not heard; on the arbiter. It asks gateways whether the kernels of those behind them answer,
    /// and tells all hosts, once, which gateways are not heard.
    pub(super) fn look_at_unheard(&mut self, now: Duration) {
        if !self.members.is_arbiter() {
            return;
        }
        let own = self.own();
        let hosts: Vec<HostNumber> = self.members.hosts().map(|entry| entry.host).collect();
        let is_doubted = |host: &HostNumber| self.watch.doubts(*host, now);
        let doubted: Vec<HostNumber> = hosts.iter().copied().filter(is_doubted).collect();
        self.unheard.doubted.retain(|host, _| doubted.contains(host));
        for host in &doubted {
            self.unheard.doubted.entry(*host).or_insert(now);
        }
        for &host in &doubted {
            let is_behind = self.trunks.socket(host).is_none();
            let gateways = is_behind.then(|| self.trunks.last_gateways_to(host, now));
            for gateway in gateways.into_iter().flatten().filter(|gateway| *gateway != own) {
                self.send(gateway, &DaemonMessage::KernelWanted { host });
            }
        }
        // A host behind a gateway may be unheard because of that: it has time to take another way.
        let time = self.station.options.host_timeout() / 2;
        let is_its_own = |host: &HostNumber| {
            let since = self.unheard.doubted.get(host).copied().unwrap_or(now);
            self.trunks.socket(*host).is_some() || now >= since + time
        };
        let silent: BTreeSet<HostNumber> = doubted
            .into_iter()
            .filter(|host| *host != own && self.trunks.is_gateway(*host) && is_its_own(host))
            .collect();
        let before = std::mem::replace(&mut self.unheard.told, silent);
        let new: Vec<HostNumber> = self.unheard.told.difference(&before).copied().collect();
        for gateway in new {
            info!("gateway {}: not heard, so connections take other ways", gateway.0);
            for host in hosts.iter().filter(|host| **host != gateway) {
                self.send(*host, &DaemonMessage::GatewaySilent { gateway });
            }
        }
    }

    /// Takes a message about the ways to other hosts.
    pub(super) fn for_ways(&mut self, from: HostNumber, message: DaemonMessage) {
        let now = self.now();
        let (is_arbiter, is_from_arbiter) =
            (self.members.is_arbiter(), from == HostNumber::ARBITER);
        match message {
            DaemonMessage::GatewaySilent { gateway } if is_from_arbiter => {
                self.trunks.gateway_silent(gateway, now);
                // Lanes over it are opened anew on other ways, if there are some.
                self.with_lanes(|lanes, tools| lanes.leave_gateway(tools, gateway));
            }
            DaemonMessage::Narrow => drop(self.trunks.keep_short(from)),
            DaemonMessage::StepBroken { from, to } if is_arbiter => {
                self.trunks.note_broken((from, to), now);
            }
            DaemonMessage::KernelWanted { host } if is_from_arbiter => {
                if let Some(silence) = self.trunks.socket(host).and_then(peer::kernel_silence) {
                    let silent_ms = u64::try_from(silence.as_millis()).unwrap_or(u64::MAX);
                    self.send(from, &DaemonMessage::KernelAnswers { host, silent_ms });
                }
                // Its kernel acknowledges this.
                self.trunks.nudge(host);
            }
            DaemonMessage::KernelAnswers { host, silent_ms } if is_arbiter => {
                let silence = Duration::from_millis(silent_ms);
                let at = now.saturating_sub(silence);
                self.trunks.wait_for(host, at);
                if let Some(incarnation) = self.trunks.incarnation(host) {
                    self.watch.kernel_answers(host, incarnation, at);
                }
            }
            _ => {}
        }
    }
}
