//! The program's own operations: what it is asked when they are over.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

use landeck::{World, raw};

use crate::abi::{CancelFunction, FreeFunction, QueryFunction, SUCCESS, Status};
use crate::mistake::Mistake;
use crate::objects::completion::End;
use crate::walk::{Call, Walk};

/// An operation of the program.
pub(crate) struct Generalized {
    /// Ended by MPI_Grequest_complete.
    pub(crate) signal: raw::Operation,
    pub(crate) functions: Functions,
    world: World,
    /// Whether the program has freed it, and whether it has said that it is complete.
    marks: AtomicU8,
}

const FREED: u8 = 1;
const COMPLETE: u8 = 2;

/// The functions that the program gave with its operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    pub(crate) query: Option<QueryFunction>,
    pub(crate) free: Option<FreeFunction>,
    pub(crate) cancel: Option<CancelFunction>,
    pub(crate) extra_state: usize,
}

impl Generalized {
    /// Begins one.
    pub(crate) fn begin(world: World, functions: Functions) -> Result<Self, Mistake> {
        let signal = raw::signal::start(&world)?;
        Ok(Self { signal, functions, world, marks: AtomicU8::new(0) })
    }

    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// Whether the program has said that it is complete.
    pub(crate) fn is_over(&self) -> bool {
        self.marks.load(Ordering::Acquire) & COMPLETE != 0
    }

    /// Whether the program has freed it.
    pub(crate) fn is_freed(&self) -> bool {
        self.marks.load(Ordering::Acquire) & FREED != 0
    }

    /// The program frees it; whether it is over, and so to be disposed of now.
    pub(crate) fn set_freed(&self) -> bool {
        self.marks.fetch_or(FREED, Ordering::AcqRel) & COMPLETE != 0
    }

    /// The program says that it is complete; none if it did so before, else whether it has freed it,
    /// and it is to be disposed of now.
    pub(crate) fn set_complete(&self) -> Result<Option<bool>, Mistake> {
        let before = self.marks.fetch_or(COMPLETE, Ordering::AcqRel);
        if before & COMPLETE != 0 {
            return Ok(None);
        }
        raw::signal::end(&self.world, self.signal)?;
        Ok(Some(before & FREED != 0))
    }

    /// Asks for its status, and leaves it as it is.
    pub(crate) fn query(&self) -> Asking {
        Asking::new(self.functions, [Some(Question::Query), None])
    }

    /// Asks for its status, and has it freed. The request is over, and is no more.
    pub(crate) fn conclude(&self) -> Result<Asking, Mistake> {
        raw::wait(&self.world, self.signal)?;
        Ok(Asking::new(self.functions, [Some(Question::Query), Some(Question::Free)]))
    }

    /// Has it freed, without a status. The request is over, and is no more.
    pub(crate) fn dispose(&self) -> Result<Asking, Mistake> {
        raw::wait(&self.world, self.signal)?;
        Ok(Asking::new(self.functions, [Some(Question::Free), None]))
    }

    /// Asks for it to be cancelled.
    pub(crate) fn cancel(&self, is_over: bool) -> Asking {
        Asking::new(self.functions, [Some(Question::Cancel { is_over }), None])
    }
}

impl fmt::Debug for Generalized {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Generalized").field("functions", &self.functions).finish()
    }
}

/// A question to the program: which of its functions is called.
#[derive(Clone, Copy, Debug)]
enum Question {
    Query,
    Free,
    Cancel { is_over: bool },
}

/// Calls of the program's functions, one after the other. It leaks if one of them jumps out.
#[derive(Debug)]
pub(crate) struct Asking {
    left: [Option<Question>; 2],
    /// The call that goes on at the moment. Its address does not change.
    asked: Box<Asked>,
}

/// The arguments of a call, and its answer.
#[derive(Debug)]
struct Asked {
    functions: Functions,
    question: Question,
    status: Status,
    code: c_int,
    /// Of the functions that did not succeed, what the last one returned, and which it is.
    failed: Option<(Question, c_int)>,
}

impl Asking {
    fn new(functions: Functions, questions: [Option<Question>; 2]) -> Self {
        let asked = Asked {
            functions,
            question: Question::Query,
            status: Status::empty(),
            code: SUCCESS,
            failed: None,
        };
        Self { left: questions, asked: Box::new(asked) }
    }

    /// The calls as what is left to do of a call of the program's.
    pub(crate) fn into_walk(mut self) -> Walk {
        Walk::new(move || match self.step() {
            Some(call) => Ok(Some(call)),
            None => self.end().mistake.map_or(Ok(None), Err),
        })
    }

    /// Goes on to the next call.
    pub(crate) fn step(&mut self) -> Option<Call> {
        let asked = &mut *self.asked;
        if asked.code != SUCCESS {
            asked.failed = Some((asked.question, asked.code));
            asked.code = SUCCESS;
        }
        asked.question = self.left.iter_mut().find_map(Option::take)?;
        Some(Call { run: Asked::run, data: (&raw mut *asked).cast() })
    }

    /// Returns the program's answer after the last step.
    pub(crate) fn end(&self) -> End {
        let mistake = self.asked.failed.map(|(question, code)| {
            let which = match question {
                Question::Query => "the function that fills in the status of a request",
                Question::Free => "the function that frees a request",
                Question::Cancel { .. } => "the function that cancels a request",
            };
            Mistake::from_callback(which, code)
        });
        End { status: self.asked.status, mistake }
    }
}

impl Asked {
    unsafe extern "C-unwind" fn run(data: *mut c_void) {
        let asked = data.cast::<Self>();
        // SAFETY: `step` passes such a question. The program gave the functions for this; the
        // status is written by one of them alone.
        unsafe {
            let Functions { query, free, cancel, extra_state } = (*asked).functions;
            let state = std::ptr::with_exposed_provenance_mut(extra_state);
            (*asked).code = match (*asked).question {
                Question::Query => {
                    query.map_or(SUCCESS, |query| query(state, &raw mut (*asked).status))
                }
                Question::Free => free.map_or(SUCCESS, |free| free(state)),
                Question::Cancel { is_over } => {
                    cancel.map_or(SUCCESS, |cancel| cancel(state, c_int::from(is_over)))
                }
            };
        }
    }
}
