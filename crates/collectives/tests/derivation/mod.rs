//! The cost that plans must have, derived without making them: from the tree or the rounds of an architecture, by the
//! recursion that the operation follows over them.
//!
//! `landeck_collectives::check` counts the same in plans; the two must agree for every architecture, operation,
//! size and root. For the named architectures the tests also compare closed formulas, which stand in
//! `docs/architectures.md`.
//!
//! Time is counted in steps of the one-port model: a message takes one step, a member sends one and
//! receives one message at a time. So a message ends one step after the latest of: its data are
//! there, its sender's message before it is gone, its receiver's message before it has come.

use std::collections::BTreeSet;

use landeck_collectives::check::Facts;
use landeck_collectives::{
    Architecture, BoardStyle, Group, Operation, Order, Rounds, Task, Tree, Way,
};

/// Returns the cost that the plans of this task must have.
pub(crate) fn facts(task: &Task, way: &Way, group: &Group) -> Facts {
    let size = group.size();
    let segments = segments_of(task, way, size);
    let mut count = Count::new(Task { segments, ..*task }, size);
    if let Way::Messages { architecture, release, split } = way {
        let back = release.as_ref().unwrap_or(architecture);
        let paths = Paths { group, to: &**architecture, back: &**back };
        count.operation(&paths, *split && size > 1);
    }
    count.facts
}

/// Returns the number of segments into which the data are cut: one for each member where each gets or makes a part.
fn segments_of(task: &Task, way: &Way, size: u32) -> u32 {
    use Operation::{AllReduce, Broadcast, Reduce};
    let is_divided = match way {
        Way::Messages { split, .. } => {
            *split && matches!(task.operation, Broadcast | Reduce | AllReduce)
        }
        Way::Hosts { .. } => unreachable!("its costs stand beside its proofs"),
        Way::Board(style) => {
            matches!(style, BoardStyle::Divided | BoardStyle::Told) && task.operation == AllReduce
        }
    };
    if is_divided { size } else { task.segments.max(1) }
}

/// Returns, for each member, the members of its subtree, itself among them.
fn subtrees(tree: &Tree) -> Vec<BTreeSet<u32>> {
    let mut subtrees: Vec<_> = (0..tree.size()).map(|member| BTreeSet::from([member])).collect();
    for member in tree.bottom_up() {
        if let Some(parent) = tree.parent(member) {
            let below = subtrees[member as usize].clone();
            subtrees[parent as usize].extend(below);
        }
    }
    subtrees
}

/// The number of values in which a member holds the data of these members in canonical order: one
/// for each aligned interval whose length is a power of two.
fn aligned_intervals(members: &BTreeSet<u32>, first: u32, length: u32) -> u64 {
    let inside = members.range(first..first + length).count() as u32;
    match inside {
        0 => 0,
        _ if inside == length => 1,
        _ => {
            let half = length / 2;
            aligned_intervals(members, first, half) + aligned_intervals(members, first + half, half)
        }
    }
}

struct Paths<'a> {
    group: &'a Group,
    to: &'a dyn Architecture,
    back: &'a dyn Architecture,
}

impl Paths<'_> {
    fn tree(&self, root: u32) -> Tree {
        self.to.tree(self.group, root)
    }

    fn rounds(&self) -> Rounds {
        let own = self.to.rounds(self.group);
        own.unwrap_or_else(|| Rounds::up_and_down(&self.tree(0)))
    }
}

/// A message of an exchange: its sender, its receiver and its blocks.
struct Told {
    from: u32,
    to: u32,
    blocks: Vec<u32>,
}

/// The count of messages, and the steps at which they end.
struct Count {
    task: Task,
    size: u32,
    facts: Facts,
    last_send: Vec<u32>,
    last_receive: Vec<u32>,
}

impl Count {
    fn new(task: Task, size: u32) -> Self {
        let nothing = vec![0; size as usize];
        let facts = Facts { sent: nothing.clone(), ..Facts::default() };
        Self { task, size, facts, last_send: nothing.clone(), last_receive: nothing }
    }

    /// Counts a message whose data are there after `ready` steps; returns when it ends.
    fn message(&mut self, from: u32, to: u32, ready: u32, blocks: u64) -> u32 {
        let (from, to) = (from as usize, to as usize);
        let end = ready.max(self.last_send[from]).max(self.last_receive[to]) + 1;
        (self.last_send[from], self.last_receive[to]) = (end, end);
        self.facts.messages += 1;
        self.facts.blocks += blocks;
        self.facts.sent[from] += 1;
        self.facts.steps = self.facts.steps.max(end);
        end
    }

