//! Agreement and revocation of a group without a board: by messages.
//!
//! The machines of `landeck_protocols` say what is to be told to whom; here that is sent and heard, in
//! a context beside the group's own that a revocation leaves alone. A member listens whenever it
//! looks for progress thoroughly, and all the time while it agrees itself. So a member that has
//! returned still answers a member that asks late, as long as it calls the library now and then, even if the
//! program has dropped the group: the state of a group that has agreed or was revoked stays until
//! the process ends, some words for each member.

use std::collections::HashMap;
use std::sync::Arc;

use landeck_board::Offer;
use landeck_channel::Peer;
use landeck_kernel::{Area, Endpoint, Received, RequestId, Started, Wanted};
use landeck_memory::Buffer;
use landeck_memory::plain::bytes_of_mut;
use landeck_protocols::agreement::{
    Agreed, Agreement, Input, MemberStanding, Message, Part, Send, Verdict,
};
use landeck_protocols::flood::Flood;
use landeck_transports::SharedMemory;

use crate::Engine;
use crate::context::agreement_context;
use crate::fault::Fault;

/// The tags of what members tell each other.
const AGREEMENT: u32 = 1;
const REVOCATION: u32 = 2;

/// The members of one group, as far as they agree and revoke.
pub(super) struct MessageAgreement {
    members: Arc<[Peer]>,
    own: u32,
    agreement: Agreement,
    flood: Flood,
    /// The processes that the machines know to be gone.
    known_gone: Vec<bool>,
    /// A receive of what comes next, while there is reason to have one.
    posted_receive: Option<RequestId>,
    /// Nobody here asks for the group any more.
    is_forgotten: bool,
}

/// All of them, by the contexts of their groups.
#[derive(Default)]
pub(super) struct MessageAgreements {
    of: HashMap<u32, MessageAgreement>,
    /// The messages on their way, with their memory.
    outgoing: Vec<(RequestId, Box<[u64]>)>,
}

impl MessageAgreement {
    fn new(members: Arc<[Peer]>, own: u32) -> Self {
        let size = members.len() as u32;
        Self {
            own,
            agreement: Agreement::new(size, own),
            flood: Flood::new(size, own),
            known_gone: vec![false; members.len()],
            members,
            posted_receive: None,
            is_forgotten: false,
        }
    }

    /// Whether anything was ever agreed on or revoked: then others may still ask.
    fn was_needed(&self) -> bool {
        self.agreement.is_under_way()
            || self.agreement.outcome().is_some()
            || self.flood.has_heard()
    }

    fn rank_of(&self, peer: Peer) -> Option<u32> {
        self.members.iter().position(|&member| member == peer).map(|rank| rank as u32)
    }

    /// The processes that are newly gone, and how.
    fn newly_gone(
        &mut self,
        context: u32,
        endpoint: &Endpoint<SharedMemory>,
    ) -> Vec<(u32, MemberStanding)> {
        let mut gone = Vec::new();
        for (rank, known) in self.known_gone.iter_mut().enumerate() {
            let peer = self.members[rank];
            if *known || rank == self.own as usize {
                continue;
            }
            let standing = match endpoint.is_gone(peer) {
                Some(true) => MemberStanding::Died,
                Some(false) => MemberStanding::Left,
                None if endpoint.death_among(context, &[peer]).is_some() => MemberStanding::Died, // nobody reaches it
                None => continue,
            };
            *known = true;
            gone.push((rank as u32, standing));
        }
        gone
    }

    /// The next message, if one has come.
    fn hear(&mut self, context: u32, endpoint: &mut Endpoint<SharedMemory>) -> Option<Word> {
        loop {
            let place = agreement_context(context);
            let has_reason =
                self.agreement.is_under_way() || endpoint.kept_in(place).next().is_some();
            let anything = Wanted { context: place, source: None, tag: None };
            let posted_receive = match self.posted_receive {
                Some(posted_receive) => posted_receive,
                None if has_reason => *self.posted_receive.insert(endpoint.receive_own(anything)),
                None => return None,
            };
            if !endpoint.is_done(posted_receive) {
                if !has_reason && !endpoint.give_up(posted_receive) {
                    self.posted_receive = None;
                }
                return None;
            }
            self.posted_receive = None;
            let heard = endpoint.take(posted_receive)?;
            // A member that died while it spoke has said nothing.
            let (Ok(status), Some(data)) = (heard.result, heard.data) else { continue };
            if let Some(from) = self.rank_of(status.peer) {
                return Some(Word { from, tag: status.tag, words: words_of(&data) });
            }
        }
    }
}

