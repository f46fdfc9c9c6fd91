//! The kinds of objects, and what is wrong with a handle that is none of the kind that is wanted.

use std::ffi::c_int;

use landeck_c_boundary::HandleError;

use crate::abi::{
    ERR_COMM, ERR_ERRHANDLER, ERR_FILE, ERR_GROUP, ERR_INFO, ERR_OP, ERR_REQUEST, ERR_SESSION,
    ERR_TYPE, ERR_WIN, Handle,
};
use crate::mistake::Mistake;

/// A kind of objects. The number stands in the handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Communicator = 1,
    Group = 2,
    Datatype = 3,
    Operation = 4,
    Request = 5,
    ErrorHandler = 6,
    Info = 7,
    Message = 8,
    Session = 9,
    Window = 10,
    File = 11,
}

/// The prefixes of predefined handles: the first, the last, their kind.
const PREDEFINED: [(Handle, Handle, Kind); 11] = [
    (0x020, 0x03f, Kind::Operation),
    (0x100, 0x107, Kind::Communicator),
    (0x108, 0x10f, Kind::Group),
    (0x110, 0x117, Kind::Window),
    (0x118, 0x11f, Kind::File),
    (0x120, 0x127, Kind::Session),
    (0x128, 0x12f, Kind::Message),
    (0x130, 0x137, Kind::Info),
    (0x140, 0x147, Kind::ErrorHandler),
    (0x180, 0x187, Kind::Request),
    (0x200, 0x3ff, Kind::Datatype),
];

impl Kind {
    /// The kind of whatever this is a handle of.
    fn of(handle: Handle) -> Option<Self> {
        let predefined =
            PREDEFINED.iter().find(|(first, last, _)| (*first..=*last).contains(&handle));
        if let Some((.., kind)) = predefined {
            return Some(*kind);
        }
        let given_out = handle >> 32 & 0xff_ffff != 0;
        PREDEFINED
            .iter()
            .map(|(.., kind)| *kind)
            .find(|kind| given_out && handle >> 56 == *kind as Handle)
    }

    /// With its article.
    fn name(self) -> &'static str {
        match self {
            Self::Communicator => "a communicator",
            Self::Group => "a group",
            Self::Datatype => "a datatype",
            Self::Operation => "an operation",
            Self::Request => "a request",
            Self::ErrorHandler => "an error handler",
            Self::Info => "an info object",
            Self::Message => "a message",
            Self::Session => "a session",
            Self::Window => "a window",
            Self::File => "a file",
        }
    }

    /// The class of mistakes with handles of this kind.
    fn class(self) -> c_int {
        match self {
            Self::Communicator => ERR_COMM,
            Self::Group => ERR_GROUP,
            Self::Datatype => ERR_TYPE,
            Self::Operation => ERR_OP,
            Self::Request | Self::Message => ERR_REQUEST,
            Self::ErrorHandler => ERR_ERRHANDLER,
            Self::Info => ERR_INFO,
            Self::Session => ERR_SESSION,
            Self::Window => ERR_WIN,
            Self::File => ERR_FILE,
        }
    }

    /// The null handle of this kind: the first of those that are predefined.
    pub(crate) fn null(self) -> Handle {
        PREDEFINED.iter().find(|(.., kind)| *kind == self).map_or(0, |(first, ..)| *first)
    }

    /// Whether this is the null handle of its kind: the low bits of those are 0.
    fn is_null(handle: Handle) -> bool {
        handle == crate::abi::OP_NULL
            || (0x100..=0x200).contains(&handle) && handle.is_multiple_of(8)
    }

    /// Returns the mistake for a handle that should be one of this kind.
    #[cold]
    pub(crate) fn refuse(self, argument: &str, handle: Handle, error: HandleError) -> Mistake {
        let wanted = self.name();
        let what = match (error, Self::of(handle)) {
            (HandleError::Stale(_), _) => {
                "which was used after it was freed; free it after its last use".to_owned()
            }
            (_, Some(kind)) if kind != self => format!("which is {}, not {wanted}", kind.name()),
            (_, Some(_)) if Self::is_null(handle) => format!("the null handle; pass {wanted}"),
            _ => format!("which is no handle; pass {wanted}"),
        };
        Mistake::new(self.class(), format_args!("{argument} is {handle:#x}, {what}"))
    }

    /// Returns the mistake for a handle that is predefined, or not in the table of its kind.
    #[cold]
    pub(crate) fn refuse_unknown(self, argument: &str, handle: Handle) -> Mistake {
        self.refuse(argument, handle, HandleError::Unknown(handle as u64))
    }

    /// A predefined object where only the program's own may be.
    #[cold]
    pub(crate) fn refuse_predefined(self, argument: &str, handle: Handle) -> Mistake {
        let name = self.name();
        Mistake::new(
            self.class(),
            format_args!("{argument} is {handle:#x}, {name} that is predefined and stays as it is"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_what_the_handle_is() {
        let refuse = |handle| Kind::Communicator.refuse_unknown("comm", handle).text().to_owned();
        assert_eq!(refuse(0x100), "comm is 0x100, the null handle; pass a communicator");
        assert_eq!(refuse(0x209), "comm is 0x209, which is a datatype, not a communicator");
        assert_eq!(refuse(0x20), "comm is 0x20, which is an operation, not a communicator");
        assert_eq!(refuse(0), "comm is 0x0, which is no handle; pass a communicator");
        assert!(refuse(2 << 56 | 1 << 32).ends_with("which is a group, not a communicator"));
        let stale = Kind::Request.refuse("request", 1, HandleError::Stale(1));
        assert!(stale.text().ends_with("used after it was freed; free it after its last use"));
        assert_eq!(stale.code(), ERR_REQUEST);
    }

    #[test]
    fn a_kind_has_a_null_handle() {
        use crate::abi;
        assert_eq!(Kind::Communicator.null(), abi::COMM_NULL);
        assert_eq!(Kind::Session.null(), abi::SESSION_NULL);
        assert_eq!(Kind::Operation.null(), abi::OP_NULL);
    }
}
