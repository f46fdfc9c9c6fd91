//! Operations over the board of a host: deposit, look, go on.
//!
//! No member sends anything. A member deposits its data where all can read them and goes on, unless it needs data of
//! others; those it takes from where they lie. Or it only tells where its data lie in its own memory. Then others read
//! them there, and the member leaves when they have.

use std::fmt;

use super::{Task, input, output};
use crate::operation::Operation;
use crate::plan::{Action, Cells, Readers, Store};
use crate::program::Program;

/// The members that combine, in operations that reduce, and the place of the data, in the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoardStyle {
    /// Each member that needs a result makes it for itself.
    Each,
    /// Allreduce only: each member makes one part for all, as many parts as members.
    Divided,
    /// Allreduce only: each member present makes the next piece for all; of short data, the last to arrive makes the
    /// only one.
    Together,
    /// Each member tells where its data lie, and others read them there, in one copy, or combine what they read.
    Told,
}

impl fmt::Display for BoardStyle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Each => "each",
            Self::Divided => "divided",
            Self::Together => "together",
            Self::Told => "told",
        })
    }
}

impl BoardStyle {
    /// The operations in which members can tell where their data lie: those with data, but scans, in which a member would
    /// wait for all that stand behind it.
    pub const TELLING: [Operation; 8] = [
        Operation::Broadcast,
        Operation::Gather,
        Operation::Scatter,
        Operation::AllGather,
        Operation::AllToAll,
        Operation::Reduce,
        Operation::AllReduce,
        Operation::ReduceScatter,
    ];

    /// Whether data are divided in an operation: each member makes a part of the result for all.
    #[must_use]
    pub const fn divides(self, operation: Operation) -> bool {
        matches!((self, operation), (Self::Divided | Self::Told, Operation::AllReduce))
    }

    /// Whether members tell where their data lie in an operation.
    pub fn tells(self, operation: Operation) -> bool {
        matches!(self, Self::Told) && Self::TELLING.contains(&operation)
    }
}

pub(super) fn plan(program: &mut Program, task: &Task, style: BoardStyle) {
    let tells = style.tells(task.operation);
    for member in 0..program.size() {
        if program.is_kept(member) {
            MemberPlace { program, task, member, tells }.plan(style);
        }
    }
}

/// One member at the board.
struct MemberPlace<'a> {
    program: &'a mut Program,
    task: &'a Task,
    member: u32,
    /// Members tell where their data lie.
    tells: bool,
}