/// A message of the agreement.
struct Word {
    from: u32,
    tag: u32,
    words: Vec<u64>,
}

impl MessageAgreements {
    /// Whether there is nothing to listen to.
    #[inline]
    pub(super) fn are_idle(&self) -> bool {
        self.of.is_empty() && self.outgoing.is_empty()
    }

    pub(super) fn post(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        to: Peer,
        place: u32,
        letter: Letter,
    ) {
        let (tag, words) = letter;
        // SAFETY: the words stay where they are until the request has ended: `letters` keeps them.
        let area = Area::contiguous(unsafe { Buffer::of(&words[..]) });
        // A gone member need not be told.
        if let Ok(Started::Pending(id)) = endpoint.send(to, place, tag, area) {
            self.outgoing.push((id, words));
        }
    }

    /// Lets go of what has arrived, or never will.
    fn forget_letters(&mut self, endpoint: &mut Endpoint<SharedMemory>) {
        self.outgoing.retain(|(id, _)| endpoint.take(*id).is_none());
    }
}

type Letter = (u32, Box<[u64]>);

impl Engine {
    /// The members of a group that has no board get a way to agree.
    pub(super) fn open_council(&mut self, context: u32, members: &Arc<[Peer]>, own: u32) {
        let agreement_state = || MessageAgreement::new(members.clone(), own);
        self.message_agreements.of.entry(context).or_insert_with(agreement_state);
    }

    /// Listens from now on to what the members of a group say of its revocation.
    pub fn watch_over(&mut self, context: u32, members: &Arc<[Peer]>, own: Peer) {
        if let Some(own) = members.iter().position(|&member| member == own) {
            self.open_council(context, members, own as u32);
        }
    }

    /// Nobody here asks for a group any more. True if nobody elsewhere will either.
    pub(super) fn leave_council(&mut self, context: u32) -> bool {
        let Some(agreement_state) = self.message_agreements.of.get_mut(&context) else {
            return true;
        };
        agreement_state.is_forgotten = true;
        if agreement_state.was_needed() {
            return false;
        }
        if let Some(posted_receive) = agreement_state.posted_receive.take() {
            self.endpoint.abandon(posted_receive);
        }
        self.message_agreements.of.remove(&context);
        true
    }

    /// Brings this member's part to the next agreement of a group without a board.
    ///
    /// # Errors
    /// [`Fault::NoBoard`]: the group does not agree by messages either.
    pub(super) fn bring_to_council(
        &mut self,
        context: u32,
        flags: u32,
        offer: Offer,
    ) -> Result<(), Fault> {
        let endpoint = &self.endpoint;
        let agreement_state = self.message_agreements.of.get_mut(&context).ok_or(Fault::NoBoard)?;
        let is_acknowledged = |peer: &Peer| endpoint.acknowledged_among(&[*peer]) != 0;
        let acknowledged =
            (0..).zip(&agreement_state.members[..]).filter(|(_, peer)| is_acknowledged(peer));
        let part = Part {
            flags,
            acknowledged: acknowledged.map(|(rank, _)| rank).collect(),
            offer: [u64::from(offer.context), offer.lines, offer.board],
        };
        let sends = agreement_state.agreement.bring(part);
        self.deliver(context, sends);
        Ok(())
    }

    /// The result of an agreement of a group without a board; none while others are missing.
    pub(super) fn agreed_by_messages(&mut self, context: u32) -> Option<Result<Agreed, Fault>> {
        self.listen(context);
        match self.message_agreements.of.get(&context)?.agreement.verdict()? {
            Verdict::Excluded => Some(Err(Fault::Excluded)),
            Verdict::Agreed(outcome) => Some(Ok(outcome.agreed())),
        }
    }

