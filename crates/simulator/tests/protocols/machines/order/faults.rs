//! Faults of simulated hosts, and what is looked at beyond one host: views, stable entries, the end.

use std::time::Duration;

use landeck_protocols::hosts::HostSight;
use landeck_protocols::order::{GroupChange, GroupStanding, HolderId};
use landeck_wire::{HostIncarnation, HostNumber};

use super::checks::log_holds;
use super::held::{CopyLog, Held, Trace};
use super::setting::{Act, Step, Stop};
use super::traces;
use super::{Event, HomeSight, World};
use crate::machines::host_checks::{Check, ensure};

impl World {
    pub(super) fn act(&mut self, act: Act) {
        if self.is_healed {
            return;
        }
        self.note(format!("{act:?}"));
        match act {
            Act::Cut(from, to) => *self.cuts.entry((from, to)).or_default() += 1,
            Act::Mend(from, to) => {
                let cuts = self.cuts.entry((from, to)).or_default();
                *cuts = cuts.saturating_sub(1);
            }
            Act::Pause(node) | Act::Freeze(node) if !self.runs(node) => {}
            Act::Pause(node) => {
                (self.nodes[node].is_paused, self.nodes[node].has_paused) = (true, true);
                self.nodes[node].clock.pause(self.now);
            }
            Act::Freeze(node) => self.nodes[node].is_frozen = true,
            Act::Resume(node) | Act::Thaw(node) => self.wake(node),
            Act::Crash(node, back_ms) => self.crash(node, back_ms),
            Act::Move(to) => self.move_homes(to),
            Act::Leave(node, back_ms) => self.leave(node, back_ms),
            Act::Die(node) => self.party_dies(node),
            Act::Join(node) => {
                let groups: Vec<u32> = self.nodes[node].held.keys().copied().collect();
                groups.into_iter().for_each(|group| self.add_party(node, group));
            }
        }
    }

    fn wake(&mut self, node: usize) {
        let current = &mut self.nodes[node];
        if !current.is_up || !(current.is_paused || current.is_frozen) {
            return;
        }
        if std::mem::take(&mut current.is_paused) {
            current.clock.resume(self.now);
        }
        current.is_frozen = false;
        // A driver's timer may be first: it looks before it has read its sockets.
        self.look(node, false);
        self.drain(node);
    }

    pub(super) fn heal(&mut self) {
        self.note("all faults end".into());
        self.sights = (1..=self.setting.groups as u32).map(|group| self.sight(group)).collect();
        (self.is_healed, self.quality.loss_permille) = (true, 0);
        self.cuts.clear();
        (0..self.nodes.len()).for_each(|node| self.wake(node));
    }

    /// Everything on a host ends; it is there again later.
    pub(super) fn crash(&mut self, node: usize, back_ms: u64) {
        if !self.nodes[node].is_up || node == 0 {
            return;
        }
        self.note(format!("host {node} ends"));
        let groups: Vec<u32> = self.nodes[node].held.keys().copied().collect();
        groups.into_iter().for_each(|group| self.end_holder(node, group));
        let current = &mut self.nodes[node];
        if std::mem::take(&mut current.is_paused) {
            current.clock.resume(self.now);
        }
        (current.is_up, current.is_frozen) = (false, false);
        (current.lease, current.applied) = (None, None);
        current.inbox.clear();
        current.standings.clear();
        current.leaving.clear();
        self.incarnations += 1;
        current.incarnation = self.incarnations;
        let incarnation = current.incarnation;
        self.plan(self.now + Duration::from_millis(back_ms), Event::Start { node, incarnation });
    }

    pub(super) fn start(&mut self, node: usize) {
        let with_host = self.draw.permille(500);
        let current = &mut self.nodes[node];
        (current.is_up, current.has_paused) = (true, false);
        current.boot += if with_host { 1_000 } else { 0 };
        self.start_lease(node);
        self.look(node, true);
    }

    pub(super) fn enter(&mut self, node: usize) {
        self.nodes[node].wants = true;
        self.nodes[node].leaving.clear();
    }

