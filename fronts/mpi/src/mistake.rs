//! An error of a call: its class, and a text that names the argument, its value and what to do now.

use std::ffi::c_int;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use landeck::layout::LayoutError;
use landeck::unstable::arithmetic::ReductionError;
use landeck::unstable::memory::{GateError, NoMemory};
use landeck_c_boundary::{NoRoom, PointerError, StringError};

use crate::abi::{
    ERR_ARG, ERR_COUNT, ERR_NO_MEM, ERR_OP, ERR_OTHER, ERR_PROC_ABORTED, ERR_RANK, ERR_REQUEST,
    ERR_TAG, ERR_TRUNCATE, ERR_TYPE, ERR_UNSUPPORTED_OPERATION,
};
use crate::objects::communicator::Communicator;

/// An error of a call. It is one word, so that results are cheap.
#[derive(Clone, Debug)]
pub(crate) struct Mistake(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    code: c_int,
    text: String,
    raised_on: Option<Arc<Communicator>>,
    /// The codes that stand in statuses, each with the text of what it stands for.
    in_statuses: Vec<(c_int, String)>,
}

impl Mistake {
    /// A mistake of a class, or of a code of the program.
    #[cold]
    pub(crate) fn new(code: c_int, text: impl fmt::Display) -> Self {
        let text = text.to_string();
        Self(Box::new(Inner { code, text, raised_on: None, in_statuses: Vec::new() }))
    }

    /// Directs the mistake to this communicator's error handler, whatever the arguments of the call were.
    #[cold]
    pub(crate) fn on(mut self, communicator: &Arc<Communicator>) -> Self {
        self.0.raised_on.get_or_insert_with(|| Arc::clone(communicator));
        self
    }

    /// A function that this library does not have yet.
    #[cold]
    pub(crate) fn unsupported() -> Self {
        Self::new(
            ERR_UNSUPPORTED_OPERATION,
            "Landeck does not implement it; docs/mpi-functions.md of its source lists what works",
        )
    }

    /// A rank that is none of a communicator's.
    #[cold]
    pub(crate) fn rank(argument: &str, value: c_int, size: u32) -> Self {
        let last = i64::from(size) - 1;
        Self::new(
            ERR_RANK,
            format_args!("{argument} is {value}, but the communicator has the ranks 0 to {last}"),
        )
    }

    /// A tag that cannot be.
    #[cold]
    pub(crate) fn tag(value: c_int, may_be_any: bool) -> Self {
        let or_any = if may_be_any { ", or MPI_ANY_TAG" } else { "" };
        Self::new(ERR_TAG, format_args!("tag is {value}, but a tag is 0 or more{or_any}"))
    }

    /// A count that cannot be.
    #[cold]
    pub(crate) fn count(argument: &str, value: i64) -> Self {
        Self::new(ERR_COUNT, format_args!("{argument} is {value}; it must be 0 or more"))
    }

    /// A callback of the program returned this code.
    #[cold]
    pub(crate) fn from_callback(which: &str, code: c_int) -> Self {
        Self::new(code, format_args!("{which} of the program returned {code}"))
    }

    /// Adds the texts of the codes that stand in statuses.
    #[cold]
    pub(crate) fn with_statuses(mut self, in_statuses: Vec<(c_int, String)>) -> Self {
        self.0.in_statuses = in_statuses;
        self
    }

    pub(crate) fn code(&self) -> c_int {
        self.0.code
    }

    /// The codes that stand in statuses, each with the text of what it stands for.
    pub(crate) fn in_statuses(&self) -> &[(c_int, String)] {
        &self.0.in_statuses
    }

    pub(crate) fn text(&self) -> &str {
        &self.0.text
    }

    /// The communicator it is told to, if that was said.
    pub(crate) fn raised_on(&self) -> Option<&Arc<Communicator>> {
        self.0.raised_on.as_ref()
    }

    /// As a plain pointer, for frames that own nothing.
    pub(crate) fn into_raw(self) -> RawMistake {
        // SAFETY: a box is never null.
        RawMistake(unsafe { NonNull::new_unchecked(Box::into_raw(self.0)) })
    }
}

/// A mistake as a plain pointer: without destructor, to be made a mistake again once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawMistake(NonNull<Inner>);

