//! What errors of the Rust API say in the vocabulary of `deck.h`: most say the same, some name what to call.

use landeck::unstable::memory::GateError;
use landeck::{ErrorKind, GroupError, MailboxError, MessageError, ObjectError, SemaphoreError};

/// The text of an error. The front says itself which call of whom it was.
pub(crate) fn of(error: &ErrorKind) -> String {
    let text = error.to_string();
    match error {
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
        ErrorKind::Object(ObjectError::Taken { .. }) => {
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
        // In these are no words of the program.
        ErrorKind::Revoked
        | ErrorKind::Mismatch { .. }
        | ErrorKind::NoSuchRank { .. }
        | ErrorKind::WrongCount { .. }
        | ErrorKind::PeerHeapFull { .. }
        | ErrorKind::Spoiled { .. }
        | ErrorKind::NoBoard
        | ErrorKind::NotAMember
        | ErrorKind::TooManyGroups
        | ErrorKind::Excluded => text.replace("world", "group"),
        _ => text,
    }
}

/// A text that says something else after its last colon or semicolon: what now.
fn instead(text: &str, what_now: &str) -> String {
    let what = text.rsplit_once(": ").map_or(text, |(what, _)| what);
    format!("{what}: {what_now}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck::unstable::host::objects::ObjectKind;

    #[test]
    fn what_now_is_said_in_words_of_deck() {
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
            (SemaphoreError::OwnerDied { slot: 1, pid: 2 }.into(), "call deck_sem_recover"),
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
            (ErrorKind::Revoked, "the group was revoked"),
        ];
        for (error, words) in said {
            let text = of(&error);
            assert!(text.contains(words), "{text}");
            assert!(!text.contains(['`']) && !text.contains("::"), "{text}");
        }
    }
}
