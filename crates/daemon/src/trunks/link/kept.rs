//! The part of a link that outlives a founder's daemon: the next run of that goes on with both streams where they were.

use std::borrow::Cow;
use std::time::Duration;

use landeck_channel::pair::Pair;
use landeck_wire::word::HostEntry;
use serde::{Deserialize, Serialize};

use super::{Link, Parcel};

/// A link without its trunk.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeptLink<'a> {
    /// The other host.
    pub(crate) entry: Cow<'a, HostEntry>,
    is_narrow: bool,
    was_up: bool,
    run: Option<u32>,
    generation: u32,
    control: KeptStream<'a>,
    bulk: KeptStream<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptStream<'a> {
    received_there: u64,
    kept: Vec<Cow<'a, Parcel>>,
    received: u64,
}

impl Link {
    /// The link, as the next run of this daemon needs it.
    pub(crate) fn kept(&self) -> KeptLink<'_> {
        KeptLink {
            entry: Cow::Borrowed(&self.entry),
            is_narrow: self.is_narrow,
            was_up: self.was_up,
            run: self.run,
            generation: self.generation,
            control: KeptStream::of(&self.control),
            bulk: KeptStream::of(&self.bulk),
        }
    }

    /// The link that the run of this daemon before has had. It has no trunk.
    pub(crate) fn resumed(kept: KeptLink<'_>, first_attempt: Duration, now: Duration) -> Self {
        let KeptLink { entry, is_narrow, was_up, run, generation, control, bulk } = kept;
        let (control, bulk) = (control.into_pair(), bulk.into_pair());
        let new = Self::new(entry.into_owned(), 0, first_attempt, now);
        Self { is_narrow, was_up, run, generation, control, bulk, ..new }
    }
}

impl<'a> KeptStream<'a> {
    fn of(stream: &'a Pair<Parcel>) -> Self {
        let kept = stream.kept().map(Cow::Borrowed).collect();
        let (received_there, received) = (stream.received_there(), stream.positions().received);
        Self { received_there, kept, received }
    }

    fn into_pair(self) -> Pair<Parcel> {
        let kept = self.kept.into_iter().map(|parcel| {
            let bytes = parcel.content.len();
            (parcel.into_owned(), bytes)
        });
        Pair::resumed(self.received_there, kept, self.received)
    }
}

/// Contents as bytes.
pub(super) mod bytes {
    use std::rc::Rc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        content: &Rc<[u8]>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(content)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Rc<[u8]>, D::Error> {
        Vec::deserialize(deserializer).map(Rc::from)
    }
}