impl MemberPlace<'_> {
    fn plan(&mut self, style: BoardStyle) {
        match self.task.operation {
            Operation::Barrier => {
                self.deposit(NOTHING, None);
                self.add(Action::Await);
            }
            Operation::Broadcast => self.broadcast(),
            Operation::Gather => self.gather(),
            Operation::Scatter => self.scatter(),
            Operation::Reduce => self.reduce(),
            Operation::AllGather => self.all_gather(),
            Operation::AllReduce => self.all_reduce(style),
            Operation::AllToAll => self.all_to_all(),
            Operation::ReduceScatter => self.reduce_scatter(),
            Operation::Scan => self.scan(self.member + 1),
            Operation::ExclusiveScan => self.scan(self.member),
        }
    }

    fn broadcast(&mut self) {
        let data = Cells::new(Store::Output, 0, self.task.segments);
        if self.is_root() {
            self.deposit(data, None);
            self.leave(Readers::Others);
        } else {
            self.deposit(NOTHING, None);
            self.take(self.task.root, data, data);
            self.leave(Readers::Nobody);
        }
    }

    fn gather(&mut self) {
        if !self.is_root() {
            self.deposit(input(self.member), None);
            return self.leave(Readers::One(self.task.root));
        }
        self.deposit(NOTHING, None);
        self.keep_own(self.member);
        for from in self.others() {
            self.take(from, input(from), output(from));
        }
        self.leave(Readers::Nobody);
    }

    fn scatter(&mut self) {
        let (deposited, except) = self.for_others(0, self.task.root);
        if self.is_root() {
            self.deposit(deposited, except);
            self.keep_own(self.member);
            self.leave(Readers::Others);
        } else {
            self.deposit(NOTHING, None);
            self.take(self.task.root, deposited, output(self.member));
            self.leave(Readers::Nobody);
        }
    }

    fn reduce(&mut self) {
        let data = Cells::new(Store::Input, 0, self.task.segments);
        if self.is_root() {
            self.deposit(NOTHING, None);
            self.combine(self.size(), data.at(self.own_store()), data.at(Store::Output));
            self.leave(Readers::Nobody);
        } else {
            self.deposit(data, None);
            self.leave(Readers::One(self.task.root));
        }
    }

    fn all_gather(&mut self) {
        let own = if self.task.in_place { output(self.member) } else { input(self.member) };
        self.deposit(own, None);
        self.keep_own(self.member);
        for from in self.others() {
            self.take(from, output(from), output(from));
        }
        self.leave(Readers::Others);
    }

    fn all_reduce(&mut self, style: BoardStyle) {
        let data = Cells::new(self.own_store(), 0, self.task.segments);
        let result = data.at(Store::Output);
        match style {
            BoardStyle::Each => {
                self.deposit(data, None);
                self.combine(self.size(), data, result);
            }
            BoardStyle::Divided | BoardStyle::Told => self.all_reduce_divided(),
            BoardStyle::Together => {
                self.deposit(data, None);
                self.add(Action::Together { deposited: data });
                self.add(Action::TakeResult { into: result });
            }
        }
    }

    fn all_reduce_divided(&mut self) {
        let parts = Cells::new(self.own_store(), 0, self.size());
        self.deposit(parts, Some(self.member));
        self.add(Action::Resolve { deposited: parts, block: self.member });
        for from in self.others() {
            self.take_part(from, parts, output(from), true);
        }
        self.leave(Readers::Others);
    }

    fn all_to_all(&mut self) {
        let size = self.size();
        let own = self.member * size + self.member;
        let (deposited, except) = self.for_others(self.member * size, self.member);
        self.deposit(deposited, except);
        self.program.copy(self.member, input(own), output(own)); // never in place
        for from in self.others() {
            let (deposited, _) = self.for_others(from * size, from);
            self.take(from, deposited, output(from * size + self.member));
        }
        self.leave(Readers::Others);
    }

    /// Returns the blocks that a member deposits of a row with one for each: all but its own, or the only other one.
    fn for_others(&self, row: u32, member: u32) -> (Cells, Option<u32>) {
        match self.size() {
            2 => (input(row + 1 - member), None),
            size => (Cells::new(Store::Input, row, size), Some(row + member)),
        }
    }

    fn reduce_scatter(&mut self) {
        let parts = Cells::new(self.own_store(), 0, self.size());
        self.deposit(parts, Some(self.member));
        self.combine(self.size(), parts, output(self.member));
        self.leave(Readers::Others);
    }

    fn scan(&mut self, members: u32) {
        let data = Cells::new(self.own_store(), 0, self.task.segments);
        self.deposit(data, None);
        if members > 0 {
            self.combine(members, data, data.at(Store::Output));
        }
    }

    fn size(&self) -> u32 {
        self.program.size()
    }

    fn is_root(&self) -> bool {
        self.member == self.task.root
    }

    fn own_store(&self) -> Store {
        if self.task.in_place { Store::Output } else { Store::Input }
    }

    /// The others, the next one first: so not all begin with the same.
    fn others(&self) -> Vec<u32> {
        let size = self.size();
        (1..size).map(|by| (self.member + by) % size).collect()
    }

    /// Deposits blocks, or tells where they lie.
    fn deposit(&mut self, cells: Cells, except: Option<u32>) {
        self.add(match self.tells {
            true => Action::Tell { cells, except },
            false => Action::Deposit { cells, except },
        });
    }

    /// A member's own block goes straight from its input to its output.
    fn keep_own(&mut self, block: u32) {
        if !self.task.in_place {
            self.program.copy(self.member, input(block), output(block));
        }
    }

    /// Takes blocks from a deposit, or reads them where they lie.
    fn take(&mut self, from: u32, deposited: Cells, into: Cells) {
        self.take_part(from, deposited, into, false);
    }

    /// Takes blocks of others, or results that they have made of them.
    fn take_part(&mut self, from: u32, deposited: Cells, into: Cells, resolved: bool) {
        self.add(match self.tells {
            true => Action::Read { from, told: deposited, into, resolved },
            false => Action::Take { from, deposited, into, resolved },
        });
    }

    /// Ends this member's part: deposited data stay by themselves, told ones until these members have read them.
    fn leave(&mut self, readers: Readers) {
        if self.tells {
            self.add(Action::AwaitReaders { readers });
        }
    }

    fn combine(&mut self, members: u32, deposited: Cells, into: Cells) {
        self.add(Action::CombineDeposits { members, deposited, into });
    }

    fn add(&mut self, action: Action) {
        self.program.local(self.member, action);
    }
}

/// No blocks.
const NOTHING: Cells = Cells::new(Store::Input, 0, 0);
