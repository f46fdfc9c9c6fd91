//! Plans made for some members at a time equal those made for all at once, and members that are handed out together
//! have one plan, turned.

use std::collections::BTreeSet;
use std::time::Duration;

use landeck_collectives::{
    Action, BoardStyle, Cells, Group, Operation, Plan, PlanClass, Preset, Readers, Store, Task,
    Way, each_kin, plans,
};
use landeck_testing::Watchdog;

const WAYS: [&str; 14] = [
    "flat",
    "pipeline",
    "daisy",
    "hierarchy",
    "hypercube",
    "binary-tree",
    "knomial",
    "butterfly",
    "ring",
    "circulant",
    "ring+split",
    "butterfly+split",
    "board",
    "board:told",
];

fn handed_out(task: &Task, way: &Way, group: &Group, room_bytes: u64) -> Vec<PlanClass> {
    let mut all = Vec::new();
    each_kin(task, way, group, room_bytes, |kin| all.push(kin));
    all
}

type Blocks = BTreeSet<(Store, u32)>;

/// Describes an action with its peer and its blocks mapped by `peer` and `blocks`.
fn said(action: &Action, peer: impl Fn(u32) -> u32, blocks: impl Fn(&[Cells]) -> Blocks) -> String {
    let one = |cells: &Cells| blocks(&[*cells]);
    match action {
        Action::Send { to, cells } => format!("send {} {:?}", peer(*to), blocks(cells)),
        Action::Receive { from, cells } => format!("receive {} {:?}", peer(*from), blocks(cells)),
        Action::Copy { from, into } => format!("copy {:?} {:?}", one(from), one(into)),
        Action::Combine { left, right, into } => {
            format!("combine {:?} {:?} {:?}", one(left), one(right), one(into))
        }
        Action::Deposit { cells, except } => {
            let except = except.map(|block| one(&Cells::new(cells.store, block, 1)));
            format!("deposit {:?} {except:?}", one(cells))
        }
        Action::Await => "await".into(),
        Action::Take { from, deposited, into, resolved } => {
            format!("take {} {:?} {:?} {resolved}", peer(*from), one(deposited), one(into))
        }
        Action::CombineDeposits { members, deposited, into } => {
            format!("deposits {members} {:?} {:?}", one(deposited), one(into))
        }
        Action::Resolve { deposited, block } => {
            let block = one(&Cells::new(deposited.store, *block, 1));
            format!("resolve {:?} {block:?}", one(deposited))
        }
        Action::Together { deposited } => format!("together {:?}", one(deposited)),
        Action::TakeResult { into } => format!("result {:?}", one(into)),
        Action::Tell { cells, except } => {
            let except = except.map(|block| one(&Cells::new(cells.store, block, 1)));
            format!("tell {:?} {except:?}", one(cells))
        }
        Action::Read { from, told, into, resolved } => {
            format!("read {} {:?} {:?} {resolved}", peer(*from), one(told), one(into))
        }
        Action::AwaitReaders { readers: Readers::One(reader) } => {
            format!("reader {}", peer(*reader))
        }
        Action::AwaitReaders { readers } => format!("{readers:?}"),
    }
}

fn set(cells: impl IntoIterator<Item = Cells>) -> Blocks {
    let blocks = |cells: Cells| cells.blocks().map(move |block| (cells.store, block));
    cells.into_iter().flat_map(blocks).collect()
}

fn is_turned(kin: &PlanClass, member: u32, own: &Plan) -> bool {
    let turned =
        |cells: &[Cells]| set(cells.iter().flat_map(|&cells| kin.turned_cells(cells, member)));
    let pairs = kin.plan.steps.iter().zip(&own.steps);
    kin.plan.steps.len() == own.steps.len()
        && pairs.into_iter().all(|(step, own)| {
            let expected = said(&own.action, |peer| peer, |cells| set(cells.iter().copied()));
            said(&step.action, |peer| kin.turned(peer, member), turned) == expected
                && (&step.after, step.behind) == (&own.after, own.behind)
        })
}

#[test]
fn plans_do_not_depend_on_how_many_are_made_at_once() {
    let _watchdog = Watchdog::start(Duration::from_secs(120));
    let mut together = 0;
    for (operation, name) in Operation::ALL.into_iter().flat_map(|one| WAYS.map(|name| (one, name)))
    {
        for (size, clusters) in [(1, 1), (2, 1), (7, 2), (16, 4), (23, 23), (24, 1)] {
            let way = match name {
                "board" => Way::Board(BoardStyle::Divided),
                name => name.parse::<Preset>().unwrap().way(operation),
            };
            let group = Group::divided(size, clusters).unwrap();
            let segments = if operation.has_segments() { 3 } else { 1 };
            let root = if operation.has_root() { size / 2 } else { 0 };
            let task = Task { segments, root, ..Task::new(operation) };
            let all = plans(&task, &way, &group);
            for room_bytes in [0, 5_000, 50_000] {
                let what = format!("{operation} {name} {size} in {clusters}, {room_bytes} B");
                let mut seen = BTreeSet::new();
                for kin in handed_out(&task, &way, &group, room_bytes) {
                    assert_eq!(kin.plan, all[kin.plan.member as usize], "{what}");
                    together += kin.others.len();
                    for &member in &kin.others {
                        let own = &all[member as usize];
                        assert!(
                            is_turned(&kin, member, own),
                            "{what}: {member}\n{own}\n{}",
                            kin.plan
                        );
                    }
                    let members = kin.others.iter().copied().chain([kin.plan.member]);
                    assert!(members.into_iter().all(|member| seen.insert(member)), "{what}: twice");
                }
                assert_eq!(seen.len() as u32, size, "{what}");
            }
        }
    }
    assert!(together > 9_000, "{together}");
}

#[test]
fn members_that_play_the_same_part_have_one_plan() {
    let kin = |operation, name: &str, size| {
        let way = name.parse::<Preset>().unwrap().way(operation);
        let group = Group::whole(size).unwrap();
        handed_out(&Task::new(operation), &way, &group, 0).len()
    };
    // Member 0 of a ring sends before it receives, as the rounds have it; of a circulant graph those
    // below each distance do.
    assert_eq!(kin(Operation::AllGather, "ring", 100), 2);
    assert_eq!(kin(Operation::AllReduce, "ring+split", 100), 2);
    assert_eq!(kin(Operation::Barrier, "circulant", 64), 1);
    assert!(kin(Operation::AllGather, "circulant", 64) <= 7);
    assert_eq!(
        kin(Operation::Broadcast, "flat", 100),
        100,
        "each has its own distance to the root"
    );
}
