//! Ways to do every operation, by name: an architecture with its parameters, or the ways of a paper.
//!
//! The names that the command line, the environment and the API understand:
//!
//! | name | way |
//! |---|---|
//! | `flat`, `pipeline`, `daisy`, `binary-tree`, `butterfly`, `ring`, `circulant` | [`crate::architecture`] |
//! | `hierarchy` or `hierarchy:binary`, `hierarchy:3-ary` | a tree of the clusters with fan-out 2, or 3 |
//! | `hierarchy:parents:0-0-1` | the parents of clusters 1, 2, 3 |
//! | `hierarchy:2x3x4` | the members in two parts, each in three, each in four |
//! | `hierarchy:levels:0-0-1-1/0-1-2-2` | the host of each member, and its cache |
//! | `hierarchy:derived` | the hosts and caches that the group knows |
//! | `hypercube`, `hypercube:2-0-1-3` | clusters in their order, or in that of these keys |
//! | `knomial`, `knomial:4`, `knomial:nearest-first` | radix 2, or 4; or radix 2 with the nearest first |
//! | `board`, `board:each`, `board:divided`, `board:together`, `board:told` | over shared memory ([`BoardStyle`]) |
//! | `hosts`, `hosts:ring`, `hosts:knomial:4` | over the board of each host, and a butterfly, a ring or a tree between the hosts |
//! | `deck2000` | a server for everything: flat |
//! | `deck2003` | binary trees where the paper has them, else straight to the root |
//! | `mpi2003` | MPI as the same paper describes it: binomial broadcast, butterflies |
//!
//! `+split` after the name of an architecture divides long data among the members on the way
//! ([`Way::Messages`]): `ring+split`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::architecture::{
    Architecture, BinaryTree, Butterfly, Circulant, Daisy, Flat, Hierarchy, HierarchyError,
    Hypercube, Knomial, Pipeline, Ring,
};
use crate::derive::{BoardStyle, Way};
use crate::operation::Operation;
use crate::partial::Order;

/// A way for each operation.
#[derive(Clone, Debug)]
pub struct Preset {
    name: String,
    ways: Ways,
}

#[derive(Clone, Debug)]
enum Ways {
    /// One way for every operation.
    Same(Way),
    Deck2000,
    Deck2003,
    Mpi2003,
}

/// The names without their parameters, and their meanings.
pub const NAMES: [(&str, &str); 15] = [
    ("flat", "one serves all"),
    ("pipeline", "clusters in a row"),
    ("daisy", "leaders around a centre, each with its cluster"),
    ("hierarchy", "levels of groups"),
    ("hypercube", "a cube of clusters"),
    ("binary-tree", "everybody serves two"),
    ("knomial", "everybody who has it passes it on"),
    ("butterfly", "pairs at doubling distances"),
    ("ring", "each talks to the next"),
    ("circulant", "everybody over the same distances, for any size"),
    ("board", "over shared memory"),
    ("hosts", "over the board of each host, and messages between hosts"),
    ("deck2000", "as DECK in 2000: a server for everything"),
    ("deck2003", "as DECK in 2003: binary trees, and straight to the root"),
    ("mpi2003", "as MPI in 2003: binomial trees and butterflies"),
];

/// An invalid name of a way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PresetError {
    /// No way has this name.
    #[error(
        "there is no architecture {name:?}{}; there are {}",
        .near.map_or(String::new(), |near| format!(" (did you mean {near:?}?)")),
        NAMES.map(|(name, _)| name).join(", ")
    )]
    Unknown {
        /// The requested name.
        name: String,
        /// A known name that resembles it.
        near: Option<&'static str>,
    },
    /// A parameter that the architecture does not have.
    #[error("{name} does not know {parameter:?}; give {choice}")]
    Parameter {
        /// The architecture.
        name: String,
        /// The text after its colon.
        parameter: String,
        /// The valid parameters.
        choice: &'static str,
    },
    /// An invalid hierarchy.
    #[error("{parameter:?} is no hierarchy: {error}")]
    Hierarchy {
        /// The text after the colon.
        parameter: String,
        /// The reason.
        error: HierarchyError,
    },
    /// Only the messages of one architecture can be split.
    #[error("{name} cannot be split; leave +split out, or choose an architecture of messages")]
    Split {
        /// The requested name.
        name: String,
    },
}

