//! The outcomes of a run with deaths, as text.

use landeck_simulator::{Death, Outcome, SimulationReport, Time};

use landeck_host::report::thousands;

/// Lists the deaths and the outcomes of all members. Neighbours with equal outcomes share a line.
pub(crate) fn text(heading: &str, deaths: &[Death], report: &SimulationReport) -> String {
    let done = report.outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Done(_))).count();
    let all = report.outcomes.len();
    let mut text = format!("{heading}: ");
    text += &match done {
        _ if done == all => format!("all are done after {}.\n", report.time()),
        0 => "nobody is done.\n".to_owned(),
        _ => {
            let (done, all) = (thousands(done as u64), thousands(all as u64));
            format!("{done} of {all} members are done, the last after {}.\n", report.time())
        }
    };
    for Death { member, at } in deaths {
        text += &format!("Member {member} is ended at {at}.\n");
    }
    text += &format!(
        "{:>15}  {:<28}{:>14}{:>14}\n",
        "members", "what becomes of them", "from us", "to us"
    );
    let mut first = 0;
    while let Some(outcome) = report.outcomes.get(first) {
        let others = report.outcomes[first..].iter();
        let count = others.take_while(|other| kind(other) == kind(outcome)).count();
        text += &line(first, &report.outcomes[first..first + count]);
        first += count;
    }
    text + &heard(report)
}

/// The words for an outcome, and the dead member that it is about.
fn kind(outcome: &Outcome) -> (&'static str, Option<u32>) {
    match *outcome {
        Outcome::Done(_) => ("done", None),
        Outcome::Died(_) => ("ended", None),
        Outcome::Failed { dead, .. } => ("PeerFailed", Some(dead)),
        Outcome::Never => ("wait for ever", None),
    }
}

fn line(first: usize, outcomes: &[Outcome]) -> String {
    let last = first + outcomes.len() - 1;
    let members = if first == last { first.to_string() } else { format!("{first} to {last}") };
    let what = match kind(&outcomes[0]) {
        (what, Some(dead)) => format!("{what}: member {dead}"),
        (what, None) => what.to_owned(),
    };
    let times = || outcomes.iter().filter_map(when);
    let us = |time: Option<Time>| time.map_or("-".into(), |time| format!("{:.3}", time.us()));
    let (from, to) = (us(times().min()), us(times().max()));
    format!("{members:>15}  {what:<28}{from:>14}{to:>14}\n")
}

fn when(outcome: &Outcome) -> Option<Time> {
    match *outcome {
        Outcome::Done(at) | Outcome::Died(at) | Outcome::Failed { at, .. } => Some(at),
        Outcome::Never => None,
    }
}

/// When the failed members heard of the death.
fn heard(report: &SimulationReport) -> String {
    let times = report.outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Failed { heard, .. } => Some(*heard),
        _ => None,
    });
    let times: Vec<Time> = times.collect();
    match (times.iter().min(), times.iter().max()) {
        (Some(first), Some(last)) => {
            format!("Those who failed heard of it between {first} and {last}.\n")
        }
        _ => "Nobody fails: what the others needed had come, or was never needed.\n".into(),
    }
}
