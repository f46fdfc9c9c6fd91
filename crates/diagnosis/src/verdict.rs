//! Derives one verdict from the needs of all processes.
//!
//! This is pure: its input is a picture of a job at one moment, which [`crate::picture`] takes. A process that waits
//! for one other, or for all of several, continues only if they do. A process that waits for any of several continues
//! if one of them does. The processes that are left when all consequences are drawn are stuck. A walk among them ends
//! at the cause: at a process that is stopped or gone, or where it began.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::picture::BoardPlace;

/// The activity of a process, as far as others depend on it. Processes are identified by their places in the list of
/// all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conduct {
    /// It runs, or will in a moment: it may do anything next.
    Runs,
    /// It waits.
    Waits(Needs),
    /// It was stopped by a signal or a debugger.
    Stopped,
    /// It sleeps in a wait that is satisfied for all its members: something else holds it, or its death was not
    /// noticed.
    Held,
    /// It left the job in good order.
    Left,
    /// It died.
    Dead,
    /// Its host has sent no picture: it may do anything.
    Unseen,
}

/// The processes that a process needs to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// This process.
    One(u32),
    /// All of these. Processes that need the same ones share the list.
    All(Rc<[u32]>),
    /// Any of these.
    Any(Rc<[u32]>),
    /// A process outside the picture, such as one of another job; or no process any more.
    Others,
}

/// A mismatch: members of a group called different operations in the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitMismatch {
    /// The group's board.
    pub board: BoardPlace,
    /// The calls: the signature of each, and the processes that made it.
    pub calls: Vec<(u32, Vec<u32>)>,
}

/// The verdict on a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// These processes wait for each other in a cycle, each for the next.
    Circle(Vec<u32>),
    /// Members of a group called different operations.
    Mismatch(WaitMismatch),
    /// Processes are stopped, and others cannot continue without them.
    Stopped {
        /// The stopped processes.
        whom: Vec<u32>,
        /// The processes that wait for them, directly or not.
        waiting: Vec<u32>,
    },
    /// Processes sleep although no member is missing where they wait, and others cannot continue without them.
    Held {
        /// The sleeping processes.
        whom: Vec<u32>,
        /// The processes that wait for them, directly or not.
        waiting: Vec<u32>,
    },
    /// Processes are gone, and others cannot continue without them.
    Gone {
        /// The processes that are gone.
        whom: Vec<u32>,
        /// The processes that wait for them, directly or not.
        waiting: Vec<u32>,
    },
    /// The network carries nothing of what these processes have sent to other hosts.
    Silent(Vec<u32>),
    /// These processes wait for any of several, and none of those can do anything.
    NobodyActs(Vec<u32>),
    /// The job continues, but other processes wait for these, which run.
    Awaited {
        /// The running processes.
        whom: Vec<u32>,
        /// The processes that wait for them.
        waiting: Vec<u32>,
    },
    /// Processes wait for these, whose hosts have sent no picture.
    Unseen {
        /// The processes that cannot be seen.
        whom: Vec<u32>,
        /// The processes that wait for them, directly or not.
        waiting: Vec<u32>,
    },
    /// These processes wait for something that cannot be seen in this job.
    Elsewhere(Vec<u32>),
    /// No process waits.
    Fine,
}

/// The verdict on processes with these conducts, and with these mismatches among their groups.
pub fn verdict(conducts: &[Conduct], mismatches: &[WaitMismatch]) -> Verdict {
    if let Some(mismatch) = mismatches.first() {
        return Verdict::Mismatch(mismatch.clone());
    }
    let graph = Graph::new(conducts);
    let goes_on = graph.going_on();
    let is_waiting = |&process: &u32| matches!(conducts[process as usize], Conduct::Waits(_));
    let (waiting, stuck): (Vec<u32>, Vec<u32>) = (0..conducts.len() as u32)
        .filter(is_waiting)
        .partition(|&process| goes_on[process as usize]);
    if !stuck.is_empty() {
        return graph.cause(&stuck, &goes_on);
    }
    let is_held = |&process: &u32| conducts[process as usize] == Conduct::Held;
    let whom: Vec<u32> = (0..conducts.len() as u32).filter(is_held).collect();
    if !whom.is_empty() {
        return Verdict::Held { whom, waiting: Vec::new() };
    }
    graph.awaited(&waiting)
}