impl RawMistake {
    /// The mistake.
    ///
    /// # Safety
    /// It is called once.
    pub(crate) unsafe fn into_mistake(self) -> Mistake {
        // SAFETY: `into_raw` made it of a box, and this is called once, says the caller.
        Mistake(unsafe { Box::from_raw(self.0.as_ptr()) })
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

impl From<PointerError> for Mistake {
    #[cold]
    fn from(error: PointerError) -> Self {
        Self::new(ERR_ARG, error)
    }
}

impl From<StringError> for Mistake {
    #[cold]
    fn from(error: StringError) -> Self {
        Self::new(ERR_ARG, error)
    }
}

impl From<NoMemory> for Mistake {
    #[cold]
    fn from(error: NoMemory) -> Self {
        Self::new(ERR_NO_MEM, error)
    }
}

impl From<NoRoom> for Mistake {
    #[cold]
    fn from(error: NoRoom) -> Self {
        Self::new(ERR_NO_MEM, error)
    }
}

impl From<LayoutError> for Mistake {
    #[cold]
    fn from(error: LayoutError) -> Self {
        Self::new(ERR_TYPE, error)
    }
}

impl From<ReductionError> for Mistake {
    #[cold]
    fn from(error: ReductionError) -> Self {
        Self::new(ERR_OP, format_args!("op does not fit datatype: {error}"))
    }
}

impl From<landeck::Error> for Mistake {
    #[cold]
    fn from(error: landeck::Error) -> Self {
        use landeck::ErrorKind;
        let class = match &error.kind {
            ErrorKind::PeerFailed { .. } | ErrorKind::StoreLost { .. } | ErrorKind::Ended => {
                ERR_PROC_ABORTED
            }
            ErrorKind::Truncated { .. }
            | ErrorKind::LengthMismatch { .. }
            | ErrorKind::LengthMismatchElsewhere { .. } => ERR_TRUNCATE,
            ErrorKind::RequestGone => ERR_REQUEST,
            ErrorKind::NoSuchRank { .. } => ERR_RANK,
            ErrorKind::Heap(_) | ErrorKind::PeerHeapFull { .. } | ErrorKind::NoMemory(_) => {
                ERR_NO_MEM
            }
            ErrorKind::Reduction(_) => ERR_OP,
            _ => ERR_OTHER,
        };
        Self::new(class, in_words_of_mpi(&error.kind))
    }
}

/// Returns the text of an error of the Rust API in the vocabulary of MPI. The front names the call and the process
/// itself.
fn in_words_of_mpi(error: &landeck::ErrorKind) -> String {
    use landeck::ErrorKind;
    let text = error.to_string().replace("of this world", "of this communicator");
    let text = text.replace("of the other group", "of the remote group");
    match error {
        ErrorKind::Thread(GateError::WrongThread) => {
            "this thread did not call MPI_Init, and the program asked for calls of one thread; call \
             MPI_Init_thread with MPI_THREAD_MULTIPLE"
                .to_owned()
        }
        ErrorKind::Thread(GateError::Reentered) => {
            "this call was made from inside another call of MPI; return from that first".to_owned()
        }
        // The text of these contains no words of the program.
        ErrorKind::Revoked { .. }
        | ErrorKind::NoSuchRank { .. }
        | ErrorKind::Mismatch { .. }
        | ErrorKind::WrongCount { .. }
        | ErrorKind::PeerHeapFull { .. }
        | ErrorKind::Spoiled { .. }
        | ErrorKind::NoBoard
        | ErrorKind::NotAMember
        | ErrorKind::TooManyGroups
        | ErrorKind::GivenUp { .. }
        | ErrorKind::NoDaemon(_)
        | ErrorKind::RankTwice { .. }
        | ErrorKind::Clusters(_)
        | ErrorKind::Excluded
        | ErrorKind::OutOfStep => text.replace("world", "communicator"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck::{Error, ErrorKind};

    #[test]
    fn errors_are_told_in_words_of_mpi() {
        let said: [(ErrorKind, &str); 4] = [
            (GateError::WrongThread.into(), "call MPI_Init_thread with MPI_THREAD_MULTIPLE"),
            (GateError::Reentered.into(), "from inside another call of MPI"),
            (ErrorKind::NoSuchRank { rank: 4, size: 2 }, "rank 4 is not in this communicator of 2"),
            (
                ErrorKind::Revoked { dead: String::new() },
                "the communicator was revoked by one of its members",
            ),
        ];
        for (error, words) in said {
            let text = Mistake::from(Error::from(error)).text().to_owned();
            assert!(text.contains(words), "{text}");
            assert!(!text.contains('`') && !text.contains("::"), "{text}");
        }
    }
}
