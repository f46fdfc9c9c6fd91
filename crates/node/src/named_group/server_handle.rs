//! The thread of a process that serves groups, and how it gets its orders: one for all groups.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use landeck_memory::Segment;
use landeck_transports::wake_thread::without_signals;
use landeck_wire::HostId;

use crate::error::Result;
use landeck_engine::Shared;

/// What the thread does as a guest of the job.
pub(super) type Work = fn(&ServerShared, &Arc<Shared>, &Arc<ServerHandle>);

/// Joins a job of this host as a guest with an endpoint of its own, has that do something, and leaves.
pub(crate) type AsGuest =
    fn(HostId, &mut dyn FnMut(&Arc<Shared>, &Arc<ServerHandle>)) -> Result<()>;

/// Whether this process serves groups. One of each process.
pub(crate) struct ServerHandle {
    as_guest: AsGuest,
    stage: Mutex<Stage>,
}

#[derive(Default)]
enum Stage {
    #[default]
    Free,
    Serving(ServerThread),
    /// The process has left the job.
    Over,
}

/// The thread. It ends when this is dropped.
struct ServerThread {
    office: Arc<ServerShared>,
    thread: Option<JoinHandle<()>>,
    /// In a child made by fork there is no thread.
    process: u32,
}

/// What the thread shares with the rest of the process.
pub(super) struct ServerShared {
    client: (Segment, u32),
    orders: Mutex<Vec<Order>>,
    failures: Mutex<Vec<(u64, String)>>,
    is_over: AtomicBool,
    /// Where the thread sleeps.
    bed: OnceLock<(Segment, u32)>,
    /// Why there is no thread.
    failure: OnceLock<String>,
}

/// A group that is to be served.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) name: String,
    pub(super) number: u64,
}

impl ServerHandle {
    /// Of a process that serves none so far.
    pub(crate) fn new(as_guest: AsGuest) -> Self {
        Self { as_guest, stage: Mutex::default() }
    }

    /// Has this process serve a group before long, unless somebody else does by then.
    ///
    /// # Errors
    /// Why it cannot.
    pub(super) fn serve(
        &self,
        shared: &Arc<Shared>,
        name: &str,
        number: u64,
        work: Work,
    ) -> std::result::Result<(), String> {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Stage::Free = *stage {
            *stage = Stage::Serving(ServerThread::start(shared, self.as_guest, work)?);
        }
        match &*stage {
            Stage::Serving(thread) => thread.office.order(name, number),
            Stage::Free | Stage::Over => Err("it has left the job".to_owned()),
        }
    }

    /// The process leaves: others take its seats.
    pub(crate) fn end(&self) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        *stage = Stage::Over;
    }
}

impl ServerThread {
    fn start(
        shared: &Arc<Shared>,
        as_guest: AsGuest,
        work: Work,
    ) -> std::result::Result<Self, String> {
        let host = HostId(shared.segment.plan().host);
        let office = Arc::new(ServerShared {
            client: (shared.segment.clone(), shared.slot),
            orders: Mutex::default(),
            failures: Mutex::default(),
            is_over: AtomicBool::new(false),
            bed: OnceLock::new(),
            failure: OnceLock::new(),
        });
        let own = office.clone();
        let thread = without_signals(|| {
            let builder = std::thread::Builder::new().name("landeck-groups".to_owned());
            builder.spawn(move || own.work(host, as_guest, work))
        });
        let thread = Some(thread.map_err(|error| format!("no thread was to be had ({error})"))?);
        Ok(Self { office, thread, process: std::process::id() })
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if std::process::id() != self.process {
            std::mem::forget(thread);
            return;
        }
        self.office.is_over.store(true, Ordering::SeqCst);
        self.office.ring();
        // What it did stands in the logs, whatever became of it.
        let _ = thread.join();
    }
}

impl ServerShared {
    fn order(&self, name: &str, number: u64) -> std::result::Result<(), String> {
        let failures = lock(&self.failures);
        let failed = failures.iter().find(|(group, _)| *group == number).map(|(_, why)| why);
        if let Some(why) = self.failure.get().or(failed) {
            return Err(why.clone());
        }
        let order = Order { name: name.to_owned(), number };
        let mut orders = lock(&self.orders);
        if !orders.contains(&order) {
            orders.push(order);
            drop(orders);
            self.ring();
        }
        Ok(())
    }

    fn ring(&self) {
        if let Some((segment, slot)) = self.bed.get() {
            segment.tell_news(*slot);
        }
    }

    fn work(&self, host: HostId, as_guest: AsGuest, work: Work) {
        landeck_memory::processors::follow_parent();
        let served = as_guest(host, &mut |shared, employment| {
            let _ = self.bed.set((shared.segment.clone(), shared.slot));
            work(self, shared, employment);
        });
        if let Err(error) = served {
            let _ = self.failure.set(error.kind.to_string());
            self.tell_client();
        }
    }

    /// Whether the thread is to end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Whether groups are to be served that are not yet.
    pub(super) fn has_orders(&self) -> bool {
        !lock(&self.orders).is_empty()
    }

    /// Takes those.
    pub(super) fn take_orders(&self) -> Vec<Order> {
        std::mem::take(&mut *lock(&self.orders))
    }

    /// Notes why the group with this number cannot be served.
    pub(super) fn fail(&self, number: u64, why: String) {
        lock(&self.failures).push((number, why));
    }

    /// Has who ordered look.
    pub(super) fn tell_client(&self) {
        let (segment, slot) = &self.client;
        segment.tell_news(*slot);
    }
}

/// What a mutex holds, also after a panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
