//! The connection of this daemon to one other daemon, whichever trunk carries it at the moment.
//!
//! Each daemon says in its receipts which run it is. When the other one has started again, both numbered streams begin anew:
//! what was kept for the run before is dropped, and what that has confirmed counts no more.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use landeck_channel::pair::{Pair, Positions};
use landeck_trust::{cipher_here, common_cipher};
use landeck_wire::HostNumber;
use landeck_wire::handover::Cipher;
use landeck_wire::word::HostEntry;
use serde::{Deserialize, Serialize};

use crate::trunks::envelope::{Envelope, EnvelopeClass};
use crate::trunks::trunk::{Receipt, Trunk};

mod kept;

pub(crate) use kept::KeptLink;

/// The unconfirmed bytes of one stream above which the other side counts as broken.
pub(crate) const UNCONFIRMED_BYTES_MAX: usize = 256 << 20;
/// The secrets that are kept, of the newest trunks.
const SECRETS: usize = 4;
/// The pause before the first new attempt, and the longest one.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A link that was given up, and that others depend on, is tried again after so long.
const RETRY_TIME: Duration = Duration::from_secs(5);
/// Of two trunks that both sides opened at about the same time, one must go.
const RACE: Duration = Duration::from_secs(5);
/// The rounds in which every address refuses a connection, after which its daemon counts as ended.
const REFUSED_ROUNDS_MAX: u32 = 3;

/// A content that waits for a trunk, or for its confirmation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Parcel {
    /// The host that it comes from.
    pub(crate) source: HostNumber,
    /// The host that it leads to.
    pub(crate) destination: HostNumber,
    /// The kind of content.
    pub(crate) class: EnvelopeClass,
    /// The relays that it has passed.
    pub(crate) hops: u8,
    /// The content.
    #[serde(with = "kept::bytes")]
    pub(crate) content: Rc<[u8]>,
}

/// The trunk that a link has, or is getting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Nothing is being tried before this time.
    Pause(Duration),
    /// A connection is being opened under this token.
    Dial(u64),
    /// A trunk that this side began is not open yet.
    Opening(u64),
}

/// The open trunk of a link.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    token: u64,
    /// The host that dialled it.
    by: HostNumber,
    since: Duration,
}

/// The connection to another daemon.
#[derive(Debug)]
pub(crate) struct Link {
    /// The other host.
    pub(crate) entry: HostEntry,
    /// Whether this side opens a trunk if there is none.
    pub(crate) is_wanted: bool,
    /// Whether long packets do not pass, so that further connections use short ones.
    pub(crate) is_narrow: bool,
    /// The step that this side takes to get a trunk.
    pub(crate) attempt: Attempt,
    /// Why the last attempts failed, one text for each address.
    pub(crate) failures: Vec<String>,
    /// The way to try next, counted from 0.
    pub(crate) next_way: usize,
    pause: Duration,
    /// Whether all attempts of this round were refused by the host's kernel.
    is_refused: bool,
    refused_rounds: u32,
    /// Whether a whole round has failed since the last trunk.
    has_failed: bool,
    /// Why the last trunk ended, if it was that of the remote shell: no port may be reached at all.
    shell_ended: Option<String>,
    carrier: Option<Carrier>,
    /// When it was given up, since nothing was reached.
    given_up_at: Option<Duration>,
    /// Since when there is no trunk.
    down_since: Duration,
    /// Whether a trunk was ever open.
    was_up: bool,
    /// The numbered streams of contents. Each outlives the trunks, which are its lanes.
    control: Pair<Parcel>,
    bulk: Pair<Parcel>,
    /// The number of trunks that have carried the streams.
    trunks: u32,
    /// The run of this side's daemon.
    own_run: u32,
    /// The newest run of the other side's daemon that a trunk was open to.
    run: Option<u32>,
    /// How much of both streams the last receipt has confirmed.
    confirmed: [u64; 2],
    generation: u32,
    /// The faster cipher of both processors.
    cipher: Cipher,
    secrets: VecDeque<(u32, [u8; 32])>,
}

