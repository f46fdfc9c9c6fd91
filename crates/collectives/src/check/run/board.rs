//! The execution of steps at the board, with symbolic contents.

use super::super::fault::Fault;
use super::super::values::{NOTHING, Value};
use super::Run;
use crate::plan::{Action, Cells, Store};

/// The board: the deposits and the joint result.
pub(super) struct Board {
    deposits: Vec<Option<Deposit>>,
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
}

impl Deposit {
    fn value(&self, block: u32) -> Value {
        let at = block.checked_sub(self.cells.first);
        at.and_then(|at| self.values.get(at as usize)).copied().unwrap_or(NOTHING)
    }
}

impl Board {
    pub(super) fn new(size: u32) -> Self {
        Self { deposits: vec![None; size as usize], result: None }
    }

    fn is_complete(&self) -> bool {
        self.deposits.iter().all(Option::is_some)
    }
}

/// Tries a step of a member at the board; returns whether it is complete. If not, it waits for others.
pub(super) fn try_step(run: &mut Run<'_>, member: u32, step: u32) -> Result<bool, Fault> {
    let plan = &run.plans[member as usize];
    let action = &plan.steps[step as usize].action;
    let here = Here { member, step };
    let has_come = run.board.deposits[member as usize].is_some();
    match action {
        Action::Deposit { .. } if has_come => Err(Fault::DepositsTwice { member, step }),
        Action::Deposit { cells, except } => here.deposit(run, *cells, *except),
        _ if !has_come => Err(Fault::NoDeposit { member, step }),
        Action::Await => Ok(run.board.is_complete()),
        Action::Take { from, deposited, into, resolved } => {
            here.take(run, *from, *deposited, *into, *resolved)
        }
        Action::CombineDeposits { members, deposited, into } => {
            here.combine(run, *members, *deposited, *into)
        }
        Action::Resolve { deposited, block } => here.resolve(run, *deposited, *block),
        Action::Together { deposited } => here.together(run, *deposited),
        Action::TakeResult { into } => here.take_result(run, *into),
        _ => Ok(true),
    }
}

/// A member at a step.
#[derive(Clone, Copy)]
struct Here {
    member: u32,
    step: u32,
}

impl Here {
    fn deposit(self, run: &mut Run<'_>, cells: Cells, except: Option<u32>) -> Result<bool, Fault> {
        let mut values = Vec::new();
        for block in cells.blocks() {
            if except == Some(block) {
                values.push(NOTHING);
            } else {
                let single = Cells::new(cells.store, block, 1);
                values.extend(run.read(self.member, self.step, single)?);
            }
        }
        let deposit = Deposit { cells, values, except, is_resolved: false };
        run.board.deposits[self.member as usize] = Some(deposit);
        Ok(true)
    }

    fn take(
        self,
        run: &mut Run<'_>,
        from: u32,
        deposited: Cells,
        into: Cells,
        resolved: bool,
    ) -> Result<bool, Fault> {
        let Some(deposit) = run.board.deposits[from as usize].clone() else { return Ok(false) };
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

    fn combine(
        self,
        run: &mut Run<'_>,
        members: u32,
        deposited: Cells,
        into: Cells,
    ) -> Result<bool, Fault> {
        let others = (0..members).filter(|&other| other != self.member);
        if !others.into_iter().all(|other| run.board.deposits[other as usize].is_some()) {
            return Ok(false);
        }
        let mut values = Vec::new();
        for block in into.blocks() {
            let own = (self.member < members).then_some(Cells::new(deposited.store, block, 1));
            values.push(self.combined(run, members, deposited, own, block)?);
        }
        run.write(self.member, into, values);
        Ok(true)
    }

    fn resolve(self, run: &mut Run<'_>, deposited: Cells, block: u32) -> Result<bool, Fault> {
        if !run.board.is_complete() {
            return Ok(false);
        }
        let own = Some(Cells::new(deposited.store, block, 1));
        let value = self.combined(run, run.shape.size, deposited, own, block)?;
        let member = self.member;
        match run.board.deposits[member as usize].as_mut() {
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

    fn together(self, run: &mut Run<'_>, deposited: Cells) -> Result<bool, Fault> {
        if !run.board.is_complete() {
            return Ok(false);
        }
        if run.board.result.is_none() {
            let mut values = Vec::new();
            for block in deposited.blocks() {
                values.push(self.combined(run, run.shape.size, deposited, None, block)?);
            }
            let (cells, except) = (deposited, None);
            run.board.result = Some(Deposit { cells, values, except, is_resolved: true });
        }
        Ok(true)
    }

    fn take_result(self, run: &mut Run<'_>, into: Cells) -> Result<bool, Fault> {
        let Some(result) = run.board.result.clone() else { return Ok(false) };
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

    /// A block of the deposits of the members below `members`, combined. This member's own is read
    /// from `own`, or from its deposit.
    fn combined(
        self,
        run: &mut Run<'_>,
        members: u32,
        deposited: Cells,
        own: Option<Cells>,
        block: u32,
    ) -> Result<Value, Fault> {
        let mut all = Vec::new();
        for other in 0..members {
            match (own, &run.board.deposits[other as usize]) {
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
        let Self { member, step } = self;
        run.values
            .canonical(0..members, &|other| all[other as usize])
            .map_err(|contributor| Fault::CountedTwice { member, step, contributor })
    }

    fn agree(self, from: u32, deposit: &Deposit, awaited: Cells) -> Result<(), Fault> {
        if deposit.cells.blocks() == awaited.blocks() {
            return Ok(());
        }
        let Self { member, step } = self;
        Err(Fault::OtherDeposit { member, step, from, deposited: deposit.cells, awaited })
    }

    fn not_offered(self, from: u32, block: u32) -> Fault {
        Fault::NotOffered { member: self.member, step: self.step, from, block }
    }
}
