//! Agreement by messages: all members that return get the same result, whichever members die, and when.
//!
//! ```text
//! member 1    member 0 (leader)      member 2
//!    │  state →      │      ← state    │       its part, the outcome it accepted
//!    │         all states are in       │
//!    │  ← proposal   │   proposal →    │
//!    │  accepted →   │   ← accepted    │
//!    │     all living accepted it      │
//!    │  ← decision   │   decision →    │       each returns at once
//! ```
//!
//! The first member that is not gone leads, and the number of the leader is the *round*. A member that sees the leader
//! die states its case to the next one, and from then on accepts no proposal of an earlier round. A leader that took
//! over asks all living members, also those that have returned. It proposes the outcome that was accepted in the latest
//! round before it. Only if there is none, it combines the parts. So an outcome that one member has returned was
//! accepted by all living members, and no later leader can propose another. The outcome is uniform, even among members
//! that return and then die. A member keeps its last outcome for members that ask late, and returns as soon as it has
//! it, without waiting for others.
//!
//! Nothing here knows time: the loss of a member is an input. Such inputs are believed, and passed on with every state.
//! A living member that was cut off from another one learns from the decision that it does not count
//! ([`Verdict::Excluded`]). Only if no member is in touch with both of two living parts of a group can these decide
//! differently.
//!
//! Without deaths a member sends two messages and the leader two to each. Sources: Chandra, Toueg, "Unreliable Failure
//! Detectors for Reliable Distributed Systems" (1996), for rounds and leaders; Herault et al., "Practical Scalable
//! Consensus for Pseudo-Synchronous Distributed Systems" (2015), for returning early.

mod message;

pub use message::{Message, NotAMessage};

/// The contribution of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Flags; the outcome has the bits that are set in all parts.
    pub flags: u32,
    /// The members whose death it has acknowledged, in order.
    pub acknowledged: Vec<u32>,
    /// The member's offer for a new group, in words that have no meaning here. If the first one is zero, nothing is
    /// offered.
    pub offer: [u64; 3],
}

/// Whether a member can still take part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberStanding {
    /// It can take part.
    #[default]
    Lives,
    /// It has left in good order.
    Left,
    /// It has died, or no member reaches it.
    Died,
}

/// The result of an agreement, equal at all members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The part of each member; `None` for members that went before. One entry for each member.
    pub parts: Vec<Option<Part>>,
    /// The standing of each member. One entry for each member.
    pub standing: Vec<MemberStanding>,
}

/// The summary of an agreement, equal at all members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The bits that are set in the flags of all members that brought a part.
    pub flags: u32,
    /// The members that have left or died, in order.
    pub gone: Vec<u32>,
    /// Every member that is not gone has acknowledged all deaths.
    pub are_acknowledged: bool,
    /// Some members want a new group, others do not.
    pub is_mixed: bool,
}

impl Outcome {
    /// The sum of what was agreed on.
    pub fn agreed(&self) -> Agreed {
        Agreed {
            flags: self.flags(),
            gone: self.gone(),
            are_acknowledged: self.are_acknowledged(),
            is_mixed: self.is_mixed(),
        }
    }

    /// The bits that are set in the flags of all parts.
    pub fn flags(&self) -> u32 {
        self.parts.iter().flatten().fold(u32::MAX, |flags, part| flags & part.flags)
    }

    /// The members that are gone, in order.
    pub fn gone(&self) -> Vec<u32> {
        let numbered = (0..).zip(&self.standing);
        numbered
            .filter(|(_, standing)| **standing != MemberStanding::Lives)
            .map(|(at, _)| at)
            .collect()
    }

    /// Whether all members that are not gone had acknowledged all deaths.
    pub fn are_acknowledged(&self) -> bool {
        let numbered = (0..).zip(&self.standing);
        let died: Vec<u32> =
            numbered.filter(|(_, of)| **of == MemberStanding::Died).map(|(at, _)| at).collect();
        self.living().all(|part| died.iter().all(|dead| part.acknowledged.contains(dead)))
    }

