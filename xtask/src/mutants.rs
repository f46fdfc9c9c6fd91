//! `cargo xtask mutants`: each checker of the simulated protocols catches a broken protocol, and so do the units of lanes.
//!
//! A mutant is one changed line of a shipped machine. It is made in a copy of the repository in `target/mutants`, and the
//! test that is named beside it must fail there. A mutant that no test notices *survives*, which is a fault of the tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Problem;

/// A changed line of a machine, and the test that must fail.
struct Mutant {
    /// The rule that it breaks.
    breaks: &'static str,
    file: &'static str,
    line: &'static str,
    changed: &'static str,
    /// A part of the name of the test in the simulator; behind `CRATE units: `, of one beside the machine.
    test: &'static str,
}

/// Stands between a crate and the name of a unit test there. Trunks number what they carry, for example, so no simulated word
/// comes out of order.
const UNITS: &str = " units: ";

const LEASE: &str = "crates/protocols/src/hosts/lease.rs";
const DETECTOR: &str = "crates/protocols/src/hosts/detector.rs";
const TIMING: &str = "crates/protocols/src/hosts/timing.rs";
const ARBITER: &str = "crates/protocols/src/hosts/arbiter.rs";
const FOLLOWER: &str = "crates/protocols/src/hosts/follower.rs";
const NAMES: &str = "crates/protocols/src/hosts/names.rs";
const BOOKING: &str = "crates/protocols/src/hosts/booking.rs";
const GROWTH: &str = "crates/protocols/src/hosts/growth.rs";
const DIALLING: &str = "crates/protocols/src/hosts/dialling.rs";
const PAIR: &str = "crates/channel/src/pair.rs";
const RELAY_REQUESTS: &str = "crates/channel/src/relay_requests.rs";
const RELAYED: &str = "crates/transports/src/lanes/relayed/outgoing.rs";
const LINK: &str = "crates/daemon/src/trunks/link.rs";
const SILENCE: &str = "crates/channel/src/silence.rs";
const GRANTS: &str = "crates/channel/src/grants.rs";
const CREDIT: &str = "crates/channel/src/credit.rs";
const PACING: &str = "crates/kernel/src/pacing.rs";
const UNCONFIRMED: &str = "crates/transports/src/lanes/unconfirmed.rs";
const DERIVE: &str = "crates/collectives/src/derive/mod.rs";
const STARTED: &str = "crates/collectives/src/derive/hosts/started.rs";

