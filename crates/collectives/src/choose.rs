//! The choice of a way for an operation in a group.
//!
//! The choice is a pure function of facts that all members know: those frozen when the group was made, and the request.
//! So members can never choose differently. Sizes count by their octave. Sizes that only some members know (in
//! operations in which each member's share has a size of its own) have no influence.

use std::sync::Arc;

use crate::architecture::{Architecture, Butterfly, Flat, Knomial};
use crate::cost::{Load, Scene};
use crate::derive::{BoardStyle, Task, Way, is_derived_over_hosts, is_split};
use crate::group::Group;
use crate::links::Links;
use crate::operation::Operation;
use crate::partial::Order;
use crate::seating;
use crate::settings::Settings;

mod class;
mod sites;
mod text;
mod told;

use class::{CLASSES, Class};

/// On a board with room nothing else is considered for data up to this, all blocks together, nor for any data on an
/// oversubscribed host: there the board is ahead by more than the model's error.
const BOARD_ALONE_BYTES: u64 = 64 * 1024;
/// From so many bytes on, members that have processors of their own divide the combining: as many
/// bytes come out of others' caches as if each made all of the result, but part of them come by plain
/// copies, which are faster than combining from there.
const DIVIDED_BYTES_MIN: u64 = 128 * 1024;
/// From so many bytes on, two members divide the combining: the peer's result goes back to where its data lay.
const DIVIDED_OF_TWO_BYTES_MIN: u64 = 32 * 1024;
/// Data are not divided into segments shorter than this.
const SEGMENT_BYTES_MIN: u64 = 16 * 1024;
/// The numbers of segments into which forwarded data may be divided.
const SEGMENTS: [u32; 4] = [1, 4, 16, 64];
/// The numbers of units in which data may go over hosts.
const UNITS: [u32; 5] = [1, 4, 16, 64, 256];
/// Data are not divided into shorter units: this is the longest message between hosts that is sent without being asked for.
const UNIT_BYTES_MIN: u64 = 64 << 10;
/// From so long blocks on, members that have processors of their own exchange them without the boards of their hosts: with two members
/// on each of two hosts the boards took 1.2 to 3 times as long for 64 KiB.
const STRAIGHT_BYTES_MIN: u64 = 32 << 10;
/// A later way replaces an earlier one only if it costs less than this fraction of it, so that differences within the
/// model's error do not change the choice with every octave.
const CLEARLY: f64 = 0.75;
/// The most bytes that a member deposits on the board of its host at a time in a way over hosts. No host knows the heaps of
/// the others, and the usual one has room for many times as much.
const HOSTS_BOARD_BYTES: u64 = 8 << 20;

/// Choices for the shortest data: of each operation, ordered or not, of known lengths or not.
const USUAL: usize = 4 * Operation::ALL.len();

/// The facts of a group that all members know.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The members. Where they have no board together, clusters are hosts or sites, unless all of them
    /// are known to be on one host.
    pub group: Group,
    /// Processes of the job on a host.
    pub processes: u32,
    /// Processors of a host, for all of these together.
    pub processors: u32,
    /// The hosts of the group that have these processors together; 1 if each has its own.
    pub sharing_hosts: u32,
    /// Whether all members are on one host, and have a board.
    pub has_board: bool,
    /// Whether the members are on several hosts, and all hosts with two members or more have a board for these.
    pub hosts_have_boards: bool,
    /// The most bytes that a member can deposit on the board at a time.
    pub board_bytes: u64,
    /// The host's cost parameters and the user's overrides. For members on several hosts, those that are equal on all
    /// of them.
    pub settings: Settings,
    /// The measured links of the hosts of [`Group::hosts`], in this order. Hosts without one count as on a common network.
    pub links: Links,
}

/// A request to a table: an operation and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WayRequest {
    /// The operation.
    pub operation: Operation,
    /// Bytes of one block, where a block is what one member has for another or for all (gather,
    /// scatter, allgather, alltoall); else of all data of one member. None when not every member
    /// knows them.
    pub bytes: Option<u64>,
    /// Whether the order in which data combine does not matter. True where nothing combines.
    pub commutative: bool,
    /// Whether the result must have the same bits whatever the way.
    pub reproducible: bool,
}

impl WayRequest {
    /// Returns a request with data of this size, commutative and not reproducible.
    pub const fn new(operation: Operation, bytes: u64) -> Self {
        Self { operation, bytes: Some(bytes), commutative: true, reproducible: false }
    }
}

/// The answer of a table to a request.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The way.
    pub way: Way,
    /// The number of segments of the data, in operations whose blocks are segments; the number of members where each
    /// member makes a part.
    pub segments: u32,
    /// The order in which data combine.
    pub order: Order,
}

impl Choice {
    /// A number for all that decides the plans of the members: the way and how it goes. Never 0; members whose numbers
    /// differ have different plans.
    pub fn form(&self) -> u32 {
        form_of(&self.way, self.segments, self.order)
    }
}

