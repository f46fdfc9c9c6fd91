//! The cost parameters of a host, from which the cost of a collective operation is computed.
//!
//! All are whole numbers, so every process computes the same with them. They are measured once for
//! a host (`landeck tune`), kept as text, and reach the processes of a job as words in its segment.

use crate::derive::BoardStyle;
use crate::operation::Operation;

/// The cost parameters of a host. Times are in picoseconds; length-dependent ones are for 1,024 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostParameters {
    /// Processors there were when it was measured.
    pub processors: u64,
    /// A cache line from one processor to another.
    pub line_ps: u64,
    /// A message of eight bytes between two processes: half of a round trip.
    pub message_ps: u64,
    /// A member's word on the board, including the check whether it is the last.
    pub deposit_ps: u64,
    /// A switch from one process to another on the same processor.
    pub switch_ps: u64,
    /// Data that another process has put into shared memory, copied out of it.
    pub one_copy_kib_ps: u64,
    /// A long message: copied into shared memory and out of it, both at once.
    pub two_copy_kib_ps: u64,
    /// Data copied by the process that has them.
    pub local_copy_kib_ps: u64,
    /// Two pieces of data combined into one, for each KiB of one piece.
    pub reduction_kib_ps: u64,
    /// The size of the last cache of a processor, in KiB.
    pub cache_kib: u64,
    /// The length, in KiB, from which a message is faster in one copy by the kernel of the system, where its data are
    /// written before and read afterwards. The largest value stands for none.
    pub one_copy_from_kib: u64,
    /// For each of [`BoardStyle::TELLING`] the length, in KiB, from which the operation is faster if members read each
    /// other's blocks where they lie. The largest value stands for none.
    pub told_from_kib: [u64; 8],
    /// A message of eight bytes between two hosts. Not measured: what a common network needs.
    pub far_message_ps: u64,
    /// A long message between two hosts. Not measured either.
    pub far_kib_ps: u64,
}

impl Default for CostParameters {
    /// The parameters of a virtual machine with two processors that share a cache.
    fn default() -> Self {
        Self {
            processors: 2,
            line_ps: 45_000,
            message_ps: 90_000,
            deposit_ps: 30_000,
            switch_ps: 1_100_000,
            one_copy_kib_ps: 16_000,
            two_copy_kib_ps: 20_000,
            local_copy_kib_ps: 14_000,
            reduction_kib_ps: 24_000,
            cache_kib: 32 << 10,
            one_copy_from_kib: Self::NO_LENGTH_KIB,
            told_from_kib: [Self::NO_LENGTH_KIB; 8],
            far_message_ps: 12_000_000,
            far_kib_ps: 870_000,
        }
    }
}

/// An invalid cost parameter or record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CostParametersError {
    /// A figure is missing.
    #[error("{name} is missing")]
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// A figure is out of range.
    #[error("{name} is {value}, but lies between 1 and {most} on every machine")]
    Impossible {
        /// Its name.
        name: &'static str,
        /// The value found.
        value: u64,
        /// The most it can be.
        most: u64,
    },
    /// An unknown line.
    #[error("line {line} is {text:?}, which no version of `landeck tune` writes")]
    Line {
        /// Its number, counted from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
}

/// A figure: its name, its meaning, its unit and its field.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    about: &'static str,
    unit: Unit,
    place: fn(&mut CostParameters) -> &mut u64,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number.
    Processors,
    /// A time in picoseconds.
    Picoseconds,
    /// A size in KiB.
    Kib,
    /// The length in KiB from which a way is faster; [`CostParameters::NO_LENGTH_KIB`] if none is.
    FromKib,
}

impl Unit {
    const fn most(self) -> u64 {
        match self {
            Self::Processors => PROCESSORS_MAX,
            Self::Picoseconds => TIME_MAX_PS,
            Self::Kib => CACHE_MAX_KIB,
            Self::FromKib => CostParameters::NO_LENGTH_KIB,
        }
    }
}

/// A figure, as it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its value.
    pub value: u64,
}

