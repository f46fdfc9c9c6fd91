//! Scopes: non-blocking operations that borrow the memory of the program.
//!
//! A scope borrows the memory of its operations until it ends, as `std::thread::scope` does. So no
//! operation writes to freed memory, even if a request is forgotten or the program panics.

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

/// A scope, in which non-blocking operations are begun: see [`World::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    world: &'env World,
    open: Open,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The pending operations.
type Open = Rc<RefCell<OpenOperations>>;

/// Gives up the pending operations when the scope ends in any way, since their memory may be freed
/// afterwards.
pub(crate) struct Guard<'env> {
    world: &'env World,
    open: Open,
}

/// A non-blocking operation. If the request is dropped, the operation goes on until the end of its
/// scope.
#[must_use = "an operation that nobody waits for is waited for at the end of the scope"]
pub struct Request<'scope> {
    world: &'scope World,
    open: &'scope RefCell<OpenOperations>,
    state: State,
    /// Its index among the pending operations, while it is pending.
    place: usize,
}

#[derive(Clone, Copy)]
enum State {
    Complete(Status),
    Pending(OperationId),
}

impl World {
    /// Runs `body` with a scope for non-blocking operations. They may borrow memory from outside
    /// the scope, and all of them are complete or given up when this returns.
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
    /// An error of the closure, else the first error of the operations left to the end of the
    /// scope. After an error of the closure, pending operations are given up.
    pub fn scope<'env, T>(
        &'env self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<T>,
    ) -> Result<T> {
        let (_guard, scope) = Scope::new(self);
        let result = body(&scope)?;
        scope.finish()?;
        Ok(result)
    }

    /// Sends and receives at the same time, so that two processes may exchange messages without
    /// deadlock. Returns the envelope of the received message when both are complete.
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

    /// Begins to send values, which stay borrowed until the scope ends.
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

    /// Begins to send `count` items of a layout, as [`World::send_layout`] does.
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
        let mut engine = self.world.shared.engine.enter().map_err(|error| failed(error.into()))?;
        match engine.endpoint.send(peer, self.world.context, tag.0, area) {
            Ok(started) => Ok(self.started(started)),
            Err(failure) => Err(failed(self.world.error(WaitError::Failure(failure), None))),
        }
    }

    /// Begins to receive a message into `values`, which stay borrowed until the scope ends.
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

    /// Begins to receive a message into `count` items of a layout, as [`World::receive_layout`]
    /// does.
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

    /// The request of a collective operation that is pending or complete at once.
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

    /// Waits until all pending operations of the scope are complete.
    ///
    /// # Errors
    /// The first error of these operations.
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

    /// Waits until one of the requests is complete, and removes it from `requests`. Returns its
    /// index and the envelope of its message; `None` if there are no requests.
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
        let ready = |engine: &mut Engine| {
            requests.iter().position(|request| match request.state {
                State::Complete(_) => true,
                State::Pending(id) => engine.is_done(id) || engine.verdict(id).is_some(),
            })
        };
        let any_of = |engine: &Engine| {
            engine.any_of(requests.iter().filter_map(|request| match request.state {
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

    /// Waits until at least one of the requests is complete, and removes all complete ones from
    /// `requests`. Returns their former indices and the envelopes of their messages.
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
        if let Ok(mut engine) = self.world.shared.engine.enter() {
            while let Some(id) = self.open.borrow_mut().take_next() {
                engine.abandon(id);
            }
        }
    }
}

impl Request<'_> {
    /// Waits until the operation is complete, and returns the envelope of its message.
    ///
    /// # Errors
    /// As [`World::send`] or [`World::receive_into`]. A receive from [`Any`](crate::Any) is given
    /// up after [`crate::ErrorKind::PeerFailed`].
    pub fn wait(self) -> Result<Status> {
        let id = match self.state {
            State::Complete(status) => return Ok(status),
            State::Pending(id) => id,
        };
        self.close(id);
        self.world.call("wait", || self.world.wait(id))
    }

    /// Makes progress, and returns the envelope of the message if the operation is complete, else
    /// `None`.
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

    /// Cancels the operation if it is unmatched: a receive without a message, or a send without
    /// room. It completes in either case, and [`Status::is_cancelled`] tells whether it was
    /// cancelled.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Thread`].
    pub fn cancel(&mut self) -> Result<()> {
        if let State::Pending(id) = self.state {
            self.world.shared.engine.enter()?.cancel(id);
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

/// The pending operations, each at a fixed index: among thousands of them, removing one takes no
/// search.
#[derive(Default)]
pub(crate) struct OpenOperations {
    places: Vec<Option<OperationId>>,
    free: Vec<usize>,
    /// The number of places passed while all operations are taken out.
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

    /// Removes an operation, unless its place belongs to another one since the scope has waited for
    /// all.
    fn remove(&mut self, place: usize, id: OperationId) {
        if self.places.get(place) == Some(&Some(id)) {
            self.places[place] = None;
            self.free.push(place);
        }
    }

    /// Removes and returns the first operation that is left; none is added until all are removed.
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
