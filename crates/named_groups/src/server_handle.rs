//! The thread of a process that serves groups, one for all groups, and how it gets its orders.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;

use landeck_engine::Shared;
use landeck_memory::Segment;
use landeck_transports::wake_thread::without_signals;
use landeck_wire::SegmentId;

/// A replica whose log lies on another host.
pub(crate) type WeakCopy = Weak<dyn Any + Send + Sync>;

/// The work of the thread as a guest of the job.
pub(crate) type Work = fn(&ServerShared, &Arc<Shared>, &Arc<ServerHandle>);

/// Joins the job of a host as a guest with an endpoint of its own, calls the function, and leaves. The error says in
/// words why the guest could not join.
pub type AsGuest =
    fn(SegmentId, &mut dyn FnMut(&Arc<Shared>, &Arc<ServerHandle>)) -> Result<(), String>;

/// The things that all uses of groups in a process share: the thread that serves groups, and copies of logs. A process has
/// one handle.
pub struct ServerHandle {
    as_guest: AsGuest,
    stage: Mutex<Stage>,
    /// The copies of logs of other hosts.
    copies: Mutex<Vec<WeakCopy>>,
}

#[derive(Default)]
enum Stage {
    /// The process serves no group so far.
    #[default]
    Idle,
    Serving(ServerThread),
    /// The process has left the job.
    Ended,
}

/// The thread. It ends when this is dropped.
struct ServerThread {
    control: Arc<ServerShared>,
    thread: Option<JoinHandle<()>>,
    /// The process that has started the thread. In a child made by fork there is no thread.
    process: u32,
}

/// The orders and flags that the thread shares with the other threads of its process.
pub(crate) struct ServerShared {
    /// Where the threads that give orders wait.
    client_slot: SleepSlot,
    orders: Mutex<Vec<Order>>,
    failures: Mutex<Vec<Failure>>,
    is_ending: AtomicBool,
    /// Where the server thread waits.
    sleep_slot: OnceLock<SleepSlot>,
    /// Why there is no thread.
    failure: OnceLock<String>,
}

/// A slot of the job in which a thread sleeps.
struct SleepSlot {
    segment: Segment,
    slot: u32,
}

impl SleepSlot {
    fn of(shared: &Shared) -> Self {
        Self { segment: shared.segment.clone(), slot: shared.slot }
    }

    /// Wakes the thread.
    fn wake(&self) {
        self.segment.tell_news(self.slot);
    }
}

/// A group that the thread is to serve.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) name: String,
    pub(crate) number: u64,
}

/// A group that the thread cannot serve.
struct Failure {
    group: u64,
    why: String,
}

impl ServerHandle {
    /// The handle of a process that serves no group so far.
    pub fn new(as_guest: AsGuest) -> Self {
        Self { as_guest, stage: Mutex::default(), copies: Mutex::default() }
    }

    /// Orders the thread to serve a group, unless another process does by then. Starts the thread first if need be.
    ///
    /// # Errors
    /// Why the process cannot serve, in words.
    pub(crate) fn serve(
        &self,
        shared: &Arc<Shared>,
        name: &str,
        number: u64,
        work: Work,
    ) -> Result<(), String> {
        let mut stage = lock(&self.stage);
        if let Stage::Idle = *stage {
            *stage = Stage::Serving(ServerThread::start(shared, self.as_guest, work)?);
        }
        match &*stage {
            Stage::Serving(thread) => thread.control.order(name, number),
            Stage::Idle | Stage::Ended => Err("it has left the job".to_owned()),
        }
    }

    /// The copies of logs of other hosts that this process has, and the turn to make one.
    pub(crate) fn copies(&self) -> MutexGuard<'_, Vec<WeakCopy>> {
        let mut copies = lock(&self.copies);
        copies.retain(|copy| copy.strong_count() > 0);
        copies
    }

    /// Ends the thread: the process leaves the job. Other processes take over its groups.
    pub fn end(&self) {
        *lock(&self.stage) = Stage::Ended;
    }
}

impl ServerThread {
    fn start(shared: &Arc<Shared>, as_guest: AsGuest, work: Work) -> Result<Self, String> {
        let host = SegmentId(shared.segment.plan().host);
        let control = Arc::new(ServerShared {
            client_slot: SleepSlot::of(shared),
            orders: Mutex::default(),
            failures: Mutex::default(),
            is_ending: AtomicBool::new(false),
            sleep_slot: OnceLock::new(),
            failure: OnceLock::new(),
        });
        let own = control.clone();
        let thread = without_signals(|| {
            let builder = std::thread::Builder::new().name("landeck-groups".to_owned());
            builder.spawn(move || own.run(host, as_guest, work))
        });
        let thread = Some(thread.map_err(|error| format!("no thread was to be had ({error})"))?);
        Ok(Self { control, thread, process: std::process::id() })
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if std::process::id() != self.process {
            std::mem::forget(thread);
            return;
        }
        self.control.is_ending.store(true, Ordering::SeqCst);
        self.control.wake_server();
        // Its work stands in the logs, even if it has panicked.
        let _ = thread.join();
    }
}

impl ServerShared {
    fn order(&self, name: &str, number: u64) -> Result<(), String> {
        let failures = lock(&self.failures);
        let failed = failures.iter().find(|failure| failure.group == number);
        if let Some(why) = self.failure.get().or(failed.map(|failure| &failure.why)) {
            return Err(why.clone());
        }
        let order = Order { name: name.to_owned(), number };
        let mut orders = lock(&self.orders);
        if !orders.contains(&order) {
            orders.push(order);
            drop(orders);
            self.wake_server();
        }
        Ok(())
    }

    fn wake_server(&self) {
        if let Some(slot) = self.sleep_slot.get() {
            slot.wake();
        }
    }

    fn run(&self, host: SegmentId, as_guest: AsGuest, work: Work) {
        landeck_memory::processors::follow_parent();
        let served = as_guest(host, &mut |shared, server_handle| {
            let _ = self.sleep_slot.set(SleepSlot::of(shared));
            work(self, shared, server_handle);
        });
        if let Err(why) = served {
            let _ = self.failure.set(why);
            self.wake_client();
        }
    }

    /// Whether the thread is to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    /// Whether there are orders that the thread has not taken.
    pub(crate) fn has_orders(&self) -> bool {
        !lock(&self.orders).is_empty()
    }

    /// Takes the orders.
    pub(crate) fn take_orders(&self) -> Vec<Order> {
        std::mem::take(&mut *lock(&self.orders))
    }

    /// Records why the thread cannot serve the group with this number.
    pub(crate) fn fail(&self, group: u64, why: String) {
        lock(&self.failures).push(Failure { group, why });
    }

    /// Wakes the threads that have given orders.
    pub(crate) fn wake_client(&self) {
        self.client_slot.wake();
    }
}

/// Locks a mutex, also after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
