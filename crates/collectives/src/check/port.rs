//! The one-port model: a message takes one step; a member sends one and receives one message in a
//! step at most, in the order of its plan and as soon as it can; everything else takes no time.
//!
//! Plans that end here end whether a send completes at once or only with its receive. Suppose that they stall, and take
//! the first incomplete message in this order. Everything that its two ends wait for is complete, so both have begun;
//! so it completes.

use super::fault::{PlanFault, Wait};
use super::messages::Messages;
use crate::plan::{Action, Plan};

/// Returns the number of steps that the plans take.
pub(super) fn steps(plans: &[Plan], messages: &Messages) -> Result<u32, PlanFault> {
    let mut graph = Graph::of(plans, messages);
    graph.walk();
    match graph.unreached() {
        None => Ok(graph.ends.into_iter().max().unwrap_or(0)),
        Some(node) => Err(graph.deadlock(plans, node)),
    }
}

/// Steps that follow each other. The two ends of a message are one node, its sender's.
struct Graph {
    /// The first node of each member.
    first: Vec<u32>,
    /// The node of each member's steps.
    nodes: Vec<u32>,
    /// The followers of each node: where they begin in `followers`.
    starts: Vec<u32>,
    followers: Vec<u32>,
    waits: Vec<u32>,
    /// The step at whose end each node is complete.
    ends: Vec<u32>,
    is_message: Vec<bool>,
}

impl Graph {
    fn of(plans: &[Plan], messages: &Messages) -> Self {
        let mut first = vec![0];
        for plan in plans {
            first.push(first[first.len() - 1] + plan.steps.len() as u32);
        }
        let count = first[plans.len()] as usize;
        let (mut nodes, mut is_message) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (plan, &first_own) in plans.iter().zip(&first) {
            for (step, this) in (0..).zip(&plan.steps) {
                let node = match this.action {
                    Action::Receive { from, .. } => {
                        first[from as usize] + messages.other_end(plan.member, step)
                    }
                    _ => first_own + step,
                };
                nodes.push(node);
                is_message.push(matches!(this.action, Action::Send { .. }));
            }
        }
        let mut graph = Self {
            first,
            nodes,
            starts: vec![0; count + 1],
            followers: Vec::new(),
            waits: vec![0; count],
            ends: vec![0; count],
            is_message,
        };
        graph.connect(plans);
        graph
    }

    fn connect(&mut self, plans: &[Plan]) {
        let edges = self.edges(plans);
        for &(before, after) in &edges {
            self.starts[before as usize + 1] += 1;
            self.waits[after as usize] += 1;
        }
        for at in 1..self.starts.len() {
            self.starts[at] += self.starts[at - 1];
        }
        let mut next = self.starts.clone();
        self.followers = vec![0; edges.len()];
        for (before, after) in edges {
            let at = &mut next[before as usize];
            self.followers[*at as usize] = after;
            *at += 1;
        }
    }

    fn edges(&self, plans: &[Plan]) -> Vec<(u32, u32)> {
        let mut edges = Vec::new();
        for (plan, &first) in plans.iter().zip(&self.first) {
            let node = |step: u32| self.nodes[(first + step) as usize];
            let (mut last_send, mut last_receive) = (None, None);
            for (step, this) in (0..).zip(&plan.steps) {
                edges.extend(this.after.iter().map(|&before| (node(before), node(step))));
                let last = match this.action {
                    Action::Send { .. } => last_send.replace(step),
                    Action::Receive { .. } => last_receive.replace(step),
                    _ => None,
                };
                edges.extend(last.map(|before| (node(before), node(step))));
            }
        }
        edges
    }

    fn walk(&mut self) {
        let is_node = |&node: &u32| self.nodes[node as usize] == node;
        let begins = |&node: &u32| self.waits[node as usize] == 0;
        let mut ready: Vec<u32> =
            (0..self.nodes.len() as u32).filter(is_node).filter(begins).collect();
        while let Some(node) = ready.pop() {
            self.ends[node as usize] += u32::from(self.is_message[node as usize]);
            let end = self.ends[node as usize];
            let followers = self.starts[node as usize]..self.starts[node as usize + 1];
            for at in followers {
                let next = self.followers[at as usize] as usize;
                self.ends[next] = self.ends[next].max(end);
                self.waits[next] -= 1;
                if self.waits[next] == 0 {
                    ready.push(next as u32);
                }
            }
        }
    }

    fn unreached(&self) -> Option<u32> {
        self.waits.iter().position(|&waits| waits > 0).map(|node| node as u32)
    }

    /// Messages that wait for each other when each member takes them one after the other.
    fn deadlock(&self, plans: &[Plan], node: u32) -> PlanFault {
        let mut waits = Vec::new();
        for (plan, &first) in plans.iter().zip(&self.first) {
            let stuck = (0..)
                .zip(&plan.steps)
                .find(|(step, _)| self.waits[self.nodes[(first + step) as usize] as usize] > 0);
            if let Some((step, this)) = stuck {
                let peer = match this.action {
                    Action::Send { to, .. } => Some(to),
                    Action::Receive { from, .. } => Some(from),
                    _ => None,
                };
                waits.push(Wait { member: plan.member, step, peer });
            }
        }
        debug_assert!(!waits.is_empty(), "node {node} belongs to somebody");
        PlanFault::Deadlock(waits)
    }
}
