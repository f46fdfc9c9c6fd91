//! The texts of errors of the Rust API in the vocabulary of `deck.h`. Most are unchanged; some name the function to
//! call.

use landeck::unstable::arithmetic::{Element, Operation, ReductionError};
use landeck::unstable::memory::GateError;
use landeck::{ErrorKind, GroupError, MailboxError, MessageError, ObjectError, SemaphoreError};

/// The types of `enum deck_type` that are numbers: what messages call them, and what elements they are.
const TYPES: [(&str, &str, Element); 10] = [
    ("DECK_INT8", "signed8", Element::I8),
    ("DECK_INT16", "signed16", Element::I16),
    ("DECK_INT32", "signed32", Element::I32),
    ("DECK_INT64", "signed64", Element::I64),
    ("DECK_UINT8", "unsigned8", Element::U8),
    ("DECK_UINT16", "unsigned16", Element::U16),
    ("DECK_UINT32", "unsigned32", Element::U32),
    ("DECK_UINT64", "unsigned64", Element::U64),
    ("DECK_FLOAT", "float32", Element::F32),
    ("DECK_DOUBLE", "float64", Element::F64),
];

/// The operations of `enum deck_op`, of which the first has the number 1.
pub(crate) const OPERATIONS: [(&str, Operation); 10] = [
    ("DECK_SUM", Operation::Sum),
    ("DECK_PROD", Operation::Product),
    ("DECK_MIN", Operation::Minimum),
    ("DECK_MAX", Operation::Maximum),
    ("DECK_AND", Operation::LogicalAnd),
    ("DECK_OR", Operation::LogicalOr),
    ("DECK_XOR", Operation::LogicalXor),
    ("DECK_BIT_AND", Operation::BitAnd),
    ("DECK_BIT_OR", Operation::BitOr),
    ("DECK_BIT_XOR", Operation::BitXor),
];

/// The text of an error. The front says itself which call of which process it was.
pub(crate) fn of(error: &ErrorKind) -> String {
    let text = error.to_string().replace("of this world", "of this group");
    match error {
        ErrorKind::Message(MessageError::OtherType { packed, asked }) => {
            let (packed, asked) = (constant(packed), constant(asked));
            MessageError::OtherType { packed, asked }.to_string()
        }
        ErrorKind::Message(MessageError::BeyondEnd { kind, asked, left }) => {
            MessageError::BeyondEnd { kind: constant(kind), asked: *asked, left: *left }.to_string()
        }
        ErrorKind::Reduction(ReductionError::Senseless { operation, element }) => {
            senseless(*operation, *element)
        }
        ErrorKind::Message(MessageError::UnevenParts { .. }) => {
            instead(&text, "cut them with deck_msg_part")
        }
        ErrorKind::Message(MessageError::NotOneKind) => instead(
            &text,
            "pack values of one type, or use deck_collective_gather_any or deck_collective_allgather_any",
        ),
        ErrorKind::Mailbox(MailboxError::NoProgressThread) => {
            instead(&text, "start with deck_init_flags and DECK_PROGRESS to be told of messages")
        }
        ErrorKind::Mailbox(MailboxError::TooMany) => {
            instead(&text, "destroy some with deck_mbox_destroy")
        }
        ErrorKind::Mailbox(MailboxError::AnotherJob) => {
            instead(&text, "post to mailboxes of this job")
        }
        ErrorKind::Semaphore(SemaphoreError::OwnerDied { .. }) => {
            instead(&text, "put right what it left half done, and call deck_sem_recover")
        }
        ErrorKind::Object(ObjectError::Taken { .. } | ObjectError::TakenElsewhere { .. }) => {
            instead(&text, "fetch that one, or choose another name")
        }
        ErrorKind::Group(GroupError::Full { .. }) => format!(
            "{}. Retrieve there, make the group with more room, or have members put out that do not \
             retrieve (when_full = DECK_EVICT in deck_group_options_t)",
            text.rsplit_once(". Retrieve").map_or(&*text, |(what, _)| what),
        ),
        ErrorKind::Group(GroupError::TooLong { .. }) => {
            instead(&text, "make it with more (bytes in deck_group_options_t), or send parts")
        }
        ErrorKind::Group(GroupError::TwiceInProcess { .. }) => instead(
            &text,
            "collective operations have one member of each process; use deck_group_sync and \
             deck_group_bcast, or leave with one of them",
        ),
        ErrorKind::ProgressThread(_) => {
            instead(&text, "allow more threads, or start with deck_init")
        }
        ErrorKind::Thread(GateError::Reentered) => {
            "a call was made from inside another call of DECK: return from that first".to_owned()
        }
        // The text of these contains no words of the program.
        ErrorKind::Revoked { .. }
        | ErrorKind::Mismatch { .. }
        | ErrorKind::NoSuchRank { .. }
        | ErrorKind::WrongCount { .. }
        | ErrorKind::PeerHeapFull { .. }
        | ErrorKind::Spoiled { .. }
        | ErrorKind::NoBoard
        | ErrorKind::NotAMember
        | ErrorKind::TooManyGroups
        | ErrorKind::GivenUp { .. }
        | ErrorKind::NoDaemon(_)
        | ErrorKind::Excluded => text.replace("world", "group"),
        _ => text,
    }
}