    /// Whether some members want a new group and others do not.
    pub fn is_mixed(&self) -> bool {
        let wants = |part: &Part| part.offer[0] != 0;
        self.living().any(wants) && !self.living().all(wants)
    }

    /// The parts of the members that are not gone.
    fn living(&self) -> impl Iterator<Item = &Part> {
        let numbered = self.parts.iter().zip(&self.standing);
        numbered
            .filter(|(_, of)| **of == MemberStanding::Lives)
            .filter_map(|(part, _)| part.as_ref())
    }
}

/// An event for an agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A message of a member has arrived.
    Heard {
        /// The member.
        from: u32,
        /// The message.
        message: Message,
    },
    /// A member is gone. Reporting this early loses none of its earlier messages.
    Gone {
        /// The member.
        member: u32,
        /// Whether it died, or left in good order.
        standing: MemberStanding,
    },
}

/// A message to be sent. If its receiver is gone it may be dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    /// The member.
    pub to: u32,
    /// The message.
    pub message: Message,
}

/// The end of an agreement for a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All members that return have this outcome.
    Agreed(Outcome),
    /// The others have agreed that this member is gone: they do not reach it.
    Excluded,
}

/// The agreements of a group, one after the other, as one member takes part in them.
#[derive(Clone, Debug)]
pub struct Agreement {
    own: u32,
    standing: Vec<MemberStanding>,
    /// The number of the agreement that this member was in last; 0 before the first.
    number: u32,
    stage: Stage,
    /// The outcome of the one before, for late members.
    previous: Option<Outcome>,
    /// Messages about the next agreement: the last of each kind from each member.
    early: Vec<(u32, Message)>,
}

#[derive(Clone, Debug)]
enum Stage {
    /// This member has brought no part yet.
    Idle,
    UnderWay(Going),
    Decided(Outcome),
}

/// An agreement that is not decided here.
#[derive(Clone, Debug)]
struct Going {
    part: Part,
    /// Proposals of leaders before this one are no longer accepted.
    round: u32,
    /// The outcome that was accepted last, with the round.
    accepted: Option<(u32, Outcome)>,
    /// The leader's state, while this member leads.
    lead: Option<Lead>,
}

/// The state of a leader.
#[derive(Clone, Debug)]
struct Lead {
    /// The part and the accepted outcome of each member, if it has stated them.
    states: Vec<Option<State>>,
    /// The proposal, and which members have accepted it.
    proposal: Option<(Outcome, Vec<bool>)>,
}

type State = (Part, Option<(u32, Outcome)>);

impl Agreement {
    /// Creates the agreements of a group of `size` members for member `own`.
    pub fn new(size: u32, own: u32) -> Self {
        let standing = vec![MemberStanding::Lives; size as usize];
        Self { own, standing, number: 0, stage: Stage::Idle, previous: None, early: Vec::new() }
    }