impl Preset {
    /// Returns the way of an operation.
    pub fn way(&self, operation: Operation) -> Way {
        match &self.ways {
            Ways::Same(way) => way.clone(),
            Ways::Deck2000 => Way::by(Flat),
            Ways::Deck2003 => deck2003(operation),
            Ways::Mpi2003 => mpi2003(operation),
        }
    }

    /// Returns the order in which data combine, if the preset determines it.
    pub fn order(&self, operation: Operation) -> Option<Order> {
        // The paper of 2003: all data go to the root, which combines them in one pass.
        let late = matches!(self.ways, Ways::Deck2003) && operation == Operation::Reduce;
        late.then_some(Order::Late)
    }

    /// Returns the preset with long data divided among the members on the way.
    ///
    /// # Errors
    /// [`PresetError::Split`].
    pub fn split(self) -> Result<Self, PresetError> {
        match self.ways {
            Ways::Same(Way::Messages { architecture, release, split: false }) => Ok(Self {
                name: format!("{}+split", self.name),
                ways: Ways::Same(Way::Messages { architecture, release, split: true }),
            }),
            Ways::Same(Way::Hosts { architecture, split: false }) => Ok(Self {
                name: format!("{}+split", self.name),
                ways: Ways::Same(Way::Hosts { architecture, split: true }),
            }),
            Ways::Same(Way::Messages { .. } | Way::Hosts { .. }) => Ok(self),
            _ => Err(PresetError::Split { name: self.name }),
        }
    }

