//! The execution of steps at the board, with symbolic contents.

use super::super::fault::PlanFault;
use super::super::values::{NOTHING, Value};
use super::Run;
use crate::plan::{Action, Cells, Plan, Readers, Store};

/// A visit of the members of a host to their board: the deposits and the joint result.
pub(super) struct Board {
    /// Its members, in the order of their places there.
    members: Vec<u32>,
    /// Which visit of theirs it is.
    visit: u32,
    /// By place.
    deposits: Vec<Option<Deposit>>,
    /// By place: the member has said that it reads nothing more.
    has_read: Vec<bool>,
    /// The result that all members have made together.
    result: Option<Deposit>,
}

#[derive(Clone)]
struct Deposit {
    cells: Cells,
    /// In the order of the blocks; nothing where a place is kept.
    values: Vec<Value>,
    except: Option<u32>,
    is_resolved: bool,
    /// In a barrier, the members of which the depositor has surely heard.
    heard: Vec<bool>,
}

impl Deposit {
    fn value(&self, block: u32) -> Value {
        let at = block.checked_sub(self.cells.first);
        at.and_then(|at| self.values.get(at as usize)).copied().unwrap_or(NOTHING)
    }
}

impl Board {
    /// All visits to all boards.
    pub(super) fn of_all(plans: &[Plan], boards: &[Vec<u32>]) -> Vec<Self> {
        let visits = |members: &Vec<u32>| {
            let of_one = members.iter().map(|&member| plans[member as usize].visits());
            let members = members.clone();
            (0..of_one.max().unwrap_or(0)).map(move |visit| Self {
                deposits: vec![None; members.len()],
                has_read: vec![false; members.len()],
                members: members.clone(),
                visit,
                result: None,
            })
        };
        boards.iter().flat_map(visits).collect()
    }

    fn is_complete(&self) -> bool {
        self.deposits.iter().all(Option::is_some)
    }

    fn place(&self, member: u32) -> Option<usize> {
        self.members.binary_search(&member).ok()
    }

    fn deposit_of(&self, member: u32) -> Option<&Deposit> {
        self.deposits[self.place(member)?].as_ref()
    }
}

/// Tries a step of a member at the board; returns whether it is complete. If not, it waits for others.
pub(super) fn try_step(run: &mut Run<'_>, member: u32, step: u32) -> Result<bool, PlanFault> {
    let plan = &run.plans[member as usize];
    let action = &plan.steps[step as usize].action;
    let visits = run.boards.iter().filter(|board| board.deposit_of(member).is_some()).count();
    let is_deposit = action.comes();
    if is_deposit && visits > 0 && plan.board.is_empty() {
        return Err(PlanFault::DepositsTwice { member, step });
    }
    let visit = if is_deposit { visits } else { visits.wrapping_sub(1) };
    let of_visit = |board: &Board| board.visit as usize == visit && board.place(member).is_some();
    let Some(board) = run.boards.iter().position(of_visit) else {
        return Err(PlanFault::NoDeposit { member, step });
    };
    let here = Here { member, step, board };
    match action {
        Action::Deposit { cells, except } | Action::Tell { cells, except } => {
            here.deposit(run, *cells, *except)
        }
        Action::Await => Ok(run.boards[board].is_complete()),
        Action::Take { from, deposited, into, resolved } => {
            here.take(run, *from, *deposited, *into, *resolved)
        }
        Action::Read { from, told, into, resolved } => {
            here.take(run, *from, *told, *into, *resolved)
        }
        Action::AwaitReaders { readers } => Ok(here.await_readers(run, *readers)),
        Action::CombineDeposits { members, deposited, into } => {
            here.combine(run, *members, *deposited, *into)
        }
        Action::Resolve { deposited, block } => here.resolve(run, *deposited, *block),
        Action::Together { deposited } => here.together(run, *deposited),
        Action::TakeResult { into } => here.take_result(run, *into),
        _ => Ok(true),
    }
}

/// In a barrier, the members of which a member has surely heard when its step at the board is complete.
pub(super) fn said(run: &Run<'_>, member: u32, step: u32) -> Vec<bool> {
    let mut heard = vec![false; run.shape.size as usize];
    let at = |board: &&Board| board.deposit_of(member).is_some();
    let Some(board) = run.boards.iter().filter(at).max_by_key(|board| board.visit) else {
        return heard;
    };
    let of = |from: u32| board.deposit_of(from).map_or(&[][..], |deposit| &deposit.heard);
    match &run.plans[member as usize].steps[step as usize].action {
        Action::Await => board.members.iter().for_each(|&from| super::unite(&mut heard, of(from))),
        Action::Take { from, .. } => super::unite(&mut heard, of(*from)),
        _ => {}
    }
    heard
}

/// A member at a step.
#[derive(Clone, Copy)]
struct Here {
    member: u32,
    step: u32,
    /// The number of the visit.
    board: usize,
}

impl Here {
    fn deposit(
        self,
        run: &mut Run<'_>,
        cells: Cells,
        except: Option<u32>,
    ) -> Result<bool, PlanFault> {
        let mut values = Vec::new();
        for block in cells.blocks() {
            if except == Some(block) {
                values.push(NOTHING);
            } else {
                let single = Cells::new(cells.store, block, 1);
                values.extend(run.read(self.member, self.step, single)?);
            }
        }
        let heard = run.said(self.member, self.step);
        let deposit = Deposit { cells, values, except, is_resolved: false, heard };
        let board = &mut run.boards[self.board];
        if let Some(place) = board.place(self.member) {
            board.deposits[place] = Some(deposit);
        }
        Ok(true)
    }