/// No time is longer than a second, and none of these machines has more processors.
pub(crate) const TIME_MAX_PS: u64 = 1_000_000_000_000;
pub(crate) const PROCESSORS_MAX: u64 = 65_536;
const CACHE_MAX_KIB: u64 = 1 << 30;

/// Figures that earlier versions did not measure; where they are missing, the default holds.
pub(crate) fn is_added_later(field: &Field) -> bool {
    field.unit == Unit::FromKib || field.name == "cache_kib"
}

macro_rules! figure {
    ($unit:ident, $name:ident, $about:literal) => {
        Field {
            name: stringify!($name),
            about: $about,
            unit: Unit::$unit,
            place: |figures| &mut figures.$name,
        }
    };
}

macro_rules! told {
    ($number:literal, $name:literal, $operation:literal) => {
        Field {
            name: $name,
            about: concat!("KiB from which members read each other's blocks in ", $operation),
            unit: Unit::FromKib,
            place: |figures| &mut figures.told_from_kib[$number],
        }
    };
}

/// All figures, in the order of their words.
pub(crate) const FIELDS: [Field; CostParameters::WORDS] = [
    figure!(Processors, processors, "processors when it was measured"),
    figure!(Picoseconds, line_ps, "a cache line between two processors"),
    figure!(Picoseconds, message_ps, "a message of 8 bytes, half of a round trip"),
    figure!(Picoseconds, deposit_ps, "a member's word on the board"),
    figure!(Picoseconds, switch_ps, "from one process to another on the same processor"),
    figure!(Picoseconds, one_copy_kib_ps, "1 KiB out of another process's shared memory"),
    figure!(Picoseconds, two_copy_kib_ps, "1 KiB of a long message"),
    figure!(Picoseconds, local_copy_kib_ps, "1 KiB copied in place"),
    figure!(Picoseconds, reduction_kib_ps, "1 KiB combined with another"),
    figure!(Kib, cache_kib, "KiB of the last cache of a processor"),
    figure!(FromKib, one_copy_from_kib, "KiB from which a message is copied once by the kernel"),
    told!(0, "told_broadcast_from_kib", "a broadcast"),
    told!(1, "told_gather_from_kib", "a gather"),
    told!(2, "told_scatter_from_kib", "a scatter"),
    told!(3, "told_allgather_from_kib", "an allgather"),
    told!(4, "told_alltoall_from_kib", "an alltoall"),
    told!(5, "told_reduce_from_kib", "a reduce"),
    told!(6, "told_allreduce_from_kib", "an allreduce"),
    told!(7, "told_reduce_scatter_from_kib", "a reduce-scatter"),
    figure!(Picoseconds, far_message_ps, "a message of 8 bytes between hosts; not measured"),
    figure!(Picoseconds, far_kib_ps, "1 KiB of a long message between hosts; not measured"),
];

impl CostParameters {
    /// The number of words.
    pub const WORDS: usize = 21;

    /// The value of `one_copy_from_kib` and `told_from_kib` that stands for no length.
    pub const NO_LENGTH_KIB: u64 = 1 << 30;

    /// Returns the length in bytes from which messages are copied once; `u64::MAX` if none are.
    pub fn one_copy_from_bytes(&self) -> u64 {
        bytes_from(self.one_copy_from_kib)
    }

    /// Returns the length in bytes from which members read each other's blocks where they lie in this operation; `u64::MAX` if
    /// they never do.
    pub fn told_from_bytes(&self, operation: Operation) -> u64 {
        let number = BoardStyle::TELLING.iter().position(|told| *told == operation);
        number.map_or(u64::MAX, |number| bytes_from(self.told_from_kib[number]))
    }

    /// Returns the size of the last cache of a processor.
    pub fn cache_bytes(&self) -> u64 {
        self.cache_kib << 10
    }

    /// Returns the parameters as words.
    pub fn to_words(mut self) -> [u64; Self::WORDS] {
        FIELDS.map(|field| *(field.place)(&mut self))
    }