    fn leave(&mut self, node: usize, back_ms: u64) {
        if !self.runs(node) {
            return;
        }
        let current = &mut self.nodes[node];
        let ids = current.held.iter().map(|(group, held)| (*group, held.machine.id()));
        current.leaving = ids.collect();
        current.wants = false;
        self.plan(self.now + Duration::from_millis(back_ms), Event::Enter { node });
    }

    fn move_homes(&mut self, to: usize) {
        for node in 0..self.nodes.len() {
            for group in 1..=self.setting.groups as u32 {
                if self.runs(node) {
                    let to = Some(HostNumber(to as u16));
                    self.drive(node, group, |holder, now| holder.close(to, now).1);
                }
            }
        }
    }

    fn party_dies(&mut self, node: usize) {
        if !self.runs(node) {
            return;
        }
        let groups: Vec<u32> = self.nodes[node].held.keys().copied().collect();
        for group in groups {
            let Some(held) = self.nodes[node].held.get_mut(&group) else { continue };
            if let Some(party) = held.parties.pop() {
                self.drive(node, group, |holder, now| holder.died(party, now));
            }
            self.add_party(node, group);
        }
    }

    pub(super) fn end_holder(&mut self, node: usize, group: u32) {
        if let Some(held) = self.nodes[node].held.remove(&group) {
            self.stale += held.machine.dropped().old;
            self.traces.push(held.trace);
        }
    }

    /// The stop that is planned for this step.
    pub(super) fn stop_at(&mut self, step: Step, node: usize) -> Option<Stop> {
        if self.is_healed || node == 0 {
            return None;
        }
        let now = self.now;
        let is_it = |stop: &&mut Stop| stop.step == step && stop.count > 0 && stop.after <= now;
        let stop = self.setting.stops.iter_mut().find(is_it)?;
        stop.count -= 1;
        (stop.count == 0).then_some(*stop)
    }

    pub(super) fn stop(&mut self, node: usize, back_ms: u64) {
        self.stops += 1;
        self.crash(node, back_ms);
    }

    // ---- what is looked at

    /// The state of a group at its home, if that has begun its epoch.
    fn sight(&self, group: u32) -> Option<HomeSight> {
        let home = self.holders(group).filter(|held| held.machine.is_open());
        let home = home.max_by_key(|held| held.machine.epoch())?;
        let machine = &home.machine;
        Some(HomeSight {
            host: machine.id().host.0,
            epoch: machine.epoch(),
            length: machine.length(),
            lag: machine.length() - machine.stable(),
            counted: machine.counted().len(),
            slow: machine.slow().map(|slow| slow.host.0),
        })
    }

    /// The holders of a group on all hosts whose incarnations run.
    fn holders(&self, group: u32) -> impl Iterator<Item = &Held> {
        self.nodes.iter().filter_map(move |node| node.held.get(&group))
    }

    fn those(&self, group: u32, ids: impl Fn(HolderId) -> bool) -> Vec<&Held> {
        self.holders(group).filter(|held| ids(held.machine.id())).collect()
    }

    pub(super) fn check_view(&mut self, node: usize, of: (u32, u64), position: u64) {
        let mut checks = std::mem::take(&mut self.checks);
        let check = match self.nodes[node].held.get(&of.0) {
            Some(home) if home.machine.is_open() && home.machine.epoch() == of.1 => {
                let counted = home.machine.counted();
                let holders = self.those(of.0, |id| counted.contains(&id));
                let is_followed = self.homes.standing(of.0).is_some_and(|it| it.epoch == of.1);
                checks.view(of, (home, position), &holders, is_followed)
            }
            _ => Ok(()),
        };
        self.checks = checks;
        self.check(check);
    }

    pub(super) fn check_stable(&mut self, node: usize, group: u32) {
        let mut checks = std::mem::take(&mut self.checks);
        let check = match self.nodes[node].held.get(&group) {
            Some(home) if home.machine.is_open() => {
                let counted = home.machine.counted();
                checks.stable(group, home, &self.those(group, |id| counted.contains(&id)))
            }
            _ => Ok(()),
        };
        self.checks = checks;
        self.check(check);
    }