impl Verdict {
    /// The verdict when the network carries nothing of what these processes have sent: what waits there may be what the
    /// others wait for, so it explains waits of which no other cause is seen.
    #[must_use]
    pub fn behind_silence(self, senders: Vec<u32>) -> Self {
        match self {
            Self::Circle(_) | Self::NobodyActs(_) | Self::Awaited { .. } | Self::Elsewhere(_)
                if !senders.is_empty() =>
            {
                Self::Silent(senders)
            }
            other => other,
        }
    }
}

/// The graph of needs.
struct Graph<'a> {
    conducts: &'a [Conduct],
}

impl<'a> Graph<'a> {
    fn new(conducts: &'a [Conduct]) -> Self {
        Self { conducts }
    }

    /// The processes that a process needs, without those outside the picture.
    fn needs(&self, process: u32) -> impl Iterator<Item = u32> + use<'a> {
        let (one, list): (Option<u32>, &[u32]) = match &self.conducts[process as usize] {
            Conduct::Waits(Needs::One(other)) => (Some(*other), &[]),
            Conduct::Waits(Needs::All(others) | Needs::Any(others)) => (None, others),
            _ => (None, &[]),
        };
        let count = self.conducts.len();
        one.into_iter().chain(list.iter().copied()).filter(move |&other| (other as usize) < count)
    }

    /// Which processes continue, as far as that can be known.
    fn going_on(&self) -> Vec<bool> {
        let mut goes_on: Vec<bool> = self
            .conducts
            .iter()
            .map(|conduct| {
                matches!(conduct, Conduct::Runs | Conduct::Unseen | Conduct::Waits(Needs::Others))
            })
            .collect();
        let mut parties = Parties::of(self.conducts);
        let mut newly: Vec<u32> =
            (0..self.conducts.len() as u32).filter(|&at| goes_on[at as usize]).collect();
        newly.extend(parties.satisfied_at_once(&mut goes_on));
        while let Some(process) = newly.pop() {
            parties.goes_on(process, &mut goes_on, &mut newly);
        }
        goes_on
    }

    /// The reason why these processes are stuck.
    fn cause(&self, stuck: &[u32], goes_on: &[bool]) -> Verdict {
        if let Some(circle) = self.circle(stuck, goes_on) {
            return Verdict::Circle(circle);
        }
        let ends = self.ends(stuck, goes_on);
        let of = |is_it: fn(&Conduct) -> bool| -> Vec<u32> {
            ends.iter().copied().filter(|&end| is_it(&self.conducts[end as usize])).collect()
        };
        let stopped = of(|conduct| *conduct == Conduct::Stopped);
        let gone = of(|conduct| matches!(conduct, Conduct::Left | Conduct::Dead));
        let held = of(|conduct| *conduct == Conduct::Held);
        let waiting = stuck.to_vec();
        match () {
            () if !stopped.is_empty() => Verdict::Stopped { whom: stopped, waiting },
            () if !gone.is_empty() => Verdict::Gone { whom: gone, waiting },
            () if !held.is_empty() => Verdict::Held { whom: held, waiting },
            () => Verdict::NobodyActs(waiting),
        }
    }

    /// A cycle among the stuck processes, each of which certainly needs the next one. A process that waits for any of
    /// several needs none in particular, unless there is only one.
    fn circle(&self, stuck: &[u32], goes_on: &[bool]) -> Option<Vec<u32>> {
        let mut seen = vec![false; self.conducts.len()];
        for &start in stuck {
            let mut path: Vec<u32> = Vec::new();
            let mut at = Some(start);
            while let Some(process) = at {
                if let Some(first) = path.iter().position(|&before| before == process) {
                    return Some(path.split_off(first));
                }
                if std::mem::replace(&mut seen[process as usize], true) {
                    break;
                }
                path.push(process);
                at = self.certain_need(process, goes_on);
            }
        }
        None
    }

    /// A stuck process that this process certainly needs: one that waits, if there is one, because a cycle can only
    /// lead through those.
    fn certain_need(&self, process: u32, goes_on: &[bool]) -> Option<u32> {
        let is_any = matches!(&self.conducts[process as usize], Conduct::Waits(Needs::Any(_)));
        if is_any && self.needs(process).nth(1).is_some() {
            return None;
        }
        self.needs(process).find(|&other| {
            !goes_on[other as usize] && matches!(self.conducts[other as usize], Conduct::Waits(_))
        })
    }

    /// The ends of all ways from these processes: those that do not wait.
    fn ends(&self, from: &[u32], goes_on: &[bool]) -> Vec<u32> {
        let needed = from.iter().flat_map(|&process| self.needs(process));
        let mut ends: Vec<u32> = needed
            .filter(|&other| !goes_on[other as usize])
            .filter(|&other| !matches!(self.conducts[other as usize], Conduct::Waits(_)))
            .collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// The processes that most of the waiting ones need: those that cannot be seen, else those that run.
    fn awaited(&self, waiting: &[u32]) -> Verdict {
        if waiting.is_empty() {
            return Verdict::Fine;
        }
        let whom = self.most_needed(waiting, &Conduct::Unseen);
        if !whom.is_empty() {
            return Verdict::Unseen { whom, waiting: waiting.to_vec() };
        }
        let whom = self.most_needed(waiting, &Conduct::Runs);
        match whom.is_empty() {
            true => Verdict::Elsewhere(waiting.to_vec()),
            false => Verdict::Awaited { whom, waiting: waiting.to_vec() },
        }
    }

    /// The processes of this conduct that most of the waiting ones need.
    fn most_needed(&self, waiting: &[u32], conduct: &Conduct) -> Vec<u32> {
        let mut depending: BTreeMap<u32, u32> = BTreeMap::new();
        for &process in waiting {
            let is_any = matches!(&self.conducts[process as usize], Conduct::Waits(Needs::Any(_)));
            let needs = self.needs(process).filter(|_| !is_any);
            for other in needs.filter(|&other| self.conducts[other as usize] == *conduct) {
                *depending.entry(other).or_default() += 1;
            }
        }
        let most = depending.values().copied().max().unwrap_or(0);
        depending.into_iter().filter(|(_, count)| *count == most).map(|(at, _)| at).collect()
    }
}