    /// Brings this member's part to the next agreement. All members bring equally often. While an agreement is under
    /// way, this changes nothing.
    pub fn bring(&mut self, part: Part) -> Vec<Send> {
        let before = match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::UnderWay(going) => {
                self.stage = Stage::UnderWay(going);
                return Vec::new();
            }
            Stage::Decided(outcome) => Some(outcome),
            Stage::Idle => None,
        };
        self.previous = before;
        self.number = self.number.wrapping_add(1);
        self.stage = Stage::UnderWay(Going { part, round: 0, accepted: None, lead: None });
        let mut out = Vec::new();
        self.turn_to_leader(true, &mut out);
        for (from, message) in std::mem::take(&mut self.early) {
            self.hear(from, message, &mut out);
        }
        out
    }

    /// Handles an event. An impossible one, such as a message from a member that the group does not have, changes
    /// nothing.
    pub fn handle(&mut self, input: Input) -> Vec<Send> {
        let mut out = Vec::new();
        match input {
            Input::Heard { from, message } => self.hear(from, message, &mut out),
            Input::Gone { member, standing } => {
                self.note_gone(member, standing);
                self.turn_to_leader(false, &mut out);
                self.lead_on(&mut out);
            }
        }
        out
    }

    /// Whether this member has brought a part and not yet seen the outcome.
    pub fn is_under_way(&self) -> bool {
        matches!(self.stage, Stage::UnderWay(_))
    }

    /// The end of the last agreement; `None` before the first, and while one is under way.
    pub fn verdict(&self) -> Option<Verdict> {
        let Stage::Decided(outcome) = &self.stage else { return None };
        Some(match outcome.standing[self.own as usize] {
            MemberStanding::Lives => Verdict::Agreed(outcome.clone()),
            MemberStanding::Left | MemberStanding::Died => Verdict::Excluded,
        })
    }

    /// The outcome of the last agreement, also for a member that does not count in it.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.stage {
            Stage::Decided(outcome) => Some(outcome),
            Stage::Idle | Stage::UnderWay(_) => None,
        }
    }

    /// Records that a member is gone. This is final. A member never learns of its own death in this way, only by a
    /// decision.
    fn note_gone(&mut self, member: u32, standing: MemberStanding) {
        if member == self.own {
            return;
        }
        if let Some(known) = self.standing.get_mut(member as usize)
            && *known == MemberStanding::Lives
        {
            *known = standing;
        }
    }

    fn note_all(&mut self, standing: &[MemberStanding]) {
        (0..).zip(standing).for_each(|(member, &standing)| self.note_gone(member, standing));
    }

    fn lives(&self, member: usize) -> bool {
        self.standing[member] == MemberStanding::Lives
    }

    fn leader(&self) -> u32 {
        (0..self.own).find(|&member| self.lives(member as usize)).unwrap_or(self.own)
    }

    fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let own = self.own;
        (0..self.standing.len() as u32).filter(move |&member| member != own)
    }

    /// States this member's case to the present leader, if that is a later one than before.
    fn turn_to_leader(&mut self, is_new: bool, out: &mut Vec<Send>) {
        let leader = self.leader();
        let Stage::UnderWay(going) = &mut self.stage else { return };
        if leader < going.round || leader == going.round && !is_new {
            return;
        }
        going.round = leader;
        if leader == self.own { self.take_over(out) } else { self.state_case(leader, out) }
    }

    fn state_case(&self, to: u32, out: &mut Vec<Send>) {
        let Stage::UnderWay(going) = &self.stage else { return };
        let message = Message::State {
            number: self.number,
            round: going.round,
            part: going.part.clone(),
            accepted: going.accepted.clone(),
            standing: self.standing.clone(),
        };
        out.push(Send { to, message });
    }

    /// Makes this member the leader. All members report to the first leader by themselves; a later one asks them,
    /// because some may have returned.
    fn take_over(&mut self, out: &mut Vec<Send>) {
        let (own, number, size) = (self.own, self.number, self.standing.len());
        let Stage::UnderWay(going) = &mut self.stage else { return };
        if going.lead.is_some() {
            return;
        }
        let mut states = vec![None; size];
        states[own as usize] = Some((going.part.clone(), going.accepted.clone()));
        going.lead = Some(Lead { states, proposal: None });
        if own != 0 {
            let message = Message::Ask { number, round: own, standing: self.standing.clone() };
            let living = self.others().filter(|&to| self.lives(to as usize));
            out.extend(living.map(|to| Send { to, message: message.clone() }));
        }
        self.lead_on(out);
    }

    /// Proceeds as leader: proposes when all living members have stated their case, and decides when all have accepted.
    fn lead_on(&mut self, out: &mut Vec<Send>) {
        let (own, number) = (self.own, self.number);
        let standing = self.standing.clone();
        let lives = |member: usize| standing[member] == MemberStanding::Lives;
        let Stage::UnderWay(Going { round, accepted, lead: Some(lead), .. }) = &mut self.stage
        else {
            return;
        };
        if *round != own {
            return;
        }
        if lead.proposal.is_none() {
            let is_missing = |(at, state): (usize, &Option<State>)| state.is_none() && lives(at);
            if lead.states.iter().enumerate().any(is_missing) {
                return;
            }
            let proposal = proposal_of(&lead.states, &standing);
            *accepted = Some((own, proposal.clone()));
            let message = Message::Propose { number, round: own, outcome: proposal.clone() };
            let mut have = vec![false; standing.len()];
            have[own as usize] = true;
            lead.proposal = Some((proposal, have));
            let to_all = (0..standing.len() as u32).filter(|&to| to != own && lives(to as usize));
            out.extend(to_all.map(|to| Send { to, message: message.clone() }));
        }
        let Some((proposal, have)) = &lead.proposal else { return };
        if have.iter().enumerate().all(|(member, &has)| has || !lives(member)) {
            let outcome = proposal.clone();
            self.tell_all(&outcome, out);
            self.stage = Stage::Decided(outcome);
        }
    }

    fn hear(&mut self, from: u32, message: Message, out: &mut Vec<Send>) {
        let size = self.standing.len();
        if from == self.own || from as usize >= size || !message.fits(size) {
            return;
        }
        let ahead = message.number().wrapping_sub(self.number);
        match (ahead, &self.stage) {
            (0, Stage::UnderWay(_)) => self.hear_now(from, message, out),
            (0, Stage::Decided(outcome)) => answer(from, &message, outcome, out),
            (1, _) => {
                let is_same = |(sender, other): &(u32, Message)| {
                    *sender == from
                        && std::mem::discriminant(other) == std::mem::discriminant(&message)
                };
                self.early.retain(|early| !is_same(early));
                self.early.push((from, message));
            }
            (u32::MAX, _) => {
                if let Some(previous) = &self.previous {
                    answer(from, &message, previous, out);
                }
            }
            _ => {}
        }
    }

    /// Handles a message about the agreement that is under way.
    fn hear_now(&mut self, from: u32, message: Message, out: &mut Vec<Send>) {
        match message {
            Message::State { round, part, accepted, standing, .. } => {
                self.note_all(&standing);
                self.turn_to_leader(false, out);
                if let Stage::UnderWay(Going { lead: Some(lead), .. }) = &mut self.stage
                    && round == self.own
                {
                    lead.states[from as usize] = Some((part, accepted));
                    self.lead_on(out);
                }
            }
            Message::Ask { round, standing, .. } if round == from => {
                self.note_all(&standing);
                if self.follows(round) {
                    self.state_case(from, out);
                }
                self.turn_to_leader(false, out);
            }
            Message::Propose { number, round, outcome } if round == from => {
                if self.follows(round)
                    && let Stage::UnderWay(going) = &mut self.stage
                {
                    going.accepted = Some((round, outcome));
                    out.push(Send { to: from, message: Message::Accept { number, round } });
                }
            }
            Message::Accept { round, .. } if round == self.own => {
                if let Stage::UnderWay(Going { lead: Some(lead), .. }) = &mut self.stage
                    && let Some((_, have)) = &mut lead.proposal
                {
                    have[from as usize] = true;
                    self.lead_on(out);
                }
            }
            Message::Decide { outcome, .. } => self.take_decision(outcome, out),
            Message::Ask { .. } | Message::Propose { .. } | Message::Accept { .. } => {}
        }
    }

    /// Takes the outcome from a member that knows it. A leader passes it on to the others that wait for it.
    fn take_decision(&mut self, outcome: Outcome, out: &mut Vec<Send>) {
        if matches!(&self.stage, Stage::UnderWay(Going { lead: Some(_), .. })) {
            self.tell_all(&outcome, out);
        }
        self.stage = Stage::Decided(outcome);
    }

    /// Sends the outcome to all others, also to those that are only reported to be gone: so they learn of it.
    fn tell_all(&self, outcome: &Outcome, out: &mut Vec<Send>) {
        let message = Message::Decide { number: self.number, outcome: outcome.clone() };
        out.extend(self.others().map(|to| Send { to, message: message.clone() }));
    }

    /// Whether this member still follows the leader of a round; if so, it follows no earlier one any more.
    fn follows(&mut self, round: u32) -> bool {
        let Stage::UnderWay(going) = &mut self.stage else { return false };
        let follows = round >= going.round && round != self.own;
        if follows {
            going.round = round;
        }
        follows
    }
}