const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "an excluded host ends at once (its driver does not look)",
        file: LEASE,
        line: "return (!self.is_end_told).then_some(Duration::ZERO);",
        changed: "return None;",
        test: "protocols units: an_excluded_host_ends_at_once",
    },
    Mutant {
        breaks: "every host learns all words (newcomers get a host's first addresses)",
        file: ARBITER,
        line: "known.entry.addresses.clone_from(&addresses);",
        changed: "let _ = &known;",
        test: "hosts::hosts_with_all_faults",
    },
    Mutant {
        breaks: "a lost host is gone in time (nobody looks when no host is left)",
        file: DETECTOR,
        line: "Some(self.looks.due(self.timing).min(judged(self.timing.gone_after())))",
        changed: "Some(judged(self.timing.gone_after()))",
        test: "hosts::cut_hosts_are_lost_in_time",
    },
    Mutant {
        breaks: "one owner per name (names are free when a host is lost)",
        file: NAMES,
        line: "self.lost.insert(host);",
        changed: "self.host_gone(host);",
        test: "names::",
    },
    Mutant {
        breaks: "a job is over once nobody has a part (it is forgotten too early)",
        file: ARBITER,
        line: "if !is_done || self.segments.values().any(|part| part.job == job) {",
        changed: "if !is_done {",
        test: "hosts::hosts_with_all_faults",
    },
    Mutant {
        breaks: "jobs that are over are forgotten (a host that is gone)",
        file: ARBITER,
        line: "outputs.extend(self.forget_if_over(part.job));",
        changed: "let _ = part;",
        test: "hosts::hosts_with_all_faults",
    },
    Mutant {
        breaks: "jobs that are over are forgotten (what is said late)",
        file: ARBITER,
        line: "if self.is_living(host, incarnation) && !self.over.contains(&job) {",
        changed: "if self.is_living(host, incarnation) {",
        test: "hosts::trunks_that_break",
    },
    Mutant {
        breaks: "every host learns all words (that a job is over)",
        file: FOLLOWER,
        line: "self.ended.retain(|_, (of, _)| *of != job);",
        changed: "self.ended.retain(|_, (of, _)| *of == job);",
        test: "hosts::hosts_with_all_faults",
    },
    Mutant {
        breaks: "a core has one job",
        file: BOOKING,
        line: "(0..self.cores(host)).filter(|core| !taken.contains(core)).collect()",
        changed: "(0..self.cores(host)).filter(|core| !taken.contains(&(core + 1))).collect()",
        test: "protocols units: hosts::booking::tests::the_book_is_right",
    },
    Mutant {
        breaks: "a job that wants hosts for itself shares none",
        file: BOOKING,
        line: "false => !others.any(|job| self.jobs[&job].is_exclusive),",
        changed: "false => true,",
        test: "protocols units: hosts::booking::tests::the_book_is_right",
    },
    Mutant {
        breaks: "a guest comes when all hosts know its places (answers about an earlier host)",
        file: GROWTH,
        line: "            && host.segment == segment\n            && awaited",
        changed: "            && awaited",
        test: "protocols units: hosts::growth::tests::an_answer_about_a_host_that_was_given_up",
    },
    Mutant {
        breaks: "a guest comes when all hosts know its places (nobody is awaited)",
        file: GROWTH,
        line: "awaited: others.clone(), guests: Vec::new()",
        changed: "awaited: BTreeSet::new(), guests: Vec::new()",
        test: "growth::",
    },
    Mutant {
        breaks: "an added host knows the guests that came before",
        file: GROWTH,
        line: "guests.extend(its);",
        changed: "*guests = its;",
        test: "growth::",
    },
    Mutant {
        breaks: "places are the same on all hosts (one that is lost on its way)",
        file: GROWTH,
        line: "self.outputs.push_back(GrowthOutput::Place(host));",
        changed: "let _ = host;",
        test: "growth::",
    },
    Mutant {
        breaks: "each wish has its answer (another host is lost)",
        file: GROWTH,
        line: "            self.answer(host, Err(why.to_owned()));\n        }\n        self.await_no_longer(host);",
        changed: "            self.answer(host, Err(why.to_owned()));\n        }",
        test: "growth::",
    },
    Mutant {
        breaks: "each wish has its answer (the part of another host is over)",
        file: GROWTH,
        line: "            self.go_on();\n        }\n        self.await_no_longer(host);",
        changed: "            self.go_on();\n        }",
        test: "growth::",
    },
    Mutant {
        breaks: "each wish has its answer (the sight of a lost host is old)",
        file: GROWTH,
        line: "} else if self.wanted.contains(&host) || self.ending.remove(&host) {",
        changed: "} else if self.ending.remove(&host) {",
        test: "growth::",
    },
    Mutant {
        breaks: "each wish has its answer (a part that is ending)",
        file: GROWTH,
        line: "        if self.ending.remove(&host) {\n            self.wanted.push_back(host);",
        changed: "        if self.ending.remove(&host) {",
        test: "growth::",
    },
    Mutant {
        breaks: "no wish has two answers",
        file: GROWTH,
        line: "self.wanted.retain(|wanted| *wanted != host);\n        self.answer(host, outcome);",
        changed: "self.answer(host, outcome);",
        test: "growth::",
    },
    Mutant {
        breaks: "nobody waits for ever to join",
        file: GROWTH,
        line: "            && is_waited_for",
        changed: "            && !is_waited_for",
        test: "growth::",
    },
    Mutant {
        breaks: "a host that is given up has no part",
        file: GROWTH,
        line: "self.outputs.push_back(GrowthOutput::Dismiss(host));",
        changed: "let _ = host;",
        test: "growth::",
    },
    Mutant {
        breaks: "the book has what was added (the founder is not told)",
        file: GROWTH,
        line: "self.outputs.push_back(GrowthOutput::GiveUp(host));",
        changed: "let _ = host;",
        test: "growth::",
    },
    Mutant {
        breaks: "each host that comes was allowed (a late answer of the founder)",
        file: GROWTH,
        line: "Step::Allowing(asked) if asked == host)",
        changed: "Step::Allowing(asked) if asked.number == host.number)",
        test: "growth::",
    },
    Mutant {
        breaks: "no host comes behind the end",
        file: GROWTH,
        line: "        self.is_released = true;\n        self.close();",
        changed: "        self.is_released = true;",
        test: "growth::",
    },
    Mutant {
        breaks: "each answer is right",
        file: GROWTH,
        line: "Err(why) => self.finish(host, Err(why)),",
        changed: "Err(_) => self.finish(host, Ok(())),",
        test: "growth::",
    },
    Mutant {
        breaks: "added hosts that are alone end",
        file: GROWTH,
        line: "if self.is_released || !hosts.iter().all(|&host| self.is_added(host)) {",
        changed: "if self.is_released || !hosts.is_empty() {",
        test: "growth::",
    },
    Mutant {
        breaks: "a host is driven once in a started operation",
        file: DERIVE,
        line: "drives == (one == member)",
        changed: "drives <= (one == member)",
        test: "driving::",
    },
    Mutant {
        breaks: "nobody waits for a member that computes (the first of a host drives it)",
        file: STARTED,
        line: "let driver = self.hosts.drivers[host];",
        changed: "let driver = self.hosts.members[host][0];",
        test: "driving::",
    },
    Mutant {
        breaks: "nobody waits for a member that computes (a scan takes all of its host)",
        file: STARTED,
        line: "if !is_needed && !passes_on {",
        changed: "if false {",
        test: "driving::",
    },
    Mutant {
        breaks: "all data of a started operation, each once",
        file: STARTED,
        line: "sent.push(cells.at(self.store(driver, from)));",
        changed: "sent.push(cells.at(self.store(driver, driver)));",
        test: "driving::",
    },
    Mutant {
        breaks: "no view is valid after a loss",
        file: LEASE,
        line: "self.renewed.map(|at| at + self.timing.timeout())",
        changed: "self.renewed.map(|at| at + self.timing.timeout() * 2)",
        test: "hosts::cut_hosts",
    },
    Mutant {
        breaks: "nothing of a gone host runs",
        file: LEASE,
        line: "if self.end.is_none() && silent >= self.timing.lease() && self.looks.may_judge(self.timing)",
        changed: "if self.end.is_none() && silent >= self.timing.lease() * 2 && self.looks.may_judge(self.timing)",
        test: "hosts::cut_hosts",
    },
    Mutant {
        breaks: "no host ends that hears the arbiter (it was stopped)",
        file: LEASE,
        line: "if self.end.is_none() && silent >= self.timing.lease() && self.looks.may_judge(self.timing)",
        changed: "if self.end.is_none() && silent >= self.timing.lease()",
        test: "hosts::stopped_daemons",
    },
    Mutant {
        breaks: "no host is lost that answers (it renews)",
        file: DETECTOR,
        line: "self.renewed = (self.confirmed, now);",
        changed: "self.renewed = (self.confirmed, self.renewed.1);",
        test: "hosts::no_host_is_lost",
    },
    Mutant {
        breaks: "no host is lost that answers (a stopped daemon)",
        file: DETECTOR,
        line: "self.answered = self.answered.max(at);",
        changed: "self.answered = self.answered.min(at);",
        test: "hosts::stopped_daemons",
    },
    Mutant {
        breaks: "no host is lost that answers (a late arbiter)",
        file: TIMING,
        line: "self.last.saturating_sub(self.punctual_since) >= timing.timeout()",
        changed: "self.last.saturating_sub(self.punctual_since) <= timing.timeout() * 9_999",
        test: "hosts::",
    },
    Mutant {
        breaks: "a host that is cut off is lost in time (in one direction)",
        file: DETECTOR,
        line: "if heartbeat.echo > self.echoed && heartbeat.echo < self.next_number {",
        changed: "if heartbeat.echo >= self.echoed && heartbeat.echo < self.next_number {",
        test: "hosts::a_cut_in_one_direction",
    },
    Mutant {
        breaks: "a lost host is gone in time",
        file: TIMING,
        line: "self.lease() + GONE_MARGIN",
        changed: "self.lease() * 9 + GONE_MARGIN",
        test: "hosts::",
    },
    Mutant {
        breaks: "words have one order (a gap)",
        file: FOLLOWER,
        line: "while let Some(content) = self.ahead.remove(&(self.applied + 1)) {",
        changed: "while let Some((_, content)) = self.ahead.pop_first() {",
        test: "protocols units: hosts::follower",
    },
    Mutant {
        breaks: "words have one order (a repetition)",
        file: FOLLOWER,
        line: "if word.number <= self.applied {\n            return outputs;",
        changed: "if word.number <= self.applied {\n            outputs.extend(self.apply(word.content));\n            return outputs;",
        test: "hosts::trunks_that_break",
    },
    Mutant {
        breaks: "every host learns all words",
        file: ARBITER,
        line: "let applied = living.map(|known| known.applied).min().unwrap_or(self.last);",
        changed: "let applied = living.map(|known| known.applied).max().unwrap_or(self.last);",
        test: "hosts::trunks_that_break",
    },
    Mutant {
        breaks: "the first word is final (a second end)",
        file: ARBITER,
        line: "if known.is_some_and(|known| known.is_final() || known == end) {",
        changed: "if known.is_some_and(|known| known == end) {",
        test: "hosts::trunks_that_break",
    },
    Mutant {
        breaks: "only a process that is away returns",
        file: ARBITER,
        line: "(Some(job), Some((_, end @ ProcessEnd::Away))) => {",
        changed: "(Some(job), Some((_, end))) => {",
        test: "hosts::trunks_that_break",
    },
    Mutant {
        breaks: "the first word is final (a host that is lost reports)",
        file: ARBITER,
        line: "known.entry.incarnation == incarnation && known.standing == HostStanding::Living",
        changed: "known.entry.incarnation == incarnation",
        test: "hosts::",
    },
    Mutant {
        breaks: "only words change far records",
        file: FOLLOWER,
        line: "            outputs.extend(self.apply(content));",
        changed: "            outputs.extend(self.apply(content.clone()));\n            outputs.extend(self.apply(content));",
        test: "hosts::trunks_that_break",
    },
    Mutant {
        breaks: "a job ends once",
        file: ARBITER,
        line: "words.end = Some((code, cause.clone()));",
        changed: "words.failure = Some((code, cause.clone()));",
        test: "hosts::",
    },
    Mutant {
        breaks: "a block of numbers is given once",
        file: ARBITER,
        line: "words.next_number = first + BLOCK;",
        changed: "words.next_number = first;",
        test: "hosts::trunks_that_break",
    },
    Mutant {
        breaks: "a pair has one living lane",
        file: DIALLING,
        line: "            ends.drop_lane(&mut outputs);\n            ends.open(lane, &mut outputs);",
        changed: "            ends.open(lane, &mut outputs);",
        test: "lanes::a_pair",
    },
    Mutant {
        breaks: "numbers of lanes grow",
        file: DIALLING,
        line: "lane <= ends.seen || (is_dialling && ends.is_low())",
        changed: "is_dialling && ends.is_low()",
        test: "lanes::a_pair",
    },
    Mutant {
        breaks: "a wanted lane comes",
        file: DIALLING,
        line: "outputs.push(ends.send(DialContent::Ask { after: ends.highest() }));\n                }\n                Phase::Asked { is_turn: true }",
        changed: "}\n                Phase::Asked { is_turn: true }",
        test: "lanes::a_pair",
    },
    Mutant {
        breaks: "a host that holds opens no lanes",
        file: DIALLING,
        line: "        if self.is_held {\n            ends.is_owed = true;\n        } else {",
        changed: "        {",
        test: "lanes::a_pair",
    },
    Mutant {
        breaks: "an ended process gets no lane",
        file: DIALLING,
        line: "self.ended.entry(job).or_default().insert(process);",
        changed: "self.ended.entry(job).or_default().remove(&process);",
        test: "lanes::a_pair",
    },
    Mutant {
        breaks: "numbers of lanes grow (a new run of a daemon forgets the number that its process says)",
        file: DIALLING,
        line: "(ends.seen, ends.doubted) = (lane, lane);",
        changed: "ends.doubted = lane;",
        test: "lanes::a_pair",
    },
    Mutant {
        breaks: "numbers of lanes grow (a new run goes on with a lane below the one that its process has)",
        file: DIALLING,
        line: "            _ => self.begin_again(&mut ends, &mut outputs),",
        changed: "            _ => {}",
        test: "lanes::a_pair",
    },
    Mutant {
        breaks: "a wanted lane comes (two daemons that have started again hold different lanes to be there)",
        file: DIALLING,
        line: "(ends.seen, ends.doubted) = (lane, lane);",
        changed: "ends.seen = lane;",
        test: "protocols units: dialling::",
    },
    Mutant {
        breaks: "a wanted lane comes (a lane that a new run of a daemon has forgotten holds up the next)",
        file: DIALLING,
        line: "            ends.doubted = ends.highest();",
        changed: "            let _ = &ends;",
        test: "protocols units: dialling::",
    },
    Mutant {
        breaks: "a wanted lane comes (a new run of a daemon is not told which numbers were used)",
        file: DIALLING,
        line: "if ends.seen <= ends.doubted && !is_under_way {",
        changed: "if false && !is_under_way {",
        test: "protocols units: dialling::",
    },
    Mutant {
        breaks: "each run of a daemon has numbers of its own",
        file: DIALLING,
        line: "let digits = self.run | u32::from(self.is_low());",
        changed: "let digits = u32::from(self.is_low());",
        test: "protocols units: dialling::",
    },
    Mutant {
        breaks: "a connection that a dead daemon has dialled becomes no lane",
        file: DIALLING,
        line: "        if is_late {",
        changed: "        if false && is_late {",
        test: "protocols units: dialling::",
    },
    Mutant {
        breaks: "no frame is lost or twice",
        file: PAIR,
        line: "            self.sent = positions.received;",
        changed: "            self.sent = self.sent.max(positions.received);",
        test: "pairs::",
    },
    Mutant {
        breaks: "a lane with a lower number is refused",
        file: PAIR,
        line: "        if lane <= self.lane {",
        changed: "        if lane == u32::MAX {",
        test: "pairs::",
    },
    Mutant {
        breaks: "a pair keeps at most 256 KiB",
        file: PAIR,
        line: "if self.kept_bytes + keeps > self.room {",
        changed: "if self.kept_bytes > self.room {",
        test: "pairs::",
    },
    Mutant {
        breaks: "a pair changes its path when all is received",
        file: PAIR,
        line: "        self.kept.is_empty()",
        changed: "        self.sent == self.pushed",
        test: "pairs::",
    },
    Mutant {
        breaks: "a grant is no receipt of relayed messages",
        file: PAIR,
        line: "for _ in before..positions.received {",
        changed: "for _ in before..positions.granted.min(self.sent) {",
        test: "carried::relayed",
    },
    Mutant {
        breaks: "a trunk's content never waits",
        file: PAIR,
        line: "Self::with_limits(0, u64::MAX, usize::MAX)",
        changed: "Self::with_limits(0, AHEAD_MAX, usize::MAX)",
        test: "carried::contents",
    },
    Mutant {
        breaks: "a piece is kept until its receiver has taken it",
        file: RELAYED,
        line: "self.hear(taken, position.saturating_add(RELAYED_URGENT_MORE))",
        changed: "self.hear(position, position.saturating_add(RELAYED_URGENT_MORE))",
        test: "daemon units: resuming::a_relayed_direction",
    },
    Mutant {
        breaks: "a receipt may be older than one that came over the trunk before",
        file: LINK,
        line: "let received = received.max(stream.received_there());",
        changed: "let received = received.max(0);",
        test: "daemon units: a_renewed_trunk",
    },
    Mutant {
        breaks: "a request goes again until its answer has come",
        file: RELAY_REQUESTS,
        line: "        self.received(self.answered());",
        changed: "        self.received(self.pair.pushed());",
        test: "channel units: requests_without_an_answer",
    },
    Mutant {
        breaks: "a connection that carries nothing is given up in time",
        file: SILENCE,
        line: "let mut since = before.map_or(now, |begun| begun.since);",
        changed: "let mut since = now;",
        test: "silences::",
    },
    Mutant {
        breaks: "a connection that carries nothing is given up in time (its window is closed)",
        file: SILENCE,
        line: "since = since.max(answered);",
        changed: "since = now;",
        test: "silences::",
    },
    Mutant {
        breaks: "a connection that carries is not given up (its receiver does not read)",
        file: SILENCE,
        line: "if !sight.is_window_open {",
        changed: "if false {",
        test: "silences::",
    },
    Mutant {
        breaks: "a connection that carries is not given up (nothing waits)",
        file: SILENCE,
        line: "if sight.waiting_bytes == 0 {",
        changed: "if false {",
        test: "silences::",
    },
    Mutant {
        breaks: "connections that bring nothing over end their job",
        file: SILENCE,
        line: "let is_same = has_more && self.began_at == Some(began_at);",
        changed: "let is_same = false;",
        test: "channel units: connections_in_a_row",
    },
    Mutant {
        breaks: "no more than the limit is granted and not received",
        file: GRANTS,
        line: "map_or(u64::MAX, |most| most.saturating_sub(bytes))",
        changed: "map_or(u64::MAX, |most| (2 * most).saturating_sub(bytes))",
        test: "incast::credit_fills",
    },
    Mutant {
        breaks: "no more senders than the limit are under way",
        file: GRANTS,
        line: "let has_place = places < self.limits.places;",
        changed: "let has_place = places <= self.limits.places;",
        test: "incast::credit_fills",
    },
    Mutant {
        breaks: "the port is not idle while something can be granted",
        file: GRANTS,
        line: "one.is_stalled |= one.ahead() > 0 && (all_are || is_passed);",
        changed: "one.is_stalled |= one.ahead() > 0 && !all_are && is_passed;",
        test: "incast::senders_that_stop",
    },
    Mutant {
        breaks: "no message starves",
        file: GRANTS,
        line: "now.saturating_sub(one.since) > PATIENCE;",
        changed: "now.saturating_sub(one.since) > PATIENCE * 1_000;",
        test: "incast::a_long_message",
    },
    Mutant {
        breaks: "a credit does not grow on a slow network",
        file: CREDIT,
        line: "epoch.is_needed && rate > FAST as f64 && carried < SHORT",
        changed: "epoch.is_needed && carried < SHORT",
        test: "channel units: credit::",
    },
    Mutant {
        breaks: "a credit does not grow where it is carried late",
        file: CREDIT,
        line: "epoch.is_needed && rate > FAST as f64 && carried < SHORT",
        changed: "epoch.is_needed && rate > FAST as f64",
        test: "channel units: credit::",
    },
    Mutant {
        breaks: "a credit that nobody needs does not grow",
        file: CREDIT,
        line: "epoch.is_needed && rate > FAST as f64 && carried < SHORT",
        changed: "rate > FAST as f64 && carried < SHORT",
        test: "channel units: credit::",
    },
    Mutant {
        breaks: "a flight that is lost halves a credit once",
        file: CREDIT,
        line: "if lost > 0 && !self.has_fallen {",
        changed: "if lost > 0 {",
        test: "channel units: credit::",
    },
    Mutant {
        breaks: "a credit that takes too long is halved",
        file: CREDIT,
        line: "if carried > LONG && self.bytes > CREDIT_BYTES {",
        changed: "if carried > LONG * 999 && self.bytes > CREDIT_BYTES {",
        test: "channel units: credit::",
    },
    Mutant {
        breaks: "a credit rests for longer after each fall",
        file: CREDIT,
        line: "self.pause = (2 * self.pause).min(PAUSE_MOST);",
        changed: "self.pause = self.pause.min(PAUSE_MOST);",
        test: "channel units: credit::",
    },
    Mutant {
        breaks: "a credit that has passed its height is as before",
        file: CREDIT,
        line: "if self.bytes >= self.fell_from {",
        changed: "if self.bytes > self.fell_from {",
        test: "channel units: credit::",
    },
    Mutant {
        breaks: "the next step has the credit that has grown",
        file: PACING,
        line: "Incast::GrowingCredit => self.credit.limits(),",
        changed: "Incast::GrowingCredit => GrantLimits::credit(128 << 10),",
        test: "kernel units: pacing::",
    },
    Mutant {
        breaks: "the time between two steps is no part of an epoch",
        file: PACING,
        line: "            self.credit.end(now);\n",
        changed: "",
        test: "kernel units: pacing::",
    },
    Mutant {
        breaks: "a fixed credit does not grow",
        file: PACING,
        line: "if is_new && self.wish == Incast::GrowingCredit {",
        changed: "if is_new {",
        test: "kernel units: pacing::",
    },
    Mutant {
        breaks: "messages of the program need no grant",
        file: PACING,
        line: "if context >= FIRST_MAILBOX || context & ContextId::COLLECTIVE == 0 {",
        changed: "if context >= FIRST_MAILBOX {",
        test: "kernel units: pacing::",
    },
    Mutant {
        breaks: "an urgent message does not wait behind a slow receiver",
        file: UNCONFIRMED,
        line: "|| bytes > UNTOLD_BYTES_MAX && self.marks.front().is_some_and(is_old)",
        changed: "|| bytes > UNTOLD_BYTES_MAX && self.marks.back().is_some_and(is_old)",
        test: "transports units: unconfirmed::",
    },
    Mutant {
        breaks: "what a receiver has taken does not count",
        file: UNCONFIRMED,
        line: "self.taken_bytes = mark.bytes;",
        changed: "self.taken_bytes += mark.bytes;",
        test: "transports units: unconfirmed::",
    },
    Mutant {
        breaks: "a pair has a limit of urgent messages",
        file: UNCONFIRMED,
        line: "self.urgent.len() < URGENT_AHEAD_MAX",
        changed: "self.urgent.len() <= URGENT_AHEAD_MAX",
        test: "transports units: unconfirmed::",
    },
    Mutant {
        breaks: "few marks stand for many frames",
        file: UNCONFIRMED,
        line: "if self.sent_bytes - marked >= MARK_BYTES {",
        changed: "if self.sent_bytes >= marked {",
        test: "transports units: unconfirmed::",
    },
];

