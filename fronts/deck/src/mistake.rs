//! An error of a call: its code, and a text that names the argument, its value and what to do now.

use std::ffi::c_int;
use std::fmt;

use landeck::unstable::arithmetic::ReductionError;
use landeck::unstable::joining::attach::AttachError;
use landeck::unstable::memory::GateError;
use landeck::{
    Error, ErrorKind, GroupError, MailboxError, MessageError, NameError, ObjectError,
    SemaphoreError,
};
use landeck_c_boundary::{HandleError, NoRoom, PointerError, StringError};

use crate::{errors, words};

/// An error of a call. Its text is made when the program asks for it.
///
/// One word, so that a result that has one is returned in registers.
#[derive(Debug)]
pub(crate) struct Mistake(Box<Wrong>);

#[derive(Debug)]
struct Wrong {
    code: c_int,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Known(&'static str),
    Told(String),
    Error(ErrorKind),
}

impl Mistake {
    /// A mistake that is described by a text.
    #[cold]
    pub(crate) fn new(code: c_int, text: impl Into<String>) -> Self {
        Self::of(code, Cause::Told(text.into()))
    }

    /// A mistake with a fixed text.
    #[cold]
    pub(crate) fn known(code: c_int, text: &'static str) -> Self {
        Self::of(code, Cause::Known(text))
    }

    /// A value that an argument cannot have.
    #[cold]
    pub(crate) fn value(argument: &str, value: impl fmt::Display, choice: &str) -> Self {
        Self::new(errors::VALUE, format!("{argument} is {value}: {choice}"))
    }

    pub(crate) fn code(&self) -> c_int {
        self.0.code
    }

