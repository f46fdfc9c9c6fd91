//! How all members of a group without a board learn that one of them has left and an operation lacks it.

use landeck_collectives::Signature;
use landeck_kernel::Failure;

use crate::Engine;
use crate::fault::Fault;
use crate::group::GroupState;
use crate::group::departure::Departure;

impl Engine {
    /// Forgets among the active those that are over by now. Departures by which they have failed are told.
    pub(super) fn retire(&mut self) {
        self.spread_departures();
        self.running.retire();
    }

    /// Ends what can go on no more, if members of a group have told of a mismatch or of a departure.
    #[cold]
    pub(super) fn heed_alarms(&mut self, context: u32) {
        let told =
            |group: &GroupState| group.departure.is_some() || group.has_alarm(&self.endpoint);
        if self.groups.get(&context).is_some_and(told) {
            self.look_for_mismatches();
        }
    }

    /// Tells the members of groups without a board of departures by which operations have failed here.
    fn spread_departures(&mut self) {
        for at in 0..self.running.active().len() {
            let id = self.running.active()[at];
            let Some(running) = self.running.get(id) else { continue };
            if let Some(Err(fault @ Fault::Failure(Failure::PeerGone { died: false, .. }))) =
                running.outcome()
            {
                let (fault, context) = (fault.clone(), running.place().context);
                self.spread_departure(context, running.signature(), &fault);
            }
        }
    }

    /// Tells the members of a group without a board of the departure by which this operation has failed here, once.
    #[cold]
    pub(super) fn spread_departure(&mut self, context: u32, call: Signature, fault: &Fault) {
        let Some(group) = self.groups.get_mut(&context) else { return };
        let place = group.place.clone();
        let Some(departure) = Departure::behind(fault, &place, call.number()) else { return };
        // Nobody but the membership says that a member has left.
        let is_recorded = departure.is_recorded(&place, &self.endpoint);
        if group.board.is_some() || group.departure.is_some() || !is_recorded {
            return;
        }
        group.departure = Some(departure);
        let tag = call.alarm().tag();
        for (member, &peer) in (0..).zip(&place.members[..]) {
            if member != place.member && member != departure.member {
                let letter: (u32, Box<[u64]>) = (tag, Box::new([departure.encode()]));
                let (endpoint, context) = (&mut self.endpoint, place.collective_context);
                self.message_agreements.post(endpoint, peer, context, letter);
            }
        }
    }

    /// Ends the operations of a group that lack a member, if this member was told of one, and the membership says that it
    /// has left.
    #[cold]
    pub(super) fn end_without_leaver(&mut self, context: u32) {
        let Some(group) = self.groups.get(&context) else { return };
        let is_recorded = |it: &Departure| it.is_recorded(&group.place, &self.endpoint);
        let Some(departure) = group.departure.filter(is_recorded) else { return };
        for id in self.running.active().to_vec() {
            let Some(running) = self.running.get_mut(id) else { continue };
            let concerned = departure.concerns(running.signature().number());
            if running.place().context == context && concerned {
                let group = self.groups.get_mut(&context);
                let board = group.and_then(|group| group.any_board_mut());
                let failure = departure.failure(running.place());
                running.give_up(&mut self.endpoint, board, failure);
            }
        }
        self.running.retire();
    }
}
