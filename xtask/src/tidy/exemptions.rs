//! The exemptions: faults that the rules let pass, each with its reason.

use super::Fault;

/// One file that one rule lets pass.
pub(super) struct Exemption {
    pub(super) rule: &'static str,
    pub(super) path: &'static str,
    /// A part of the fault's message; empty for every fault of this rule in this file.
    pub(super) about: &'static str,
    /// Read by people; an exemption without one is itself a fault.
    pub(super) reason: &'static str,
}

pub(super) const EXEMPTIONS: &[Exemption] = &[
    Exemption {
        rule: "waiting",
        path: "programs/landeck/src/tune/pairs.rs",
        about: "thread::sleep",
        reason: "a member leaves the processors to another one that measures how many it gets alone",
    },
    Exemption {
        rule: "waiting",
        path: "programs/landeck/src/tune/pairs.rs",
        about: "spin_loop",
        reason: "threads compute for a while, to measure how many processors they get",
    },
    Exemption {
        rule: "waiting",
        path: "crates/memory/src/slots/abort.rs",
        about: "thread::sleep",
        reason: "a process that is about to end leaves another one a moment to say why the job does",
    },
    Exemption {
        rule: "waiting",
        path: "crates/memory/src/sync.rs",
        about: "spin_loop",
        reason: "the pause instruction, which the model checker replaces; the waiter calls it",
    },
    Exemption {
        rule: "waiting",
        path: "crates/memory/src/system.rs",
        about: "sched_yield",
        reason: "the system call itself; the waiter calls it",
    },
    Exemption {
        rule: "waiting",
        path: "crates/diagnosis/src/onlooker.rs",
        about: "poll(&mut [],",
        reason: "an observer, which is no process of the job, lets time pass between two looks at it",
    },
    Exemption {
        rule: "waiting",
        path: "crates/launch/src/guardian/guard.rs",
        about: "poll(&mut [],",
        reason: "the guardian gives a shell that passes its command's status on some milliseconds, and has no waiter",
    },
    Exemption {
        rule: "waiting",
        path: "crates/joining/src/address.rs",
        about: "poll(&mut [],",
        reason: "looks again for what comes over no socket of the process: a word of the arbiter, a daemon that starts again",
    },
    Exemption {
        rule: "waiting",
        path: "programs/landeck/src/seeing/mod.rs",
        about: "poll(&mut [],",
        reason: "`top` draws again after a while",
    },
    Exemption {
        rule: "waiting",
        path: "programs/bench/src/disturbance.rs",
        about: "thread::sleep",
        reason: "watches for a while whether others use the machine that is to be measured",
    },
    Exemption {
        rule: "waiting",
        path: "programs/bench/src/launch.rs",
        about: "yield_now",
        reason: "ends a peer's processes, which may go on forking while they are ended",
    },
    Exemption {
        rule: "waiting",
        path: "programs/bench/src/points/collective.rs",
        about: "thread::sleep",
        reason: "arrives late at a barrier on purpose: nobody may leave it before",
    },
    Exemption {
        rule: "waiting",
        path: "programs/bench/src/points/copies.rs",
        about: "yield_now",
        reason: "gives each turn away, though nobody is waited for: that is what it measures",
    },
    Exemption {
        rule: "waiting",
        path: "programs/bench/src/points/cost.rs",
        about: "thread::sleep",
        reason: "lets the time pass during which other processes wait: that is what it measures",
    },
    Exemption {
        rule: "waiting",
        path: "programs/bench/src/points/outside.rs",
        about: "thread::sleep",
        reason: "lets the others wait for as long as counts as waiting, before somebody looks at them",
    },
    Exemption {
        rule: "waiting",
        path: "programs/bench/src/probe.rs",
        about: "sched_yield",
        reason: "measures what a turn given up costs on this machine",
    },
    Exemption {
        rule: "waiting",
        path: "programs/bench/src/rounds.rs",
        about: "thread::sleep",
        reason: "lets daemons rest for as long as their processor time is measured",
    },
    Exemption {
        rule: "cycles",
        path: "fronts/mpi/src",
        about: "modules job, mistake, objects, walk import",
        reason: "a mistake names the communicator that hears of it, and the job has the first communicators",
    },
    Exemption {
        rule: "cycles",
        path: "fronts/mpi/src/objects",
        about: "modules buffer, communicator, completion, exchange, generalized, group, \
                request, session import",
        reason: "requests complete through every kind of object, and those wait for requests",
    },
];

