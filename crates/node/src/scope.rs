//! Operations that go on while the program does something else.
//!
//! A scope borrows the memory of its operations until it ends, as `std::thread::scope` does, so a
//! request that is forgotten, or a panic, leaves nobody writing to memory that is gone.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use landeck_kernel::{Area, Started};
use landeck_layout::Layout;
use landeck_memory::{Buffer, Operation, Plain, WaitRecord};
use landeck_wire::Tag;

use crate::error::Result;
use crate::world::{Source, Status, TagFilter, World};
use landeck_engine::{Engine, OperationId, WaitError};

/// The operations of one [`World::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    world: &'env World,
    open: Open,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The operations that are not over.
type Open = Rc<RefCell<OpenOperations>>;

/// Gives up what is left when the scope ends, however it ends: the memory is about to go.
pub(crate) struct Guard<'env> {
    world: &'env World,
    open: Open,
}

/// An operation that goes on. One that is dropped goes on too, until the end of its scope.
#[must_use = "an operation that nobody waits for is waited for at the end of the scope"]
pub struct Request<'scope> {
    world: &'scope World,
    open: &'scope RefCell<OpenOperations>,
    state: State,
    /// Where it stands among the open operations, while it is pending.
    place: usize,
}

#[derive(Clone, Copy)]
enum State {
    Complete(Status),
    Pending(OperationId),
}

