//! The pairs of sends and receives that are one message each.

use super::fault::PlanFault;
use crate::plan::{Action, Cells, Plan};

/// For each member and step, the step at the other end of its message.
pub(super) struct Messages {
    ends: Vec<Vec<u32>>,
    count: u64,
}

/// One end of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    from: u32,
    to: u32,
    step: u32,
}

impl Messages {
    /// Messages between two members are matched in order: the first that one sends is the first
    /// that the other receives.
    pub(super) fn of(plans: &[Plan]) -> Result<Self, PlanFault> {
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for plan in plans {
            for (step, this) in (0..).zip(&plan.steps) {
                match this.action {
                    Action::Send { to, .. } => sends.push(End { from: plan.member, to, step }),
                    Action::Receive { from, .. } => {
                        receives.push(End { from, to: plan.member, step });
                    }
                    _ => {}
                }
            }
        }
        sends.sort_unstable();
        receives.sort_unstable();
        let mut messages = Self {
            ends: plans.iter().map(|plan| vec![u32::MAX; plan.steps.len()]).collect(),
            count: sends.len() as u64,
        };
        messages.pair(plans, &sends, &receives)?;
        Ok(messages)
    }

    /// The step at the other end.
    pub(super) fn other_end(&self, member: u32, step: u32) -> u32 {
        self.ends[member as usize][step as usize]
    }

    /// The number of messages.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    fn pair(&mut self, plans: &[Plan], sends: &[End], receives: &[End]) -> Result<(), PlanFault> {
        let mut received = receives.iter().peekable();
        for send in sends {
            let pair = (send.from, send.to);
            match received.peek() {
                Some(receive) if (receive.from, receive.to) < pair => return not_sent(receive),
                Some(receive) if (receive.from, receive.to) == pair => {
                    self.ends[send.from as usize][send.step as usize] = receive.step;
                    self.ends[send.to as usize][receive.step as usize] = send.step;
                    same_blocks(plans, send, receive)?;
                    received.next();
                }
                _ => {
                    let End { from, to, step } = *send;
                    return Err(PlanFault::NotReceived { from, to, step });
                }
            }
        }
        received.next().map_or(Ok(()), not_sent)
    }
}

fn not_sent(receive: &End) -> Result<(), PlanFault> {
    let End { from, to, step } = *receive;
    Err(PlanFault::NotSent { from, to, step })
}

fn same_blocks(plans: &[Plan], send: &End, receive: &End) -> Result<(), PlanFault> {
    let at = |member: u32, step: u32| &plans[member as usize].steps[step as usize].action;
    let (Action::Send { cells: sent, .. }, Action::Receive { cells: received, .. }) =
        (at(send.from, send.step), at(receive.to, receive.step))
    else {
        return Ok(());
    };
    let blocks = |list: &'_ [Cells]| -> Vec<u32> { list.iter().flat_map(|c| c.blocks()).collect() };
    let (sent, received) = (blocks(sent), blocks(received));
    if sent == received {
        return Ok(());
    }
    let (from, to, sent_at, received_at) = (send.from, send.to, send.step, receive.step);
    Err(PlanFault::EndsDiffer { from, sent_at, to, received_at, sent, received })
}