    fn operation(&mut self, paths: &Paths<'_>, split: bool) {
        let root = self.task.root;
        match self.task.operation {
            Operation::Barrier => self.barrier(paths),
            Operation::Broadcast => self.broadcast(paths, split),
            Operation::Gather => {
                self.gather(&paths.tree(root), &self.zeros());
            }
            Operation::Scatter => {
                self.scatter(&paths.tree(root));
            }
            Operation::Reduce => self.reduce(paths, split),
            Operation::AllGather => {
                let known = self.own(&self.zeros());
                self.all_gather(&paths.rounds(), known);
            }
            Operation::AllReduce => self.all_reduce(paths, split),
            Operation::AllToAll => self.all_to_all(paths),
            Operation::ReduceScatter => {
                self.reduce_scatter(&paths.rounds());
            }
            Operation::Scan | Operation::ExclusiveScan => self.scan(paths),
        }
    }

    fn zeros(&self) -> Vec<u32> {
        vec![0; self.size as usize]
    }

    fn barrier(&mut self, paths: &Paths<'_>) {
        let Some(rounds) = paths.to.rounds(paths.group) else {
            let top = self.up(&paths.tree(0), |_| 0);
            self.down(&paths.back.tree(paths.group, 0), top, |_| 0);
            return;
        };
        let mut ready = self.zeros();
        for round in rounds.iter() {
            let before = ready.clone();
            for &(from, to) in round {
                let end = self.message(from, to, before[from as usize], 0);
                ready[to as usize] = ready[to as usize].max(end);
            }
        }
    }

    fn broadcast(&mut self, paths: &Paths<'_>, split: bool) {
        let tree = paths.tree(self.task.root);
        if !split {
            for _ in 0..self.task.segments {
                self.down(&tree, 0, |_| 1);
            }
            return;
        }
        let arrived = self.scatter(&tree);
        let known = subtrees(&tree).into_iter().zip(&arrived).map(|(subtree, &at)| {
            (0..self.size).map(|block| subtree.contains(&block).then_some(at)).collect()
        });
        let known = known.collect();
        self.all_gather(&paths.rounds(), known);
    }

    /// Counts messages down a tree whose root has the data after `ready` steps; returns when they arrive at each
    /// member.
    fn down(&mut self, tree: &Tree, ready: u32, blocks: impl Fn(u32) -> u64) -> Vec<u32> {
        let mut arrived = self.zeros();
        arrived[tree.root() as usize] = ready;
        for member in tree.top_down() {
            for &child in tree.children(member) {
                let end = self.message(member, child, arrived[member as usize], blocks(child));
                arrived[child as usize] = end;
            }
        }
        arrived
    }

    /// Counts messages up a tree; returns when the root has everything.
    fn up(&mut self, tree: &Tree, blocks: impl Fn(u32) -> u64) -> u32 {
        let nothing = self.zeros();
        self.up_from(tree, &nothing, blocks).1
    }

    /// Counts messages up a tree where each member's own data are there after `ready` steps; returns when the message
    /// of each has ended, and when the root has everything.
    fn up_from(
        &mut self,
        tree: &Tree,
        ready: &[u32],
        blocks: impl Fn(u32) -> u64,
    ) -> (Vec<u32>, u32) {
        let (mut ready, mut ends) = (ready.to_vec(), self.zeros());
        for member in tree.bottom_up() {
            if let Some(parent) = tree.parent(member) {
                let end = self.message(member, parent, ready[member as usize], blocks(member));
                ready[parent as usize] = ready[parent as usize].max(end);
                ends[member as usize] = end;
            }
        }
        (ends, ready[tree.root() as usize])
    }

    fn scatter(&mut self, tree: &Tree) -> Vec<u32> {
        let below: Vec<u64> = subtrees(tree).iter().map(|all| all.len() as u64).collect();
        self.down(tree, 0, |child| below[child as usize])
    }

    fn gather(&mut self, tree: &Tree, ready: &[u32]) -> Vec<u32> {
        let below: Vec<u64> = subtrees(tree).iter().map(|all| all.len() as u64).collect();
        self.up_from(tree, ready, |member| below[member as usize]).0
    }

    /// Returns the number of blocks in which one block's data of these members travel.
    fn values(&self, members: &BTreeSet<u32>) -> u64 {
        match self.task.order {
            Order::Free => 1,
            Order::Canonical => aligned_intervals(members, 0, self.size.next_power_of_two()),
            Order::Late => members.len() as u64,
        }
    }

    fn reduce(&mut self, paths: &Paths<'_>, split: bool) {
        let tree = paths.tree(self.task.root);
        if split {
            let ready = self.reduce_scatter(&paths.rounds());
            self.gather(&tree, &ready);
            return;
        }
        for _ in 0..self.task.segments {
            self.combine_up(&tree);
        }
    }