/// The proposal: the outcome accepted in the latest round, otherwise a new one from the parts.
fn proposal_of(states: &[Option<State>], standing: &[MemberStanding]) -> Outcome {
    let accepted = states.iter().flatten().filter_map(|(_, accepted)| accepted.as_ref());
    if let Some((_, outcome)) = accepted.max_by_key(|(round, _)| *round) {
        return outcome.clone();
    }
    let parts = states.iter().map(|state| state.as_ref().map(|(part, _)| part.clone()));
    Outcome { parts: parts.collect(), standing: standing.to_vec() }
}

/// Sends a late member the outcome.
fn answer(to: u32, message: &Message, outcome: &Outcome, out: &mut Vec<Send>) {
    let asks =
        matches!(message, Message::State { .. } | Message::Ask { .. } | Message::Propose { .. });
    if asks {
        let (number, outcome) = (message.number(), outcome.clone());
        out.push(Send { to, message: Message::Decide { number, outcome } });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(flags: u32) -> Part {
        Part { flags, ..Part::default() }
    }

    #[test]
    fn alone_it_is_decided_at_once() {
        let mut one = Agreement::new(1, 0);
        assert_eq!(one.bring(part(5)), []);
        let Some(Verdict::Agreed(outcome)) = one.verdict() else { panic!("decided") };
        assert_eq!((outcome.flags(), outcome.gone()), (5, vec![]));
    }

    #[test]
    fn a_member_sends_two_messages_and_the_leader_two_to_each() {
        let mut members: Vec<_> = (0..3).map(|own| Agreement::new(3, own)).collect();
        let mut sent = [0; 3];
        let mut going: Vec<(u32, Send)> = Vec::new();
        for own in [2, 0, 1] {
            let out = members[own as usize].bring(part(3 << own));
            going.extend(out.into_iter().map(|send| (own, send)));
        }
        while !going.is_empty() {
            let (from, Send { to, message }) = going.remove(0);
            sent[from as usize] += 1;
            let out = members[to as usize].handle(Input::Heard { from, message });
            going.extend(out.into_iter().map(|send| (to, send)));
        }
        assert_eq!(sent, [4, 2, 2]);
        assert!(members.iter().all(|member| member.outcome().unwrap().flags() == 0));
    }

    #[test]
    fn a_member_that_is_cut_off_learns_that_it_does_not_count() {
        let mut cut_off = Agreement::new(2, 1);
        cut_off.bring(part(1));
        let standing = vec![MemberStanding::Lives, MemberStanding::Died];
        let outcome = Outcome { parts: vec![Some(part(1)), None], standing };
        let message = Message::Decide { number: 1, outcome };
        cut_off.handle(Input::Heard { from: 0, message });
        assert_eq!(cut_off.verdict(), Some(Verdict::Excluded));
    }

    #[test]
    fn an_outcome_follows_from_its_parts() {
        let dead = |acknowledged: &[u32], wants| Part {
            flags: 6,
            acknowledged: acknowledged.to_vec(),
            offer: [wants, 0, 0],
        };
        let standing = vec![
            MemberStanding::Lives,
            MemberStanding::Died,
            MemberStanding::Left,
            MemberStanding::Lives,
        ];
        let parts = vec![Some(dead(&[1], 1)), Some(part(3)), None, Some(dead(&[1], 1))];
        let mut outcome = Outcome { parts, standing };
        assert_eq!((outcome.flags(), outcome.gone()), (2, vec![1, 2]));
        assert_eq!((outcome.are_acknowledged(), outcome.is_mixed()), (true, false));
        outcome.parts[3] = Some(dead(&[], 0));
        assert_eq!((outcome.are_acknowledged(), outcome.is_mixed()), (false, true));
    }
}
