//! The settings of a job, equal in all its processes: the host's cost parameters and the user's overrides.
//!
//! The creator of the job's segment reads them once and stores them there as words; every process loads them from
//! there. So the environment of a process does not matter.

use std::fmt;
use std::str::FromStr;

use crate::cost_parameters::{CostParameters, PROCESSORS_MAX};
use crate::nearness::Nearness;
use crate::operation::Operation;
use crate::preset::{Preset, PresetError};

/// The place of the length from which blocks are read where they lie.
const ONE_COPY_WORD: usize = Settings::WORDS - 2;
/// The place of the wishes for paths between hosts.
const FIRST_PATHS_WORD: usize = ONE_COPY_WORD - Settings::PATHS_WORDS;
/// The first bit of the nearness in the last word; below it stands the flag.
const NEARNESS_BIT: u32 = 8;
/// The first bits of the hosts that share processors, and of these processors, in the last word.
const SHARING_HOSTS_BIT: u32 = 16;
const SHARED_PROCESSORS_BIT: u32 = 32;
const CHECKED: u64 = 1;

/// The cost parameters and overrides of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The host's cost parameters.
    pub figures: CostParameters,
    /// The ways that the user requests.
    pub overrides: Overrides,
    /// Members compare what must agree in their calls.
    pub is_checked: bool,
    /// The nearness from which clusters are derived unless they are given.
    pub nearness: Nearness,
    /// The length in bytes from which members of a host read each other's blocks where they lie, in one copy, if it was asked
    /// for; `u64::MAX` if they never shall. Else the figures have one for each operation.
    pub one_copy_from: Option<u64>,
    /// The hosts of the job that share processors, if some do; those with the fewest for each host.
    pub sharing: Option<Sharing>,
    /// The wishes for paths between hosts, and for where data wait, on which no plan depends: they are kept for the channels.
    pub paths: [u64; Self::PATHS_WORDS],
}

/// Hosts of a job that share processors, as namespaces of one computer do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// So many hosts, two or more.
    pub hosts: u32,
    /// Have so many processors together, at least one.
    pub processors: u32,
}

impl Sharing {
    /// The most hosts that are told apart; more count as so many.
    pub const HOSTS_MAX: u32 = u16::MAX as u32 - 1;

    /// Returns the sharing of so many hosts; `None` for numbers that no job has.
    pub fn new(hosts: u32, processors: u32) -> Option<Self> {
        let is_possible = (2..=Self::HOSTS_MAX).contains(&hosts)
            && (1..=PROCESSORS_MAX).contains(&u64::from(processors));
        is_possible.then_some(Self { hosts, processors })
    }

    const fn to_word(self) -> u64 {
        (self.hosts as u64) << SHARING_HOSTS_BIT | (self.processors as u64) << SHARED_PROCESSORS_BIT
    }

    fn from_word(word: u64) -> Option<Self> {
        let hosts = (word >> SHARING_HOSTS_BIT) as u16;
        Self::new(u32::from(hosts), (word >> SHARED_PROCESSORS_BIT) as u32)
    }
}

impl Settings {
    /// The number of words.
    pub const WORDS: usize = 64;
    /// The number of those about paths between hosts.
    pub const PATHS_WORDS: usize = 3;
    /// The first bit of the most lanes of a process in the first of those, which daemons read as well.
    pub const LANES_BIT: u32 = 32;

    /// The most lanes of a process, if the user says so.
    pub fn lanes_max(&self) -> Option<u32> {
        Some((self.paths[0] >> Self::LANES_BIT) as u32).filter(|most| *most > 0)
    }

    /// Returns the settings as words.
    pub fn to_words(&self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        words[..CostParameters::WORDS].copy_from_slice(&self.figures.to_words());
        let text = self.overrides.to_string();
        for (word, bytes) in
            words[CostParameters::WORDS..FIRST_PATHS_WORD].iter_mut().zip(text.as_bytes().chunks(8))
        {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(eight);
        }
        words[FIRST_PATHS_WORD..ONE_COPY_WORD].copy_from_slice(&self.paths);
        words[ONE_COPY_WORD] = self.one_copy_from.unwrap_or(0);
        words[Self::WORDS - 1] = if self.is_checked { CHECKED } else { 0 }
            | self.nearness.to_word() << NEARNESS_BIT
            | self.sharing.map_or(0, Sharing::to_word);
        words
    }

    /// Reads settings from arbitrary words; invalid parts take their defaults. Every process reads the same words, so
    /// all replace the same parts.
    pub fn from_words(words: &[u64; Self::WORDS]) -> Self {
        let mut numbers = [0; CostParameters::WORDS];
        numbers.copy_from_slice(&words[..CostParameters::WORDS]);
        let bytes = words[CostParameters::WORDS..FIRST_PATHS_WORD]
            .iter()
            .flat_map(|word| word.to_le_bytes());
        let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
        let text = String::from_utf8(bytes).unwrap_or_default();
        let last = words[Self::WORDS - 1];
        Self {
            figures: CostParameters::from_words(&numbers).unwrap_or_default(),
            overrides: text.parse().unwrap_or_default(),
            is_checked: last & u64::from(u8::MAX) == CHECKED,
            nearness: Nearness::from_word(last >> NEARNESS_BIT & u64::from(u8::MAX)),
            one_copy_from: Some(words[ONE_COPY_WORD]).filter(|bytes| *bytes != 0),
            sharing: Sharing::from_word(last),
            paths: std::array::from_fn(|at| words[FIRST_PATHS_WORD + at]),
        }
    }
}

/// Ways that the user requests by name: `butterfly` for every operation, or `allreduce=butterfly,broadcast=knomial:4`.
/// Later entries take precedence.
#[derive(Clone, Debug, Default)]
pub struct Overrides(Vec<Override>);

