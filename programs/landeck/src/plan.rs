//! `landeck plan`: the plans of a collective operation as text or as a picture. Nothing is started.

use crate::clusters::{self, ClustersError};
use crate::values::whole;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use landeck_collectives::preset::NAMES;
use landeck_collectives::{
    Drawing, Group, GroupError, Nearness, Operation, Order, Preset, PresetError, Task, Way,
};
use landeck_host::placement::{BindTo, MapBy};
use landeck_host::say::{self, SayError};
use std::io;
use std::path::{Path, PathBuf};

/// Show the steps of each member of a group in a collective operation.
///
/// No process is started. The plan is derived as for a real group, and printed step by step, then member by member.
/// In a step, each member sends one message and receives one.
#[derive(Debug, Args)]
#[command(after_help = notes())]
pub(crate) struct PlanArguments {
    /// The operation
    #[arg(value_name = "OPERATION", value_parser = operation())]
    operation: Operation,
    /// Architecture, with its parameters behind a colon
    #[arg(short, long, value_name = "NAME")]
    architecture: Preset,
    /// Number of members [default: as many as --cluster-sizes says]
    #[arg(
        short = 'n',
        long = "np",
        value_name = "N",
        value_parser = whole(1, MEMBERS_MAX),
        allow_negative_numbers = true,
        required_unless_present = "cluster_sizes"
    )]
    members: Option<u32>,
    #[command(flatten)]
    division: Division,
    /// The member that the data come from or go to [default: 0]
    #[arg(
        long,
        value_name = "MEMBER",
        value_parser = whole(0, u32::MAX),
        allow_negative_numbers = true
    )]
    root: Option<u32>,
    /// Cut the data into this many pipelined segments
    #[arg(
        long,
        value_name = "N",
        value_parser = whole(1, 1024),
        allow_negative_numbers = true,
        conflicts_with = "split"
    )]
    segments: Option<u32>,
    /// Order in which data combine: free (the architecture's), canonical (one for all architectures), or late
    /// (canonical, after all data have arrived)
    #[arg(long, value_name = "ORDER", value_enum)]
    order: Option<InOrder>,
    /// Divide the data among the members on the way, as +split after the architecture's name
    #[arg(long)]
    split: bool,
    /// Put each member's contribution in the place of its result
    #[arg(long)]
    in_place: bool,
    /// Show only this member's part
    #[arg(
        long,
        value_name = "MEMBER",
        value_parser = whole(0, u32::MAX),
        allow_negative_numbers = true,
        conflicts_with = "svg"
    )]
    member: Option<u32>,
    /// Draw the plan into this SVG file instead
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// The division of the members into clusters.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Division {
    /// Divide the members into this many clusters, as even as possible [default: each member is one]
    #[arg(
        long,
        value_name = "N",
        value_parser = whole(1, u32::MAX),
        allow_negative_numbers = true
    )]
    clusters: Option<u32>,
    /// Divide the members into clusters of these sizes: 3,4,5
    #[arg(
        long,
        value_name = "N,N,...",
        value_delimiter = ',',
        value_parser = whole(1, MEMBERS_MAX),
        allow_negative_numbers = true
    )]
    cluster_sizes: Option<Vec<u32>>,
    /// Arrange the members row by row in this many columns; the columns are the clusters
    #[arg(
        long,
        value_name = "N",
        value_parser = whole(1, u32::MAX),
        allow_negative_numbers = true
    )]
    columns: Option<u32>,
    /// Divide the members by the last-level caches of this machine, as `landeck run --bind-to core` does; the value is
    /// that of --map-by
    #[arg(
        long,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "slot"
    )]
    derived: Option<MapBy>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InOrder {
    /// The order of the architecture.
    Free,
    /// One order for all architectures.
    Canonical,
    /// The canonical order, and no member combines before all data have arrived.
    Late,
}

/// The most members, since the plans of all of them are held at once.
const MEMBERS_MAX: u32 = 1024;