    fn of(code: c_int, cause: Cause) -> Self {
        Self(Box::new(Wrong { code, cause }))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.cause {
            Cause::Known(text) => formatter.write_str(text),
            Cause::Told(text) => formatter.write_str(text),
            Cause::Error(error) => formatter.write_str(&words::of(error)),
        }
    }
}

impl From<PointerError> for Mistake {
    #[cold]
    fn from(error: PointerError) -> Self {
        let code = match error {
            PointerError::Null { .. } => errors::NULL,
            _ => errors::POINTER,
        };
        Self::new(code, error.to_string())
    }
}

impl From<HandleError> for Mistake {
    #[cold]
    fn from(error: HandleError) -> Self {
        let code = match error {
            HandleError::Unknown(_) => errors::HANDLE,
            HandleError::OtherKind(_) => errors::KIND,
            HandleError::Stale(_) => errors::DESTROYED,
        };
        Self::new(code, error.to_string())
    }
}

impl From<NoRoom> for Mistake {
    #[cold]
    fn from(error: NoRoom) -> Self {
        Self::new(errors::NOMEMORY, error.to_string())
    }
}

/// Texts that are no names: a name says more in [`crate::arguments::name`].
impl From<StringError> for Mistake {
    #[cold]
    fn from(error: StringError) -> Self {
        match error {
            StringError::Pointer(error) => error.into(),
            StringError::TooLong { .. } => Self::new(errors::VALUE, error.to_string()),
        }
    }
}

impl From<MessageError> for Mistake {
    #[cold]
    fn from(error: MessageError) -> Self {
        Error::from(error).into()
    }
}

impl From<Error> for Mistake {
    #[cold]
    fn from(error: Error) -> Self {
        Self::of(code_of(&error.kind), Cause::Error(error.kind))
    }
}

fn code_of(error: &ErrorKind) -> c_int {
    match error {
        ErrorKind::Attach(AttachError::AlreadyJoined(_) | AttachError::SlotInUse { .. }) => {
            errors::AGAIN
        }
        ErrorKind::Attach(_) | ErrorKind::Segment(_) | ErrorKind::Connect(_) => errors::JOB,
        ErrorKind::Thread(GateError::Forked) => errors::FORKED,
        ErrorKind::Thread(_) => errors::BUSY,
        ErrorKind::ProgressThread(_) | ErrorKind::Publish(_) => errors::SYSTEM,
        ErrorKind::Heap(_) | ErrorKind::PeerHeapFull { .. } | ErrorKind::NoMemory(_) => {
            errors::NOMEMORY
        }
        ErrorKind::Message(error) => code_of_message(error),
        ErrorKind::Mailbox(error) => code_of_mailbox(error),
        ErrorKind::Semaphore(error) => match error {
            SemaphoreError::OwnerDied { .. } => errors::OWNERDIED,
            SemaphoreError::TooManyUnits { .. } => errors::UNITS,
            SemaphoreError::NotASemaphore => errors::KIND,
            _ => errors::SYSTEM,
        },
        ErrorKind::Object(error) => code_of_object(error),
        ErrorKind::Group(error) => code_of_group(error),
        ErrorKind::PeerFailed { .. }
        | ErrorKind::StoreLost { .. }
        | ErrorKind::Excluded
        | ErrorKind::Revoked { .. } => errors::DEAD,
        ErrorKind::PeerBroken { .. } | ErrorKind::BrokenBoard { .. } => errors::BROKEN,
        ErrorKind::TimedOut(_) => errors::TIMEDOUT,
        ErrorKind::WouldBlock => errors::WOULDBLOCK,
        ErrorKind::Ended => errors::ENDED,
        ErrorKind::NoSuchRank { .. } | ErrorKind::RankTwice { .. } | ErrorKind::NoStore { .. } => {
            errors::VALUE
        }
        ErrorKind::Truncated { .. }
        | ErrorKind::WrongType { .. }
        | ErrorKind::LengthMismatch { .. }
        | ErrorKind::LengthMismatchElsewhere { .. }
        | ErrorKind::WrongLength { .. }
        | ErrorKind::Disagreement { .. }
        | ErrorKind::WrongCount { .. } => errors::LENGTH,
        ErrorKind::Mismatch { .. } | ErrorKind::OutOfStep => errors::MISMATCH,
        ErrorKind::Reduction(ReductionError::Senseless { .. }) => errors::REDUCE,
        ErrorKind::Reduction(_) => errors::LENGTH,
        ErrorKind::NotAMember => errors::NOTMEMBER,
        ErrorKind::NoBoard | ErrorKind::Clusters(_) => errors::ARCHITECTURE,
        _ => errors::SYSTEM,
    }
}

fn code_of_message(error: &MessageError) -> c_int {
    match error {
        MessageError::OtherType { .. } => errors::TYPE,
        MessageError::BeyondEnd { .. } => errors::END,
        MessageError::NoSuchPart { .. } | MessageError::UnevenParts { .. } => errors::PART,
        MessageError::OutsideBuffer { .. } => errors::POINTER,
        MessageError::NotOneKind => errors::MIXED,
        MessageError::NotUtf8 => errors::NOTTEXT,
        MessageError::NotAMessage { .. } => errors::NOTMESSAGE,
        MessageError::NoMemory(_) => errors::NOMEMORY,
        _ => errors::SYSTEM,
    }
}

fn code_of_mailbox(error: &MailboxError) -> c_int {
    match error {
        MailboxError::Gone { .. } | MailboxError::GoneElsewhere { .. } => errors::GONE,
        MailboxError::AnotherJob
        | MailboxError::GuestElsewhere { .. }
        | MailboxError::NoAddress => errors::HANDLE,
        MailboxError::TooLong { .. } | MailboxError::OtherType { .. } => errors::NOTMESSAGE,
        MailboxError::NoProgressThread => errors::NOPROGRESS,
        MailboxError::NoDescriptor(_) => errors::SYSTEM,
        MailboxError::TooMany => errors::NOMEMORY,
        _ => errors::SYSTEM,
    }
}

fn code_of_group(error: &GroupError) -> c_int {
    match error {
        GroupError::MinimumNotReached { .. } => errors::MINIMUM,
        GroupError::Destroying { .. } => errors::DESTROYING,
        GroupError::GroupDestroyed { .. } => errors::GROUPDESTROYED,
        GroupError::DestroyedWithLoss { .. } => errors::LOSS,
        GroupError::MemberDied { .. } => errors::MEMBERDIED,
        GroupError::AlreadyMember { .. } => errors::ALREADYMEMBER,
        GroupError::NoMember { .. } => errors::LEFT,
        GroupError::TooManyMembers { .. } => errors::TOOMANY,
        GroupError::Full { .. } => errors::FULL,
        GroupError::TooLong { .. } => errors::TOOLONG,
        GroupError::Options { .. } => errors::VALUE,
        GroupError::TwiceInProcess { .. } => errors::TWICE,
        GroupError::LeftBehind { .. } => errors::LEFTBEHIND,
        GroupError::Broken { .. } => errors::BROKEN,
        GroupError::Unreached { .. } => errors::UNREACHED,
        GroupError::InDoubt { .. } => errors::INDOUBT,
        GroupError::NoServer { .. } | GroupError::NoServingLauncher { .. } => errors::NOSERVER,
        _ => errors::SYSTEM,
    }
}

fn code_of_object(error: &ObjectError) -> c_int {
    match error {
        ObjectError::Name(error) => match error {
            NameError::Empty => errors::NAMEEMPTY,
            NameError::TooLong(_) => errors::NAMELONG,
            NameError::NotUtf8(_) => errors::NAMEUTF8,
            NameError::Control(_) => errors::NAMECONTROL,
            _ => errors::SYSTEM,
        },
        ObjectError::Exchange(_) | ObjectError::Refused { .. } => errors::AGENT,
        ObjectError::Taken { .. } | ObjectError::TakenElsewhere { .. } => errors::TAKEN,
        ObjectError::Unknown { .. } | ObjectError::UnknownHere { .. } => errors::UNKNOWN,
        ObjectError::Gone { .. } => errors::GONE,
        ObjectError::Size { bytes: 0, .. } => errors::VALUE,
        ObjectError::Size { .. } | ObjectError::NoMemory { .. } => errors::NOMEMORY,
        _ => errors::SYSTEM,
    }
}