#[derive(Clone, Debug)]
struct Override {
    /// None for all.
    operation: Option<Operation>,
    preset: Preset,
}

/// An invalid list of overrides.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverridesError {
    /// No operation has this name.
    #[error(
        "there is no operation {name:?}; there are {}",
        Operation::ALL.map(Operation::as_str).join(", ")
    )]
    Operation {
        /// The requested name.
        name: String,
    },
    /// No way has this name.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// The text does not fit into a segment.
    #[error("it has {bytes} bytes, and {} are the most; ask for less", Overrides::BYTES_MAX)]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

impl Overrides {
    /// Bytes of the longest text.
    pub const BYTES_MAX: usize = 8 * (FIRST_PATHS_WORD - CostParameters::WORDS);

    /// Returns the preset that the user requests for an operation, if any.
    pub fn preset(&self, operation: Operation) -> Option<&Preset> {
        let applies = |one: &&Override| one.operation.is_none_or(|of| of == operation);
        self.0.iter().rev().find(applies).map(|one| &one.preset)
    }

    /// Whether there are no overrides.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns these overrides followed by the others.
    ///
    /// # Errors
    /// [`OverridesError::TooLong`].
    pub fn then(mut self, others: Self) -> Result<Self, OverridesError> {
        self.0.extend(others.0);
        self.checked()
    }

    fn checked(self) -> Result<Self, OverridesError> {
        match self.to_string().len() {
            bytes if bytes > Self::BYTES_MAX => Err(OverridesError::TooLong { bytes }),
            _ => Ok(self),
        }
    }
}

impl PartialEq for Overrides {
    /// Compares presets by their names.
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Overrides {}

impl fmt::Display for Overrides {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, one) in self.0.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            match one.operation {
                Some(operation) => write!(formatter, "{comma}{operation}={}", one.preset)?,
                None => write!(formatter, "{comma}{}", one.preset)?,
            }
        }
        Ok(())
    }
}

impl FromStr for Overrides {
    type Err = OverridesError;

    fn from_str(text: &str) -> Result<Self, OverridesError> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        Self(parts.map(one).collect::<Result<_, _>>()?).checked()
    }
}

fn one(part: &str) -> Result<Override, OverridesError> {
    let (operation, name) = match part.split_once('=') {
        None => (None, part),
        Some((operation, name)) => {
            let found = Operation::from_name(operation.trim());
            let unknown = || OverridesError::Operation { name: operation.trim().into() };
            (Some(found.ok_or_else(unknown)?), name.trim())
        }
    };
    Ok(Override { operation, preset: name.parse()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_back() {
        let settings = Settings {
            figures: CostParameters { line_ps: 31_000, ..CostParameters::default() },
            overrides: "flat, allreduce=butterfly+split,broadcast=knomial:4".parse().unwrap(),
            is_checked: true,
            nearness: Nearness::Hosts,
            one_copy_from: Some(65_536),
            sharing: Sharing::new(8, 3),
            paths: [7, 8, 9],
        };
        assert!(settings.sharing.is_some());
        let never = Settings { one_copy_from: Some(u64::MAX), ..Settings::default() };
        assert_eq!(Settings::from_words(&never.to_words()), never);
        assert_eq!(Settings::from_words(&settings.to_words()), settings);
        assert_eq!(Settings::from_words(&Settings::default().to_words()), Settings::default());
    }

    #[test]
    fn words_of_anybody_lead_to_something_that_all_make_of_them() {
        assert_eq!(Settings::from_words(&[0; Settings::WORDS]), Settings::default());
        let never =
            Settings { one_copy_from: Some(u64::MAX), paths: [u64::MAX; 3], ..Settings::default() };
        assert_eq!(Settings::from_words(&[u64::MAX; Settings::WORDS]), never);
        let mut words = Settings::default().to_words();
        words[CostParameters::WORDS] = u64::from_le_bytes(*b"nonsense");
        assert_eq!(Settings::from_words(&words), Settings::default());
        words[CostParameters::WORDS..FIRST_PATHS_WORD].fill(u64::from_le_bytes(*b"flat,,,,"));
        assert!(!Settings::from_words(&words).overrides.is_empty(), "as long as there is room for");
    }

    #[test]
    fn numbers_that_no_job_has_are_no_sharing() {
        for (hosts, processors) in [(0, 2), (1, 2), (2, 0), (70_000, 2), (2, 70_000)] {
            assert_eq!(Sharing::new(hosts, processors), None, "{hosts} {processors}");
        }
    }

    #[test]
    fn the_last_that_names_an_operation_wins() {
        let overrides: Overrides = "allreduce=flat,butterfly,barrier=board".parse().unwrap();
        let named = |operation| overrides.preset(operation).map(Preset::to_string);
        assert_eq!(named(Operation::AllReduce), Some("butterfly".into()));
        assert_eq!(named(Operation::Barrier), Some("board".into()));
        assert!(Overrides::default().preset(Operation::Scan).is_none());
        let more = overrides.then("scan=knomial:3".parse().unwrap()).unwrap();
        assert_eq!(more.preset(Operation::Scan).unwrap().to_string(), "knomial:3");
    }

    #[test]
    fn an_unknown_operation_or_architecture_is_named() {
        for (text, word) in [
            ("reduction=flat", "no operation \"reduction\"; there are barrier, broadcast"),
            ("allreduce=star", "no architecture \"star\""),
            ("allreduce=", "no architecture \"\""),
            ("knomial:1", "knomial does not know \"1\""),
            (&"flat,".repeat(100), "it has 499 bytes, and 304 are the most"),
        ] {
            let error = text.parse::<Overrides>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!("".parse::<Overrides>().unwrap().is_empty());
    }
}