impl World {
    /// Runs operations that go on while the program does something else: they borrow memory from
    /// outside the scope, and all are over when the scope ends.
    ///
    /// ```no_run
    /// # fn main() -> landeck::Result<()> {
    /// # let world = landeck::Job::join()?.world();
    /// # let (left, right) = (0, 0);
    /// # let (row, mut halo) = ([0.0f64; 8], [0.0f64; 8]);
    /// use landeck::Tag;
    /// world.scope(|scope| {
    ///     let receive = scope.receive_into(&mut halo, left, Tag(1))?;
    ///     scope.send(&row, right, Tag(1))?;
    ///     // ... compute what needs no halo ...
    ///     receive.wait()
    /// })?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of the closure; then those of the operations that were left to the end of the scope.
    pub fn scope<'env, T>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<T>,
    ) -> Result<T> {
        let (_guard, scope) = Scope::new(self);
        let result = body(&scope)?;
        scope.finish()?;
        Ok(result)
    }

    /// Sends and receives at once, so that two processes may do it to each other.
    ///
    /// # Errors
    /// As [`World::send`] and [`World::receive_into`].
    pub fn send_receive<S: Plain, R: Plain>(
        &self,
        values: &[S],
        (to, send_tag): (usize, impl Into<Tag>),
        into: &mut [R],
        (from, receive_tag): (impl Into<Source>, impl Into<TagFilter>),
    ) -> Result<Status> {
        self.call("send_receive", || {
            self.scope(|scope| {
                let receive = scope.receive_into(into, from, receive_tag)?;
                let send = scope.send(values, to, send_tag)?;
                let status = receive.wait()?;
                send.wait()?;
                Ok(status)
            })
        })
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn new(world: &'env World) -> (Guard<'env>, Self) {
        let open = Open::default();
        let guard = Guard { world, open: open.clone() };
        (guard, Self { world, open, scope: PhantomData, env: PhantomData })
    }

    /// Begins to send values; they may not be changed before the scope ends.
    ///
    /// # Errors
    /// As [`World::send`].
    pub fn send<T: Plain>(
        &'scope self,
        values: &'env [T],
        to: usize,
        tag: impl Into<Tag>,
    ) -> Result<Request<'scope>> {
        // SAFETY: the values are borrowed for `'env`, and the scope ends before `'env` does: its
        // end waits for the request or gives it up.
        let buffer = unsafe { Buffer::of(values) };
        self.send_area(Area::contiguous(buffer), to, tag.into())
    }

    /// Begins to send values that lie as a layout says; as [`World::send_layout`].
    ///
    /// # Errors
    /// As [`World::send_layout`].
    pub fn send_layout<T: Plain>(
        &'scope self,
        values: &'env [T],
        layout: &Layout,
        count: u64,
        to: usize,
        tag: impl Into<Tag>,
    ) -> Result<Request<'scope>> {
        // SAFETY: as in `send`.
        let buffer = unsafe { Buffer::of(values) };
        self.send_area(self.world.area(buffer, layout, count)?, to, tag.into())
    }

    fn send_area(&'scope self, area: Area, to: usize, tag: Tag) -> Result<Request<'scope>> {
        let failed = |error| self.world.in_call("send", error);
        let peer = self.world.peer(to).map_err(failed)?;
        let mut engine = self.world.shared.kernel.enter().map_err(|error| failed(error.into()))?;
        match engine.send(peer, self.world.context, tag.0, area) {
            Ok(started) => Ok(self.started(started)),
            Err(failure) => Err(failed(self.world.error(WaitError::Failure(failure), None))),
        }
    }

    /// Begins to receive into values.
    ///
    /// # Errors
    /// As [`World::receive_into`].
    pub fn receive_into<T: Plain>(
        &'scope self,
        values: &'env mut [T],
        from: impl Into<Source>,
        tag: impl Into<TagFilter>,
    ) -> Result<Request<'scope>> {
        // SAFETY: the values are borrowed for `'env`, and the scope ends before `'env` does.
        let buffer = unsafe { Buffer::of_mut(values) };
        self.receive_area(Area::contiguous(buffer), from.into(), tag.into())
    }

    /// Begins to receive into values that lie as a layout says; as [`World::receive_layout`].
    ///
    /// # Errors
    /// As [`World::receive_layout`].
    pub fn receive_layout<T: Plain>(
        &'scope self,
        values: &'env mut [T],
        layout: &Layout,
        count: u64,
        from: impl Into<Source>,
        tag: impl Into<TagFilter>,
    ) -> Result<Request<'scope>> {
        // SAFETY: as in `receive_into`.
        let buffer = unsafe { Buffer::of_mut(values) };
        self.receive_area(self.world.area(buffer, layout, count)?, from.into(), tag.into())
    }

    fn receive_area(
        &'scope self,
        area: Area,
        from: Source,
        tag: TagFilter,
    ) -> Result<Request<'scope>> {
        let failed = |error| self.world.in_call("receive", error);
        let wanted = self.world.wanted(from, tag).map_err(failed)?;
        let begun = self.world.shared.begin_receive(wanted, area);
        Ok(self.started(begun.map_err(|error| failed(error.into()))?))
    }

    #[inline]
    fn started(&'scope self, started: Started) -> Request<'scope> {
        self.request(match started {
            Started::Complete(status) => State::Complete(self.world.status_of(&status)),
            Started::Pending(id) => State::Pending(id.into()),
        })
    }

    pub(crate) fn world(&self) -> &'env World {
        self.world
    }

    /// A collective operation that was begun, or is over already.
    pub(crate) fn collective(&'scope self, started: Option<OperationId>) -> Request<'scope> {
        self.request(match started {
            Some(id) => State::Pending(id),
            None => State::Complete(Status::of_collective(self.world.rank())),
        })
    }

    fn request(&'scope self, state: State) -> Request<'scope> {
        let place = match state {
            State::Pending(id) => {
                self.world.shared.goes_on();
                self.open.borrow_mut().add(id)
            }
            State::Complete(_) => 0,
        };
        Request { world: self.world, open: &self.open, state, place }
    }

    /// Waits for all operations of the scope that nobody has waited for.
    ///
    /// # Errors
    /// The first error of them.
    pub fn wait_all(&'scope self) -> Result<()> {
        self.finish()
    }

    pub(crate) fn finish(&self) -> Result<()> {
        let mut first = None;
        while let Some(id) = self.open.borrow_mut().take_next() {
            if let Err(error) = self.world.wait(id) {
                first.get_or_insert_with(|| self.world.in_call("wait", error));
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// Waits until one of the requests is complete; takes it out and returns its place and what
    /// is known of its message. None when there are no requests.
    ///
    /// # Errors
    /// As [`Request::wait`].
    pub fn wait_any(
        &'scope self,
        requests: &mut Vec<Request<'scope>>,
    ) -> Result<Option<(usize, Status)>> {
        if requests.is_empty() {
            return Ok(None);
        }
        let record = WaitRecord { operation: Operation::Wait, ..WaitRecord::default() };
        let ready = |kernel: &mut Engine| {
            requests.iter().position(|request| match request.state {
                State::Complete(_) => true,
                State::Pending(id) => kernel.is_done(id) || kernel.verdict(id).is_some(),
            })
        };
        let any_of = |kernel: &Engine| {
            kernel.any_of(requests.iter().filter_map(|request| match request.state {
                State::Complete(_) => None,
                State::Pending(id) => Some(id),
            }))
        };
        let first = self.world.shared.wait_until_any(&record, ready, &any_of);
        let place =
            first.map_err(|error| self.world.in_call("wait", self.world.error(error, None)))?;
        let status = requests.remove(place).wait()?;
        Ok(Some((place, status)))
    }

    /// Takes the requests out that are complete, waiting until there is at least one; returns
    /// their places before that and what is known of their messages.
    ///
    /// # Errors
    /// As [`Request::wait`].
    pub fn wait_some(
        &'scope self,
        requests: &mut Vec<Request<'scope>>,
    ) -> Result<Vec<(usize, Status)>> {
        let Some((first, status)) = self.wait_any(requests)? else { return Ok(Vec::new()) };
        let mut done = vec![(first, status)];
        let mut place = first;
        while place < requests.len() {
            match requests[place].test()? {
                Some(status) => {
                    drop(requests.remove(place));
                    done.push((place + done.len(), status));
                }
                None => place += 1,
            }
        }
        Ok(done)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if let Ok(mut kernel) = self.world.shared.kernel.enter() {
            while let Some(id) = self.open.borrow_mut().take_next() {
                kernel.abandon(id);
            }
        }
    }
}

impl Request<'_> {
    /// Waits until the operation is complete.
    ///
    /// # Errors
    /// As [`World::send`] or [`World::receive_into`]. After [`crate::ErrorKind::PeerFailed`] of a receive
    /// from anybody the receive is given up.
    pub fn wait(self) -> Result<Status> {
        let id = match self.state {
            State::Complete(status) => return Ok(status),
            State::Pending(id) => id,
        };
        self.close(id);
        self.world.call("wait", || self.world.wait(id))
    }

    /// Looks whether the operation is complete, and makes progress.
    ///
    /// # Errors
    /// As [`Request::wait`].
    pub fn test(&mut self) -> Result<Option<Status>> {
        let id = match self.state {
            State::Complete(status) => return Ok(Some(status)),
            State::Pending(id) => id,
        };
        match self.world.shared.test(id) {
            Ok(None) => Ok(None),
            Ok(Some(completion)) => {
                self.close(id);
                let status = self.world.status(&completion)?;
                self.state = State::Complete(status);
                Ok(Some(status))
            }
            Err(error) => {
                self.close(id);
                Err(self.world.in_call("test", self.world.error(error, None)))
            }
        }
    }

    /// Cancels the operation if it has not begun: a receive without a message, a send without
    /// room. It completes in either case; [`Status::is_cancelled`] says which.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Thread`].
    pub fn cancel(&mut self) -> Result<()> {
        if let State::Pending(id) = self.state {
            self.world.shared.kernel.enter()?.cancel(id);
        }
        Ok(())
    }

    fn close(&self, id: OperationId) {
        self.open.borrow_mut().remove(self.place, id);
    }
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match self.state {
            State::Complete(_) => "complete",
            State::Pending(_) => "pending",
        };
        formatter.debug_struct("Request").field("state", &state).finish()
    }
}

/// The operations that are not over, each in a place that it keeps: with thousands of them closing
/// one takes no search.
#[derive(Default)]
pub(crate) struct OpenOperations {
    places: Vec<Option<OperationId>>,
    free: Vec<usize>,
    /// How many places were looked at by whoever takes all out.
    taken: usize,
}

impl OpenOperations {
    fn add(&mut self, id: OperationId) -> usize {
        match self.free.pop() {
            Some(place) => {
                self.places[place] = Some(id);
                place
            }
            None => {
                self.places.push(Some(id));
                self.places.len() - 1
            }
        }
    }

    /// The place may be another's by now, when the scope has waited for all.
    fn remove(&mut self, place: usize, id: OperationId) {
        if self.places.get(place) == Some(&Some(id)) {
            self.places[place] = None;
            self.free.push(place);
        }
    }

    /// Takes one after the other out, the first one first, until none is left; nothing is added in
    /// between.
    fn take_next(&mut self) -> Option<OperationId> {
        while let Some(place) = self.places.get_mut(self.taken) {
            self.taken += 1;
            if let Some(id) = place.take() {
                return Some(id);
            }
        }
        self.places.clear();
        self.free.clear();
        self.taken = 0;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_kernel::RequestId;

    #[test]
    fn a_place_is_used_again_but_only_by_one() {
        let id = |number| RequestId::from_bits(number).into();
        let ids: Vec<OperationId> = (1..=3).map(id).collect();
        let mut open = OpenOperations::default();
        let (first, second) = (open.add(ids[0]), open.add(ids[1]));
        open.remove(first, ids[0]);
        assert_eq!(open.add(ids[2]), first);
        open.remove(first, ids[0]);
        assert_eq!(
            (open.take_next(), open.take_next(), open.take_next()),
            (Some(ids[2]), Some(ids[1]), None)
        );
        open.remove(second, ids[1]);
        assert_eq!(open.add(ids[0]), 0);
    }
}