/// Processes with the same needs. A conclusion for one of them holds for all, so a thousand processes that wait for a
/// thousand cost two thousand steps, not a million.
struct Parties {
    parties: Vec<Party>,
    /// The parties that need each process.
    needing: Vec<Vec<usize>>,
}

struct Party {
    members: Vec<u32>,
    /// The number of needed processes that must still continue before the members do.
    left: usize,
}

impl Parties {
    fn of(conducts: &[Conduct]) -> Self {
        let mut found: BTreeMap<(usize, usize, bool), usize> = BTreeMap::new();
        let mut all = Self { parties: Vec::new(), needing: vec![Vec::new(); conducts.len()] };
        for (process, conduct) in (0u32..).zip(conducts) {
            let Conduct::Waits(needs) = conduct else { continue };
            let (list, is_any) = match needs {
                Needs::One(other) => {
                    all.add(process, &[*other], false);
                    continue;
                }
                Needs::All(list) => (list, false),
                Needs::Any(list) => (list, true),
                Needs::Others => continue,
            };
            let key = (list.as_ptr() as usize, list.len(), is_any);
            match found.get(&key) {
                Some(&party) => all.parties[party].members.push(process),
                None => {
                    found.insert(key, all.parties.len());
                    all.add(process, list, is_any);
                }
            }
        }
        all
    }

    fn add(&mut self, process: u32, list: &[u32], is_any: bool) {
        let number = self.parties.len();
        let mut known = 0;
        for &other in list {
            if let Some(needing) = self.needing.get_mut(other as usize) {
                needing.push(number);
                known += 1;
            }
        }
        let is_open = is_any && known > 0;
        // A process that needs one outside the picture may continue, as far as can be seen.
        let left = if is_open { 1 } else { known };
        let left = if known < list.len() { 0 } else { left };
        self.parties.push(Party { members: vec![process], left });
    }