    /// The offer of a member in the last agreement of a group without a board.
    pub(super) fn offer_by_messages(&self, context: u32, member: u32) -> Offer {
        let outcome = self
            .message_agreements
            .of
            .get(&context)
            .and_then(|agreement_state| agreement_state.agreement.outcome());
        let part = outcome.and_then(|outcome| outcome.parts.get(member as usize)?.as_ref());
        part.map_or_else(Offer::default, |part| {
            let [context, lines, board] = part.offer;
            Offer { context: u32::try_from(context).unwrap_or(0), lines, board }
        })
    }

    /// Tells the members of a group without a board that it is revoked.
    pub(super) fn revoke_by_messages(&mut self, context: u32) {
        let Some(agreement_state) = self.message_agreements.of.get_mut(&context) else { return };
        let to = agreement_state.flood.hear();
        self.pass_on(context, &to);
    }

    /// Listens to all groups: messages of members, and news of deaths. True when anything was heard.
    #[cold]
    pub(super) fn advance_agreements(&mut self) -> bool {
        let contexts: Vec<u32> = self.message_agreements.of.keys().copied().collect();
        let heard = contexts.into_iter().fold(false, |heard, context| self.listen(context) | heard);
        self.message_agreements.forget_letters(&mut self.endpoint);
        heard
    }

    /// Takes in what the members of a group have said, and who of them is gone.
    fn listen(&mut self, context: u32) -> bool {
        let mut any = false;
        loop {
            let Some(agreement_state) = self.message_agreements.of.get_mut(&context) else {
                return any;
            };
            let Some(word) = agreement_state.hear(context, &mut self.endpoint) else { break };
            any = true;
            match word.tag {
                REVOCATION => self.hear_revocation(context),
                // A message that makes no sense was not said.
                _ => {
                    if let Ok(message) = Message::from_words(&word.words) {
                        let input = Input::Heard { from: word.from, message };
                        let sends = agreement_state.agreement.handle(input);
                        self.deliver(context, sends);
                    }
                }
            }
        }
        let Some(agreement_state) = self.message_agreements.of.get_mut(&context) else {
            return any;
        };
        for (member, standing) in agreement_state.newly_gone(context, &self.endpoint) {
            any = true;
            let Some(agreement_state) = self.message_agreements.of.get_mut(&context) else {
                return any;
            };
            let sends = agreement_state.agreement.handle(Input::Gone { member, standing });
            let to = agreement_state.flood.note_gone(member);
            self.deliver(context, sends);
            self.pass_on(context, &to);
        }
        any
    }

    fn hear_revocation(&mut self, context: u32) {
        let Some(agreement_state) = self.message_agreements.of.get_mut(&context) else { return };
        let is_new = !agreement_state.flood.has_heard();
        let to = agreement_state.flood.hear();
        self.pass_on(context, &to);
        if is_new {
            self.revoke(context);
        }
    }

    fn deliver(&mut self, context: u32, sends: Vec<Send>) {
        for Send { to, message } in sends {
            self.tell(context, to, (AGREEMENT, message.to_words().into_boxed_slice()));
        }
    }

    fn pass_on(&mut self, context: u32, to: &[u32]) {
        for &to in to {
            self.tell(context, to, (REVOCATION, Box::default()));
        }
    }

    fn tell(&mut self, context: u32, to: u32, letter: Letter) {
        let agreement_state = self.message_agreements.of.get(&context);
        if let Some(&peer) =
            agreement_state.and_then(|agreement_state| agreement_state.members.get(to as usize))
        {
            self.message_agreements.post(
                &mut self.endpoint,
                peer,
                agreement_context(context),
                letter,
            );
        }
    }
}

fn words_of(data: &Received) -> Vec<u64> {
    let bytes = match data {
        Received::Private(bytes) => bytes.clone(),
        Received::Borrowed { block, length } => block.piece(0, *length).to_vec(),
    };
    let mut words = vec![0u64; bytes.len() / size_of::<u64>()];
    let length = size_of_val(&words[..]);
    bytes_of_mut(&mut words[..]).copy_from_slice(&bytes[..length]);
    words
}