/// The number of a way that goes in so many segments and combines in this order: FNV-1a of its name and these.
pub fn form_of(way: &Way, segments: u32, order: Order) -> u32 {
    let bytes = [&segments.to_le_bytes()[..], &[order as u8], way.to_string().as_bytes()].concat();
    let hash = bytes
        .iter()
        .fold(0x811c_9dc5u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.max(1)
}

/// The ways of all operations in a group, frozen when the group is made.
///
/// It takes two bytes for each class of requests, 2 KiB in all, and the few choices that were made.
#[derive(Clone, Debug)]
pub struct Table {
    facts: Facts,
    /// For each class the number of its choice, counted from 1; 0 when it was not asked for.
    known: [u16; CLASSES],
    choices: Vec<Choice>,
    /// The forms of the choices for the shortest data, and for data of unknown lengths; 0 where these were not asked for.
    usual: [u32; USUAL],
}

impl Table {
    /// The table of a group. Nothing is computed before it is asked for.
    pub const fn new(facts: Facts) -> Self {
        Self { facts, known: [0; CLASSES], choices: Vec::new(), usual: [0; USUAL] }
    }

    /// The facts from which the table was made.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns the choice for a request. The first request of a class takes some microseconds, or up to some milliseconds where
    /// the links of hosts differ; later ones take a look-up.
    #[inline]
    pub fn way(&mut self, request: &WayRequest) -> &Choice {
        let class = Class::of(request);
        let known = self.known[class.index()];
        let number = if known == 0 { self.remember(class) } else { usize::from(known) - 1 };
        &self.choices[number]
    }

    /// The form of the choice for the shortest data: calls of this form need not say by which way they go.
    #[inline]
    pub fn usual_form(&mut self, request: &WayRequest) -> u32 {
        let shortest = WayRequest { bytes: request.bytes.map(|_| 1), ..*request };
        let class = Class::of(&shortest);
        let kind = 2 * usize::from(class.ordered) + usize::from(request.bytes.is_some());
        let at = 4 * (class.operation as usize - 1) + kind;
        if self.usual[at] == 0 {
            self.usual[at] = self.way(&shortest).form();
        }
        self.usual[at]
    }

    /// Returns the choice for a request without storing it.
    pub fn look_up(&self, request: &WayRequest) -> Choice {
        self.make(Class::of(request))
    }

    /// The number of segments for a request that goes by this way, whichever the table chooses.
    pub fn segments_by(&self, request: &WayRequest, way: &Way) -> u32 {
        self.cheapest(Class::of(request), vec![way.clone()], Order::Free).segments
    }

    #[cold]
    fn remember(&mut self, class: Class) -> usize {
        let choice = self.make(class);
        let found = self.choices.iter().position(|known| is_same(known, &choice));
        let number = found.unwrap_or(self.choices.len());
        if found.is_none() {
            self.choices.push(choice);
        }
        // There are fewer choices than classes.
        self.known[class.index()] = number as u16 + 1;
        number
    }

    fn make(&self, class: Class) -> Choice {
        let asked = self.facts.settings.overrides.preset(class.operation);
        let asked_way = asked.map(|asked| asked.way(class.operation));
        let (ways, late) = match asked_way.filter(|way| self.can(way, class)) {
            Some(way) => (vec![way], asked.and_then(|asked| asked.order(class.operation))),
            None => (self.ways(class), None),
        };
        let order = late.unwrap_or(if class.ordered { Order::Canonical } else { Order::Free });
        self.cheapest(class, self.with_orders(class, ways, order), order)
    }

    fn cheapest(&self, class: Class, ways: Vec<Way>, order: Order) -> Choice {
        let bytes = self.class_bytes(class);
        let mut best: Option<(f64, Choice)> = None;
        for way in ways {
            for segments in self.segments(class, &way, bytes) {
                let load = Load { operation: class.operation, bytes, segments, order };
                let cost = self.scene().cost_ns(&load, &way);
                if best.as_ref().is_none_or(|(least, _)| cost < CLEARLY * *least) {
                    best = Some((cost, Choice { way: way.clone(), segments, order }));
                }
            }
        }
        let otherwise = || Choice { way: Way::by(Flat), segments: 1, order };
        best.map_or_else(otherwise, |(_, choice)| choice)
    }

    /// These ways, and behind them those with their hosts in another order that slow links ask for. Data that combine in the
    /// order of ranks keep it: in another one, more values would have to travel.
    fn with_orders(&self, class: Class, mut ways: Vec<Way>, order: Order) -> Vec<Way> {
        if order == Order::Free && self.facts.group.sites().is_empty() {
            let bytes = self.class_bytes(class);
            let load = Load { operation: class.operation, bytes, segments: 1, order };
            let scene = self.scene();
            let in_order = |way| seating::seated(&scene, &load, way);
            ways.extend(ways.iter().filter_map(in_order).collect::<Vec<_>>());
        }
        ways
    }

    fn class_bytes(&self, class: Class) -> u64 {
        class.bytes(self.facts.group.size())
    }

    /// Whether the host is oversubscribed: then each message may cost a rotation, and only the board certainly does
    /// not.
    fn is_crowded(&self) -> bool {
        self.facts.processes.max(self.facts.group.size()) > self.facts.processors
    }

    fn scene(&self) -> Scene<'_> {
        Scene {
            figures: &self.facts.settings.figures,
            group: &self.facts.group,
            processes: self.facts.processes,
            processors: self.facts.processors,
            sharing_hosts: self.facts.sharing_hosts,
            clusters_are_hosts: !self.facts.has_board && !self.facts.group.is_on_one_host(),
            links: &self.facts.links,
        }
    }

    /// Whether the way is there for data of this class.
    fn can(&self, way: &Way, class: Class) -> bool {
        let size = self.facts.group.size();
        let has_room =
            || class.board_bytes(size).is_none_or(|bytes| bytes <= self.facts.board_bytes);
        match way {
            Way::Messages { .. } => true,
            Way::Board(_) => self.facts.has_board && has_room(),
            Way::Hosts { .. } => self.facts.hosts_have_boards && self.can_over_hosts(class),
        }
    }

    /// Whether the boards of hosts serve data of this class.
    fn can_over_hosts(&self, class: Class) -> bool {
        let hosts = self.facts.group.hosts();
        let task = Task::new(class.operation);
        hosts.len() > 1
            && hosts.iter().any(|host| host.len() > 1)
            && is_derived_over_hosts(&task, &self.facts.group)
            && (class.octave.is_some() || class.operation == Operation::Barrier)
            && !self.units(class).is_empty()
    }

    /// The numbers of units in which data of this class may go over hosts: none if even the shortest units are too long for
    /// the boards.
    fn units(&self, class: Class) -> Vec<u32> {
        let size = self.facts.group.size();
        let deposit_bytes = match (class.operation, class.octave) {
            // The driver deposits the blocks of all.
            (Operation::AllGather, Some(octave)) => Some(u64::from(size) << octave),
            _ => class.board_bytes(size),
        };
        let Some(bytes) = deposit_bytes else { return vec![1] };
        let operation = class.operation;
        let may_divide = operation.has_segments() || operation.has_blocks_in_segments();
        let is_possible = |&units: &u32| {
            let of_unit = bytes / u64::from(units);
            of_unit <= HOSTS_BOARD_BYTES && (units == 1 || may_divide && of_unit >= UNIT_BYTES_MIN)
        };
        UNITS.into_iter().filter(is_possible).collect()
    }

    /// The ways among which the cost decides; the most likely first.
    fn ways(&self, class: Class) -> Vec<Way> {
        use BoardStyle::{Divided, Each, Together, Told};
        let styles = match class.operation {
            Operation::AllReduce if self.is_crowded() => vec![Together, Each, Divided],
            Operation::AllReduce if self.class_bytes(class) >= self.divided_bytes_min() => {
                vec![Divided, Each, Together]
            }
            Operation::AllReduce => vec![Each, Divided, Together],
            _ => vec![Each],
        };
        match (self.is_told(class), self.facts.group.sites().is_empty()) {
            (true, _) => return vec![Way::Board(Told)],
            (false, false) => return vec![self.over_sites(class)],
            (false, true) => {}
        }
        let mut ways: Vec<Way> = styles.into_iter().map(Way::Board).collect();
        ways.retain(|way| self.can(way, class));
        let is_short = class.octave.is_none() || self.class_bytes(class) <= BOARD_ALONE_BYTES;
        if ways.is_empty() || !(is_short || self.is_crowded()) {
            let mut messages = messages(class.operation, self.divides(class));
            if self.goes_straight(class) {
                // Members that forward would carry long data over several links.
                messages.retain(|way| is_direct(way, &self.facts.group));
            }
            let over_hosts = messages.iter().cloned().filter_map(between_hosts);
            let over_hosts: Vec<Way> = over_hosts.filter(|way| self.can(way, class)).collect();
            let goes_by_hosts = !over_hosts.is_empty() && brings_all_to_each(class.operation);
            let between_members = if goes_by_hosts { vec![] } else { messages };
            let (first, then) = match self.goes_straight(class) {
                // There the boards of hosts take longer than the model says.
                true if self.is_roomy() => (between_members, vec![]),
                true => (between_members, over_hosts),
                false => (over_hosts, between_members),
            };
            ways.extend(first.into_iter().chain(then));
        }
        if class.octave.is_none() {
            ways.retain(|way| is_direct(way, &self.facts.group));
        }
        ways
    }

    /// Whether it is the most likely that the parts of a result are made at different places. With more than two of these each
    /// carries fewer bytes then: of an allreduce by four 1.5 times its data, and not twice. Shorter data go in one frame.
    fn divides(&self, class: Class) -> bool {
        let group = &self.facts.group;
        let hosts = group.hosts().len();
        let places = if self.facts.hosts_have_boards { hosts } else { group.size() as usize };
        let is_over_network = hosts > 1 && !self.facts.has_board;
        is_over_network && places > 2 && self.class_bytes(class) >= UNIT_BYTES_MIN
    }

    /// Whether messages between members are the most likely for data of this class: they go from the memory of the sender to
    /// that of the receiver, and the boards of hosts would copy each byte once or twice more. What fits in a message that is
    /// sent without being asked for is copied anyway. Where all members have a processor, they send at once what a driver
    /// would send alone.
    fn goes_straight(&self, class: Class) -> bool {
        let block = class.octave.map_or(0, |octave| 1u64 << octave >> 1);
        let is_long = block > UNIT_BYTES_MIN || self.is_roomy() && block >= STRAIGHT_BYTES_MIN;
        class.operation == Operation::AllToAll && is_long
    }

    /// Whether all members have a processor, on whichever hosts they are.
    fn is_roomy(&self) -> bool {
        let Facts { group, processors, sharing_hosts, .. } = &self.facts;
        let all = u64::from(*processors) * group.hosts().len() as u64
            / u64::from((*sharing_hosts).max(1));
        all >= u64::from(group.size())
    }

    /// The length from which on an allreduce is divided.
    fn divided_bytes_min(&self) -> u64 {
        match self.facts.group.size() {
            2 => DIVIDED_OF_TWO_BYTES_MIN,
            _ => DIVIDED_BYTES_MIN,
        }
    }

    /// Returns the numbers of segments into which the data may be divided on this way.
    fn segments(&self, class: Class, way: &Way, bytes: u64) -> Vec<u32> {
        if let Way::Hosts { split, .. } = way {
            let hosts = self.facts.group.hosts().len() as u32;
            let each = if is_split(class.operation, *split) { hosts } else { 1 };
            return self.units(class).into_iter().map(|units| units * each).collect();
        }
        if !class.operation.has_segments() {
            return vec![1];
        }
        match way {
            Way::Messages { split: true, .. } => vec![self.facts.group.size()],
            Way::Board(style) if style.divides(class.operation) => vec![self.facts.group.size()],
            Way::Board(_) | Way::Hosts { .. } => vec![1],
            _ if is_direct(way, &self.facts.group) => vec![1],
            Way::Messages { .. } => {
                let enough = |segments: &u32| {
                    *segments == 1 || bytes / u64::from(*segments) >= SEGMENT_BYTES_MIN
                };
                SEGMENTS.into_iter().filter(enough).collect()
            }
        }
    }
}