    /// The processes that need none of the picture.
    fn satisfied_at_once(&self, goes_on: &mut [bool]) -> Vec<u32> {
        let satisfied = self.parties.iter().filter(|party| party.left == 0);
        let newly: Vec<u32> = satisfied.flat_map(|party| party.members.iter().copied()).collect();
        newly.iter().for_each(|&process| goes_on[process as usize] = true);
        newly
    }

    /// Draws the consequences of a process that continues.
    fn goes_on(&mut self, process: u32, goes_on: &mut [bool], newly: &mut Vec<u32>) {
        for number in std::mem::take(&mut self.needing[process as usize]) {
            let party = &mut self.parties[number];
            party.left = party.left.saturating_sub(1);
            if party.left > 0 {
                continue;
            }
            for member in std::mem::take(&mut party.members) {
                if !std::mem::replace(&mut goes_on[member as usize], true) {
                    newly.push(member);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Conduct::{Dead, Held, Left, Runs, Stopped};

    fn one(other: u32) -> Conduct {
        Conduct::Waits(Needs::One(other))
    }

    fn all(others: &[u32]) -> Conduct {
        Conduct::Waits(Needs::All(others.into()))
    }

    fn any(others: &[u32]) -> Conduct {
        Conduct::Waits(Needs::Any(others.into()))
    }

    fn of(conducts: &[Conduct]) -> Verdict {
        verdict(conducts, &[])
    }

    #[test]
    fn nobody_waits() {
        assert_eq!(of(&[]), Verdict::Fine);
        assert_eq!(of(&[Runs, Stopped, Left, Dead]), Verdict::Fine);
    }

    #[test]
    fn two_wait_for_each_other() {
        assert_eq!(of(&[one(1), one(0)]), Verdict::Circle(vec![0, 1]));
        assert_eq!(of(&[one(0)]), Verdict::Circle(vec![0]), "for itself");
        let bystanders = [Runs, one(3), all(&[0, 1]), one(1)];
        assert_eq!(of(&bystanders), Verdict::Circle(vec![1, 3]));
    }

    #[test]
    fn a_circle_is_found_behind_others() {
        let ring = [one(1), one(2), one(3), one(4), one(2)];
        assert_eq!(of(&ring), Verdict::Circle(vec![2, 3, 4]));
        let barrier = [all(&[2]), all(&[2]), one(0), Stopped];
        assert_eq!(of(&barrier), Verdict::Circle(vec![0, 2]), "the stopped one is not the cause");
        assert_eq!(of(&[any(&[1]), one(0)]), Verdict::Circle(vec![0, 1]), "one is not anybody");
    }

    #[test]
    fn a_stopped_process_holds_up_others() {
        let waiting = vec![0, 1, 3];
        let chain = [one(1), all(&[2]), Stopped, one(0)];
        assert_eq!(of(&chain), Verdict::Stopped { whom: vec![2], waiting });
    }

    #[test]
    fn a_process_that_is_held_holds_up_others() {
        let others = [all(&[2]), one(0), Held];
        assert_eq!(of(&others), Verdict::Held { whom: vec![2], waiting: vec![0, 1] });
        assert_eq!(of(&[Held, Held]), Verdict::Held { whom: vec![0, 1], waiting: vec![] });
        assert_eq!(of(&[Held, Runs]), Verdict::Held { whom: vec![0], waiting: vec![] });
        let dead = [all(&[1, 2]), Dead, Held];
        assert_eq!(of(&dead), Verdict::Gone { whom: vec![1], waiting: vec![0] });
    }

    #[test]
    fn a_process_that_is_gone_does_not_come() {
        let barrier = [all(&[1, 2, 3]), Dead, Left, Runs];
        assert_eq!(of(&barrier), Verdict::Gone { whom: vec![1, 2], waiting: vec![0] });
        let both = [all(&[1, 2]), Dead, Stopped];
        assert_eq!(of(&both), Verdict::Stopped { whom: vec![2], waiting: vec![0] });
    }

    #[test]
    fn nobody_is_left_who_could_act() {
        let everybody = [any(&[1, 2]), any(&[0, 2]), any(&[0, 1])];
        assert_eq!(of(&everybody), Verdict::NobodyActs(vec![0, 1, 2]));
        let one_can = [any(&[1, 2]), any(&[0, 2]), Runs];
        assert_eq!(of(&one_can), Verdict::Elsewhere(vec![0, 1]), "anybody is nobody's fault");
    }

    #[test]
    fn others_wait_for_one_that_runs() {
        let late = [all(&[3]), all(&[3]), one(0), Runs];
        assert_eq!(of(&late), Verdict::Awaited { whom: vec![3], waiting: vec![0, 1, 2] });
        let most = [one(3), one(3), one(4), Runs, Runs];
        assert_eq!(of(&most), Verdict::Awaited { whom: vec![3], waiting: vec![0, 1, 2] });
    }

    #[test]
    fn a_process_that_cannot_be_seen_may_be_the_cause() {
        let unseen = [one(1), Conduct::Unseen, one(3), Runs];
        assert_eq!(of(&unseen), Verdict::Unseen { whom: vec![1], waiting: vec![0, 2] });
        assert_eq!(of(&[Conduct::Unseen, Runs]), Verdict::Fine);
        let stuck = [one(1), Conduct::Unseen, one(3), Stopped];
        assert_eq!(of(&stuck), Verdict::Stopped { whom: vec![3], waiting: vec![2] });
    }

    #[test]
    fn a_process_that_is_not_in_the_picture_may_come() {
        let others = Conduct::Waits(Needs::Others);
        assert_eq!(of(&[others.clone(), one(0)]), Verdict::Elsewhere(vec![0, 1]));
        assert_eq!(of(&[one(77), all(&[])]), Verdict::Elsewhere(vec![0, 1]));
        assert_eq!(of(&[all(&[1, 77]), Stopped]), Verdict::Elsewhere(vec![0]));
    }

    #[test]
    fn a_mismatch_explains_the_rest() {
        let mismatch =
            WaitMismatch { board: BoardPlace::WORLD, calls: vec![(1, vec![0]), (2, vec![1])] };
        let found = verdict(&[one(1), one(0)], std::slice::from_ref(&mismatch));
        assert_eq!(found, Verdict::Mismatch(mismatch));
    }

    #[test]
    fn a_silent_network_explains_waits_without_another_cause() {
        let circle = of(&[one(1), one(0)]);
        assert_eq!(circle.clone().behind_silence(vec![]), circle);
        assert_eq!(circle.behind_silence(vec![1]), Verdict::Silent(vec![1]));
        let late = of(&[one(1), Runs]);
        assert_eq!(late.behind_silence(vec![1]), Verdict::Silent(vec![1]));
        let stopped = of(&[one(1), Stopped]);
        assert_eq!(stopped.clone().behind_silence(vec![0]), stopped);
        assert_eq!(Verdict::Fine.behind_silence(vec![0]), Verdict::Fine);
    }

    #[test]
    fn a_thousand_that_wait_for_a_thousand_are_no_million() {
        const COUNT: u32 = 1_000;
        let began = std::time::Instant::now();
        let everybody: Rc<[u32]> = (0..COUNT).collect();
        let missing: Rc<[u32]> = (COUNT / 2..COUNT).collect();
        let conduct = |at: u32| match at {
            _ if at + 1 == COUNT => Stopped,
            _ if at < COUNT / 2 => Conduct::Waits(Needs::All(missing.clone())),
            _ => Conduct::Waits(Needs::Any(everybody.clone())),
        };
        let conducts: Vec<Conduct> = (0..COUNT).map(conduct).collect();
        let found = of(&conducts);
        assert!(matches!(found, Verdict::Stopped { whom, .. } if whom == [COUNT - 1]));
        let ring: Vec<Conduct> = (0..COUNT).map(|at| one((at + 1) % COUNT)).collect();
        assert_eq!(of(&ring), Verdict::Circle((0..COUNT).collect()));
        println!("{:?}", began.elapsed());
    }
}