/// The constant of `enum deck_type` for what messages call a type.
fn constant(kind: &str) -> String {
    let number = TYPES.iter().find(|(_, words, _)| *words == kind).map(|(name, _, _)| *name);
    let other = match kind {
        "text" => "DECK_STRING",
        "the address of a mailbox" => "DECK_MBOX",
        _ => kind,
    };
    number.unwrap_or(other).to_owned()
}

/// An operation that means nothing for a type.
fn senseless(operation: Operation, element: Element) -> String {
    let known = OPERATIONS.iter().find(|(_, other)| *other == operation);
    let operation = known.map_or_else(|| operation.to_string(), |(name, _)| (*name).to_owned());
    let known = TYPES.iter().find(|(_, _, other)| *other == element);
    let element = known.map_or_else(|| element.to_string(), |(name, _, _)| (*name).to_owned());
    format!("{operation} means nothing for values of {element}: choose another operation or type")
}

/// A text that says something else after its last colon or semicolon: what now.
fn instead(text: &str, what_now: &str) -> String {
    let what = text.rsplit_once(": ").map_or(text, |(what, _)| what);
    format!("{what}: {what_now}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck::unstable::joining::objects::ObjectKind;

    #[test]
    fn types_and_operations_have_the_names_of_deck() {
        let other = |packed: &str, asked: &str| {
            let (packed, asked) = (packed.to_owned(), asked.to_owned());
            of(&MessageError::OtherType { packed, asked }.into())
        };
        assert!(other("float64", "signed32").contains("is DECK_DOUBLE, not DECK_INT32: unpack it"));
        let mixed = other("text", "the address of a mailbox");
        assert!(mixed.contains("is DECK_STRING, not DECK_MBOX"), "{mixed}");
        let beyond = MessageError::BeyondEnd { kind: "unsigned8".to_owned(), asked: 3, left: 2 };
        assert!(
            of(&beyond.into()).starts_with("3 values of DECK_UINT8 were asked for, 2 are left")
        );
        let senseless =
            ReductionError::Senseless { operation: Operation::BitOr, element: Element::F32 };
        let text = of(&ErrorKind::Reduction(senseless));
        assert!(text.starts_with("DECK_BIT_OR means nothing for values of DECK_FLOAT"), "{text}");
    }

    #[test]
    fn messages_call_types_as_here() {
        let name_of = |message: landeck::Message| message.next_kind().unwrap_or_default();
        let mut message = landeck::Message::new();
        message.pack(&[1.0_f64]);
        assert_eq!(constant(&name_of(message)), "DECK_DOUBLE");
        let mut message = landeck::Message::new();
        message.pack_text("a");
        assert_eq!(constant(&name_of(message)), "DECK_STRING");
    }

    #[test]
    fn advice_of_errors_is_given_in_words_of_deck() {
        let group = || "a: b. Retrieve there".to_owned();
        let kind = ObjectKind::Semaphore;
        let said: [(ErrorKind, &str); 14] = [
            (
                MessageError::UnevenParts { values: 5, parts: 2 }.into(),
                "5 values cannot be divided into 2 equal parts: cut them with deck_msg_part",
            ),
            (MessageError::NotOneKind.into(), "use deck_collective_gather_any or"),
            (MailboxError::NoProgressThread.into(), "start with deck_init_flags and DECK_PROGRESS"),
            (MailboxError::TooMany.into(), "deck_mbox_destroy"),
            (MailboxError::AnotherJob.into(), "another job: post to mailboxes of this job"),
            (
                SemaphoreError::OwnerDied { slot: 1, who: "rank 1 (pid 2)".to_owned() }.into(),
                "call deck_sem_recover",
            ),
            (
                ObjectError::Taken { kind, name: "a: b".to_owned(), pid: 2 }.into(),
                "the semaphore \"a: b\" is there already, made by process 2: fetch that one",
            ),
            (
                GroupError::Full { group: group(), members: vec![1], waiting: 3 }.into(),
                "Retrieve there\" is full: member 1 let 3 messages wait. Retrieve there, make",
            ),
            (
                GroupError::TooLong { group: group(), bytes: 9, most: 8 }.into(),
                "which has room for 8: make it with more (bytes in deck_group_options_t), or send parts",
            ),
            (GroupError::TwiceInProcess { group: group() }.into(), "use deck_group_sync and"),
            (ErrorKind::ProgressThread(std::io::ErrorKind::Other.into()), "start with deck_init"),
            (GateError::Reentered.into(), "another call of DECK"),
            (ErrorKind::NoSuchRank { rank: 4, size: 2 }, "rank 4 is not in this group of 2"),
            (ErrorKind::Revoked { dead: String::new() }, "the group was revoked"),
        ];
        for (error, words) in said {
            let text = of(&error);
            assert!(text.contains(words), "{text}");
            assert!(!text.contains(['`']) && !text.contains("::"), "{text}");
        }
    }
}
