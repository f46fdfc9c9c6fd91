//! Threads of a process: named, limited in number, and joined.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use landeck_memory::{GateError, ThreadMode, processors};

use crate::error::{ErrorKind, Result};
pub use crate::error::{THREAD_NAME_BYTES_MAX, ThreadError};
use crate::job::Job;

/// A pool that starts threads of this process up to a limit. A clone is another handle to it.
#[derive(Clone)]
pub struct Threads {
    running: Arc<AtomicUsize>,
    most: usize,
    stack_bytes: Option<usize>,
}

/// A started thread. Dropping it detaches the thread, which runs on.
#[derive(Debug)]
pub struct Thread<T> {
    name: String,
    handle: JoinHandle<T>,
}

/// A count of one running thread, until it is dropped.
struct Running(Arc<AtomicUsize>);

impl Job {
    /// Returns a pool that runs at most `most` threads at a time. They may use the job as this
    /// thread does.
    ///
    /// # Errors
    /// [`ErrorKind::Thread`] when the job was joined in thread mode single.
    pub fn threads(&self, most: usize) -> Result<Threads> {
        match self.shared.engine.mode() {
            ThreadMode::Single => Err(ErrorKind::Thread(GateError::WrongThread).into()),
            ThreadMode::Multiple => {
                Ok(Threads { running: Arc::default(), most, stack_bytes: None })
            }
        }
    }
}

impl Threads {
    /// Sets the stack size of threads started from now on, in bytes; the system has a minimum.
    #[must_use]
    pub fn with_stack(self, bytes: usize) -> Self {
        Self { stack_bytes: Some(bytes), ..self }
    }

    /// Returns the number of running threads.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    /// Starts a thread with this name, which runs `body`.
    ///
    /// # Errors
    /// [`ThreadError::Name`], [`ThreadError::TooMany`], [`ThreadError::System`]; [`ErrorKind::Thread`] in a
    /// child made by fork.
    pub fn start<T: Send + 'static>(
        &self,
        name: &str,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Thread<T>> {
        GateError::refuse_children()?;
        let owned = || name.to_owned();
        let is_name = (1..=THREAD_NAME_BYTES_MAX).contains(&name.len());
        if !is_name || name.contains(char::is_control) {
            return Err(ThreadError::Name { name: owned() }.into());
        }
        let Some(running) = self.one_more() else {
            return Err(ThreadError::TooMany { name: owned(), most: self.most }.into());
        };
        let builder = std::thread::Builder::new().name(owned());
        let builder = match self.stack_bytes {
            Some(bytes) => builder.stack_size(bytes),
            None => builder,
        };
        let handle = builder.spawn(move || {
            let _running = running;
            processors::follow_parent();
            body()
        });
        match handle {
            Ok(handle) => Ok(Thread { name: owned(), handle }),
            Err(source) => Err(ThreadError::System { name: owned(), source }.into()),
        }
    }

    fn one_more(&self) -> Option<Running> {
        let room = |running: usize| (running < self.most).then_some(running + 1);
        let counted = self.running.fetch_update(Ordering::AcqRel, Ordering::Acquire, room);
        counted.is_ok().then(|| Running(self.running.clone()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<T> Thread<T> {
    /// Returns the name of the thread.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the thread has ended.
    pub fn is_over(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits until the thread has ended, and returns its result.
    ///
    /// # Errors
    /// [`ThreadError::Panicked`].
    pub fn join(self) -> Result<T> {
        let Self { name, handle } = self;
        handle.join().map_err(|cause| {
            let text = cause.downcast_ref::<&str>().map(|&text| text.to_owned());
            let message = text.or_else(|| cause.downcast_ref::<String>().cloned());
            let message = message.unwrap_or_else(|| "it did not say why".to_owned());
            ThreadError::Panicked { name, message }.into()
        })
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let running = self.running();
        formatter
            .debug_struct("Threads")
            .field("running", &running)
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(most: usize) -> Threads {
        Threads { running: Arc::default(), most, stack_bytes: Some(1 << 20) }
    }

    #[test]
    fn a_thread_has_its_name_and_gives_its_result() {
        let threads = threads(1);
        let thread =
            threads.start("worker 1", || std::thread::current().name().map(str::to_owned)).unwrap();
        assert_eq!(thread.name(), "worker 1");
        assert_eq!(thread.join().unwrap().as_deref(), Some("worker 1"));
        assert_eq!(threads.running(), 0);
    }

    #[test]
    fn there_are_no_more_than_the_limit() {
        let threads = threads(2);
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let told = Arc::new(std::sync::Mutex::new(told));
        let waiting: Vec<_> = ["a", "b"]
            .map(|name| {
                let told = told.clone();
                threads.start(name, move || told.lock().unwrap().recv().is_err()).unwrap()
            })
            .into();
        let refused = threads.clone().start("c", || ()).unwrap_err();
        let told = matches!(refused.kind, ErrorKind::Threads(ThreadError::TooMany { most: 2, .. }));
        assert!(told, "{refused}");
        drop(tell);
        assert!(waiting.into_iter().all(|thread| thread.join().unwrap()));
        threads.start("c", || ()).unwrap().join().unwrap();
    }

    #[test]
    fn a_panic_is_told_and_frees_its_place() {
        let threads = threads(1);
        let thread = threads.start("unlucky", || assert!(std::hint::black_box(false), "bad luck"));
        let error = thread.unwrap().join().unwrap_err();
        assert!(error.to_string().contains("bad luck"), "{error}");
        assert_eq!(threads.running(), 0);
    }

    #[test]
    fn bad_names_and_impossible_stacks_are_errors() {
        for name in ["", "a name of sixteen", "a\nb", "a\0b"] {
            let refused = threads(1).start(name, || ()).unwrap_err();
            assert!(
                matches!(refused.kind, ErrorKind::Threads(ThreadError::Name { .. })),
                "{refused}"
            );
        }
        let huge = threads(1).with_stack(1 << 46);
        let refused = huge.start("huge", || ()).unwrap_err();
        assert!(
            matches!(refused.kind, ErrorKind::Threads(ThreadError::System { .. })),
            "{refused}"
        );
        assert_eq!(huge.running(), 0);
    }
}
