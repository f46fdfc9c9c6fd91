//! The feed of a copy of a group's log on another host: the words that the server sends, in a message.
//!
//! A feed is a list of items. Each item is a word with its kind and its number of words, and those words.
//!
//! | item | words |
//! |---|---|
//! | head | number of the feed, last look of the client, broadcasts that are delivered, whether it is the last feed |
//! | opened | number of the group, options (2) |
//! | request | number of the client's last request, whether it is answered, the answer |
//! | state | the state of the group, which replaces that of the copy |
//! | marks | for each member its number with its stamp, and the broadcasts that it has taken |
//! | entry | an entry's word and its details (3) |
//! | message | an entry's word or the message's number, its description (6), and its bytes if a member needs them |

use landeck_memory::Bytes;
use landeck_memory::plain::{bytes_of, bytes_of_mut};
use landeck_objects::group_log::Described;
use landeck_objects::group_log::entries::Details;

const HEAD: u64 = 1;
const OPENED: u64 = 2;
const REQUEST: u64 = 3;
const STATE: u64 = 4;
const MARKS: u64 = 5;
const ENTRY: u64 = 6;
const ACCEPTED: u64 = 7;
const WAITING: u64 = 8;
const KIND_BITS: u32 = 8;
/// Words of a message in front of its bytes.
const MESSAGE_WORDS: usize = 7;
/// Marks that the bytes of a message follow its description.
const HAS_BYTES: u64 = 1 << 32;

/// A feed that is written.
#[derive(Default)]
pub(crate) struct FeedWriter(Vec<u64>);

/// The head of a feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FeedHead {
    /// The number of the feed.
    pub(crate) number: u64,
    /// The client's last look that the feed answers.
    pub(crate) looked: u64,
    /// The broadcasts before this number are in the mailboxes of all members.
    pub(crate) delivered: u64,
    /// The server has lost its seat, or the group has ended.
    pub(crate) is_last: bool,
}

/// The facts by which a client opens a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// The number of the group's memory on its host.
    pub(crate) number: u64,
    pub(crate) options: [u64; 2],
}

/// A client's last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastRequest {
    pub(crate) number: u32,
    /// The answer, if there is one.
    pub(crate) answer: Option<u32>,
}

/// A message of the log.
#[derive(Clone, Copy)]
pub(crate) struct FedMessage<'a> {
    pub(crate) cell: u32,
    pub(crate) described: Described,
    /// None if no member of the client needs them.
    pub(crate) bytes: Option<Bytes<'a>>,
}

/// An item of a feed.
pub(crate) enum FeedItem<'a> {
    Head(FeedHead),
    Opened(Opened),
    Request(LastRequest),
    State(&'a [u64]),
    /// Pairs: a member's number with its stamp above, and the broadcasts that it has taken.
    Marks(&'a [u64]),
    Entry {
        word: u32,
        details: Details,
    },
    /// The entry of a broadcast.
    Accepted {
        word: u32,
        message: FedMessage<'a>,
    },
    /// A message whose entry the state covers.
    Waiting {
        number: u64,
        message: FedMessage<'a>,
    },
}

impl FeedWriter {
    /// The number of words so far.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes back what was put behind so many words.
    pub(crate) fn cut(&mut self, words: usize) {
        self.0.truncate(words);
    }

    /// Replaces the head, which is the first item.
    pub(crate) fn set_head(&mut self, head: FeedHead) {
        let mut first = Self::default();
        first.put(&FeedItem::Head(head));
        self.0[..first.0.len()].copy_from_slice(&first.0);
    }

    pub(crate) fn into_words(self) -> Vec<u64> {
        self.0
    }

    pub(crate) fn put(&mut self, item: &FeedItem<'_>) {
        match item {
            FeedItem::Head(FeedHead { number, looked, delivered, is_last }) => {
                self.item(HEAD, &[*number, *looked, *delivered, u64::from(*is_last)]);
            }
            FeedItem::Opened(Opened { number, options: [first, second] }) => {
                self.item(OPENED, &[*number, *first, *second]);
            }
            FeedItem::Request(LastRequest { number, answer }) => {
                let (is_answered, answer) = (answer.is_some(), answer.unwrap_or_default());
                self.item(REQUEST, &[u64::from(*number), u64::from(is_answered), answer.into()]);
            }
            FeedItem::State(words) => self.item(STATE, words),
            FeedItem::Marks(words) => self.item(MARKS, words),
            FeedItem::Entry { word, details: [first, second, third] } => {
                self.item(ENTRY, &[u64::from(*word), *first, *second, *third]);
            }
            FeedItem::Accepted { word, message } => {
                self.message(ACCEPTED, u64::from(*word), message);
            }
            FeedItem::Waiting { number, message } => self.message(WAITING, *number, message),
        }
    }

    fn item(&mut self, kind: u64, words: &[u64]) {
        self.0.push(kind | (words.len() as u64) << KIND_BITS);
        self.0.extend_from_slice(words);
    }

    fn message(&mut self, kind: u64, first: u64, message: &FedMessage<'_>) {
        let FedMessage { cell, described, bytes } = message;
        let Described { tag, words: [one, two, three], bytes: length, first_page } = *described;
        let place = u64::from(*cell) | u64::from(first_page) << 32;
        let about = u64::from(tag) | if bytes.is_some() { HAS_BYTES } else { 0 };
        self.item(kind, &[first, place, about, length, one, two, three]);
        if let Some(bytes) = bytes {
            let head = self.0.len() - MESSAGE_WORDS - 1;
            let words = bytes.len().div_ceil(size_of::<u64>());
            self.0[head] += (words as u64) << KIND_BITS;
            let start = self.0.len();
            self.0.resize(start + words, 0);
            bytes.copy_to_slice(&mut bytes_of_mut(&mut self.0[start..])[..bytes.len()]);
        }
    }
}

/// The items of a feed, in order; none for what no server writes.
pub(crate) fn items(mut words: &[u64]) -> impl Iterator<Item = Option<FeedItem<'_>>> {
    std::iter::from_fn(move || {
        let (&head, rest) = words.split_first()?;
        let length = usize::try_from(head >> KIND_BITS).unwrap_or(usize::MAX);
        let Some((item, rest)) = rest.split_at_checked(length) else {
            words = &[];
            return Some(None);
        };
        words = rest;
        Some(item_of(head & ((1 << KIND_BITS) - 1), item))
    })
}