/// The public types that still stand in several crates, with these crates.
pub(super) const HOMONYMS_LEFT: &[(&str, &str)] = &[
    ("Agreement", "node protocols"),
    ("Arrival", "channel kernel"),
    ("Blocks", "engine memory"),
    ("Data", "memory node"),
    ("Element", "arithmetic node"),
    ("Group", "collectives node"),
    ("GroupError", "collectives named_groups"),
    ("Kind", "layout wire"),
    ("Member", "diagnosis layout node"),
    ("Message", "node protocols"),
    ("Operation", "arithmetic collectives memory node"),
    ("Outcome", "board protocols simulator"),
    ("Part", "board node protocols"),
    ("Progress", "engine objects"),
    ("Received", "kernel node"),
    ("Record", "channel collectives protocols simulator"),
    ("Region", "node objects"),
    ("Result", "named_groups node"),
    ("Status", "kernel node"),
    ("Verdict", "channel diagnosis protocols"),
    ("Waiting", "kernel memory"),
];

/// The table while a run goes on: it remembers which lines were needed.
pub(super) struct Ledger {
    exemptions: &'static [Exemption],
    used: Vec<bool>,
}

impl Ledger {
    pub(super) fn new(exemptions: &'static [Exemption]) -> Self {
        Self { exemptions, used: vec![false; exemptions.len()] }
    }

    /// Takes away the faults that the table lets pass.
    pub(super) fn strike(&mut self, rule: &str, faults: Vec<Fault>) -> Vec<Fault> {
        faults.into_iter().filter(|fault| !self.lets_pass(rule, fault)).collect()
    }

    /// The lines that let nothing pass, or say no reason.
    pub(super) fn unused(&self) -> Vec<Fault> {
        let lines = self.exemptions.iter().zip(&self.used);
        lines
            .filter_map(|(exemption, used)| {
                let message = if !used {
                    "is exempt from this rule and does not break it: take the exemption out"
                } else if exemption.reason.is_empty() {
                    "is exempt from this rule without a reason: say why"
                } else {
                    return None;
                };
                Some(Fault::new(exemption.path, 0, format!("{}: {message}", exemption.rule)))
            })
            .collect()
    }

    fn lets_pass(&mut self, rule: &str, fault: &Fault) -> bool {
        let place = self.exemptions.iter().position(|exemption| {
            exemption.rule == rule
                && exemption.path == fault.path
                && fault.message.contains(exemption.about)
        });
        if let Some(place) = place {
            self.used[place] = true;
        }
        place.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Exemption] = &[
        Exemption { rule: "sizes", path: "a.rs", about: "lines", reason: "a table" },
        Exemption { rule: "sizes", path: "b.rs", about: "", reason: "not needed" },
        Exemption { rule: "heads", path: "a.rs", about: "", reason: "" },
    ];

    #[test]
    fn the_table_strikes_only_what_it_names() {
        let mut ledger = Ledger::new(TABLE);
        let faults =
            vec![Fault::new("a.rs", 1, "1,000 lines"), Fault::new("c.rs", 1, "1,000 lines")];
        assert_eq!(ledger.strike("sizes", faults.clone()), [faults[1].clone()]);
        assert_eq!(ledger.strike("waiting", faults.clone()), faults);
    }

    #[test]
    fn an_unused_line_and_one_without_reason_are_faults() {
        let mut ledger = Ledger::new(TABLE);
        ledger.strike("sizes", vec![Fault::new("a.rs", 1, "lines")]);
        ledger.strike("heads", vec![Fault::new("a.rs", 1, "no head")]);
        let faults = ledger.unused();
        assert_eq!(faults.len(), 2);
        assert!(faults[0].message.contains("does not break it"));
        assert!(faults[1].message.contains("say why"));
    }
}