    fn combine_up(&mut self, tree: &Tree) -> u32 {
        let below = subtrees(tree).into_iter();
        let values: Vec<u64> = below.map(|members| self.values(&members)).collect();
        self.up(tree, |member| values[member as usize])
    }

    /// Returns when each member got to know each block, where each knows its own at first.
    fn own(&self, ready: &[u32]) -> Vec<Vec<Option<u32>>> {
        let row = |member: u32| {
            (0..self.size)
                .map(|block| (block == member).then_some(ready[member as usize]))
                .collect()
        };
        (0..self.size).map(row).collect()
    }

    /// Each tells the other what it lacks.
    fn all_gather(&mut self, rounds: &Rounds, mut known: Vec<Vec<Option<u32>>>) {
        self.tell(rounds, &mut known, |_, blocks| blocks.len() as u64);
    }

    fn tell(
        &mut self,
        rounds: &Rounds,
        known: &mut [Vec<Option<u32>>],
        blocks_in: impl Fn(u32, &[u32]) -> u64,
    ) {
        for round in rounds.iter() {
            let before = known.to_vec();
            for &(from, to) in round {
                let blocks = news(&before[from as usize], &known[to as usize]);
                if blocks.is_empty() {
                    continue;
                }
                let ready =
                    blocks.iter().filter_map(|&at| before[from as usize][at as usize]).max();
                let travels = blocks_in(to, &blocks);
                let end = self.message(from, to, ready.unwrap_or(0), travels);
                for block in blocks {
                    known[to as usize][block as usize] = Some(end);
                }
            }
        }
    }

    /// Counts an allgather backwards in time; returns when each member's own block is complete.
    fn reduce_scatter(&mut self, rounds: &Rounds) -> Vec<u32> {
        let size = self.size;
        let mut ready = vec![self.zeros(); size as usize];
        let mut held: Vec<Vec<BTreeSet<u32>>> =
            (0..size).map(|member| vec![BTreeSet::from([member]); size as usize]).collect();
        for told in told_in(rounds, size).into_iter().rev() {
            let (giver, taker) = (told.to as usize, told.from as usize);
            let given = told.blocks.iter().map(|&block| self.values(&held[giver][block as usize]));
            let travels = given.sum();
            let is_there = told.blocks.iter().map(|&block| ready[giver][block as usize]).max();
            let end = self.message(told.to, told.from, is_there.unwrap_or(0), travels);
            for &block in &told.blocks {
                let members = std::mem::take(&mut held[giver][block as usize]);
                held[taker][block as usize].extend(members);
                ready[taker][block as usize] = ready[taker][block as usize].max(end);
            }
        }
        (0..size as usize).map(|member| ready[member][member]).collect()
    }

    fn all_reduce(&mut self, paths: &Paths<'_>, split: bool) {
        if split {
            let rounds = paths.rounds();
            let ready = self.reduce_scatter(&rounds);
            let known = self.own(&ready);
            self.all_gather(&rounds, known);
            return;
        }
        let rounds = paths.to.rounds(paths.group);
        if let Some(rounds) = rounds.filter(|rounds| are_disjoint(rounds, self.size)) {
            (0..self.task.segments).for_each(|_| self.combine_in(&rounds));
            return;
        }
        let tree = paths.tree(0);
        let tops: Vec<u32> = (0..self.task.segments).map(|_| self.combine_up(&tree)).collect();
        let back = paths.back.tree(paths.group, 0);
        for top in tops {
            self.down(&back, top, |_| 1);
        }
    }

    /// Counts one segment in rounds that bring disjoint sets together, or bring finished results to members that lack
    /// them.
    fn combine_in(&mut self, rounds: &Rounds) {
        let mut sets: Vec<BTreeSet<u32>> =
            (0..self.size).map(|own| BTreeSet::from([own])).collect();
        let mut ready = self.zeros();
        for round in rounds.iter() {
            let (sets_before, ready_before) = (sets.clone(), ready.clone());
            for &(from, to) in round {
                let told = &sets_before[from as usize];
                let is_result = !told.is_disjoint(&sets[to as usize]);
                let travels = if is_result { 1 } else { self.values(told) };
                let end = self.message(from, to, ready_before[from as usize], travels);
                sets[to as usize].extend(told);
                ready[to as usize] = ready[to as usize].max(end);
            }
        }
    }

