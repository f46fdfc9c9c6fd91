//! Finds the error handler that a mistake is raised on, and calls it.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use landeck_c_boundary::guarded;

use crate::abi::{COMM_SELF, ERR_INTERN, ERR_PROC_ABORTED, ErrorFunction, Handle};
use crate::job;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::error_code;
use crate::objects::error_handler::{self, Reaction};
use crate::objects::kind::Kind;
use crate::objects::session;
use crate::walk::{Call, Walk};

/// The object that a call was about, as the arguments say. It is looked at only when something is
/// wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// None that has an error handler: MPI_COMM_SELF stands in.
    Nothing,
    Communicator(Handle),
    /// The place of a handle, which the call would have changed.
    CommunicatorAt(*const Handle),
    Session(Handle),
    SessionAt(*const Handle),
    /// The handler that the call was given for the object of this kind that it makes.
    Handler(Kind, Handle),
    /// A file, whose handler returns unless the program sets another.
    File,
    /// The tool interface, which has no error handlers.
    Tool,
}

/// The answer to a mistake: a plain value.
#[derive(Clone, Copy)]
enum Answer {
    Code(c_int),
    Call { function: ErrorFunction, object: Handle, code: c_int },
}

/// A communicator that stays while its error handler runs, also when it has been freed: a plain pointer,
/// null for none. It leaks if the handler jumps out.
#[derive(Clone, Copy)]
struct Held(*const Communicator);

impl Held {
    fn of(communicator: Option<&Arc<Communicator>>) -> Self {
        Self(communicator.map_or(std::ptr::null(), |it| Arc::into_raw(Arc::clone(it))))
    }

    /// # Safety
    /// It is called once.
    unsafe fn release(self) {
        if !self.0.is_null() {
            // SAFETY: `of` made the pointer of an `Arc`, and this is called once, says the caller.
            drop(unsafe { Arc::from_raw(self.0) });
        }
    }
}

/// Tells the error handler of a mistake; returns what the function returns. The frame owns nothing
/// while the program's handler runs, so that may jump or throw.
#[cold]
#[inline(never)]
pub(crate) fn raise(function: &'static str, origin: Origin, mistake: Mistake) -> c_int {
    let nobody = (Answer::Code(ERR_INTERN), Held::of(None));
    let (answer, held) = guarded(function, nobody, move || {
        let mistake = mistake;
        let (reaction, object) = reaction(origin, &mistake);
        (react(function, reaction, object, &mistake), Held::of(mistake.raised_on()))
    });
    let code = match answer {
        Answer::Code(code) => code,
        Answer::Call { function, mut object, mut code } => {
            // SAFETY: the program gave this function as an error handler for such objects.
            unsafe { function(&raw mut object, &raw mut code) };
            code
        }
    };
    // A panic in it is reported; the call is over all the same.
    // SAFETY: this is the only time.
    guarded(function, (), || unsafe { held.release() });
    code
}

/// Calls a handler as the program asks for it, with a code of its own. The function itself succeeds,
/// whatever the handler does.
pub(crate) fn call_handler(
    function: &'static str,
    reaction: Reaction,
    object: Handle,
    code: c_int,
) -> Walk {
    let mistake = Mistake::new(code, "the program calls the error handler");
    let Answer::Call { function, object, code } = react(function, reaction, object, &mistake)
    else {
        return Walk::Done;
    };
    let mut told = Some(Told { function, object, code });
    let mut kept = None;
    Walk::new(move || {
        Ok(told.take().map(|told| {
            let told = kept.insert(Box::new(told));
            Call { run: Told::run, data: (&raw mut **told).cast() }
        }))
    })
}

/// A call of the program's error handler.
struct Told {
    function: ErrorFunction,
    object: Handle,
    code: c_int,
}

impl Told {
    unsafe extern "C-unwind" fn run(data: *mut c_void) {
        let told = data.cast::<Self>();
        // SAFETY: `call_handler` passes such a call; the program gave the function for such objects.
        unsafe { ((*told).function)(&raw mut (*told).object, &raw mut (*told).code) };
    }
}

/// The text of the last mistake of this thread, if it had this code or left it in a status.
pub(crate) fn last_text(code: c_int) -> Option<String> {
    LAST.with_borrow(|last| last.iter().find(|(of, _)| *of == code).map(|(_, text)| text.clone()))
}

thread_local! {
    static LAST: RefCell<Vec<(c_int, String)>> = const { RefCell::new(Vec::new()) };
}

/// The handler that is told, and the object that it is told of.
fn reaction(origin: Origin, mistake: &Mistake) -> (Reaction, Handle) {
    if let Some(communicator) = mistake.raised_on() {
        return (communicator.error_handler.reaction(), communicator.handle());
    }
    let found = match origin {
        Origin::Communicator(handle) => communicator::reaction(handle).map(|it| (it, handle)),
        // SAFETY: the program gave the address of a handle, or null, or nonsense that was refused.
        Origin::CommunicatorAt(place) => unsafe { read(place) }
            .and_then(|handle| communicator::reaction(handle).map(|it| (it, handle))),
        Origin::Session(handle) => session::reaction(handle).map(|it| (it, handle)),
        // SAFETY: as above.
        Origin::SessionAt(place) => unsafe { read(place) }
            .and_then(|handle| session::reaction(handle).map(|it| (it, handle))),
        // There is no object yet.
        Origin::Handler(kind, handler) => error_handler::reaction("errhandler", handler, kind)
            .ok()
            .map(|reaction| (reaction, kind.null())),
        Origin::File | Origin::Tool => Some((Reaction::Return, 0)),
        Origin::Nothing => None,
    };
    found
        .or_else(|| communicator::reaction(COMM_SELF).map(|it| (it, COMM_SELF)))
        .unwrap_or((error_handler::initial_reaction(), 0))
}

unsafe fn read(place: *const Handle) -> Option<Handle> {
    // SAFETY: the caller's promise.
    unsafe { landeck_c_boundary::pointer::read("", place) }.ok()
}

fn react(function: &'static str, reaction: Reaction, object: Handle, mistake: &Mistake) -> Answer {
    let code = mistake.code();
    let told = |code, text: &str| {
        format!("{function} failed on {}: {text} ({})", job::own_name(), error_code::name(code))
    };
    let text = told(code, mistake.text());
    let in_statuses = mistake.in_statuses().iter().map(|(code, text)| (*code, told(*code, text)));
    match reaction {
        Reaction::Fatal | Reaction::Abort => {
            let rule = ": errors are fatal unless the program asks for another handler";
            let cause = format!("{code}: {}", mistake.text());
            job::say_why(&text, rule, &cause, code == ERR_PROC_ABORTED);
            job::abort(code, &text)
        }
        Reaction::Return => {
            LAST.set([(code, text)].into_iter().chain(in_statuses).collect());
            Answer::Code(code)
        }
        Reaction::Call(function) => {
            LAST.set([(code, text)].into_iter().chain(in_statuses).collect());
            Answer::Call { function, object, code }
        }
    }
}