    fn take(
        self,
        run: &mut Run<'_>,
        from: u32,
        deposited: Cells,
        into: Cells,
        resolved: bool,
    ) -> Result<bool, PlanFault> {
        let board = &run.boards[self.board];
        if board.place(from).is_none() {
            return Err(self.not_offered(from, into.first));
        }
        let Some(deposit) = board.deposit_of(from).cloned() else { return Ok(false) };
        self.agree(from, &deposit, deposited)?;
        if resolved && !deposit.is_resolved && into.blocks().all(|at| deposit.except == Some(at)) {
            return Ok(false);
        }
        let mut values = Vec::new();
        for block in into.blocks() {
            let is_kept = deposit.except == Some(block);
            if is_kept != resolved || deposit.value(block) == NOTHING {
                return Err(self.not_offered(from, block));
            }
            values.push(deposit.value(block));
        }
        run.write(self.member, into, values);
        Ok(true)
    }

    fn await_readers(self, run: &mut Run<'_>, readers: Readers) -> bool {
        let board = &mut run.boards[self.board];
        if let Some(place) = board.place(self.member) {
            board.has_read[place] = true;
        }
        let is_over = |(&member, &has_read): (&u32, &bool)| has_read || !readers.contains(member);
        board.members.iter().zip(&board.has_read).all(is_over)
    }

    fn combine(
        self,
        run: &mut Run<'_>,
        members: u32,
        deposited: Cells,
        into: Cells,
    ) -> Result<bool, PlanFault> {
        let board = &run.boards[self.board];
        let Some(first) = board.members.get(..members as usize) else {
            return Err(self.not_offered(members, into.first));
        };
        let is_there = |&other: &u32| other == self.member || board.deposit_of(other).is_some();
        if !first.iter().all(is_there) {
            return Ok(false);
        }
        let is_among = first.contains(&self.member);
        let mut values = Vec::new();
        for block in into.blocks() {
            let own = is_among.then_some(Cells::new(deposited.store, block, 1));
            values.push(self.combined(run, members, deposited, own, block)?);
        }
        run.write(self.member, into, values);
        Ok(true)
    }

    fn resolve(self, run: &mut Run<'_>, deposited: Cells, block: u32) -> Result<bool, PlanFault> {
        if !run.boards[self.board].is_complete() {
            return Ok(false);
        }
        let own = Some(Cells::new(deposited.store, block, 1));
        let everybody = run.boards[self.board].members.len() as u32;
        let value = self.combined(run, everybody, deposited, own, block)?;
        let member = self.member;
        let board = &mut run.boards[self.board];
        let place = board.place(member);
        match place.and_then(|place| board.deposits[place].as_mut()) {
            Some(deposit)
                if deposit.except == Some(block) && deposited.blocks().contains(&block) =>
            {
                deposit.values[(block - deposit.cells.first) as usize] = value;
                deposit.is_resolved = true;
            }
            _ => return Err(self.not_offered(member, block)),
        }
        run.write(member, Cells::new(Store::Output, block, 1), vec![value]);
        Ok(true)
    }

    fn together(self, run: &mut Run<'_>, deposited: Cells) -> Result<bool, PlanFault> {
        if !run.boards[self.board].is_complete() {
            return Ok(false);
        }
        if run.boards[self.board].result.is_none() {
            let everybody = run.boards[self.board].members.len() as u32;
            let mut values = Vec::new();
            for block in deposited.blocks() {
                values.push(self.combined(run, everybody, deposited, None, block)?);
            }
            let (cells, except) = (deposited, None);
            let heard = Vec::new();
            let result = Deposit { cells, values, except, is_resolved: true, heard };
            run.boards[self.board].result = Some(result);
        }
        Ok(true)
    }

    fn take_result(self, run: &mut Run<'_>, into: Cells) -> Result<bool, PlanFault> {
        let Some(result) = run.boards[self.board].result.clone() else { return Ok(false) };
        let mut values = Vec::new();
        for block in into.blocks() {
            if result.value(block) == NOTHING {
                return Err(self.not_offered(self.member, block));
            }
            values.push(result.value(block));
        }
        run.write(self.member, into, values);
        Ok(true)
    }

    /// A block of the deposits of the first `members` members, combined. This member's own is read
    /// from `own`, or from its deposit.
    fn combined(
        self,
        run: &mut Run<'_>,
        members: u32,
        deposited: Cells,
        own: Option<Cells>,
        block: u32,
    ) -> Result<Value, PlanFault> {
        let mut all = Vec::new();
        for place in 0..members as usize {
            let other = run.boards[self.board].members[place];
            match (own, &run.boards[self.board].deposits[place]) {
                (Some(own), _) if other == self.member => {
                    all.extend(run.read(self.member, self.step, own)?);
                }
                (_, Some(deposit)) => {
                    self.agree(other, deposit, deposited)?;
                    if deposit.value(block) == NOTHING {
                        return Err(self.not_offered(other, block));
                    }
                    all.push(deposit.value(block));
                }
                (_, None) => return Err(self.not_offered(other, block)),
            }
        }
        let Self { member, step, .. } = self;
        run.values
            .canonical(0..members, &|other| all[other as usize])
            .map_err(|contributor| PlanFault::CountedTwice { member, step, contributor })
    }

    fn agree(self, from: u32, deposit: &Deposit, awaited: Cells) -> Result<(), PlanFault> {
        if deposit.cells.blocks() == awaited.blocks() {
            return Ok(());
        }
        let Self { member, step, .. } = self;
        Err(PlanFault::OtherDeposit { member, step, from, deposited: deposit.cells, awaited })
    }

    fn not_offered(self, from: u32, block: u32) -> PlanFault {
        PlanFault::NotOffered { member: self.member, step: self.step, from, block }
    }
}