/// The repetitions of a test that has not failed: its seeds are others each time.
const REPETITIONS: usize = 3;

/// Tries the mutants of the files with this in their names; true if each is caught.
pub(crate) fn run(root: &Path, of: &str) -> Result<bool, Problem> {
    let mutants: Vec<&Mutant> = MUTANTS.iter().filter(|mutant| mutant.file.contains(of)).collect();
    let copy = Copy::make(root)?;
    let units = |test: &'static str| test.find(UNITS).map_or("", |at| &test[..at + UNITS.len()]);
    for tests in mutants.iter().map(|mutant| units(mutant.test)).collect::<BTreeSet<_>>() {
        if !copy.passes(tests)? {
            say!("test mutants/none ... FAILED");
            say!("the tests fail without a mutant: repair them first");
            return Ok(false);
        }
    }
    let mut survivors = 0;
    for mutant in &mutants {
        let caught = copy.with(mutant, |copy| {
            for _ in 0..REPETITIONS {
                if !copy.passes(mutant.test)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })?;
        survivors += usize::from(!caught);
        say!("test mutants/{} ... {}", mutant.breaks, if caught { "ok" } else { "FAILED" });
        if !caught {
            say!("SURVIVED: {} ({}, test {})", mutant.line.trim(), mutant.file, mutant.test);
        }
    }
    say!("{} passed, {survivors} failed", mutants.len() - survivors);
    Ok(survivors == 0)
}

/// A copy of the repository with a build of its own.
struct Copy {
    folder: PathBuf,
}

impl Copy {
    fn make(root: &Path) -> Result<Self, Problem> {
        let folder = root.join("target/mutants/source");
        let mut list = Command::new("git");
        list.current_dir(root).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let start = |error| Problem::Start { program: "git".into(), error };
        let output = list.output().map_err(start)?;
        for name in String::from_utf8_lossy(&output.stdout).split('\0') {
            let (from, to) = (root.join(name), folder.join(name));
            if name.is_empty() || !from.is_file() {
                continue;
            }
            let content = fs::read(&from).map_err(|error| Problem::Read { path: from, error })?;
            // An unchanged file keeps its time, so that it is not built again.
            if fs::read(&to).ok().as_ref() == Some(&content) {
                continue;
            }
            let parent = to.parent().unwrap_or(&folder);
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(&to, content))
                .map_err(|error| Problem::Write { path: to.clone(), error })?;
        }
        Ok(Self { folder })
    }

    /// Runs something with the mutant in place.
    fn with(
        &self,
        mutant: &Mutant,
        act: impl Fn(&Self) -> Result<bool, Problem>,
    ) -> Result<bool, Problem> {
        let path = self.folder.join(mutant.file);
        let text = fs::read_to_string(&path)
            .map_err(|error| Problem::Read { path: path.clone(), error })?;
        let at = text.find(mutant.line).filter(|_| text.matches(mutant.line).count() == 1);
        if at.is_none() {
            let line = mutant.line.trim().to_owned();
            return Err(Problem::Mutant { path: mutant.file.into(), line });
        }
        let write = |text: &str| {
            fs::write(&path, text).map_err(|error| Problem::Write { path: path.clone(), error })
        };
        write(&text.replacen(mutant.line, mutant.changed, 1))?;
        let caught = act(self);
        write(&text)?;
        caught
    }

    /// Whether the tests with this in their names pass. A mutant that does not compile is no mutant.
    fn passes(&self, test: &str) -> Result<bool, Problem> {
        let (package, target, test) = match test.split_once(UNITS) {
            Some((package, test)) => (package, "--lib", test),
            None => ("simulator", "--test=protocols", test),
        };
        let cargo = |arguments: &[&str]| {
            let mut command = Command::new("cargo");
            command.current_dir(&self.folder).args(["test", "--quiet"]);
            command.arg(format!("--package=landeck-{package}")).arg(target).args(arguments);
            command.env("CARGO_TARGET_DIR", self.folder.with_file_name("build"));
            command
                .env_remove("LANDECK_SOAK")
                .env_remove("LANDECK_SEED")
                .env("RUST_BACKTRACE", "0");
            command
        };
        crate::complete(cargo(&["--no-run"]))?;
        let start = |error| Problem::Start { program: "cargo".into(), error };
        let output = cargo(&["--", test]).output().map_err(start)?;
        Ok(output.status.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutant_changes_one_place_of_a_file() {
        for mutant in MUTANTS {
            let text = fs::read_to_string(crate::root().join(mutant.file)).expect("a file");
            assert_eq!(text.matches(mutant.line).count(), 1, "{}: {}", mutant.file, mutant.line);
            assert_ne!(mutant.line, mutant.changed);
        }
    }
}
