//! Plans as pictures: members from top to bottom, steps from left to right, messages as arrows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::Drawing;
use super::timeline::{AtBoard, DrawnMessage};
use crate::plan::Action;

/// Room left of the lanes, for clusters and members.
const LEFT: f64 = 118.0;
const RIGHT: f64 = 30.0;
/// Room above the lanes, for the heading and the numbers of the steps.
const TOP: f64 = 92.0;
/// Room below the lanes, for the legend.
const BOTTOM: f64 = 56.0;
/// The gap between two clusters.
const GAP: f64 = 10.0;
/// The band that is the board.
const BOARD: f64 = 22.0;
/// The distance of the arrows of one step that reads in the memory of several members.
const READ_GAP: f64 = 5.0;
/// The heading and the legend need this much, however few steps there are.
const WIDTH_MIN: f64 = 720.0;

pub(super) fn of(drawing: &Drawing<'_>) -> String {
    let mut picture = Picture::new(drawing);
    picture.frame();
    picture.clusters();
    picture.grid();
    picture.lanes();
    picture.board();
    picture.messages();
    picture.combinations();
    picture.legend();
    picture.finish()
}

/// Colours for light pages, and for dark ones where the viewer says that it is one.
const STYLE: &str = "\
text{font-family:Ubuntu,'DejaVu Sans',Helvetica,Arial,sans-serif;font-size:13px;fill:#1e1e1e}
.page{fill:#ffffff}
.heading{font-size:18px}
.small{font-size:12px;fill:#5a5a5a}
.band{fill:#eef2f6}
.grid{stroke:#dedede;stroke-width:1}
.lane{stroke:#c4c4c4;stroke-width:1}
.busy{stroke:#8c8c8c;stroke-width:2.5;stroke-linecap:round}
.leader{font-weight:bold}
.near{stroke:#0054a6;stroke-width:1.5}
.near-tip{fill:#0054a6}
.far{stroke:#c85a00;stroke-width:2.5}
.far-tip{fill:#c85a00}
.read{stroke:#7850b4;stroke-width:2}
.read-tip{fill:#7850b4}
.end{stroke:#1e1e1e;stroke-width:2}
.result{fill:#008250}
.root{fill:none;stroke:#961e3c;stroke-width:2}
.root-word{fill:#961e3c}
@media (prefers-color-scheme:dark){
text{fill:#e6e6e6}
.page{fill:#1b1d20}
.small{fill:#a8a8a8}
.band{fill:#262b31}
.grid{stroke:#34383d}
.lane{stroke:#4c5157}
.busy{stroke:#8a9097}
.near{stroke:#6ab0f0}
.near-tip{fill:#6ab0f0}
.far{stroke:#f09040}
.far-tip{fill:#f09040}
.read{stroke:#b48cd7}
.read-tip{fill:#b48cd7}
.end{stroke:#e6e6e6}
.result{fill:#4cc38a}
.root{stroke:#e6739a}
.root-word{fill:#e6739a}
}
";

/// A picture while it is drawn.
struct Picture<'a> {
    drawing: &'a Drawing<'a>,
    body: String,
    /// The vertical position of each member's lane.
    lanes: Vec<f64>,
    /// The vertical position at which the lanes end.
    bottom: f64,
    /// The width of a step.
    step: f64,
}

impl<'a> Picture<'a> {
    fn new(drawing: &'a Drawing<'a>) -> Self {
        let size = drawing.group.size();
        let apart = match size {
            0..=12 => 34.0,
            13..=32 => 24.0,
            _ => 16.0,
        };
        let gap = if drawing.has_clusters() { GAP } else { 0.0 };
        let on_board = drawing.plans.iter().any(crate::plan::Plan::uses_board);
        let mut y = TOP + if on_board { BOARD + 2.0 * GAP } else { 0.0 };
        let mut lanes = vec![0.0; size as usize];
        for cluster in drawing.group.clusters() {
            for &member in cluster {
                lanes[member as usize] = y + apart / 2.0;
                y += apart;
            }
            y += gap;
        }
        let steps = f64::from(drawing.timeline.steps.max(1));
        let widest = match size {
            _ if on_board => 240.0,
            0..=32 => 120.0,
            _ => 180.0,
        };
        let step = (1000.0 / steps).clamp(34.0, widest);
        Self { drawing, body: String::new(), lanes, bottom: y - gap, step }
    }

    /// The page, the heading, and what the picture is made of.
    fn frame(&mut self) {
        let Drawing { task, way, .. } = self.drawing;
        self.line(format_args!(
            "<title>{} by {}</title>",
            task.operation,
            escaped(&way.to_string())
        ));
        self.line(format_args!("<rect class=\"page\" width=\"100%\" height=\"100%\"/>"));
        self.text(20.0, 34.0, "heading", "start", &escaped(&self.drawing.heading()));
        let members = format!("{}. Time runs to the right.", self.drawing.members());
        self.text(20.0, 56.0, "small", "start", &members);
    }

    /// A band for each cluster.
    fn clusters(&mut self) {
        if !self.drawing.has_clusters() {
            return;
        }
        let half_lane = self.lane_apart() / 2.0;
        for (number, cluster) in self.drawing.group.clusters().iter().enumerate() {
            let above = self.lanes[cluster[0] as usize] - half_lane;
            let below = self.lanes[cluster[cluster.len() - 1] as usize] + half_lane;
            let (width, height) = (self.width() - RIGHT / 2.0 - 16.0, below - above);
            self.line(format_args!(
                "<rect class=\"band\" x=\"16\" y=\"{above:.1}\" width=\"{width:.1}\" \
                 height=\"{height:.1}\" rx=\"6\"/>"
            ));
            let middle = f64::midpoint(above, below) + 4.0;
            self.text(24.0, middle, "small", "start", &format!("cluster {number}"));
        }
    }

    /// The numbers of the steps, and lines between them.
    fn grid(&mut self) {
        let bottom = self.bottom;
        for step in 0..=self.drawing.timeline.steps {
            let x = self.at(step);
            self.line(format_args!(
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>",
                TOP - 6.0
            ));
            if step > 0 {
                let middle = x - self.step / 2.0;
                self.text(middle, TOP - 12.0, "small", "middle", &step.to_string());
            }
        }
        self.text(LEFT - 12.0, TOP - 12.0, "small", "end", "step");
    }

    /// A lane for each member: thick from its first part in the operation to its last.
    fn lanes(&mut self) {
        let end = self.at(self.drawing.timeline.steps);
        let busy = self.busy();
        let root = self.drawing.task.operation.has_root().then_some(self.drawing.task.root);
        for member in 0..self.drawing.group.size() {
            let y = self.lanes[member as usize];
            self.horizontal("lane", self.at(0), end, y);
            if let Some(&(first, last)) = busy.get(&member) {
                self.horizontal("busy", self.at(first), self.at(last), y);
            }
            let leads = self.drawing.group.leader(self.drawing.group.cluster_of(member)) == member;
            let class = if leads && self.drawing.has_clusters() { "leader" } else { "member" };
            self.text(LEFT - 12.0, y + 4.5, class, "end", &member.to_string());
            if root == Some(member) {
                let x = self.at(0);
                self.line(format_args!(
                    "<circle class=\"root\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>"
                ));
            }
        }
    }

    /// The first and the last step in which each member takes part.
    fn busy(&self) -> BTreeMap<u32, (u32, u32)> {
        let timeline = &self.drawing.timeline;
        let of_messages = timeline.messages.iter().flat_map(|message| {
            [
                (message.from, message.step - 1, message.step),
                (message.to, message.step, message.step),
            ]
        });
        let of_board = timeline.board.iter().map(|at| (at.member, at.step - 1, at.step));
        let mut busy = BTreeMap::new();
        for (member, first, last) in of_messages.chain(of_board) {
            let span = busy.entry(member).or_insert((first, last));
            *span = (span.0.min(first), span.1.max(last));
        }
        busy
    }

    /// The band of the board, and the actions at it.
    fn board(&mut self) {
        let timeline = &self.drawing.timeline;
        if timeline.board.is_empty() {
            return;
        }
        let (x, width) = (self.at(0), self.at(timeline.steps) - self.at(0));
        let y = TOP + GAP / 2.0;
        self.line(format_args!(
            "<rect class=\"band\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{BOARD}\" rx=\"4\"/>"
        ));
        self.text(LEFT - 12.0, y + 15.0, "leader", "end", "board");
        for at in &timeline.board {
            self.at_board(at, y + BOARD);
        }
    }

    fn at_board(&mut self, at: &AtBoard, board: f64) {
        let size = f64::from(self.drawing.group.size());
        let share = (f64::from(at.member) + 0.5) / size;
        let x = self.at(at.step - 1) + self.step * (0.08 + 0.84 * share);
        let lane = self.lanes[at.member as usize];
        let title = format!("step {}: {} {}", at.step, at.member, at.action);
        let read = self.members_read(at);
        for (number, &from) in (0..).zip(&read) {
            // Side by side, within the member's share.
            let beside = READ_GAP * (f64::from(number) - f64::from(read.len() as u32 - 1) / 2.0);
            let x = x + beside;
            self.arrow("read", (x, self.lanes[from as usize]), (x, lane), &title);
        }
        match at.action {
            _ if !read.is_empty() => {}
            Action::Deposit { .. } | Action::Tell { .. } | Action::Resolve { .. } => {
                self.arrow("near", (x, lane), (x, board + 1.0), &title);
            }
            Action::AwaitReaders { .. } => self.tick(x, lane, &title),
            _ => self.arrow("far", (x, board), (x, lane), &title),
        }
        if combines(at) {
            self.diamond(x, lane);
        }
    }

    /// The members in whose memory an action reads.
    fn members_read(&self, at: &AtBoard) -> Vec<u32> {
        let actions = &self.drawing.timeline.board;
        let others_of = |members: u32| (0..members).filter(|&member| member != at.member).collect();
        match at.action {
            Action::Read { from, .. } => vec![from],
            Action::CombineDeposits { members, .. } if tell(actions) => others_of(members),
            Action::Resolve { .. } if tell(actions) => others_of(self.drawing.group.size()),
            _ => Vec::new(),
        }
    }

    /// Arrows, those between clusters beneath the others.
    fn messages(&mut self) {
        let drawing = self.drawing;
        for far in [true, false] {
            let messages = drawing.timeline.messages.iter();
            for message in messages.filter(|message| is_far(drawing, message) == far) {
                let from = (self.at(message.step - 1), self.lanes[message.from as usize]);
                let to = (self.at(message.step), self.lanes[message.to as usize]);
                let class = if far { "far" } else { "near" };
                let cells: Vec<String> = message.cells.iter().map(ToString::to_string).collect();
                let DrawnMessage { step, from: sender, to: receiver, .. } = message;
                let title = format!("step {step}: {sender} to {receiver}, {}", cells.join(", "));
                self.arrow(class, from, to, &title);
            }
        }
    }

    /// A diamond wherever data are combined.
    fn combinations(&mut self) {
        let done = self.drawing.timeline.combinations.iter();
        let places: BTreeSet<(u32, u32)> = done.map(|done| (done.step, done.member)).collect();
        for (step, member) in places {
            self.diamond(self.at(step), self.lanes[member as usize]);
        }
    }

    fn legend(&mut self) {
        let y = self.bottom + 32.0;
        let mut x = 20.0;
        let timeline = &self.drawing.timeline;
        let any_far = timeline.messages.iter().any(|message| is_far(self.drawing, message));
        let any_near = timeline.messages.iter().any(|message| !is_far(self.drawing, message));
        let is_told = tell(&timeline.board);
        let reads = |at: &AtBoard| !self.members_read(at).is_empty();
        let tells = |at: &AtBoard| matches!(at.action, Action::Tell { .. });
        let lays = |at: &AtBoard| match at.action {
            Action::Deposit { .. } => true,
            Action::Resolve { .. } => !is_told,
            _ => false,
        };
        let leaves = |at: &AtBoard| matches!(at.action, Action::AwaitReaders { .. });
        let takes = |at: &AtBoard| !(lays(at) || tells(at) || reads(at) || leaves(at));
        let any_reads = timeline.board.iter().any(reads);
        let mut arrows = Vec::new();
        if any_near {
            let name = if any_far { "message inside a cluster" } else { "message" };
            arrows.push(("near", name));
        }
        if any_far {
            arrows.push(("far", "message between clusters"));
        }
        if timeline.board.iter().any(lays) {
            arrows.push(("near", "laid on the board"));
        }
        if timeline.board.iter().any(tells) {
            arrows.push(("near", "told on the board"));
        }
        if timeline.board.iter().any(takes) {
            arrows.push(("far", "waited for, or taken from it"));
        }
        if any_reads {
            arrows.push(("read", "read in its memory"));
        }
        for (class, name) in arrows {
            self.arrow(class, (x, y), (x + 30.0, y), name);
            x = self.legend_word(x + 38.0, y, name);
        }
        if timeline.board.iter().any(leaves) {
            self.tick(x + 5.0, y, "has read, and waits for its readers");
            x = self.legend_word(x + 16.0, y, "has read, and waits for its readers");
        }
        if !timeline.combinations.is_empty() || timeline.board.iter().any(combines) {
            self.diamond(x + 5.0, y);
            x = self.legend_word(x + 16.0, y, "data combined");
        }
        if self.drawing.task.operation.has_root() {
            self.line(format_args!(
                "<circle class=\"root\" cx=\"{}\" cy=\"{y}\" r=\"5\"/>",
                x + 6.0
            ));
            x = self.legend_word(x + 17.0, y, "root");
        }
        if self.drawing.has_clusters() {
            self.text(x, y + 4.5, "leader", "start", "12");
            self.legend_word(x + 22.0, y, "leader");
        }
    }

    /// Writes a word of the legend and says where the next item begins.
    fn legend_word(&mut self, x: f64, y: f64, word: &str) -> f64 {
        self.text(x, y + 4.5, "small", "start", word);
        x + 7.0 * word.len() as f64 + 20.0
    }

    fn finish(self) -> String {
        let (width, height) = (self.width(), self.bottom + BOTTOM);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\">\n<style>\n{STYLE}</style>\n{}</svg>\n",
            self.body
        )
    }

    fn width(&self) -> f64 {
        (self.at(self.drawing.timeline.steps) + RIGHT).max(WIDTH_MIN)
    }

    /// The horizontal position at which a step ends.
    fn at(&self, step: u32) -> f64 {
        LEFT + f64::from(step) * self.step
    }

    fn lane_apart(&self) -> f64 {
        let first = &self.drawing.group.clusters()[0];
        match first[..] {
            [one, next, ..] => self.lanes[next as usize] - self.lanes[one as usize],
            _ => 2.0 * (self.lanes[first[0] as usize] - TOP),
        }
    }

    fn horizontal(&mut self, class: &str, from: f64, to: f64, y: f64) {
        self.line(format_args!(
            "<line class=\"{class}\" x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\"/>"
        ));
    }

    fn text(&mut self, x: f64, y: f64, class: &str, anchor: &str, words: &str) {
        self.line(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
        ));
    }

    /// An arrow whose tip touches `to`.
    fn arrow(&mut self, class: &str, from: (f64, f64), to: (f64, f64), title: &str) {
        let (along_x, along_y) = (to.0 - from.0, to.1 - from.1);
        let length = along_x.hypot(along_y).max(1.0);
        let (unit_x, unit_y) = (along_x / length, along_y / length);
        let (long, wide) = if class == "far" { (10.0, 4.5) } else { (8.0, 3.5) };
        let base = (to.0 - unit_x * long, to.1 - unit_y * long);
        let (left, right) = (
            (base.0 - unit_y * wide, base.1 + unit_x * wide),
            (base.0 + unit_y * wide, base.1 - unit_x * wide),
        );
        self.line(format_args!(
            "<g><title>{}</title><line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" \
             y2=\"{:.1}\"/><path class=\"{class}-tip\" d=\"M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}Z\"/></g>",
            escaped(title), from.0, from.1, base.0, base.1, to.0, to.1, left.0, left.1, right.0, right.1
        ));
    }

    /// An upright line across a lane.
    fn tick(&mut self, x: f64, y: f64, title: &str) {
        self.line(format_args!(
            "<g><title>{}</title><line class=\"end\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" \
             y2=\"{:.1}\"/></g>",
            escaped(title),
            y - 6.0,
            y + 6.0
        ));
    }

    fn diamond(&mut self, x: f64, y: f64) {
        self.line(format_args!(
            "<path class=\"result\" d=\"M{:.1} {y:.1}L{x:.1} {:.1}L{:.1} {y:.1}L{x:.1} {:.1}Z\"/>",
            x - 5.0,
            y - 5.0,
            x + 5.0,
            y + 5.0
        ));
    }

    fn line(&mut self, words: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{words}"); // writing to a String cannot fail
    }
}

/// Whether members tell where their data lie, so that others combine them where they lie.
fn tell(actions: &[AtBoard]) -> bool {
    actions.iter().any(|at| matches!(at.action, Action::Tell { .. }))
}

/// Whether a member combines data at the board.
fn combines(at: &AtBoard) -> bool {
    matches!(
        at.action,
        Action::CombineDeposits { .. } | Action::Resolve { .. } | Action::Together { .. }
    )
}

/// Whether a message goes from one cluster to another.
fn is_far(drawing: &Drawing<'_>, message: &DrawnMessage) -> bool {
    let cluster_of = |member| drawing.group.cluster_of(member);
    drawing.has_clusters() && cluster_of(message.from) != cluster_of(message.to)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_drawing;
    use super::*;
    use crate::group::Group;
    use crate::operation::Operation;

    #[test]
    fn everything_that_happens_is_drawn_once() {
        let group = Group::divided(9, 3).unwrap();
        let svg = with_drawing(Operation::AllReduce, "daisy", &group, |drawing| drawing.svg());
        assert_eq!(svg.matches("<title>step ").count(), 16);
        assert_eq!(svg.matches("class=\"result\"").count(), 8 + 1, "the legend has one, too");
        assert_eq!(svg.matches("class=\"band\"").count(), 3);
        assert_eq!(svg.matches("<title>step 1: 2 to 0, input[0]</title>").count(), 1);
    }

    #[test]
    fn only_clusters_that_divide_are_drawn() {
        for group in [Group::whole(4), Group::divided(4, 4)] {
            let svg = with_drawing(Operation::Broadcast, "ring", &group.unwrap(), |drawing| {
                drawing.svg()
            });
            assert!(!svg.contains("class=\"band\"") && !svg.contains("class=\"leader\""), "{svg}");
            assert!(!svg.contains("class=\"far\""), "{svg}");
        }
    }

    #[test]
    fn the_board_is_drawn_above_its_members() {
        let group = Group::whole(3).unwrap();
        let svg =
            with_drawing(Operation::AllReduce, "board:together", &group, |drawing| drawing.svg());
        assert!(svg.contains(">board</text>") && svg.contains("laid on the board"), "{svg}");
        assert_eq!(svg.matches("<title>step 1: ").count(), 3);
    }

    #[test]
    fn data_read_in_a_members_memory_come_from_its_lane() {
        let group = Group::whole(3).unwrap();
        let svg = with_drawing(Operation::AllGather, "board:told", &group, |drawing| drawing.svg());
        assert_eq!(svg.matches("class=\"read\"").count(), 6 + 1, "the legend has one, too");
        assert_eq!(svg.matches("class=\"end\"").count(), 3 + 1);
        assert!(svg.contains("told on the board") && !svg.contains("laid on the board"), "{svg}");
    }

    #[test]
    fn data_that_are_combined_where_they_lie_come_from_their_lanes() {
        let group = Group::whole(3).unwrap();
        let reads = |operation, way| {
            let svg = with_drawing(operation, way, &group, |drawing| drawing.svg());
            (svg.matches("class=\"read\"").count(), svg.contains("laid on the board"))
        };
        assert_eq!(reads(Operation::Reduce, "board:told"), (2 + 1, false), "the root's alone");
        assert_eq!(reads(Operation::ReduceScatter, "board:told"), (6 + 1, false));
        assert_eq!(reads(Operation::AllReduce, "board:told"), (6 + 6 + 1, false), "then the parts");
        assert_eq!(reads(Operation::AllReduce, "board:divided"), (0, true));
    }

    #[test]
    fn characters_with_a_meaning_in_svg_are_escaped() {
        assert_eq!(escaped("<a> & b"), "&lt;a&gt; &amp; b");
    }
}
