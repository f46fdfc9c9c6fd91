//! The mutants of ordered groups over hosts.

use super::list::Mutant;

const HOLDER: &str = "crates/protocols/src/order/holder.rs";
const TAKEOVER: &str = "crates/protocols/src/order/takeover.rs";
const SUCCESSION: &str = "crates/protocols/src/order/succession.rs";
const COPY: &str = "crates/protocols/src/order/copy.rs";
const FOLD: &str = "crates/protocols/src/order/fold.rs";
const HOME: &str = "crates/protocols/src/order/home.rs";
const FEEDING: &str = "crates/protocols/src/order/feeding.rs";
const HOMES: &str = "crates/protocols/src/order/homes.rs";
const REQUESTS: &str = "crates/protocols/src/order/requests.rs";

pub(super) const ORDER_MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "a holder that has reported stores nothing of earlier epochs (no promise)",
        file: HOLDER,
        line: "let is_current = of == epoch && self.may_send(from, &content);",
        changed: "let is_current = matches!(content, OrderContent::Feed { .. })\n            || of == epoch && self.may_send(from, &content);",
        test: "order::",
    },
    Mutant {
        breaks: "an acknowledgement of another epoch counts for nothing",
        file: HOLDER,
        line: "let is_current = of == epoch && self.may_send(from, &content);",
        changed: "let is_current = matches!(content, OrderContent::Stored(_))\n            || of == epoch && self.may_send(from, &content);",
        test: "protocols units: order::",
    },
    Mutant {
        breaks: "a report before its word is worth nothing",
        file: HOLDER,
        line: "let is_current = of == epoch && self.may_send(from, &content);",
        changed: "let is_current = matches!(content, OrderContent::Report(_))\n            || of == epoch && self.may_send(from, &content);",
        test: "order::",
    },
    Mutant {
        breaks: "parties ask once their host's copy is complete",
        file: HOLDER,
        line: "is_follower && has_begun && self.copy.is_complete()",
        changed: "is_follower && has_begun",
        test: "order::",
    },
    Mutant {
        breaks: "a host repeats the requests without an entry",
        file: HOLDER,
        line: "Role::Following => outputs.extend(self.tell_home()),",
        changed: "Role::Following => {}",
        test: "order::",
    },
    Mutant {
        breaks: "an entry that comes again is stored once",
        file: HOLDER,
        line: "entries.iter().skip(known)",
        changed: "entries.iter().skip(known.min(0))",
        test: "order::",
    },
    Mutant {
        breaks: "only a complete copy may go on (each says that it is one)",
        file: HOLDER,
        line: "CopyReport { length: self.copy.length(), is_complete: self.copy.is_complete() }",
        changed: "CopyReport { length: self.copy.length(), is_complete: true }",
        test: "order::",
    },
    Mutant {
        breaks: "all registered holders report (only those of the home's own copy)",
        file: SUCCESSION,
        line: "        self.standing.registered.clone()\n",
        changed: "        self.counted()\n",
        test: "order::",
    },
    Mutant {
        breaks: "the longest complete copy goes on (the home's own)",
        file: SUCCESSION,
        line: "takeover.chosen = takeover.longest();",
        changed: "takeover.chosen = takeover.longest().map(|_| self.own);",
        test: "order::",
    },
    Mutant {
        breaks: "the longest complete copy goes on (the longest of all)",
        file: TAKEOVER,
        line: "filter(|(_, report)| report.is_complete);",
        changed: "filter(|(_, report)| report.length > 0);",
        test: "order::",
    },
    Mutant {
        breaks: "an epoch begins when all holders have everything before",
        file: SUCCESSION,
        line: "if !may_append || !counted.iter().all(has_all) {",
        changed: "if !may_append || !counted.iter().all(|it| has_all(it) || length > 0) {",
        test: "order::",
    },
    Mutant {
        breaks: "a safe message waits until it is stable",
        file: COPY,
        line: "kept.is_some_and(|kept| kept.is_safe) && *at >= self.stable",
        changed: "kept.is_some_and(|kept| kept.is_safe) && *at > self.stable + 64",
        test: "order::",
    },
    Mutant {
        breaks: "a holder counts from its entry on (from its beginning)",
        file: COPY,
        line: "let is_complete = fold.present().contains(&self.own);",
        changed: "let is_complete = fold.epoch() > 0;",
        test: "order::",
    },
    Mutant {
        breaks: "an incomplete copy begins anew with each home",
        file: COPY,
        line: "self.has_begun = self.is_complete;",
        changed: "self.has_begun = self.is_complete || self.has_begun;",
        test: "protocols units: order::",
    },
    Mutant {
        breaks: "a request takes effect once",
        file: FOLD,
        line: "            && number == self.last_of(party) + 1",
        changed: "            && number <= self.last_of(party) + 1",
        test: "order::",
    },
    Mutant {
        breaks: "the requests of a party are accepted in order",
        file: FOLD,
        line: "            && number == self.last_of(party) + 1",
        changed: "            && number > self.last_of(party)",
        test: "protocols units: order::",
    },
    Mutant {
        breaks: "a lost host has one entry",
        file: FOLD,
        line: "self.present.remove(holder);",
        changed: "let _ = holder;",
        test: "order::",
    },
    Mutant {
        breaks: "a sealed log accepts nothing",
        file: HOME,
        line: "self.is_open() && self.is_view_valid(now) && !self.copy.fold().is_sealed()",
        changed: "self.is_open() && self.is_view_valid(now)",
        test: "order::",
    },
    Mutant {
        breaks: "a home without a valid view accepts nothing",
        file: HOME,
        line: "        now < self.valid_until\n",
        changed: "        now < self.valid_until || self.valid_until > Duration::ZERO\n",
        test: "order::",
    },
    Mutant {
        breaks: "nothing behind a holder's entry is stable before it has stored it",
        file: FEEDING,
        line: "feed.stored.max(feed.counts_from)",
        changed: "feed.stored.max(feed.counts_from * 2)",
        test: "order::",
    },
    Mutant {
        breaks: "a death stands behind the party's requests",
        file: HOME,
        line: "died_after == Some(fold.last_of(party))",
        changed: "died_after.is_some()",
        test: "order::",
    },
    Mutant {
        breaks: "a home accepts no more than a window beyond the slowest holder",
        file: HOME,
        line: "lag >= WINDOW_ENTRIES",
        changed: "lag >= 100 * WINDOW_ENTRIES",
        test: "order::",
    },
    Mutant {
        breaks: "stable is what all holders that count have stored (the fastest)",
        file: HOME,
        line: "feeds.passes(holder)).min()",
        changed: "feeds.passes(holder)).max()",
        test: "order::",
    },
    Mutant {
        breaks: "a holder without a path is put out",
        file: HOME,
        line: "if now.saturating_sub(*heard) >= self.timing.timeout() {",
        changed: "if now.saturating_sub(*heard) >= 1_000 * self.timing.timeout() {",
        test: "order::",
    },
    Mutant {
        breaks: "what a holder has not stored is sent again",
        file: FEEDING,
        line: "feed.sent = feed.stored;",
        changed: "feed.sent = feed.sent.max(feed.stored);",
        test: "order::",
    },
    Mutant {
        breaks: "a copy that has not begun begins again",
        file: FEEDING,
        line: "feed.begins_at.is_some() || feed.stored < copy.kept_from();",
        changed: "feed.stored < copy.kept_from() && feed.begins_at.is_none();",
        test: "order::",
    },
    Mutant {
        breaks: "entries are kept for the holders that count",
        file: FEEDING,
        line: "needed.chain(begun).min().unwrap_or(copy.length())",
        changed: "needed.chain(begun).max().unwrap_or(copy.length())",
        test: "order::",
    },
    Mutant {
        breaks: "only the home of the epoch is believed by the arbiter",
        file: HOMES,
        line: "if standing.epoch != epoch || !is_home {",
        changed: "if standing.epoch != epoch && !is_home {",
        test: "protocols units: order::",
    },
    Mutant {
        breaks: "the home's successor has come before all others that stay",
        file: HOMES,
        line: "let heir = standing.registered.iter().find(",
        changed: "let heir = standing.registered.iter().rev().find(",
        test: "protocols units: order::",
    },
    Mutant {
        breaks: "a window holds 64 requests",
        file: REQUESTS,
        line: "pub const REQUESTS_MAX: usize = 64;",
        changed: "pub const REQUESTS_MAX: usize = 65;",
        test: "protocols units: order::",
    },
];