/// Whether no member forwards what others have sent; a forwarding member must be told their sizes.
fn is_direct(way: &Way, group: &Group) -> bool {
    let Way::Messages { architecture, .. } = way else { return true };
    let tree = architecture.tree(group, 0);
    tree.children(0).len() + 1 == tree.size() as usize
}

/// Whether each member gets all data as they are. Messages between all members would bring them to a host as often as it has
/// members, so these data go over hosts where they can, whatever the costs.
const fn brings_all_to_each(operation: Operation) -> bool {
    matches!(operation, Operation::Broadcast | Operation::AllGather)
}

/// A way over messages as a way over hosts: its architecture between these.
fn between_hosts(way: Way) -> Option<Way> {
    match way {
        Way::Messages { architecture, release: None, split } => {
            Some(Way::Hosts { architecture, split })
        }
        _ => None,
    }
}

/// The ways over messages that may be the best for an operation, the most likely first.
fn messages(operation: Operation, divides: bool) -> Vec<Way> {
    let flat: Arc<dyn Architecture> = Arc::new(Flat);
    let binomial: Arc<dyn Architecture> = Arc::new(Knomial::BINOMIAL);
    let by_four: Arc<dyn Architecture> = Arc::new(Knomial::new(4));
    let butterfly: Arc<dyn Architecture> = Arc::new(Butterfly);
    let whole = |architecture: &Arc<dyn Architecture>| Way::Messages {
        architecture: architecture.clone(),
        release: None,
        split: false,
    };
    let split = |architecture: &Arc<dyn Architecture>| Way::Messages {
        architecture: architecture.clone(),
        release: None,
        split: true,
    };
    match operation {
        Operation::Barrier => vec![whole(&butterfly), whole(&flat)],
        Operation::Broadcast | Operation::Reduce => {
            vec![whole(&flat), whole(&binomial), whole(&by_four), split(&butterfly)]
        }
        Operation::Gather | Operation::Scatter => vec![whole(&flat), whole(&binomial)],
        Operation::AllGather | Operation::ReduceScatter => vec![whole(&butterfly)],
        Operation::AllReduce if divides => {
            vec![split(&butterfly), whole(&butterfly), whole(&binomial)]
        }
        Operation::AllReduce => vec![whole(&butterfly), split(&butterfly), whole(&binomial)],
        Operation::AllToAll => vec![whole(&flat), whole(&butterfly)],
        Operation::Scan | Operation::ExclusiveScan => vec![whole(&butterfly), whole(&flat)],
    }
}

