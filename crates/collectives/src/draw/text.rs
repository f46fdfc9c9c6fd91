//! Plans as text.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Drawing;
use super::timeline::DrawnMessage;
use crate::plan::Cells;

/// Columns of a line.
const WIDTH: usize = 100;
/// Columns before the first message of a line.
const INDENT: usize = 10;

pub(super) fn of(drawing: &Drawing<'_>, member: Option<u32>) -> String {
    let mut text = format!("{}\n{}\n", drawing.heading(), drawing.members());
    clusters(&mut text, drawing);
    steps(&mut text, drawing, member);
    for plan in &drawing.plans {
        if member.is_none_or(|member| member == plan.member) {
            let _ = write!(text, "\n{plan}"); // writing to a String cannot fail
        }
    }
    text
}

/// The members of each cluster, its leader first.
fn clusters(text: &mut String, drawing: &Drawing<'_>) {
    if drawing.has_clusters() {
        let clusters = drawing.group.clusters().iter().map(|cluster| ranges(cluster));
        lines(text, "clusters", clusters.collect());
    }
}

fn steps(text: &mut String, drawing: &Drawing<'_>, member: Option<u32>) {
    text.push('\n');
    let timeline = &drawing.timeline;
    for step in 1..=timeline.steps {
        let of_step = timeline.messages.iter().filter(|message| message.step == step);
        let of_member = of_step.filter(|message| {
            member.is_none_or(|member| member == message.from || member == message.to)
        });
        let mut items = told(&of_member.collect::<Vec<_>>(), has_blocks(drawing));
        let at_board = timeline.board.iter().filter(|at| at.step == step);
        let of_member = at_board.filter(|at| member.is_none_or(|member| member == at.member));
        items.extend(of_member.map(|at| format!("{}: {}", at.member, at.action)));
        if !items.is_empty() {
            lines(text, &format!("step {step:>3}"), items);
        }
    }
}

/// Describes messages by sender and receiver, and by their blocks if messages differ in them.
fn told(messages: &[&DrawnMessage], has_blocks: bool) -> Vec<String> {
    let pairs: BTreeSet<(u32, u32)> =
        messages.iter().map(|message| (message.from, message.to)).collect();
    let tell = |message: &&DrawnMessage| {
        let DrawnMessage { from, to, .. } = message;
        match pairs.contains(&(*to, *from)) {
            _ if has_blocks => Some(format!("{from} → {to} [{}]", blocks(message))),
            true if from > to => None, // told with the other direction
            true => Some(format!("{from} ↔ {to}")),
            false => Some(format!("{from} → {to}")),
        }
    };
    messages.iter().filter_map(tell).collect()
}

fn blocks(message: &DrawnMessage) -> String {
    let mut blocks: Vec<u32> = message.cells.iter().copied().flat_map(Cells::blocks).collect();
    blocks.sort_unstable();
    ranges(&blocks)
}

/// Whether messages differ in the blocks that they carry.
fn has_blocks(drawing: &Drawing<'_>) -> bool {
    let mut all = drawing.timeline.messages.iter().map(|message| &message.cells);
    let first = all.next().into_iter().flatten().copied().flat_map(Cells::blocks).next();
    let mut blocks = drawing.timeline.messages.iter().flat_map(|message| &message.cells);
    blocks.any(|cells| cells.count > 1 || Some(cells.first) != first)
}

/// Rising numbers, neighbours drawn together: `0-4 7 9-12`.
fn ranges(numbers: &[u32]) -> String {
    let mut texts = Vec::new();
    for run in numbers.chunk_by(|before, after| before + 1 == *after) {
        texts.push(match run {
            [only] => only.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        });
    }
    texts.join(" ")
}

/// Items behind a label, on as many lines as they need.
fn lines(text: &mut String, label: &str, items: Vec<String>) {
    let mut line = format!("{label:<INDENT$}");
    let mut is_empty = true;
    for item in items {
        if !is_empty && line.chars().count() + item.chars().count() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(INDENT);
        }
        line.push_str(&item);
        line.push_str("   ");
        is_empty = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_drawing;
    use super::*;
    use crate::group::Group;
    use crate::operation::Operation;

    #[test]
    fn a_broadcast_is_told_step_by_step() {
        let group = Group::divided(6, 2).unwrap();
        let text =
            with_drawing(Operation::Broadcast, "daisy", &group, |drawing| drawing.text(None));
        let expected = "\
broadcast by daisy: 5 messages in 3 steps
6 members in 2 clusters, root 0
clusters  0-2   3-5

step   1  0 → 3
step   2  0 → 1   3 → 4
step   3  0 → 2   3 → 5

member 0 of 6: broadcast
    0  send output[0] to 3
    1  send output[0] to 1
    2  send output[0] to 2

member 1 of 6: broadcast
    0  receive output[0] from 0
";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(text.matches("member ").count(), 6);
    }

    #[test]
    fn one_member_sees_its_own_part() {
        let group = Group::whole(4).unwrap();
        let see = |drawing: &Drawing<'_>| drawing.text(Some(3));
        let text = with_drawing(Operation::AllGather, "ring", &group, see);
        assert!(text.contains("step   2  2 → 3 [1]   3 → 0 [2]\n"), "{text}");
        assert_eq!(text.matches("member ").count(), 1);
    }

    #[test]
    fn long_lines_go_on_below() {
        let group = Group::whole(32).unwrap();
        let see = |drawing: &Drawing<'_>| drawing.text(Some(99));
        let text = with_drawing(Operation::Barrier, "butterfly", &group, see);
        assert!(!text.contains("member 0"));
        let text = with_drawing(Operation::Barrier, "butterfly", &group, |all| all.text(None));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("step   1  0 ↔ 1   2 ↔ 3"), "{text}");
        assert!(text.contains("\n          2"), "{text}");
    }

    #[test]
    fn neighbours_stand_together() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2 5 7-8");
        assert_eq!((ranges(&[]), ranges(&[4])), (String::new(), "4".into()));
    }
}