    fn all_to_all(&mut self, paths: &Paths<'_>) {
        if let Some(rounds) = paths.to.exchange(paths.group) {
            for &(from, to) in rounds.iter().flatten() {
                self.message(from, to, 0, 1);
            }
            return;
        }
        // How many learn of a source's data through each member, itself among them.
        let rounds = paths.rounds();
        let mut through = vec![vec![1u64; self.size as usize]; self.size as usize];
        for told in told_in(&rounds, self.size).iter().rev() {
            for &source in &told.blocks {
                let all = through[source as usize][told.to as usize];
                through[source as usize][told.from as usize] += all;
            }
        }
        let mut known = self.own(&self.zeros());
        self.tell(&rounds, &mut known, |to, blocks| {
            blocks.iter().map(|&source| through[source as usize][to as usize]).sum()
        });
    }

    fn scan(&mut self, paths: &Paths<'_>) {
        for _ in 0..self.task.segments {
            match paths.to.prefix(paths.group) {
                Some(rounds) => self.scan_in(&rounds),
                None => self.scan_at_top(&paths.tree(0)),
            }
        }
    }

    fn scan_in(&mut self, rounds: &Rounds) {
        let (mut ready, mut first) = (self.zeros(), (0..self.size).collect::<Vec<u32>>());
        for round in rounds.iter() {
            let (ready_before, first_before) = (ready.clone(), first.clone());
            for &(from, to) in round {
                let known = (first_before[from as usize]..=from).collect();
                let travels = self.values(&known);
                let end = self.message(from, to, ready_before[from as usize], travels);
                ready[to as usize] = ready[to as usize].max(end);
                first[to as usize] = first_before[from as usize];
            }
        }
    }

    /// Counts a scan in which all data go to the top, which hands out each result as soon as it is known. In place, a
    /// member's own data must be gone before its result can come.
    fn scan_at_top(&mut self, tree: &Tree) {
        let nothing = self.zeros();
        let gone = self.gather(tree, &nothing);
        let subtrees = subtrees(tree);
        let arrived = arrivals_at_top(tree, &subtrees, &gone);
        let is_exclusive = self.task.operation == Operation::ExclusiveScan;
        let mut ready = self.zeros();
        for member in tree.top_down() {
            for &child in tree.children(member) {
                let below = &subtrees[child as usize];
                let end = below.last().map_or(0, |last| last + u32::from(!is_exclusive));
                let known = arrived[..end as usize].iter().copied().max().unwrap_or(0);
                let is_there = if member == tree.root() { known } else { ready[member as usize] };
                let is_free = if self.task.in_place { gone[child as usize] } else { 0 };
                let travels = below.len() as u64;
                let end = self.message(member, child, is_there.max(is_free), travels);
                ready[child as usize] = end;
            }
        }
    }
}

/// Returns when each member's data are at the top, if the message of each member ends so.
fn arrivals_at_top(tree: &Tree, subtrees: &[BTreeSet<u32>], ends: &[u32]) -> Vec<u32> {
    let mut arrived = vec![0; ends.len()];
    for &child in tree.children(tree.root()) {
        for &member in &subtrees[child as usize] {
            arrived[member as usize] = ends[child as usize];
        }
    }
    arrived
}

fn news(from: &[Option<u32>], to: &[Option<u32>]) -> Vec<u32> {
    let both = (0..).zip(from.iter().zip(to));
    both.filter(|(_, (from, to))| from.is_some() && to.is_none()).map(|(block, _)| block).collect()
}

/// Returns the messages of an allgather in these rounds, in order.
fn told_in(rounds: &Rounds, size: u32) -> Vec<Told> {
    let mut known: Vec<BTreeSet<u32>> = (0..size).map(|member| BTreeSet::from([member])).collect();
    let mut all = Vec::new();
    for round in rounds.iter() {
        let before = known.clone();
        for &(from, to) in round {
            let blocks: Vec<u32> =
                before[from as usize].difference(&known[to as usize]).copied().collect();
            if !blocks.is_empty() {
                known[to as usize].extend(&blocks);
                all.push(Told { from, to, blocks });
            }
        }
    }
    all
}

/// Whether each member adds only what it lacks in these rounds, or takes the whole.
fn are_disjoint(rounds: &Rounds, size: u32) -> bool {
    let mut sets: Vec<BTreeSet<u32>> = (0..size).map(|member| BTreeSet::from([member])).collect();
    for round in rounds.iter() {
        let before = sets.clone();
        for &(from, to) in round {
            let told = &before[from as usize];
            if !told.is_disjoint(&sets[to as usize]) && told.len() < size as usize {
                return false;
            }
            sets[to as usize].extend(told);
        }
    }
    sets.iter().all(|set| set.len() == size as usize)
}

#[test]
fn intervals_are_aligned() {
    let intervals = |members: std::ops::Range<u32>| aligned_intervals(&members.collect(), 0, 8);
    assert_eq!([intervals(0..8), intervals(0..7), intervals(1..3), intervals(2..4)], [1, 3, 2, 1]);
}