    fn by(architecture: impl Architecture + 'static) -> Self {
        Self { name: architecture.name(), ways: Ways::Same(Way::by(architecture)) }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

impl FromStr for Preset {
    type Err = PresetError;

    fn from_str(text: &str) -> Result<Self, PresetError> {
        if let Some(whole) = text.strip_suffix("+split") {
            return whole.parse::<Self>()?.split();
        }
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        match (name, parameter) {
            ("hierarchy", None) => Ok(Self::by(Hierarchy::BINARY)),
            ("hierarchy", Some(parameter)) => hierarchy(parameter).map(Self::by),
            ("hypercube", Some(parameter)) => match numbers(parameter, '-') {
                Some(keys) => Ok(Self::by(Hypercube::numbered_by(keys))),
                None => Err(refused(name, parameter, "a key for each cluster, as hypercube:2-0-1")),
            },
            ("knomial", Some("nearest-first")) => Ok(Self::by(Knomial::NEAREST_FIRST)),
            ("knomial", Some(parameter)) => match parameter.parse() {
                Ok(radix @ 2..) => Ok(Self::by(Knomial::new(radix))),
                _ => Err(refused(name, parameter, "a radix of 2 or more, or nearest-first")),
            },
            ("board", parameter) => board(parameter),
            ("hosts", parameter) => hosts(parameter),
            (_, parameter) => match (plain(name), parameter) {
                (Some(preset), None) => Ok(preset),
                (Some(_), Some(parameter)) => Err(refused(name, parameter, "it without a colon")),
                (None, _) => Err(PresetError::Unknown { name: name.into(), near: near(name) }),
            },
        }
    }
}

/// Returns the preset of a name without parameters.
fn plain(name: &str) -> Option<Preset> {
    let paper = |ways| Preset { name: name.into(), ways };
    Some(match name {
        "flat" => Preset::by(Flat),
        "pipeline" => Preset::by(Pipeline),
        "daisy" => Preset::by(Daisy),
        "hypercube" => Preset::by(Hypercube::default()),
        "binary-tree" => Preset::by(BinaryTree),
        "knomial" => Preset::by(Knomial::BINOMIAL),
        "butterfly" => Preset::by(Butterfly),
        "ring" => Preset::by(Ring),
        "circulant" => Preset::by(Circulant),
        "deck2000" => paper(Ways::Deck2000),
        "deck2003" => paper(Ways::Deck2003),
        "mpi2003" => paper(Ways::Mpi2003),
        _ => return None,
    })
}

fn hierarchy(parameter: &str) -> Result<Hierarchy, PresetError> {
    let made = if parameter == "binary" {
        Some(Ok(Hierarchy::BINARY))
    } else if parameter == "derived" {
        Some(Ok(Hierarchy::DERIVED))
    } else if let Some(fan_out) = parameter.strip_suffix("-ary") {
        fan_out.parse().ok().map(Hierarchy::tree_of)
    } else if let Some(parents) = parameter.strip_prefix("parents:") {
        numbers(parents, '-').map(Hierarchy::with_parents)
    } else if let Some(levels) = parameter.strip_prefix("levels:") {
        let levels: Option<Vec<_>> = levels.split('/').map(|level| numbers(level, '-')).collect();
        levels.map(|levels| Ok(Hierarchy::nested(levels)))
    } else {
        numbers(parameter, 'x').map(Hierarchy::of_parts)
    };
    let choice = "binary, a fan-out as 3-ary, the parts on each level as 2x3x4, the parents of \
                  clusters 1, 2, ... as parents:0-0-1, everybody's groups on each level as \
                  levels:0-0-1-1/0-1-2-2, or derived from where they run";
    let made = made.ok_or_else(|| refused("hierarchy", parameter, choice))?;
    made.map_err(|error| PresetError::Hierarchy { parameter: parameter.into(), error })
}

fn board(parameter: Option<&str>) -> Result<Preset, PresetError> {
    let styles = [BoardStyle::Each, BoardStyle::Divided, BoardStyle::Together, BoardStyle::Told];
    let style = match parameter {
        None => Some(BoardStyle::Each),
        Some(parameter) => styles.into_iter().find(|style| style.to_string() == parameter),
    };
    let name = parameter.map_or("board".into(), |parameter| format!("board:{parameter}"));
    match style {
        Some(style) => Ok(Preset { name, ways: Ways::Same(Way::Board(style)) }),
        None => Err(refused("board", parameter.unwrap_or(""), "each, divided, together or told")),
    }
}

fn hosts(parameter: Option<&str>) -> Result<Preset, PresetError> {
    let Some(parameter) = parameter else {
        let way = Way::between_hosts(Butterfly);
        return Ok(Preset { name: "hosts".into(), ways: Ways::Same(way) });
    };
    match parameter.parse::<Preset>()?.ways {
        Ways::Same(Way::Messages { architecture, release: None, split }) => {
            let ways = Ways::Same(Way::Hosts { architecture, split });
            Ok(Preset { name: format!("hosts:{parameter}"), ways })
        }
        _ => Err(refused("hosts", parameter, "an architecture of messages, as hosts:ring")),
    }
}

/// Silva, Avila, Barreto, Navaux (2003), section 3: binary trees for these four, where the root of the barrier releases
/// all members itself. The others go straight to the root or from it, and so do those that the paper does not have.
fn deck2003(operation: Operation) -> Way {
    match operation {
        Operation::Barrier => Way::Messages {
            architecture: Arc::new(BinaryTree),
            release: Some(Arc::new(Flat)),
            split: false,
        },
        Operation::Broadcast | Operation::AllGather | Operation::AllReduce => Way::by(BinaryTree),
        _ => Way::by(Flat),
    }
}

/// Silva, Avila, Barreto, Navaux (2003), section 4, on MPI: broadcast begins with the nearest (figure 2); reduce,
/// allreduce and allgather go by butterflies. Operations that it does not mention follow MPICH of that time: binomial
/// trees, and data from each to each straight.
fn mpi2003(operation: Operation) -> Way {
    match operation {
        Operation::Broadcast => Way::by(Knomial::NEAREST_FIRST),
        Operation::Gather | Operation::Scatter => Way::by(Knomial::BINOMIAL),
        Operation::AllToAll => Way::by(Flat),
        _ => Way::by(Butterfly),
    }
}

fn refused(name: &str, parameter: &str, choice: &'static str) -> PresetError {
    PresetError::Parameter { name: name.into(), parameter: parameter.into(), choice }
}

fn numbers(text: &str, between: char) -> Option<Vec<u32>> {
    text.split(between).map(|number| number.parse().ok()).collect()
}

/// The name that differs least, if it differs little.
fn near(name: &str) -> Option<&'static str> {
    let distances = NAMES.map(|(other, _)| (distance(name, other), other));
    let (distance, other) = distances.into_iter().min()?;
    (distance <= 2).then_some(other)
}

/// The number of letters that must be put in, taken out or changed.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (number, letter) in from.bytes().enumerate() {
        let mut before = row[0];
        row[0] = number + 1;
        for (at, other) in to.bytes().enumerate() {
            let changed = before + usize::from(letter != other);
            before = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(before + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(text: &str) -> Preset {
        text.parse().unwrap()
    }

    fn error(text: &str) -> String {
        text.parse::<Preset>().unwrap_err().to_string()
    }

    #[test]
    fn every_name_is_understood_and_says_itself() {
        for (name, _) in NAMES {
            assert_eq!(preset(name).to_string(), name);
        }
        for name in [
            "hierarchy:3-ary",
            "hierarchy:parents:0-0-1",
            "hierarchy:2x3x4",
            "hierarchy:levels:0-0-1-1/0-1-2-2",
            "hierarchy:derived",
            "hypercube:2-0-1-3",
            "knomial:4",
            "knomial:nearest-first",
            "board:together",
            "board:told",
            "ring+split",
            "hosts:ring",
            "hosts:knomial:4",
            "hosts:butterfly+split",
        ] {
            assert_eq!(preset(name).to_string(), name);
        }
        assert_eq!(preset("hierarchy:binary").to_string(), "hierarchy");
        assert_eq!(preset("knomial:2").to_string(), "knomial");
        assert_eq!(preset("ring+split+split").to_string(), "ring+split");
    }

    #[test]
    fn the_papers() {
        let way = |text, operation| preset(text).way(operation).to_string();
        assert_eq!(way("deck2003", Operation::Barrier), "binary-tree, back by flat");
        assert_eq!(way("deck2003", Operation::AllReduce), "binary-tree");
        assert_eq!(way("deck2003", Operation::Gather), "flat");
        assert_eq!(preset("deck2003").order(Operation::Reduce), Some(Order::Late));
        assert_eq!(preset("deck2003").order(Operation::AllReduce), None);
        assert_eq!(way("mpi2003", Operation::Broadcast), "knomial:nearest-first");
        assert_eq!(way("mpi2003", Operation::Reduce), "butterfly");
        assert_eq!(preset("mpi2003").order(Operation::Reduce), None);
        for operation in Operation::ALL {
            assert_eq!(way("deck2000", operation), "flat");
        }
    }

    #[test]
    fn a_split_way_says_so() {
        let way = preset("circulant+split").way(Operation::AllReduce);
        assert_eq!(way.to_string(), "circulant, split");
        assert!(error("board+split").contains("board cannot be split"));
        assert!(error("deck2003+split").contains("deck2003 cannot be split"));
    }

    #[test]
    fn an_unknown_architecture_is_explained() {
        for (text, words) in [
            ("dasy", "\"dasy\" (did you mean \"daisy\"?); there are flat, pipeline, daisy,"),
            ("star", "there is no architecture \"star\"; there are flat"),
            ("", "there is no architecture \"\"; there are"),
            ("flat:3", "flat does not know \"3\"; give it without a colon"),
            ("knomial:1", "give a radix of 2 or more, or nearest-first"),
            ("board:all", "give each, divided, together or told"),
            ("hosts:board", "give an architecture of messages, as hosts:ring"),
            ("hosts:dasy", "did you mean \"daisy\"?"),
            ("hypercube:a-b", "give a key for each cluster"),
            ("hierarchy:2x", "the parts on each level as 2x3x4"),
            ("hierarchy:0-ary", "a fan-out of 0 reaches nobody"),
            ("hierarchy:2x0", "level 2 has no parts"),
            ("hierarchy:parents:1", "cluster 1 cannot hang below cluster 1"),
        ] {
            assert!(error(text).contains(words), "{text}: {}", error(text));
        }
    }
}