impl Link {
    /// A link without a trunk, of this run of this side's daemon.
    pub(crate) fn new(
        entry: HostEntry,
        own_run: u32,
        first_attempt: Duration,
        now: Duration,
    ) -> Self {
        Self {
            entry,
            is_wanted: false,
            is_narrow: false,
            attempt: Attempt::Pause(first_attempt),
            failures: Vec::new(),
            next_way: 0,
            pause: PAUSE_MIN,
            is_refused: true,
            refused_rounds: 0,
            has_failed: false,
            shell_ended: None,
            carrier: None,
            given_up_at: None,
            down_since: now,
            was_up: false,
            control: Pair::unlimited(),
            bulk: Pair::unlimited(),
            trunks: 0,
            own_run,
            run: None,
            confirmed: [0; 2],
            generation: 0,
            cipher: Cipher::ChaCha20Poly1305,
            secrets: VecDeque::new(),
        }
    }

    /// The token of the open trunk.
    pub(crate) fn trunk(&self) -> Option<u64> {
        self.carrier.map(|carrier| carrier.token)
    }

    /// Whether a trunk was ever open.
    pub(crate) const fn was_up(&self) -> bool {
        self.was_up
    }

    /// Opens a trunk from now on, if there is none.
    pub(crate) fn want(&mut self, now: Duration) {
        self.is_wanted = true;
        self.down_since = now;
        (self.next_way, self.is_refused, self.refused_rounds) = (0, true, 0);
        if matches!(self.attempt, Attempt::Pause(_)) {
            self.attempt = Attempt::Pause(now);
        }
    }

    /// Opens no trunk any more, until it is wanted again.
    pub(crate) fn give_up(&mut self, now: Duration) {
        (self.is_wanted, self.given_up_at) = (false, Some(now));
    }

    /// Whether it was given up less than this time ago: then another attempt would only take more time.
    pub(crate) fn was_given_up(&self, within: Duration, now: Duration) -> bool {
        self.given_up_at.is_some_and(|at| now < at + within)
    }

    /// Whether a whole round over all ways has failed since there was a trunk, or there is no address.
    pub(crate) fn is_unreached(&self) -> bool {
        self.has_failed || self.entry.addresses.is_empty()
    }

    /// When it is to be wanted again, if it was given up and others depend on it.
    pub(crate) fn retry_at(&self) -> Option<Duration> {
        self.given_up_at.filter(|_| !self.is_wanted).map(|at| at + RETRY_TIME)
    }

    /// Tries the first way at once, if there is no trunk and no attempt: a gateway on the way is connected now.
    pub(crate) fn hurry(&mut self, now: Duration) {
        if matches!(self.attempt, Attempt::Pause(_)) && self.carrier.is_none() {
            (self.attempt, self.next_way, self.pause) = (Attempt::Pause(now), 0, PAUSE_MIN);
        }
    }

    /// Adds an address that a trunk has come from, if it is a new one: the host may have been given another one.
    pub(crate) fn learn(&mut self, address: IpAddr) {
        let known = &mut self.entry.addresses;
        let Some(port) = known.first().map(SocketAddr::port) else { return };
        if known.iter().all(|known| known.ip().to_canonical() != address) {
            known.push(SocketAddr::new(address, port));
        }
    }

    /// The host has these addresses, and no others.
    pub(crate) fn moved(&mut self, addresses: Vec<SocketAddr>) {
        self.next_way = 0;
        self.entry.addresses = addresses;
    }

