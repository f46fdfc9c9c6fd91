//! The part of a server that clients on other hosts need: the name by which they find it, and their feeds.

use std::time::Duration;

use landeck_engine::peers::process_of;
use landeck_engine::{Engine, Shared, deadline_ns};
use landeck_joining::job_names;
use landeck_joining::objects::{Name, ObjectError, ObjectKind};
use landeck_kernel::{Area, Peer, Started};
use landeck_memory::system::now_ns;
use landeck_memory::{Buffer, Operation, WaitRecord};
use landeck_objects::group_log::{Progress, WaitsFor};
use landeck_protocols::service::{GroupEntry, Outcome, Party, Phase};

use super::{Client, ServedGroup, Server};
use crate::answer::Answer;
use crate::error::{Result, ServiceError};
use crate::follower::{FeedBasis, Follower};
use crate::origin::party;
use crate::replica::{LocalState, Replica};
use crate::server_client::{FEED_TAG, LAST_LOOK, RequestKind};

/// How long a name may stay after its last group has ended.
const NAME_TIME: Duration = Duration::from_secs(2);
/// How long a server that leaves its job feeds its followers.
const LAST_TIME: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(1);

impl Server<'_> {
    /// Gives a group its name on all hosts, if there are several, and returns the number of the name. It leads to the
    /// mailbox for requests.
    pub(super) fn publish(
        &self,
        replica: &Replica,
        context: u32,
        name: &Name,
    ) -> Result<Option<u64>> {
        if !replica.serves_other_hosts() {
            return Ok(None);
        }
        let number = replica.object().map_or(0, |object| object.number());
        let (segment, process) = (&self.shared.segment, self.shared.process());
        let (words, kind) = ([u64::from(context), number], ObjectKind::Group);
        let until = now_ns() + NAME_TIME.as_nanos() as u64;
        loop {
            match job_names::publish(segment, process, kind, name, words) {
                // The server of a group of this host that has ended, or lost its seat, gives it back.
                Err(ObjectError::Taken { .. })
                    if now_ns() < until && !self.is_taken_elsewhere(name) =>
                {
                    self.pause()?;
                }
                Ok(named) => return Ok(Some(named.number)),
                Err(error) => {
                    self.shared.engine.enter()?.endpoint.close_mailbox(context);
                    return Err(error.into());
                }
            }
        }
    }

    /// Whether a group of another host has a name.
    fn is_taken_elsewhere(&self, name: &Name) -> bool {
        let segment = &self.shared.segment;
        let found = job_names::find(segment, self.shared.process(), ObjectKind::Group, name);
        found.is_ok_and(|found| found.owner.segment.0 != segment.plan().host)
    }

    fn pause(&self) -> Result<()> {
        let record = WaitRecord { operation: Operation::Group, ..WaitRecord::default() };
        let waited = self.shared.wait_until(&record, deadline_ns(Some(PAUSE)), |_| None::<()>);
        match waited.map_err(|error| ServiceError::of_wait(error, crate::TimeLimit::Unlimited)) {
            Ok(()) | Err(ServiceError::TimedOut(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Gives a name back.
    pub(super) fn withdraw_name(&self, name: Option<u64>) {
        if let Some(number) = name {
            let (segment, process) = (&self.shared.segment, self.shared.process());
            // The name goes with the process in any case.
            let _ = job_names::withdraw(segment, process, ObjectKind::Group, number);
        }
    }

    /// Notices the end of served groups with a name that is to be given again.
    pub(super) fn finish_namesakes(&mut self, name: &str) -> Result<()> {
        let namesakes = self.groups.iter().filter(|(_, served)| served.replica.name() == name);
        let contexts: Vec<u32> = namesakes.map(|(&context, _)| context).collect();
        contexts.into_iter().try_for_each(|context| self.finish_requests(context))
    }

    /// Whether a client is the process that its message names, and lives.
    pub(super) fn is_its_own(&self, peer: u32, word: u64) -> bool {
        let segment = &self.shared.segment;
        let slot = match peer.checked_sub(segment.plan().slots()) {
            Some(far) => segment.far_record(far).process.slot,
            None => peer,
        };
        let record = segment.peer_record(peer);
        let Party { slot: named, incarnation, .. } = Party::from_word(word);
        let is_there = incarnation == record.incarnation && !record.state.is_gone();
        is_there && u32::from(named) == slot
    }

    /// A client as the log names it. `None` if the group has as many hosts as it can have.
    pub(super) fn party_of(&self, context: u32, peer: u32) -> Result<Option<Party>> {
        let Some(served) = self.groups.get(&context) else { return Ok(None) };
        let process = process_of(&self.shared.segment, Peer(peer));
        let replica = &served.replica;
        let host = replica.with(|local| match local.state.host_number(process.segment) {
            Some(number) => Ok(Some(number)),
            None => {
                let entry = GroupEntry::Host(process.segment);
                match replica.append(local, entry, |_| Ok(()))?.outcome {
                    Outcome::HostNumbered(number) => Ok(Some(number)),
                    _ => Ok(None),
                }
            }
        })?;
        Ok(host.map(|host| party(host, process)))
    }

    /// Whether a client is on this host.
    pub(super) fn is_near(&self, client: Client) -> bool {
        client.peer < self.shared.segment.plan().slots()
    }

    /// Takes a message of a client on another host that is no request for an entry.
    pub(super) fn hear_follower(
        &mut self,
        context: u32,
        client: Client,
        kind: RequestKind,
        ([second, third], more): ([u64; 2], &[u64]),
    ) -> Result<()> {
        let Some(served) = self.groups.get_mut(&context) else { return Ok(()) };
        match kind {
            RequestKind::Follow if second == LAST_LOOK => {
                let is_its = |it: &Follower| (it.peer, it.context) == (client.peer, client.context);
                return served.forget(self.shared, is_its);
            }
            RequestKind::Follow => {
                served.follower(client, third).look(second, more.first() == Some(&1));
            }
            RequestKind::Delivered => served.take_receipt(client, second, more)?,
            RequestKind::Withdraw => {
                let Client { peer, process, number, .. } = client;
                if served.replica.log.withdraw_of(peer, process.incarnation, number) {
                    let words = [u64::from(Answer::Nothing.to_bits()), 0];
                    return self.post((peer, client.context), number, Some(words), false);
                }
            }
            RequestKind::Ask | RequestKind::Broadcast | RequestKind::HeldBroadcast => {}
        }
        Ok(())
    }

    /// Takes over a request of another host. True if it was answered before: then its client is told again.
    pub(super) fn was_answered(&mut self, context: u32, client: Client) -> Result<bool> {
        let Client { peer, process, number, .. } = client;
        let Some(served) = self.groups.get(&context) else { return Ok(true) };
        if self.is_near(client) {
            return Ok(false);
        }
        let log = &served.replica.log;
        match log.adopt_request(peer, process.incarnation, number, served.epoch) {
            Progress::Answered(_) => self.tell_refusal(context, client).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Tells a client on another host an answer that no feed tells.
    pub(super) fn tell_refusal(&mut self, context: u32, client: Client) -> Result<()> {
        let Client { peer, process, number, .. } = client;
        let Some(served) = self.groups.get(&context) else { return Ok(()) };
        let replica = &served.replica;
        if self.is_near(client) {
            return Ok(());
        }
        let progress = replica.log.progress_of(peer, process.incarnation, number);
        let Progress::Answered(answer) = progress else { return Ok(()) };
        let passed = replica.with(|local| {
            replica.report_no_room(local);
            Ok(local.passed.messages)
        })?;
        let words = [u64::from(answer), passed];
        self.post((peer, client.context), number, Some(words), false)
    }

    /// Remembers a broadcast that a client on another host has asked for.
    pub(super) fn note_accepted(&mut self, context: u32, client: Client, number: u64) {
        let Some(served) = self.groups.get_mut(&context) else { return };
        let mut followers = served.followers.iter_mut();
        if let Some(follower) = followers.find(|follower| follower.context == client.context) {
            follower.add_accepted(number, client.number);
        }
    }

    /// Whether some follower can be fed.
    pub(super) fn has_feeds(&self, engine: &Engine) -> bool {
        self.groups.values().any(|served| served.has_feed(engine))
    }

    /// Feeds all followers that can be fed.
    pub(super) fn feed_followers(&mut self) -> Result<()> {
        for served in self.groups.values_mut() {
            served.drop_the_gone(self.shared)?;
            served.watch_held()?;
            served.publish_delivered()?;
            served.feed(self.shared)?;
        }
        Ok(())
    }

    /// Feeds followers for a while, as this process is about to leave.
    pub(super) fn finish_feeds(&mut self) {
        let until = now_ns() + LAST_TIME.as_nanos() as u64;
        let record = WaitRecord { operation: Operation::Group, ..WaitRecord::default() };
        // A follower may always have something more to be fed, so the wait alone keeps no limit.
        while now_ns() < until && self.groups.values().any(ServedGroup::has_untold) {
            let shared = self.shared;
            let waited = shared.wait_until(&record, Some(until), |engine| {
                engine.endpoint.refresh();
                let has_work = !super::lock(&self.arrivals).is_empty()
                    || self.receiving.iter().any(|it| engine.is_done(it.id))
                    || self.has_feeds(engine);
                has_work.then_some(())
            });
            if waited.is_err() || self.work().is_err() {
                return;
            }
        }
    }
}

impl ServedGroup {
    /// Whether it is the group with this number on this host.
    pub(super) fn is_of(&self, number: u64) -> bool {
        self.replica.object().is_some_and(|object| object.number() == number)
    }

    /// Takes the name of a group that has ended or has another server, to be given back. The last client of a group that
    /// has ended may be on another host, and cannot free the name here.
    pub(super) fn end_name(&mut self) -> Result<Option<u64>> {
        let replica = &self.replica;
        let has_ended = replica.with(|local| Ok(local.state.phase() == Phase::Ended))?;
        if has_ended && replica.serves_other_hosts() {
            replica.retire();
        }
        Ok(self.name.take())
    }

    /// The follower that a client is, which may be new and has had so many broadcasts.
    fn follower(&mut self, client: Client, broadcasts: u64) -> &mut Follower {
        if !std::mem::replace(&mut self.has_fed, true) {
            self.replica.log.waits(WaitsFor::Messages, true);
        }
        let Client { peer, process, context, .. } = client;
        let known = self.followers.iter().position(|it| it.peer == peer && it.context == context);
        let place = known.unwrap_or_else(|| {
            self.followers.push(Follower::new((peer, process), context, broadcasts));
            self.followers.len() - 1
        });
        &mut self.followers[place]
    }

    /// Takes what a follower says of feeds and messages that have arrived or were taken.
    fn take_receipt(&mut self, client: Client, feed: u64, marks: &[u64]) -> Result<()> {
        let Self { replica, followers, .. } = self;
        let is_its = |it: &&mut Follower| it.peer == client.peer && it.context == client.context;
        let Some(follower) = followers.iter_mut().find(is_its) else { return Ok(()) };
        follower.has_arrived(feed);
        replica.with(|local| {
            follower.take_marks(replica, local, marks);
            Ok(())
        })
    }

    /// Looks at how many broadcasts of other hosts are held: members that take messages make room for them.
    fn watch_held(&mut self) -> Result<()> {
        let Self { replica, far_held, .. } = self;
        let now = replica.with(|local| {
            let state = &local.state;
            let far = state.held().iter().filter(|held| !replica.is_near(state, held.process));
            Ok(far.count())
        })?;
        (*far_held..now).for_each(|_| replica.log.is_held(true));
        (now..*far_held).for_each(|_| replica.log.is_held(false));
        *far_held = now;
        Ok(())
    }

    /// Whether all members on other hosts have a broadcast.
    pub(super) fn followers_have(&self, number: u64) -> bool {
        let have = self.replica.with(|local| Ok(self.have(local, number)));
        have.unwrap_or(true)
    }

    fn have(&self, local: &LocalState, number: u64) -> bool {
        let state = &local.state;
        let is_far = |process| !self.replica.is_near(state, process);
        let is_followed = |process| self.followers.iter().any(|it| it.process == process);
        let members = state.members().iter();
        let mut far = members.filter(|it| is_far(it.process) && it.first <= number);
        far.all(|member| is_followed(member.process))
            && self.followers.iter().all(|follower| follower.has_message(local, number))
    }

    /// Publishes up to which broadcast all mailboxes have them, where members of this host need not be told.
    fn publish_delivered(&self) -> Result<()> {
        let replica = &self.replica;
        if replica.server_client.is_some() || self.followers.is_empty() {
            return Ok(());
        }
        replica.with(|local| {
            let before = replica.log.sent_on();
            let mut delivered = before;
            while delivered < local.state.broadcasts() && self.have(local, delivered) {
                delivered += 1;
            }
            if delivered > before {
                replica.log.set_sent_on(delivered);
                replica.wake(WaitsFor::Others);
            }
            Ok(())
        })
    }

    fn basis(&self) -> FeedBasis<'_> {
        FeedBasis { replica: &self.replica, is_last: self.is_over }
    }

    fn has_feed(&self, engine: &Engine) -> bool {
        let mut ready = self.followers.iter().filter(|it| it.is_ready(engine)).peekable();
        let basis = self.basis();
        ready.peek().is_some()
            && self
                .replica
                .with(|local| Ok(ready.any(|it| it.is_due(&basis, local))))
                .is_ok_and(|it| it)
    }

    /// Whether a follower lacks something.
    fn has_untold(&self) -> bool {
        let basis = self.basis();
        let lacks = |local: &mut LocalState| {
            Ok(self.followers.iter().any(|it| it.is_due(&basis, local) || !it.has_all()))
        };
        self.replica.with(lacks).is_ok_and(|lacks| lacks)
    }

    /// Forgets followers that are gone.
    fn drop_the_gone(&mut self, shared: &Shared) -> Result<()> {
        let replica = self.replica.clone();
        self.forget(shared, |it| replica.how_it_left(it.peer, it.process.incarnation).is_some())
    }

    /// Forgets followers.
    fn forget(&mut self, shared: &Shared, is_one: impl Fn(&Follower) -> bool) -> Result<()> {
        for mut gone in self.followers.extract_if(.., |follower| is_one(follower)) {
            gone.give_up(&mut *shared.engine.enter()?);
        }
        Ok(())
    }

    fn feed(&mut self, shared: &Shared) -> Result<()> {
        let Self { replica, followers, is_over, .. } = self;
        let basis = FeedBasis { replica, is_last: *is_over };
        for follower in followers {
            let mut engine = shared.engine.enter()?;
            follower.take_sent(&mut engine);
            if !follower.is_ready(&engine) {
                continue;
            }
            drop(engine);
            let feed = replica.with(|local| match follower.is_due(&basis, local) {
                true => follower.next_feed(&basis, local).map(Some),
                false => Ok(None),
            })?;
            let Some(words) = feed else { continue };
            // SAFETY: the words are on the heap, and kept until the request is taken or abandoned.
            let area = Area::contiguous(unsafe { Buffer::of(&words[..]) });
            let (to, context) = (Peer(follower.peer), follower.context);
            let started = shared.engine.enter()?.endpoint.send(to, context, FEED_TAG, area);
            // A process that is gone needs no feed.
            if let Ok(Started::Pending(id)) = started {
                follower.set_sending(id.into(), words);
            }
        }
        Ok(())
    }
}
