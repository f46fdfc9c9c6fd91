//! Contexts whose messages are taken as they come, by whatever thread advances the engine.

use landeck_kernel::{Endpoint, Received, RequestId, Status, Wanted};
use landeck_transports::SharedMemory;

/// Takes a message that has come. It runs within the endpoint that it is given, so it enters no engine.
pub type MessageSink = Box<dyn FnMut(&mut Endpoint<SharedMemory>, &Status, Received) + Send>;

/// Messages that are taken in one look; others wait for the next.
const TAKEN_MAX: usize = 64;

struct Stream {
    context: u32,
    /// The message that is being received.
    pending: Option<RequestId>,
    sink: MessageSink,
}

/// The contexts of a process whose messages are taken as they come.
#[derive(Default)]
pub(crate) struct Streams(Vec<Stream>);

impl Streams {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, context: u32, sink: MessageSink) {
        self.0.push(Stream { context, pending: None, sink });
    }

    pub(crate) fn end(&mut self, context: u32, endpoint: &mut Endpoint<SharedMemory>) {
        for stream in self.0.extract_if(.., |stream| stream.context == context) {
            stream.pending.into_iter().for_each(|id| endpoint.abandon(id));
        }
    }

    /// Takes the messages that have come.
    pub(crate) fn take(&mut self, endpoint: &mut Endpoint<SharedMemory>) {
        self.0.iter_mut().for_each(|stream| stream.take(endpoint));
    }
}

impl Stream {
    fn take(&mut self, endpoint: &mut Endpoint<SharedMemory>) {
        let wanted = Wanted { context: self.context, source: None, tag: None };
        for _ in 0..TAKEN_MAX {
            let id = match self.pending.take() {
                Some(id) => id,
                None if endpoint.probe(wanted).is_some() => endpoint.receive_own(wanted),
                None => return,
            };
            let Some(completion) = endpoint.take(id) else {
                self.pending = Some(id);
                return;
            };
            // A sender that died during a long message leaves nothing.
            if let Ok(status) = completion.result {
                let data = completion.data.unwrap_or_else(|| Received::Private(Vec::new()));
                (self.sink)(endpoint, &status, data);
            }
        }
    }
}
