//! The thread that advances operations which go on while nobody calls, for programs that ask for it.
//!
//! It waits in turn like any caller, and is the last in line: it takes the turn when operations go
//! on and nobody else has it, gives it up at the next look once a caller wants it, and is called
//! again when the last caller has gone and something still goes on. Meanwhile it sleeps.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use landeck_memory::waiter::Doorbell;
use landeck_transports::wake_thread::without_signals;

use crate::threads::shared::{Helper, Shared};

/// The thread. It ends when this is dropped.
pub struct ProgressThread {
    helper: Arc<Helper>,
    bell: Doorbell,
    thread: Option<JoinHandle<()>>,
    /// In a child made by fork there is no thread.
    process: u32,
}

impl ProgressThread {
    /// Starts the thread of a process, if it was asked for.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn of(shared: &Arc<Shared>) -> io::Result<Option<Self>> {
        let bell = Doorbell::of(&shared.segment, shared.slot);
        let (Some(helper), Some(bell)) = (shared.helper.clone(), bell) else { return Ok(None) };
        let (own, shared) = (helper.clone(), shared.clone());
        let thread = without_signals(|| {
            let builder = std::thread::Builder::new().name("landeck-progress".to_owned());
            builder.spawn(move || own.run(&shared))
        })?;
        Ok(Some(Self { helper, bell, thread: Some(thread), process: std::process::id() }))
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if std::process::id() != self.process {
            std::mem::forget(thread);
            return;
        }
        self.helper.end();
        self.bell.ring_fenced();
        // A function of the user's that it ran may have panicked; the caller was told.
        let _ = thread.join();
    }
}
