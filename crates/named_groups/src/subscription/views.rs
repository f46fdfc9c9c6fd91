//! The views that a mailbox is told of, in their places among the messages of a group.

use std::sync::Arc;

use landeck_memory::fork;
use landeck_objects::group_log::WaitsFor;
use landeck_protocols::service::{ChangedMember, Gone, State, View};
use landeck_wire::ProcessId;

use crate::error::Result;
use crate::replica::{Replica, no_peer};
use crate::subscription::{ReadPosition, Subscription};
use crate::time_limit::TimeLimit;

/// A view of a group, as a member is told of it. Messages that the member gets behind it were accepted behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewView {
    /// Its number.
    pub number: u64,
    /// The number of messages that were accepted before it.
    pub after: u64,
    /// The members, in the order of their numbers.
    pub members: Vec<MemberIdentity>,
    /// The members that have joined with it.
    pub joined: Vec<MemberIdentity>,
    /// The members that have gone with it, and how.
    pub departed: Vec<(MemberIdentity, Gone)>,
    /// Views before it were forgotten before this member was told of them.
    pub has_missed: bool,
}

/// A member of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberIdentity {
    /// The number of the member.
    pub id: u32,
    /// Its process.
    pub process: ProcessId,
    /// The context of its mailbox.
    pub context: u32,
    /// The address of the mailbox's mark.
    pub place: u64,
}

/// The next thing that a member is to be told.
#[derive(Debug)]
pub enum NextTold {
    /// A view. So many of the views up to it were announced.
    View(NewView, u64),
    /// A message, if one before this number is there.
    MessageBefore(u64),
}

/// Has a descriptor announce the views of a subscription, until it is dropped.
pub struct ViewsWatch(Arc<Subscription>);

impl Subscription {
    /// Has changes of the members wake this process from now on, so that views can be announced.
    pub fn watch_views(own: &Arc<Self>) -> ViewsWatch {
        own.replica.log.waits(WaitsFor::Others, true);
        ViewsWatch(own.clone())
    }

    /// The next view, if its place is before the next message. A member is not told of views from its own end on.
    ///
    /// # Errors
    /// [`crate::GroupError::Broken`], [`crate::ServiceError::Thread`].
    pub fn next_told(&self) -> Result<NextTold> {
        let mut position = self.position()?;
        self.replica.with(|local| {
            let state = &local.state;
            let Some(view) = self.next_view(&position, state) else {
                return Ok(NextTold::MessageBefore(state.broadcasts()));
            };
            let seen = self.seen_view(&position, state);
            let announced = position.tell(seen, view.number);
            Ok(NextTold::View(new_view(&self.replica, state, view), announced))
        })
    }

    /// Whether a view is to be told before the next message.
    pub(super) fn has_view(&self, position: &ReadPosition) -> Result<bool> {
        self.replica.with(|local| Ok(self.next_view(position, &local.state).is_some()))
    }

    fn next_view(&self, position: &ReadPosition, state: &State) -> Option<View> {
        if position.is_spent() {
            return None;
        }
        let next_message = position.copies.front().map_or(position.next, |copy| copy.number);
        let view = state.view_after(self.seen_view(position, state))?;
        (view.after <= next_message && self.is_in(&view)).then_some(view)
    }

    /// The last view that needs not be told.
    fn seen_view(&self, position: &ReadPosition, state: &State) -> u64 {
        let joined = || state.view_of_joining(self.seat).map_or(0, |view| view - 1);
        position.view.unwrap_or_else(joined)
    }

    fn is_in(&self, view: &View) -> bool {
        view.members.iter().any(|member| member.seat() == self.seat)
    }

    /// Announces the views that were not announced.
    fn announce_views(&self, each: &dyn Fn()) {
        let Ok(mut position) = self.position() else { return };
        // A broken group reports itself to the thread that retrieves.
        let _ = self.replica.with(|local| {
            let seen = self.seen_view(&position, &local.state).max(position.announced_view);
            let mut views = std::iter::successors(local.state.view_after(seen), |view| {
                local.state.view_after(view.number)
            });
            while let Some(view) = views.next().filter(|view| self.is_in(view)) {
                position.announced_view = view.number;
                position.outstanding += 1;
                each();
            }
            Ok(())
        });
    }
}

impl ReadPosition {
    /// Counts the views behind one that was seen, up to another one, as told. Returns how many of them were announced.
    fn tell(&mut self, seen: u64, view: u64) -> u64 {
        self.view = Some(view);
        let announced = view.min(self.announced_view).saturating_sub(seen).min(self.outstanding);
        self.outstanding -= announced;
        announced
    }
}

impl ViewsWatch {
    /// Calls `each` for each view that was not announced. False when nothing more will come.
    pub fn announce(&self, each: &dyn Fn()) -> bool {
        self.0.announce_views(each);
        !self.0.is_spent()
    }
}

impl Drop for ViewsWatch {
    fn drop(&mut self) {
        // A child made by fork does not end the wait of its parent.
        if !fork::is_child() {
            self.0.replica.log.waits(WaitsFor::Others, false);
        }
    }
}

impl Replica {
    /// Waits for the view behind the one with a number.
    ///
    /// # Errors
    /// [`crate::ServiceError::TimedOut`], [`crate::GroupError::GroupDestroyed`], [`crate::GroupError::Broken`],
    /// [`crate::ServiceError::Ended`], [`crate::ServiceError::Thread`].
    pub fn next_view(&self, number: u64, limit: TimeLimit) -> Result<NewView> {
        self.catch_up(limit)?;
        self.wait(limit, no_peer, |local| {
            let state = &local.state;
            if let Some(view) = state.view_after(number) {
                return Ok(Some(new_view(self, state, view)));
            }
            self.check_not_destroyed(state).map(|()| None)
        })
    }
}

fn new_view(replica: &Replica, state: &State, view: View) -> NewView {
    let View { number, after, members, changes, has_missed } = view;
    let identity = |member: ChangedMember| {
        let ChangedMember { id, process, context, place, .. } = member;
        let process = replica.process(state, process)?;
        Some(MemberIdentity { id, process, context, place })
    };
    let joined = changes.iter().filter(|change| change.gone.is_none());
    let departed = changes.iter().filter_map(|it| Some((identity(it.member)?, it.gone?)));
    NewView {
        number,
        after,
        joined: joined.filter_map(|change| identity(change.member)).collect(),
        departed: departed.collect(),
        members: members.into_iter().filter_map(identity).collect(),
        has_missed,
    }
}