fn is_same(one: &Choice, other: &Choice) -> bool {
    one.segments == other.segments
        && one.order == other.order
        && one.way.to_string() == other.way.to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cost_parameters::CostParameters;
    use crate::derive::{Task, plan_of, plans};
    use crate::links::Link;

    pub(super) fn facts(size: u32, processors: u32, has_board: bool) -> Facts {
        let hosts = if has_board { 1 } else { size.div_ceil(4) };
        Facts {
            group: Group::divided(size, hosts).unwrap(),
            processes: size,
            processors,
            sharing_hosts: 1,
            has_board,
            hosts_have_boards: false,
            board_bytes: u64::MAX,
            settings: Settings::default(),
            links: Links::default(),
        }
    }

    fn any_request() -> impl Strategy<Value = WayRequest> {
        let operation = prop::sample::select(Operation::ALL.to_vec());
        let bytes = prop_oneof![Just(None), (0u32..50).prop_map(|octave| Some(1u64 << octave))];
        (operation, bytes, any::<bool>(), any::<bool>()).prop_map(
            |(operation, bytes, commutative, reproducible)| WayRequest {
                operation,
                bytes,
                commutative,
                reproducible,
            },
        )
    }

    fn any_figures() -> impl Strategy<Value = CostParameters> {
        prop::array::uniform21(1u64..1 << 24).prop_map(|mut words| {
            words[0] = words[0] % 64 + 1;
            CostParameters::from_words(&words).unwrap()
        })
    }

    fn text(choice: &Choice) -> String {
        format!("{choice:?}")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn all_members_choose_alike_whatever_they_asked_before(
            requests in prop::collection::vec(any_request(), 1..8),
            size in 1u32..20,
            processors in 1u32..9,
            has_board: bool,
            figures in any_figures(),
        ) {
            let settings = Settings { figures, ..Settings::default() };
            let facts = Facts { settings, ..facts(size, processors, has_board) };
            let (mut one, mut other) = (Table::new(facts.clone()), Table::new(facts));
            let there: Vec<String> = requests.iter().map(|ask| text(one.way(ask))).collect();
            let back: Vec<String> = requests.iter().rev().map(|ask| text(other.way(ask))).collect();
            prop_assert_eq!(&there, &back.into_iter().rev().collect::<Vec<_>>());
            let again: Vec<String> = requests.iter().map(|ask| text(&one.look_up(ask))).collect();
            prop_assert_eq!(there, again);
        }

        #[test]
        fn members_over_uneven_links_choose_alike_and_get_plans(
            request in any_request(),
            times in prop::collection::vec((1u64..1 << 28, 1u64..1 << 24, 1u64..1 << 28), 28),
            hosts in 2u32..8,
            each in 1u32..3,
        ) {
            let mut links = Links::default();
            for high in 0..hosts as usize {
                for low in 0..high {
                    let (latency_ps, gap_ps, kib_ps) = times[high * (high - 1) / 2 + low];
                    links.set(low, high, Link { latency_ps, gap_ps, kib_ps });
                }
            }
            let group = Group::divided(hosts * each, hosts).unwrap();
            let facts = Facts { group, links, hosts_have_boards: true, ..facts(hosts * each, 2, false) };
            let choice = Table::new(facts.clone()).look_up(&request);
            let again = Table::new(facts.clone()).look_up(&request);
            prop_assert_eq!(text(&choice), text(&again));
            let root = if request.operation.has_root() { hosts * each - 1 } else { 0 };
            let task = Task {
                root,
                segments: choice.segments,
                order: choice.order,
                ..Task::new(request.operation)
            };
            let found = crate::check::prove(&plans(&task, &choice.way, &facts.group), &task);
            prop_assert!(found.is_ok(), "{:?} {:?}", choice, found.err());
        }

        #[test]
        fn sizes_of_one_octave_take_one_way(operation_number in 1u8..12, octave in 1u32..40, by in 0.0..1.0) {
            let operation = Operation::from_number(operation_number).unwrap();
            let mut table = Table::new(facts(8, 2, true));
            let least = 1u64 << (octave - 1);
            let more = least + ((least - 1) as f64 * by) as u64;
            let mut way = |bytes| text(table.way(&WayRequest::new(operation, bytes)));
            prop_assert_eq!(way(least), way(more));
        }

        #[test]
        fn every_choice_is_a_plan(
            request in any_request(),
            size in 1u32..14,
            processors in 1u32..5,
            has_board: bool,
            figures in any_figures(),
        ) {
            let settings = Settings { figures, ..Settings::default() };
            let table = Table::new(Facts { settings, ..facts(size, processors, has_board) });
            let choice = table.look_up(&request);
            let root = if request.operation.has_root() { size - 1 } else { 0 };
            let task = Task {
                root,
                segments: choice.segments,
                order: choice.order,
                ..Task::new(request.operation)
            };
            let plans = plans(&task, &choice.way, &table.facts().group);
            prop_assert_eq!(plans.len(), size as usize);
            prop_assert!(plans.iter().all(|plan| plan.uses_board() <= has_board));
            let own = plan_of(&task, &choice.way, &table.facts().group, root);
            prop_assert_eq!(&own, &plans[root as usize]);
            if request.bytes.is_none() && !has_board && request.operation.has_root() {
                prop_assert_eq!(choice.way.to_string(), "flat");
            }
        }
    }

    #[test]
    fn an_override_wins_where_it_can_be_done() {
        let overrides = "allreduce=butterfly,gather=knomial,barrier=board".parse().unwrap();
        let settings = Settings { overrides, ..Settings::default() };
        let asked = Facts { settings, ..facts(6, 2, true) };
        let table = Table::new(asked.clone());
        let way = |table: &Table, operation, bytes| {
            table.look_up(&WayRequest { bytes, ..WayRequest::new(operation, 0) }).way.to_string()
        };
        assert_eq!(way(&table, Operation::AllReduce, Some(8)), "butterfly");
        assert_eq!(way(&table, Operation::Gather, Some(8)), "knomial");
        assert_eq!(way(&table, Operation::Gather, None), "knomial");
        let apart = Table::new(Facts { has_board: false, ..asked });
        assert_ne!(way(&apart, Operation::Barrier, Some(0)), "board (each)");
    }

    #[test]
    fn short_data_go_over_the_board_of_a_host() {
        for size in [2, 4, 32] {
            let table = Table::new(facts(size, 2, true));
            for operation in Operation::ALL {
                let choice = table.look_up(&WayRequest::new(operation, 8));
                assert!(matches!(choice.way, Way::Board(_)), "{operation}: {choice:?}");
            }
        }
    }

    #[test]
    fn data_that_the_board_has_no_room_for_go_in_messages() {
        let overrides = "allreduce=board".parse().unwrap();
        let settings = Settings { overrides, ..Settings::default() };
        for settings in [Settings::default(), settings] {
            let facts = Facts { board_bytes: 1 << 20, settings, ..facts(8, 2, true) };
            let table = Table::new(facts);
            let is_at_board = |operation, bytes| {
                matches!(table.look_up(&WayRequest::new(operation, bytes)).way, Way::Board(_))
            };
            for (operation, most_bytes) in [
                (Operation::Broadcast, 1 << 20),
                (Operation::Gather, 1 << 20),
                (Operation::AllReduce, 1 << 19),
                (Operation::ReduceScatter, 1 << 19),
                (Operation::Scatter, 1 << 17),
                (Operation::AllToAll, 1 << 17),
            ] {
                assert!(!is_at_board(operation, most_bytes), "{operation} {most_bytes}");
                assert!(!is_at_board(operation, 1 << 40), "{operation} 1 TiB");
            }
            assert!(is_at_board(Operation::AllReduce, (1 << 19) - 1));
        }
    }

    /// The facts of members on hosts with boards.
    fn over_hosts(hosts: &[&[u32]]) -> Facts {
        let group = Group::of(hosts.iter().map(|host| host.to_vec()).collect()).unwrap();
        let facts = facts(group.size(), 2, false);
        Facts { group, processes: 1, hosts_have_boards: true, ..facts }
    }

    #[test]
    fn groups_over_hosts_use_the_boards_of_their_hosts() {
        let way = |facts: &Facts, request: WayRequest| {
            Table::new(facts.clone()).look_up(&request).way.to_string()
        };
        let blocks = over_hosts(&[&[0, 1], &[2, 3]]);
        for operation in Operation::ALL {
            let chosen = way(&blocks, WayRequest::new(operation, 8));
            assert!(chosen.contains("between hosts"), "{operation}: {chosen}");
            let in_turn = over_hosts(&[&[0, 2], &[1, 3]]);
            let chosen = way(&in_turn, WayRequest::new(operation, 8));
            assert!(chosen.contains("between hosts"), "{operation}: {chosen}");
            let without = Facts { hosts_have_boards: false, ..blocks.clone() };
            let chosen = way(&without, WayRequest::new(operation, 8));
            assert!(!chosen.contains("hosts"), "{operation}: {chosen}");
            let all = 1 << 39;
            assert!(
                !way(&blocks, WayRequest::new(operation, all)).contains("hosts")
                    || operation == Operation::Barrier
            );
        }
        let overrides = "butterfly,broadcast=hosts:ring".parse().unwrap();
        let asked = Facts { settings: Settings { overrides, ..Settings::default() }, ..blocks };
        assert_eq!(way(&asked, WayRequest::new(Operation::AllReduce, 8)), "butterfly");
        assert_eq!(way(&asked, WayRequest::new(Operation::Broadcast, 8)), "ring between hosts");
    }

    /// Equal links between so many hosts, but for those of one host, which are `slower` times as slow.
    fn links(hosts: usize, kib_ps: u64, (slow, slower): (usize, u64)) -> Links {
        let mut links = Links::default();
        for high in 0..hosts {
            for low in 0..high {
                let kib_ps = kib_ps * if low == slow || high == slow { slower } else { 1 };
                links.set(low, high, Link { latency_ps: 20_000_000, gap_ps: 4_000_000, kib_ps });
            }
        }
        links
    }

    #[test]
    fn a_slow_link_changes_the_architecture() {
        let facts = over_hosts(&[&[0, 1], &[2, 3], &[4, 5], &[6, 7]]);
        let with = |operation, bytes, kib_ps, slow| {
            let table = Table::new(Facts { links: links(4, kib_ps, slow), ..facts.clone() });
            table.look_up(&WayRequest::new(operation, bytes)).way.to_string()
        };
        // 1 KiB in 1 us is 1 GB/s.
        let alike = with(Operation::Broadcast, 256 << 10, 1_000_000, (0, 1));
        let one_slow = with(Operation::Broadcast, 256 << 10, 1_000_000, (2, 10));
        assert_eq!(alike, "knomial between hosts");
        assert_eq!(one_slow, "flat between hosts", "nothing goes over host 2 to another one");
        let differs = |octave| {
            let at = |kib_ps| with(Operation::Broadcast, 1u64 << octave, kib_ps, (0, 1));
            at(100_000) != at(1_000_000)
        };
        assert!((10..24).any(differs), "all links are slower");
    }

    /// Hosts whose members are numbered one host after the other.
    fn of_neighbours(hosts: u32, each: u32, sharing: Option<u32>) -> Facts {
        let host = |host: u32| (host * each..(host + 1) * each).collect::<Vec<u32>>();
        let hosts: Vec<Vec<u32>> = (0..hosts).map(host).collect();
        let hosts: Vec<&[u32]> = hosts.iter().map(Vec::as_slice).collect();
        let mut links = Links::default();
        for (low, high) in (0..hosts.len()).flat_map(|high| (0..high).map(move |low| (low, high))) {
            // As measured between namespaces of one computer.
            let link = Link { latency_ps: 7_700_000, gap_ps: 7_700_000, kib_ps: 450_000 };
            links.set(low, high, link);
        }
        Facts { links, sharing_hosts: sharing.unwrap_or(1), ..over_hosts(&hosts) }
    }

    /// The sizes are those that each member has for each other; docs/collectives-choice.md has the measured times.
    #[test]
    fn an_alltoall_goes_over_boards_while_its_messages_are_short_and_many() {
        let way = |hosts, each, sharing, bytes| {
            let table = Table::new(of_neighbours(hosts, each, sharing));
            table.look_up(&WayRequest::new(Operation::AllToAll, bytes)).way.to_string()
        };
        const BOARDS: &str = "flat between hosts";
        for (hosts, each, sharing, bytes, expected) in [
            (2, 2, Some(2), 8, BOARDS),
            (2, 4, Some(2), 8, BOARDS),
            (2, 4, Some(2), 1 << 10, BOARDS),
            (2, 2, Some(2), 16 << 10, BOARDS),
            (2, 4, Some(2), 16 << 10, BOARDS),
            (4, 2, Some(4), 16 << 10, BOARDS),
            (2, 2, Some(2), 64 << 10, BOARDS),
            (2, 4, Some(2), 64 << 10, BOARDS),
            (2, 2, Some(2), 256 << 10, "flat"),
            (2, 4, Some(2), 256 << 10, "flat"),
            (4, 2, Some(4), 256 << 10, "flat"),
            (4, 2, Some(4), 1 << 20, "flat"),
            // Twice as many messages as by a butterfly take the processors that four hosts share.
            (4, 2, Some(4), 8, "butterfly"),
            (4, 2, Some(4), 1 << 10, "butterfly"),
            (4, 2, None, 16 << 10, BOARDS),
            // All members have processors of their own.
            (4, 2, None, 64 << 10, "flat"),
            (2, 2, None, 64 << 10, "flat"),
        ] {
            let chosen = way(hosts, each, sharing, bytes);
            assert_eq!(chosen, expected, "{hosts} x {each}, {sharing:?}, {bytes} B");
        }
    }

    #[test]
    fn an_allreduce_of_long_data_is_divided_among_more_than_two() {
        for (hosts, each, sharing, bytes, is_divided) in [
            (4, 1, Some(4), 32 << 10, false),
            (4, 1, Some(4), 64 << 10, true),
            (4, 1, Some(4), 1 << 20, true),
            (4, 1, None, 1 << 20, true),
            (4, 2, Some(4), 1 << 20, true),
            (2, 1, Some(2), 1 << 20, false),
            (2, 2, Some(2), 1 << 20, false),
        ] {
            let hosts_have_boards = each > 1;
            let facts = Facts { hosts_have_boards, ..of_neighbours(hosts, each, sharing) };
            let chosen = Table::new(facts).look_up(&WayRequest::new(Operation::AllReduce, bytes));
            let way = chosen.way.to_string();
            assert_eq!(way.contains("split"), is_divided, "{hosts} x {each}, {bytes} B: {way}");
        }
    }

    #[test]
    fn a_network_that_hosts_share_costs_more() {
        let cost = |sharing, operation, way: &str| {
            let facts = of_neighbours(4, 2, sharing);
            let way = way.parse::<crate::preset::Preset>().unwrap().way(operation);
            let load = Load { operation, bytes: 1 << 20, segments: 1, order: Order::Free };
            Table::new(facts).scene().cost_ns(&load, &way)
        };
        for operation in [Operation::AllToAll, Operation::AllReduce, Operation::Broadcast] {
            for way in ["flat", "hosts:flat", "hosts:butterfly"] {
                let [own, shared] = [None, Some(4)].map(|sharing| cost(sharing, operation, way));
                assert!(shared > own, "{operation} {way}: {shared} ns, and {own} ns without");
                assert!(shared < 8.0 * own, "{operation} {way}: {shared} ns, and {own} ns without");
            }
        }
        assert!(
            cost(Some(4), Operation::AllToAll, "flat")
                > 1.5 * cost(None, Operation::AllToAll, "flat")
        );
    }

    #[test]
    fn a_slow_host_is_no_centre() {
        let facts = over_hosts(&[&[0, 1], &[2, 3], &[4, 5]]);
        let with = |facts: &Facts, request, slow| {
            let table = Table::new(Facts { links: links(3, 1_000_000, slow), ..facts.clone() });
            table.look_up(&request).way.to_string()
        };
        let request = WayRequest::new(Operation::AllReduce, 256 << 10);
        let alike = with(&facts, request, (0, 1));
        assert!(!alike.contains("in order"), "{alike}");
        for slow in 0..3 {
            let way = with(&facts, request, (slow, 10));
            let centre =
                way.split("in order ").nth(1).map_or('0', |order| order.as_bytes()[0] as char);
            assert_ne!(centre as usize - '0' as usize, slow, "{way}");
        }
        assert!(with(&facts, request, (0, 10)).contains("in order"));
        // Asked for by the user, between single members, and for data in an order of their own.
        let overrides = "ring".parse().unwrap();
        let settings = Settings { overrides, ..Settings::default() };
        let asked = Facts { settings, ..over_hosts(&[&[0], &[1], &[2], &[3]]) };
        let gather = WayRequest::new(Operation::Gather, 1 << 20);
        let mut uneven = links(4, 1_000_000, (0, 1));
        uneven.set(1, 2, Link { latency_ps: 20_000_000, gap_ps: 4_000_000, kib_ps: 50_000_000 });
        let table = Table::new(Facts { links: uneven, ..asked });
        let way = table.look_up(&gather).way.to_string();
        assert!(
            way.contains("ring in order 0-") && !way.contains("1-2") && !way.contains("2-1"),
            "{way}"
        );
        let ordered = WayRequest { reproducible: true, ..request };
        assert!(!with(&facts, ordered, (0, 10)).contains("in order"));
    }

    #[test]
    fn long_data_go_over_hosts_in_units() {
        let table = Table::new(over_hosts(&[&[0, 1], &[2, 3]]));
        for operation in Operation::ALL {
            let at = |bytes| table.look_up(&WayRequest::new(operation, bytes));
            assert_eq!(at(8).segments.next_multiple_of(2), 2, "{operation}");
            let long = at(64 << 20);
            let is_divided = operation.has_segments() || operation.has_blocks_in_segments();
            let expected = is_divided || operation == Operation::Barrier;
            assert_eq!(long.way.to_string().contains("between hosts"), expected, "{operation}");
            let unit_bytes = (128 << 20) / u64::from(long.segments);
            assert!(!is_divided || unit_bytes <= HOSTS_BOARD_BYTES, "{operation}: {long:?}");
        }
    }

    #[test]
    fn ordered_reductions_go_over_hosts_wherever_their_members_are() {
        let ordered = WayRequest { commutative: false, ..WayRequest::new(Operation::AllReduce, 8) };
        let way = |hosts: &[&[u32]], request: &WayRequest| {
            Table::new(over_hosts(hosts)).look_up(request).way.to_string()
        };
        let free = WayRequest::new(Operation::AllReduce, 8);
        let same = WayRequest { reproducible: true, ..free };
        for request in [ordered, free, same] {
            assert!(way(&[&[0, 1], &[2, 3]], &request).contains("between hosts"));
            assert!(way(&[&[0, 2], &[1, 3]], &request).contains("between hosts"));
        }
        assert!(!way(&[&[0], &[1]], &free).contains("hosts"), "no host has a board");
    }

    #[test]
    fn sizes_that_some_do_not_know_are_not_passed_on() {
        for (has_board, expected) in [(true, "board (each)"), (false, "flat")] {
            let table = Table::new(facts(5, 2, has_board));
            for operation in [Operation::Gather, Operation::Scatter, Operation::AllToAll] {
                let choice =
                    table.look_up(&WayRequest { bytes: None, ..WayRequest::new(operation, 0) });
                assert_eq!(choice.way.to_string(), expected, "{operation}");
            }
        }
    }

    #[test]
    fn the_table_is_readable() {
        let text = Table::new(facts(4, 2, true)).to_string();
        assert!(
            text.starts_with("barrier           any size             board (each)\n"),
            "{text}"
        );
        assert!(text.contains("allreduce         "), "{text}");
    }
}