/// A plan that cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("{option} {member}: the group has {size} members, 0 to {}. Choose one of them.", size - 1)]
    NoMember { option: &'static str, member: u32, size: u32 },
    #[error(
        "--cluster-sizes have {sum} members together, -n says {members}. Make them equal, or leave \
         -n out."
    )]
    Sizes { sum: u64, members: u32 },
    #[error(
        "--cluster-sizes have {sum} members together, at most {MEMBERS_MAX} can be planned. Give less."
    )]
    TooMany { sum: u64 },
    #[error("{option} {count}: the group has {size} members. Give {size} or less.")]
    Empty { option: &'static str, count: u32, size: u32 },
    #[error("{option}: {operation} {what}. Leave the option out.")]
    Senseless { option: &'static str, operation: Operation, what: &'static str },
    #[error("--split: {0}.")]
    Split(#[from] PresetError),
    #[error(transparent)]
    Group(#[from] GroupError),
    #[error(transparent)]
    Clusters(#[from] ClustersError),
    #[error("cannot write {path}: {error}. Check the folder and its permissions.")]
    Write { path: String, error: io::Error },
    #[error(transparent)]
    Say(#[from] SayError),
}

impl PlanArguments {
    /// Prints the plan, or draws it into its file.
    pub(crate) fn run(&self) -> Result<(), PlanError> {
        let group = self.group()?;
        let task = self.task(group.size())?;
        let way = self.way()?;
        let drawing = Drawing::new(&task, &way, &group);
        match &self.svg {
            Some(path) => draw(&drawing, path),
            None => {
                let text = drawing.text(self.member);
                let (heading, rest) = text.split_once('\n').unwrap_or((&text, ""));
                say(&format!("{heading}\n{}{rest}", self.remark()))
            }
        }
    }

    fn group(&self) -> Result<Group, PlanError> {
        let Division { clusters, cluster_sizes, columns, derived } = &self.division;
        let members = self.members.unwrap_or(0);
        if let Some(map_by) = derived {
            return Ok(clusters::here(members, *map_by, Some(BindTo::Core), Nearness::Caches)?);
        }
        for (option, count) in [("--clusters", clusters), ("--columns", columns)] {
            if let Some(count) = count.filter(|&count| count > members) {
                return Err(PlanError::Empty { option, count, size: members });
            }
        }
        Ok(match (clusters, cluster_sizes, columns) {
            (_, Some(sizes), _) => {
                let sum = sizes.iter().copied().map(u64::from).sum();
                if sum > MEMBERS_MAX as u64 {
                    return Err(PlanError::TooMany { sum });
                }
                if self.members.is_some_and(|members| u64::from(members) != sum) {
                    return Err(PlanError::Sizes { sum, members });
                }
                Group::of_lengths(sizes)?
            }
            (Some(clusters), ..) => Group::divided(members, *clusters)?,
            (.., Some(columns)) => Group::columns(members, *columns)?,
            _ => Group::divided(members, members)?,
        })
    }

    fn task(&self, size: u32) -> Result<Task, PlanError> {
        let operation = self.operation;
        let is_in_place =
            !matches!(operation, Operation::Barrier | Operation::Broadcast | Operation::AllToAll);
        let options = [
            ("--root", self.root.is_some(), operation.has_root(), "has no root"),
            ("--segments", self.segments.is_some(), operation.has_segments(), "has no segments"),
            ("--order", self.order.is_some(), operation.reduces(), "combines no data"),
            ("--in-place", self.in_place, is_in_place, "has no contribution in place"),
        ];
        for (option, is_given, makes_sense, what) in options {
            if is_given && !makes_sense {
                return Err(PlanError::Senseless { option, operation, what });
            }
        }
        for (option, member) in [("--root", self.root), ("--member", self.member)] {
            if let Some(member) = member.filter(|&member| member >= size) {
                return Err(PlanError::NoMember { option, member, size });
            }
        }
        let order = self.order.map(Order::from).or(self.architecture.order(operation));
        Ok(Task {
            operation,
            root: self.root.unwrap_or(0),
            segments: self.segments.unwrap_or(1),
            order: order.unwrap_or(Order::Free),
            in_place: self.in_place,
        })
    }

    /// A remark for readers who expect the ring of the textbooks.
    fn remark(&self) -> &'static str {
        let is_reduction =
            matches!(self.operation, Operation::AllReduce | Operation::ReduceScatter);
        match self.architecture.to_string() == "ring" && is_reduction && !self.split {
            true => {
                "ring is a chain here: whole data go down and back. The ring of textbooks, which divides the \
                 data, is ring+split.\n"
            }
            false => "",
        }
    }

    fn way(&self) -> Result<Way, PlanError> {
        let preset = self.architecture.clone();
        let preset = if self.split { preset.split()? } else { preset };
        Ok(preset.way(self.operation))
    }
}

impl From<InOrder> for Order {
    fn from(order: InOrder) -> Self {
        match order {
            InOrder::Free => Self::Free,
            InOrder::Canonical => Self::Canonical,
            InOrder::Late => Self::Late,
        }
    }
}

fn draw(drawing: &Drawing<'_>, path: &Path) -> Result<(), PlanError> {
    std::fs::write(path, drawing.svg())
        .map_err(|error| PlanError::Write { path: path.display().to_string(), error })?;
    say(&format!("{}: {}\n", path.display(), drawing.heading()))
}

fn say(text: &str) -> Result<(), PlanError> {
    Ok(say::say(text)?)
}

pub(crate) fn operation() -> impl TypedValueParser<Value = Operation> {
    PossibleValuesParser::new(Operation::ALL.map(operation_value))
        .try_map(|name| Operation::from_name(&name).ok_or("there is no such operation"))
}

/// An operation on the command line, with its name in MPI as an alias.
pub(crate) fn operation_value(operation: Operation) -> PossibleValue {
    PossibleValue::new(operation.as_str()).aliases(operation.aliases())
}

fn notes() -> String {
    let mut notes = String::from("Architectures:\n");
    for (name, what) in NAMES {
        notes.push_str(&format!("  {name:<12}  {what}\n"));
    }
    notes.push_str(
        "With parameters: hierarchy:3-ary, hierarchy:2x3x4, hierarchy:parents:0-0-1,\n\
         hierarchy:levels:0-0-1-1/0-1-2-2, hierarchy:derived, hypercube:2-0-1, knomial:4,\n\
         knomial:nearest-first, board:each, board:divided, board:together, board:told; ring+split.\n\n\
         Examples:\n  \
         landeck plan broadcast --architecture daisy -n 24 --clusters 5\n  \
         landeck plan allreduce --architecture hypercube -n 24 --clusters 8 --svg allreduce.svg\n  \
         landeck plan barrier --architecture deck2003 -n 7 --member 0",
    );
    notes
}