    /// Reads parameters from arbitrary words.
    ///
    /// # Errors
    /// [`CostParametersError::Impossible`].
    pub fn from_words(words: &[u64; Self::WORDS]) -> Result<Self, CostParametersError> {
        let mut figures = Self::default();
        for (field, &value) in FIELDS.iter().zip(words) {
            let (name, most) = (field.name, field.unit.most());
            if value == 0 || value > most {
                return Err(CostParametersError::Impossible { name, value, most });
            }
            *(field.place)(&mut figures) = value;
        }
        Ok(figures)
    }

    /// Sets the figure of this name; false where there is none.
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        let field = FIELDS.iter().find(|field| field.name == name);
        field.map(|field| *(field.place)(self) = value).is_some()
    }

    /// The smaller one of each figure.
    #[must_use]
    pub fn least(mut self, mut other: Self) -> Self {
        for field in &FIELDS {
            let least = (field.place)(&mut self);
            *least = (*least).min(*(field.place)(&mut other));
        }
        self
    }

    /// Of each figure that of the slower machine: the longer time, fewer processors, the smaller cache. Data are
    /// copied once where both do that.
    #[must_use]
    pub fn slower(mut self, mut other: Self) -> Self {
        for field in &FIELDS {
            let (own, others) = ((field.place)(&mut self), *(field.place)(&mut other));
            *own = match field.unit {
                Unit::Picoseconds | Unit::FromKib => (*own).max(others),
                Unit::Processors | Unit::Kib => (*own).min(others),
            };
        }
        self
    }

    /// Returns all figures, in order.
    pub fn lines(mut self) -> impl Iterator<Item = Figure> {
        FIELDS.iter().map(move |field| Figure {
            name: field.name,
            about: field.about,
            unit: field.unit,
            value: *(field.place)(&mut self),
        })
    }
}

const fn bytes_from(kib: u64) -> u64 {
    if kib < CostParameters::NO_LENGTH_KIB { kib << 10 } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_machines_the_slower_one_counts() {
        let usual = CostParameters::default();
        let one = CostParameters { line_ps: 90_000, processors: 8, ..usual };
        let other = CostParameters { message_ps: 95_000, cache_kib: 1_024, ..usual };
        let both = CostParameters { processors: 2, cache_kib: 1_024, message_ps: 95_000, ..one };
        assert_eq!((one.slower(other), other.slower(one)), (both, both));
    }

    #[test]
    fn every_field_has_a_word_of_its_own() {
        let mut words = [0; CostParameters::WORDS];
        (1..).zip(&mut words).for_each(|(value, word)| *word = value);
        assert_eq!(CostParameters::from_words(&words).unwrap().to_words(), words);
    }

    #[test]
    fn every_operation_that_can_be_told_has_a_length() {
        for (number, operation) in BoardStyle::TELLING.into_iter().enumerate() {
            let mut figures = CostParameters::default();
            assert_eq!(figures.told_from_bytes(operation), u64::MAX, "{operation}");
            let name = format!("told_{operation}_from_kib").replace('-', "_");
            assert!(figures.set(&name, 64), "{name}");
            assert_eq!(figures.told_from_kib[number], 64, "{name}");
            assert_eq!(figures.told_from_bytes(operation), 65_536, "{operation}");
        }
        assert_eq!(CostParameters::default().told_from_bytes(Operation::Barrier), u64::MAX);
    }

    #[test]
    fn the_least_is_taken_of_each() {
        let usual = CostParameters::default();
        let one = CostParameters { line_ps: 1, switch_ps: usual.switch_ps + 1, ..usual };
        assert_eq!(one.least(usual), CostParameters { line_ps: 1, ..usual });
        assert_eq!(usual.least(one), one.least(usual));
    }

    #[test]
    fn an_impossible_cost_parameter_is_named() {
        let mut words = CostParameters::default().to_words();
        words[1] = 0;
        let error = CostParameters::from_words(&words).unwrap_err();
        assert_eq!(
            error,
            CostParametersError::Impossible { name: "line_ps", value: 0, most: TIME_MAX_PS }
        );
        assert!(CostParameters::from_words(&[u64::MAX; CostParameters::WORDS]).is_err());
    }
}
