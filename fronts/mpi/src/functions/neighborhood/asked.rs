//! An operation between neighbours, its arguments checked: done at once, started, or kept to be
//! started any number of times.

use std::sync::{Arc, Mutex};

use landeck::raw::Memory;
use landeck_c_boundary::pointer;

use crate::abi::Handle;
use crate::arguments::{Items, KeptItems, give};
use crate::mistake::Mistake;
use crate::objects::communicator::Communicator;
use crate::objects::exchange::{Exchange, ExchangeMessage, Series};
use crate::objects::info;
use crate::objects::request::{self, Persistent, Request, Started};

/// An operation between neighbours.
pub(super) struct Asked {
    pub(super) communicator: &'static Arc<Communicator>,
    pub(super) outgoing: Vec<ExchangeMessage<Items>>,
    pub(super) incoming: Vec<ExchangeMessage<Items>>,
}

impl Asked {
    /// Does it.
    pub(super) unsafe fn call(&self) -> Result<(), Mistake> {
        // SAFETY: the program leaves the memory to this call, and the exchange ends in it.
        let end = unsafe { self.begin()? }.end();
        end.mistake.map_or(Ok(()), Err)
    }

    /// Starts it, and gives the program a request.
    pub(super) unsafe fn start(&self, request: *mut Handle) -> Result<(), Mistake> {
        pointer::check("request", request, 1)?;
        request::make_room()?;
        // SAFETY: the program leaves the memory to the exchange until the request is complete.
        let exchange = Box::new(unsafe { self.begin()? });
        // SAFETY: checked above; the program says that it is writable.
        unsafe { give("request", request, request::keep(Request::Exchange(exchange))) }
    }

    /// Keeps it, to be started any number of times.
    pub(super) unsafe fn keep(self, hints: Handle, request: *mut Handle) -> Result<(), Mistake> {
        info::snapshot_or_empty("info", hints)?;
        pointer::check("request", request, 1)?;
        request::make_room()?;
        let communicator = Arc::clone(self.communicator);
        let own = Arc::clone(&communicator);
        let series = Series::kept(communicator.count_exchange());
        let keep = |message: &ExchangeMessage<Items>| message.with(message.items.keep());
        let incoming: Vec<ExchangeMessage<KeptItems>> = self.incoming.iter().map(keep).collect();
        let outgoing: Vec<ExchangeMessage<KeptItems>> = self.outgoing.iter().map(keep).collect();
        let begin = move || {
            let (incoming, outgoing) = (incoming.iter().map(again), outgoing.iter().map(again));
            // SAFETY: the program leaves the memory to each operation that it starts.
            unsafe { Exchange::begin(&own, series, incoming, outgoing) }.map(Started::Exchange)
        };
        let (begin, active) = (Box::new(begin), Mutex::new(None));
        let kept = Persistent { communicator, is_message: false, begin, active };
        let handle = request::keep(Request::Persistent(Arc::new(kept)));
        // SAFETY: checked above; the program says that it is writable.
        unsafe { give("request", request, handle) }
    }

    unsafe fn begin(&self) -> Result<Exchange, Mistake> {
        let (incoming, outgoing) = (self.incoming.iter().map(once), self.outgoing.iter().map(once));
        // SAFETY: the caller's promise.
        unsafe { Exchange::begin(self.communicator, Series::default(), incoming, outgoing) }
    }
}

fn once(message: &ExchangeMessage<Items>) -> ExchangeMessage<Memory<'static>> {
    message.with(message.items.memory())
}

fn again(message: &ExchangeMessage<KeptItems>) -> ExchangeMessage<Memory<'_>> {
    message.with(message.items.memory())
}