    /// Notes that the attempt on the present way, one of so many, has failed. The next one follows at once, or after a pause
    /// if this was the last way.
    pub(crate) fn failed(&mut self, why: String, is_refusal: bool, ways: usize, now: Duration) {
        self.failures.push(why);
        let over = self.failures.len().saturating_sub(ways.max(1));
        self.failures.drain(..over);
        self.is_refused &= is_refusal;
        self.next_way += 1;
        if self.next_way < ways {
            self.attempt = Attempt::Pause(now);
            return;
        }
        self.refused_rounds = if self.is_refused { self.refused_rounds + 1 } else { 0 };
        (self.next_way, self.is_refused, self.has_failed) = (0, true, true);
        self.attempt = Attempt::Pause(now + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// Goes on waiting for a trunk: the other host is there, and its daemon is stopped.
    pub(crate) fn wait(&mut self, answered: Duration) {
        self.down_since = self.down_since.max(answered);
    }

    /// Whether the link is given up: its daemon has ended, or nothing was reached for this long.
    pub(crate) fn is_hopeless(&self, limit: Duration, now: Duration) -> bool {
        let is_refused = self.was_up && self.refused_rounds >= REFUSED_ROUNDS_MAX;
        self.carrier.is_none() && (is_refused || now >= self.down_since + limit)
    }

    /// When [`Link::is_hopeless`] may become true by time alone.
    pub(crate) fn hopeless_at(&self, limit: Duration) -> Option<Duration> {
        self.carrier.is_none().then_some(self.down_since + limit)
    }

    /// The failures of the last attempts, in one line.
    pub(crate) fn complaint(&self) -> String {
        let all = self.shell_ended.iter().chain(&self.failures);
        let failures = all.map(String::as_str).collect::<Vec<_>>().join("; ");
        match (self.was_up && self.refused_rounds >= REFUSED_ROUNDS_MAX, failures.is_empty()) {
            (true, _) => format!("its daemon (landeckd) has ended ({failures})"),
            (false, true) => {
                "it did not connect, and has no address that could be tried".to_owned()
            }
            (false, false) => failures,
        }
    }

    /// Notes that the trunk of the remote shell has ended.
    pub(crate) fn lost_shell(&mut self, why: String) {
        self.shell_ended = Some(why);
    }

    /// Whether the last trunk was that of the remote shell, and has ended.
    pub(crate) const fn has_lost_shell(&self) -> bool {
        self.shell_ended.is_some()
    }

    /// The state of both streams as this side has received them, to begin a trunk with.
    pub(crate) fn receipt(&self) -> Receipt {
        let [control, bulk] = self.received();
        let has_aes = cipher_here() == Cipher::Aes256Gcm;
        let (run, of_run) = (self.own_run, self.run.unwrap_or(0));
        Receipt { control, bulk, generation: self.generation + 1, has_aes, run, of_run }
    }

    /// Whether the other side's daemon has started again since this run of it.
    pub(crate) fn has_outlived(&self, run: u32) -> bool {
        self.run.is_some_and(|known| run < known)
    }

    /// Takes the run of the other side's daemon, to which a trunk is open. Returns whether the daemon has started again since
    /// the last trunk: then both streams have begun anew.
    pub(crate) fn meet(&mut self, run: u32) -> bool {
        let known = self.run.replace(run);
        let has_restarted = known.is_some_and(|known| known < run);
        if has_restarted {
            (self.control, self.bulk) = (Pair::unlimited(), Pair::unlimited());
            self.confirmed = [0; 2];
        }
        has_restarted
    }

    /// Forgets what only a run before this one of the other side's daemon knows, as the arbiter says that it has ended.
    /// Returns the token of the trunk that led to it.
    pub(crate) fn outlive(&mut self, run: u32) -> Option<u64> {
        if self.run.is_none_or(|known| known >= run) {
            return None;
        }
        self.secrets.clear();
        self.trunk()
    }

    fn received(&self) -> [u64; 2] {
        [&self.control, &self.bulk].map(|stream| stream.positions().received)
    }

    /// Decides which trunk stays when another one is open, to this run of the other side's daemon: `Some` is the token of the
    /// one that must go.
    pub(crate) fn loser(
        &self,
        token: u64,
        (by, run): (HostNumber, u32),
        now: Duration,
    ) -> Option<u64> {
        let carrier = self.carrier?;
        let is_race = carrier.by != by && now < carrier.since + RACE && self.run == Some(run);
        // Both sides see both trunks, and both keep the one that the lower host has dialled.
        Some(if is_race && carrier.by < by { token } else { carrier.token })
    }

    /// Uses a trunk that is open from now on, with the generation on which both sides agreed. `false` if the other side
    /// claims what was never sent.
    #[must_use]
    pub(crate) fn carry(
        &mut self,
        (token, by): (u64, HostNumber),
        theirs: Receipt,
        secret: [u8; 32],
        now: Duration,
    ) -> bool {
        self.trunks += 1;
        let is_new = |stream: &mut Pair<Parcel>| stream.open(self.trunks).is_ok();
        if ![&mut self.control, &mut self.bulk].into_iter().all(is_new) || !self.confirm(theirs) {
            return false;
        }
        // Of two trunks that were opened at about the same time, both may have one generation. The one that stays counts.
        self.secrets.retain(|(generation, _)| *generation != theirs.generation);
        self.generation = self.generation.max(theirs.generation);
        let their_cipher =
            if theirs.has_aes { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 };
        self.cipher = common_cipher(cipher_here(), their_cipher);
        self.secrets.push_front((theirs.generation, secret));
        self.secrets.truncate(SECRETS);
        self.carrier = Some(Carrier { token, by, since: now });
        self.was_up = true;
        self.failures.clear();
        (self.shell_ended, self.given_up_at) = (None, None);
        self.is_refused = true;
        (self.next_way, self.refused_rounds, self.pause) = (0, 0, PAUSE_MIN);
        self.has_failed = false;
        true
    }

    /// Notes that a trunk has ended. Returns whether it was the one in use.
    pub(crate) fn dropped(&mut self, token: u64, now: Duration) -> bool {
        let was_used = self.trunk() == Some(token);
        if was_used {
            self.carrier = None;
            self.down_since = now;
            self.control.close(self.trunks);
            self.bulk.close(self.trunks);
        }
        was_used
    }

    /// The cipher of sealed lanes between the two hosts.
    pub(crate) const fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// The secret of the two hosts with this generation.
    pub(crate) fn secret(&self, generation: u32) -> Option<&[u8; 32]> {
        self.secrets.iter().find(|(number, _)| *number == generation).map(|(_, secret)| secret)
    }

    /// The newest secret, with its generation.
    pub(crate) fn newest_secret(&self) -> Option<(u32, &[u8; 32])> {
        self.secrets.front().map(|(number, secret)| (*number, secret))
    }

    /// Adds a content. `false` if too much is unconfirmed.
    #[must_use]
    pub(crate) fn push(&mut self, parcel: Parcel) -> bool {
        let bytes = parcel.content.len();
        let stream = match parcel.class {
            EnvelopeClass::Bulk => &mut self.bulk,
            _ => &mut self.control,
        };
        stream.push(parcel, bytes).is_ok() && stream.kept_bytes() <= UNCONFIRMED_BYTES_MAX
    }

    /// The bytes of bulk that the other side has not confirmed.
    #[cfg(test)]
    pub(crate) const fn unsent_bulk(&self) -> usize {
        self.bulk.kept_bytes()
    }

    /// The next content for the trunk in use, with its number: control first.
    fn next_to_send(&mut self) -> Option<(u64, &Parcel)> {
        let next = self.control.next_to_send().or_else(|| self.bulk.next_to_send());
        next.map(|(position, parcel)| (position + 1, parcel))
    }

    /// Fills the trunk in use with contents.
    pub(crate) fn fill(&mut self, trunk: &mut Trunk) {
        while trunk.has_room() {
            let Some((number, parcel)) = self.next_to_send() else { break };
            let number = number.to_le_bytes();
            let Parcel { source, destination, class, hops, ref content } = *parcel;
            let length = (number.len() + content.len()) as u32;
            trunk.put(&Envelope { source, destination, class, hops, length }, &[&number, content]);
        }
    }

    /// Whether the other side has not confirmed everything.
    pub(crate) fn has_unconfirmed(&self) -> bool {
        !self.control.may_change_path() || !self.bulk.may_change_path()
    }

    /// Whether contents wait for the trunk.
    pub(crate) fn has_more(&self) -> bool {
        [&self.control, &self.bulk].into_iter().any(|stream| stream.waiting().next().is_some())
    }

    /// Takes a numbered content off a trunk: returns where it begins, or `None` if it came before.
    ///
    /// # Errors
    /// The content has no number, or one that does not follow.
    pub(crate) fn receive(
        &mut self,
        class: EnvelopeClass,
        content: &[u8],
    ) -> Result<Option<usize>, ()> {
        let number = content.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).ok_or(())?;
        let position = number.checked_sub(1).ok_or(())?;
        let stream = match class {
            EnvelopeClass::Bulk => &mut self.bulk,
            _ => &mut self.control,
        };
        // The trunk before was read until this one was open, behind the receipt that it began with.
        if position < stream.positions().received {
            // The receipt has gone with the trunk before, so another one is due.
            self.confirmed = [0; 2];
            return Ok(None);
        }
        let arrived = stream.arrive_at(stream.lane(), position);
        arrived.map(|_| Some(size_of::<u64>())).map_err(drop)
    }

    /// The receipt that is due, if contents have come since the last one.
    pub(crate) fn due_receipt(&mut self) -> Option<Receipt> {
        let received = self.received();
        let before = std::mem::replace(&mut self.confirmed, received);
        (received != before).then(|| self.receipt())
    }

    /// Takes a receipt. `false` if it claims what was never sent. One about another run of this side's daemon confirms nothing.
    #[must_use]
    pub(crate) fn confirm(&mut self, receipt: Receipt) -> bool {
        let is_about_this = receipt.of_run == self.own_run;
        let [control, bulk] = if is_about_this { [receipt.control, receipt.bulk] } else { [0; 2] };
        let streams = [(&mut self.control, control), (&mut self.bulk, bulk)];
        streams.into_iter().all(|(stream, received)| {
            // A receipt may be older than one that came over the trunk before.
            let received = received.max(stream.received_there());
            stream.told(stream.lane(), Positions { received, granted: u64::MAX }).is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::HostIncarnation;
    use landeck_wire::word::HostPlace;

    fn link(addresses: &[&str]) -> Link {
        let entry = HostEntry {
            host: HostNumber(1),
            incarnation: HostIncarnation(5),
            name: "b".into(),
            key: [0; 32],
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
            cores: 1,
            place: HostPlace::default(),
        };
        Link::new(entry, 0, Duration::ZERO, Duration::ZERO)
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const ZERO: Receipt =
        Receipt { control: 0, bulk: 0, generation: 1, has_aes: false, run: 0, of_run: 0 };

    #[test]
    fn ways_are_tried_in_turn_with_growing_pauses() {
        let mut link = link(&["10.0.0.1:1", "10.0.0.2:1"]);
        let mut pauses = Vec::new();
        for round in 1..=7 {
            assert_eq!(link.next_way, 0);
            link.failed("a".into(), true, 2, at(0));
            assert_eq!((link.attempt, link.next_way), (Attempt::Pause(at(0)), 1));
            link.failed("b".into(), round != 2, 2, at(0));
            let Attempt::Pause(until) = link.attempt else { panic!() };
            pauses.push(until.as_millis());
        }
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        assert_eq!(link.complaint(), "a; b");
        assert!(!link.is_hopeless(at(10_000), at(9_999)), "it was never up");
        assert!(link.is_hopeless(at(10_000), at(10_000)));
    }

    #[test]
    fn a_trunk_that_was_given_up_is_remembered_until_there_is_one() {
        let mut link = link(&["10.0.0.1:1"]);
        link.want(at(0));
        assert!(!link.was_given_up(at(1_000), at(0)));
        link.give_up(at(5));
        assert!(!link.is_wanted && link.was_given_up(at(1_000), at(1_004)));
        assert!(!link.was_given_up(at(1_000), at(1_005)));
        assert!(link.carry((7, HostNumber(0)), ZERO, [1; 32], at(6)));
        assert!(!link.was_given_up(at(1_000), at(7)));
    }

    #[test]
    fn a_host_that_refuses_was_left_by_its_daemon() {
        let mut link = link(&["10.0.0.1:1"]);
        assert!(link.carry((7, HostNumber(0)), ZERO, [1; 32], at(0)));
        assert!(!link.dropped(8, at(5)) && link.dropped(7, at(5)));
        for refusals in 1..=3 {
            assert!(!link.is_hopeless(at(10_000), at(6)), "{refusals}");
            link.failed("refused".into(), true, 1, at(6));
        }
        assert!(link.is_hopeless(at(10_000), at(6)));
        assert!(link.carry((9, HostNumber(0)), ZERO, [2; 32], at(7)));
        assert!(!link.is_hopeless(at(10_000), at(60_000)));
    }

    #[test]
    fn of_two_trunks_both_sides_keep_one() {
        let (low, high) = (HostNumber(0), HostNumber(1));
        let mut link = link(&[]);
        assert_eq!(link.loser(1, (high, 0), at(0)), None);
        link.meet(0);
        assert!(link.carry((1, high), ZERO, [0; 32], at(0)));
        assert_eq!(link.loser(2, (low, 0), at(1)), Some(1), "the lower host's stays");
        assert_eq!(link.loser(2, (high, 0), at(1)), Some(1), "it was renewed");
        assert!(link.carry((2, low), ZERO, [0; 32], at(1)));
        assert_eq!(link.loser(3, (high, 0), at(2)), Some(3));
        assert_eq!(link.loser(3, (high, 0), at(6_000)), Some(2), "no race: it was renewed");
    }

    #[test]
    fn both_sides_count_secrets_alike() {
        let (mut one, mut other) = (link(&[]), link(&[]));
        for round in 0..6_u8 {
            // One side has had a trunk that the other side never saw open.
            if round == 2 {
                let generation = one.receipt().generation;
                let receipt = Receipt { generation, ..ZERO };
                assert!(one.carry((0, HostNumber(0)), receipt, [99; 32], at(0)));
            }
            let agreed = one.receipt().generation.max(other.receipt().generation);
            let receipt = Receipt { generation: agreed, ..ZERO };
            assert!(one.carry((1, HostNumber(0)), receipt, [round; 32], at(0)));
            assert!(other.carry((1, HostNumber(0)), receipt, [round; 32], at(0)));
            assert_eq!(one.newest_secret(), other.newest_secret());
        }
        let (generation, secret) = one.newest_secret().unwrap();
        assert_eq!((generation, secret), (7, &[5; 32]));
        assert_eq!(other.secret(generation - 1), Some(&[4; 32]));
        assert_eq!(other.secret(1), None, "old ones are forgotten");
    }

    #[test]
    fn numbered_contents_come_once() {
        let mut link = link(&[]);
        assert!(link.carry((7, HostNumber(0)), ZERO, [1; 32], at(0)));
        let content = |number: u64| [&number.to_le_bytes()[..], b"x"].concat();
        assert_eq!(link.receive(EnvelopeClass::Job, &content(1)), Ok(Some(8)));
        assert_eq!(link.receive(EnvelopeClass::Job, &content(1)), Ok(None));
        assert_eq!(link.receive(EnvelopeClass::Daemon, &content(2)), Ok(Some(8)));
        assert_eq!(link.receive(EnvelopeClass::Bulk, &content(1)), Ok(Some(8)));
        assert_eq!(link.receive(EnvelopeClass::Job, &content(4)), Err(()));
        assert_eq!(link.receive(EnvelopeClass::Job, b"short"), Err(()));
        let due = link.due_receipt().unwrap();
        assert_eq!((due.control, due.bulk), (2, 1));
        assert_eq!(link.due_receipt(), None);
        assert_eq!(link.receive(EnvelopeClass::Job, &content(2)), Ok(None));
        assert_eq!(link.due_receipt(), Some(due), "the other side has not got it");
        assert!(!link.confirm(Receipt { control: 1, ..ZERO }), "nothing was sent");
    }

    #[test]
    fn a_renewed_trunk_sends_again_what_was_not_received() {
        let (mut one, mut other) = (link(&[]), link(&[]));
        let carry = |one: &mut Link, other: &mut Link, token| {
            let receipts = [one.receipt(), other.receipt()];
            assert!(one.carry((token, HostNumber(0)), receipts[1], [1; 32], at(0)));
            assert!(other.carry((token, HostNumber(0)), receipts[0], [1; 32], at(0)));
        };
        carry(&mut one, &mut other, 7);
        for content in 1..=5 {
            let [source, destination] = [0, 1].map(HostNumber);
            let content: Rc<[u8]> = Rc::new([content; 10]);
            let class = EnvelopeClass::Job;
            assert!(one.push(Parcel { source, destination, class, hops: 0, content }));
        }
        let mut came = Vec::new();
        let mut pass = |one: &mut Link, other: &mut Link, most| {
            for _ in 0..most {
                let Some((number, parcel)) = one.next_to_send() else { break };
                let content = [&number.to_le_bytes()[..], &parcel.content].concat();
                if other.receive(parcel.class, &content) == Ok(Some(8)) {
                    came.push(content[8]);
                }
            }
        };
        pass(&mut one, &mut other, 2);
        // The next trunk begins, and a content and its receipt still come over this one. A fourth content is lost.
        let begun_at = other.receipt();
        pass(&mut one, &mut other, 1);
        assert!(one.confirm(other.receipt()));
        one.next_to_send().unwrap();
        assert!(one.dropped(7, at(1)) && other.dropped(7, at(1)));
        assert!(!one.has_more() && one.has_unconfirmed());
        assert!(one.carry((8, HostNumber(0)), begun_at, [1; 32], at(2)), "an older receipt");
        assert!(other.carry((8, HostNumber(0)), ZERO, [1; 32], at(2)));
        pass(&mut one, &mut other, 9);
        assert_eq!(came, [1, 2, 3, 4, 5]);
        assert!(one.confirm(other.due_receipt().unwrap()) && !one.has_unconfirmed());
    }

    /// A link of this run of a daemon.
    fn link_of_run(run: u32) -> Link {
        Link { own_run: run, ..link(&[]) }
    }

    /// Opens a trunk between two daemons that have said this about themselves. Returns which of them has noticed that the other
    /// one has started again.
    fn open_with(links: [&mut Link; 2], token: u64, receipts: [Receipt; 2]) -> [bool; 2] {
        let [one, other] = links;
        let generation = receipts[0].generation.max(receipts[1].generation);
        let mut noticed = [one, other].into_iter().zip([receipts[1], receipts[0]]);
        std::array::from_fn(|_| {
            let (link, theirs) = noticed.next().unwrap();
            assert!(!link.has_outlived(theirs.run));
            let has_restarted = link.meet(theirs.run);
            let theirs = Receipt { generation, ..theirs };
            assert!(link.carry((token, HostNumber(0)), theirs, [token as u8; 32], at(0)));
            has_restarted
        })
    }

    fn open(links: [&mut Link; 2], token: u64) -> [bool; 2] {
        let receipts = [links[0].receipt(), links[1].receipt()];
        open_with(links, token, receipts)
    }

    fn push(link: &mut Link, content: u8, class: EnvelopeClass) {
        let [source, destination] = [0, 1].map(HostNumber);
        let content: Rc<[u8]> = Rc::new([content]);
        assert!(link.push(Parcel { source, destination, class, hops: 0, content }));
    }

    /// Passes what waits over the trunk, and returns what has come.
    fn pass(from: &mut Link, to: &mut Link) -> Vec<u8> {
        let mut came = Vec::new();
        while let Some((number, parcel)) = from.next_to_send() {
            let content = [&number.to_le_bytes()[..], &parcel.content].concat();
            if to.receive(parcel.class, &content).unwrap().is_some() {
                came.push(content[8]);
            }
        }
        if let Some(receipt) = to.due_receipt() {
            assert!(from.confirm(receipt));
        }
        came
    }

    const CLASSES: [EnvelopeClass; 2] = [EnvelopeClass::Job, EnvelopeClass::Bulk];

    #[test]
    fn both_streams_begin_anew_when_the_other_daemon_has_started_again() {
        let (mut one, mut other) = (link(&[]), link(&[]));
        assert_eq!(open([&mut one, &mut other], 1), [false, false]);
        for class in CLASSES {
            (0..5).for_each(|content| push(&mut one, content, class));
            push(&mut other, 9, class);
        }
        assert_eq!((pass(&mut one, &mut other).len(), pass(&mut other, &mut one).len()), (10, 2));
        CLASSES.into_iter().for_each(|class| push(&mut one, 6, class));
        one.next_to_send().unwrap();
        assert!(one.dropped(1, at(1)));
        push(&mut one, 7, EnvelopeClass::Job);
        for run in 1..4 {
            let mut next = link_of_run(run);
            // What it says before its first trunk is kept for that.
            push(&mut next, 20, EnvelopeClass::Job);
            assert_eq!(open([&mut one, &mut next], u64::from(run) + 1), [true, false]);
            assert!(!one.has_unconfirmed() && one.due_receipt().is_none());
            CLASSES.into_iter().for_each(|class| push(&mut one, 10, class));
            assert_eq!(
                (pass(&mut one, &mut next), pass(&mut next, &mut one)),
                (vec![10; 2], vec![20])
            );
            assert!(!one.has_unconfirmed() && !next.has_unconfirmed());
            assert_eq!(one.newest_secret(), next.newest_secret());
            assert!(
                one.secret(1).is_some(),
                "connections under earlier secrets are still verified"
            );
        }
    }

    #[test]
    fn a_receipt_about_the_run_before_confirms_nothing() {
        let mut next = link_of_run(1);
        let mut other = link(&[]);
        (0..3).for_each(|content| push(&mut next, content, EnvelopeClass::Job));
        // The other side has received much of the run before, and has more for it.
        open([&mut link(&[]), &mut other], 1);
        other.confirmed = [0; 2];
        push(&mut other, 50, EnvelopeClass::Job);
        let theirs = Receipt { control: 100, bulk: 7, ..other.receipt() };
        let own = next.receipt();
        assert_eq!(open_with([&mut next, &mut other], 2, [own, theirs]), [false, true]);
        assert_eq!(pass(&mut next, &mut other), [0, 1, 2]);
        assert_eq!(pass(&mut other, &mut next), []);
    }

    #[test]
    fn two_trunks_at_once_to_the_next_run_lose_nothing() {
        let (mut one, mut next) = (link(&[]), link_of_run(1));
        open([&mut one, &mut link(&[])], 1);
        push(&mut one, 1, EnvelopeClass::Job);
        // Both sides say what they have on both trunks before one of these is open.
        let receipts = [one.receipt(), next.receipt()];
        assert_eq!(open_with([&mut one, &mut next], 2, receipts), [true, false]);
        push(&mut one, 2, EnvelopeClass::Job);
        push(&mut next, 3, EnvelopeClass::Job);
        assert_eq!((pass(&mut one, &mut next), pass(&mut next, &mut one)), (vec![2], vec![3]));
        push(&mut one, 4, EnvelopeClass::Job);
        assert_eq!(open_with([&mut one, &mut next], 3, receipts), [false, false]);
        push(&mut next, 5, EnvelopeClass::Job);
        assert_eq!((pass(&mut one, &mut next), pass(&mut next, &mut one)), (vec![4], vec![5]));
    }

    #[test]
    fn a_trunk_that_is_open_on_one_side_alone_loses_nothing_of_the_next_run() {
        let (mut one, mut next) = (link(&[]), link_of_run(1));
        open([&mut one, &mut link(&[])], 1);
        push(&mut next, 1, EnvelopeClass::Job);
        // The next run has it open, and the other side has not got so far when it breaks.
        next.meet(0);
        assert!(next.carry((2, HostNumber(0)), one.receipt(), [2; 32], at(0)));
        next.next_to_send().unwrap();
        assert!(next.dropped(2, at(1)));
        assert_eq!(open([&mut one, &mut next], 3), [true, false]);
        push(&mut one, 2, EnvelopeClass::Job);
        assert_eq!((pass(&mut next, &mut one), pass(&mut one, &mut next)), (vec![1], vec![2]));
    }

    #[test]
    fn a_trunk_of_the_run_before_is_refused_and_one_of_the_next_run_stays() {
        let (low, high) = (HostNumber(0), HostNumber(1));
        let mut link = link(&[]);
        assert!(!link.has_outlived(0) && !link.meet(0));
        assert!(link.carry((1, low), ZERO, [1; 32], at(0)));
        assert_eq!(link.loser(2, (high, 1), at(1)), Some(1), "the run before has ended");
        assert!(link.meet(1) && link.has_outlived(0) && !link.has_outlived(1));
        let next = Receipt { run: 1, ..ZERO };
        assert!(link.carry((2, high), next, [2; 32], at(1)));
        assert_eq!(link.outlive(1), None);
        assert!(link.newest_secret().is_some());
        assert_eq!(link.outlive(2), Some(2), "its end may not have come");
        assert!(link.newest_secret().is_none());
    }
}
