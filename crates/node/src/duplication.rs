//! Non-blocking duplication of worlds and bridges.

use landeck_collectives::Making;
use landeck_memory::Buffer;

use crate::error::{ErrorKind, Result};
use crate::groups::bridge::Bridge;
use crate::groups::{Color, RECORD_WORDS, Record};
use crate::raw::Operation;
use crate::world::{Status, World};
use landeck_engine::{OperationId, Reservation};

/// A duplicate of a world whose creation is in progress.
pub struct Duplication {
    /// The world that is duplicated.
    like: World,
    /// The world whose members create the duplicate together: the same one, or one with more members.
    world: World,
    /// The memory reserved for the new world; `None` once it was used.
    setting: Option<Reservation>,
    /// The contribution of this process, kept until all members have received it.
    record: Vec<u64>,
    records: Vec<u64>,
    going: Option<OperationId>,
}

impl Duplication {
    /// Returns the operation that is complete when all members have begun to create the world. A
    /// caller that only waited for it calls [`Duplication::finish`], which completes it; a caller
    /// that completed it calls [`Duplication::finish_waited`].
    pub fn operation(&self) -> Operation {
        match self.going {
            Some(id) => Operation::Pending(id),
            None => Operation::Complete(Status::of_collective(self.world.rank())),
        }
    }

    /// Returns the new world. The caller has completed [`Duplication::operation`] before.
    ///
    /// # Errors
    /// As [`World::split`].
    pub fn finish_waited(mut self) -> Result<World> {
        self.going = None;
        self.finish()
    }

    /// Returns the new world; waits until all members have begun to create it.
    ///
    /// # Errors
    /// As [`World::split`].
    pub fn finish(mut self) -> Result<World> {
        let world = self.world.clone();
        world.call("duplicate", || self.make())
    }

    fn make(&mut self) -> Result<World> {
        let Some(setting) = self.setting.take() else { return Err(ErrorKind::RequestGone.into()) };
        if let Some(id) = self.going.take()
            && let Err(error) = self.world.shared.wait_or_abandon(id, None)
        {
            self.world.quarantine(setting)?;
            return Err(self.world.error(error, None));
        }
        let shape = self.world.shared.engine.enter()?.shape(self.like.context);
        let made = self.world.divide(&self.records, shape, setting)?;
        let mut world = made.ok_or(ErrorKind::NotAMember)?;
        world.options = self.like.options.clone();
        Ok(world)
    }
}

impl Drop for Duplication {
    fn drop(&mut self) {
        let Ok(mut engine) = self.world.shared.engine.enter() else {
            // The operation cannot be given up from here: its memory stays for good.
            std::mem::forget(std::mem::take(&mut self.record));
            std::mem::forget(std::mem::take(&mut self.records));
            return;
        };
        if let Some(id) = self.going.take() {
            engine.abandon(id);
        }
        if let Some(setting) = self.setting.take() {
            engine.quarantine(self.world.shared.slot, setting);
        }
    }
}

impl World {
    /// Begins to create a world of the same members. All members call it, in the same order
    /// relative to other operations of this world.
    ///
    /// # Errors
    /// As [`World::split`].
    pub fn start_duplicate(&self) -> Result<Duplication> {
        self.call("duplicate", || self.start_duplicate_of(self, Some(0)))
    }

    /// Begins to create a world of the members of another one, which are among the members of this one. All members of
    /// this world call it; those of one color give the same world.
    pub(crate) fn start_duplicate_of(&self, like: &World, color: Color) -> Result<Duplication> {
        self.is_ready_to_make()?;
        let setting = self.set_aside()?;
        let (offer, place) = (setting.offer, self.own_place()?);
        let record = Record { color, key: 0, offer, place }.encode().to_vec();
        let records = vec![0; self.size() * RECORD_WORDS];
        let mut made = Duplication {
            like: like.clone(),
            world: self.clone(),
            setting: Some(setting),
            record,
            records,
            going: None,
        };
        // SAFETY: the memory is this operation's own: nobody gets at it before the operation is
        // over, and it goes only after that, or never.
        let (input, output) =
            unsafe { (Buffer::of(&made.record), Buffer::of_mut(&mut made.records)) };
        let making = self.making(Making::StartedDuplicate);
        let asked = making.caller::<u64>().all_gather(input, output);
        made.going = self.start(asked)?;
        self.shared.goes_on();
        Ok(made)
    }
}

/// A duplicate of a bridge whose creation is in progress.
pub struct BridgeDuplication {
    local: Duplication,
    both: Duplication,
    between: Duplication,
}

impl BridgeDuplication {
    /// Returns the operation that is complete when all members of the own group's new world have begun to create it. The
    /// caller completes it, and calls [`BridgeDuplication::finish_waited`].
    pub fn operation(&self) -> Operation {
        self.local.operation()
    }

    /// Returns the new bridge. The caller has completed [`BridgeDuplication::operation`] before.
    ///
    /// # Errors
    /// As [`Bridge::duplicate`].
    pub fn finish_waited(self) -> Result<Bridge> {
        let local = self.local.finish_waited()?;
        let (both, between) = (self.both.finish()?, self.between.finish()?);
        Bridge::over(local, both, &between)
    }
}

impl Bridge {
    /// Begins to create a new bridge between the same groups. All members of both groups call it, in the same order
    /// relative to other operations of both.
    ///
    /// # Errors
    /// As [`Bridge::duplicate`].
    pub fn start_duplicate(&self) -> Result<BridgeDuplication> {
        let both = self.both();
        both.call("duplicate", || {
            let local = both.start_duplicate_of(self.local(), Some(self.side()));
            // The other members wait for these, whatever has failed.
            let [both, between] =
                [both, both].map(|world| world.start_duplicate_of(world, Some(0)));
            Ok(BridgeDuplication { local: local?, both: both?, between: between? })
        })
    }
}