fn item_of(kind: u64, words: &[u64]) -> Option<FeedItem<'_>> {
    Some(match (kind, words) {
        (HEAD, &[number, looked, delivered, is_last]) => {
            FeedItem::Head(FeedHead { number, looked, delivered, is_last: is_last != 0 })
        }
        (OPENED, &[number, first, second]) => {
            FeedItem::Opened(Opened { number, options: [first, second] })
        }
        (REQUEST, &[number, is_answered, answer]) => {
            let answer = (is_answered != 0).then_some(answer as u32);
            FeedItem::Request(LastRequest { number: number as u32, answer })
        }
        (STATE, words) => FeedItem::State(words),
        (MARKS, words) => FeedItem::Marks(words),
        (ENTRY, &[word, first, second, third]) => {
            FeedItem::Entry { word: word as u32, details: [first, second, third] }
        }
        (ACCEPTED, words) => {
            let (word, message) = message_of(words)?;
            FeedItem::Accepted { word: word as u32, message }
        }
        (WAITING, words) => {
            let (number, message) = message_of(words)?;
            FeedItem::Waiting { number, message }
        }
        _ => return None,
    })
}

fn message_of(words: &[u64]) -> Option<(u64, FedMessage<'_>)> {
    let (&[first, place, about, length, one, two, three], data) = words.split_first_chunk()?;
    let described = Described {
        tag: about as u32,
        words: [one, two, three],
        bytes: length,
        first_page: (place >> 32) as u32,
    };
    let bytes = match about & HAS_BYTES {
        0 => None,
        _ => Some(Bytes::from(bytes_of(data).get(..usize::try_from(length).ok()?)?)),
    };
    Some((first, FedMessage { cell: place as u32, described, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_are_read_as_they_were_written() {
        let head = FeedHead { number: 7, looked: 3, delivered: 9, is_last: true };
        let opened = Opened { number: 1 << 40, options: [5, 6] };
        let request = LastRequest { number: 4, answer: Some(77) };
        let data: Vec<u8> = (0..13).collect();
        let described = Described { tag: 9, words: [1, 2, 3], bytes: 13, first_page: 8 };
        let bytes = Some(Bytes::from(&data[..]));
        let message = FedMessage { cell: 5, described, bytes };
        let mut feed = FeedWriter::default();
        for item in [
            FeedItem::Head(head),
            FeedItem::Opened(opened),
            FeedItem::Request(request),
            FeedItem::State(&[1, 2, 3]),
            FeedItem::Marks(&[]),
            FeedItem::Entry { word: 11, details: [4, 5, 6] },
            FeedItem::Accepted { word: 12, message },
            FeedItem::Waiting { number: 13, message: FedMessage { bytes: None, ..message } },
        ] {
            feed.put(&item);
        }
        let words = feed.into_words();
        let read: Vec<FeedItem<'_>> = items(&words).map(Option::unwrap).collect();
        assert!(matches!(read[0], FeedItem::Head(it) if it == head));
        assert!(matches!(read[1], FeedItem::Opened(it) if it == opened));
        assert!(matches!(read[2], FeedItem::Request(it) if it == request));
        assert!(
            matches!(read[3], FeedItem::State([1, 2, 3])) && matches!(read[4], FeedItem::Marks([]))
        );
        assert!(matches!(read[5], FeedItem::Entry { word: 11, details: [4, 5, 6] }));
        let FeedItem::Accepted { word: 12, message } = &read[6] else { panic!("the message") };
        let mut copied = [0; 13];
        message.bytes.unwrap().copy_to_slice(&mut copied);
        assert_eq!((&copied[..], message.described), (&data[..], described));
        assert!(
            matches!(&read[7], FeedItem::Waiting { number: 13, message } if message.bytes.is_none())
        );
        assert_eq!(read.len(), 8);
        for length in 1..words.len() {
            // A part may end between items; nothing is read beyond it.
            assert!(items(&words[..length]).count() <= 8);
        }
    }
}