    /// A home accepts an entry. The view of its host ends before the arbiter calls the host lost, unless its clock stood still.
    pub(super) fn check_accepted(&mut self, node: usize) {
        let current = &self.nodes[node];
        let incarnation = HostIncarnation(current.incarnation);
        let is_lost = self.detectors.get(&node).is_some_and(|detector| {
            detector.incarnation() == incarnation && detector.sight() == HostSight::Lost
        });
        let check = ensure(!is_lost || current.has_paused, "a lost home accepts nothing", || {
            format!("host {node} accepts entries")
        });
        self.check(check);
    }

    pub(super) fn check_safe(&mut self, node: usize, group: u32, position: u64) {
        let Some(held) = self.nodes[node].held.get(&group) else { return };
        let present = held.machine.fold().present();
        // One that was put out and has not heard of it has no say.
        let registered = self.homes.standing(group).map(|it| &it.registered);
        let counts = |id| present.contains(&id) && registered.is_some_and(|it| it.contains(&id));
        let check = self.checks.safe(held, position, &self.those(group, counts));
        self.check(check);
    }

    pub(super) fn check_loss(&mut self, group: u32) {
        let mut checks = std::mem::take(&mut self.checks);
        let mut standing = GroupStanding::default();
        let its = self.words.iter().filter(|word| word.group == group);
        its.filter(|word| word.change != GroupChange::Lost).for_each(|word| standing.apply(word));
        let living = self.those(group, |id| standing.registered.contains(&id));
        let check = checks.lost(&living);
        self.checks = checks;
        self.check(check);
    }

    /// After the time of rest all hosts hold all groups that are not lost, alike, and every request is answered.
    pub(super) fn at_rest(&mut self) -> Check {
        for group in 1..=self.setting.groups as u32 {
            let is_lost = self.homes.standing(group).is_none_or(|it| it.is_lost);
            let mut traces: Vec<Trace> =
                self.traces.iter().filter(|it| it.group == group).cloned().collect();
            let mut log = CopyLog::default();
            if !is_lost {
                self.group_rests(group)?;
                for held in self.holders(group) {
                    traces.push(Trace { is_survivor: true, ..held.trace.clone() });
                    log = held.log.clone();
                }
            }
            log_holds(group, &log, &self.requests)?;
            traces::all_hold(group, &traces.iter().collect::<Vec<_>>(), &self.requests)?;
        }
        Ok(())
    }

    fn group_rests(&self, group: u32) -> Check {
        let Some(first) = self.holders(group).next() else { return Ok(()) };
        let length = first.machine.length();
        for (host, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.wants) {
            if self.setting.only.is_some_and(|(of, it)| of == host && it != group) {
                continue;
            }
            let Some(held) = node.held.get(&group) else {
                return ensure(false, "every host takes part at last", || {
                    format!("host {host} holds no group {group}")
                });
            };
            let machine = &held.machine;
            let positions = [machine.length(), machine.stable(), machine.delivered()];
            ensure(positions == [length; 3], "everything is stored, stable and delivered", || {
                format!("host {host} has {positions:?} of {length} in group {group}")
            })?;
            ensure(
                held.log.prefix(length) == first.log.prefix(length),
                "copies are alike",
                || format!("host {host} has another log of group {group}"),
            )?;
            ensure(held.members == first.members, "all agree on the last view", || {
                format!("host {host}: {:?}, not {:?}", held.members, first.members)
            })?;
            let missing = held.parties.iter().find(|party| !held.members.contains(party));
            ensure(missing.is_none(), "the last view has all living members", || {
                format!("{missing:?} is not in {:?}", held.members)
            })?;
            ensure(machine.dropped().garbled == 0, "no message is garbled", || {
                format!("host {host} has dropped {:?}", machine.dropped())
            })?;
        }
        let living: Vec<HolderId> = self.holders(group).map(|held| held.machine.id()).collect();
        let is_open = |(key, request): &(&(u32, _, u64), &super::Request)| {
            let (of, party, _): (u32, landeck_protocols::order::OrderParty, u64) = **key;
            of == group && living.contains(&party.holder) && !request.is_answered
        };
        let open = self.requests.iter().find(is_open);
        ensure(open.is_none(), "every request is answered", || format!("{open:?}"))?;
        let members = first.members.iter().find(|party| !living.contains(&party.holder));
        ensure(members.is_none(), "the last view has no lost member", || format!("{members:?}"))
    }
}
