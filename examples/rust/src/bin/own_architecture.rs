//! An architecture of one's own: who talks to whom in a collective operation is written here, what
//! the operations make of it is the library's business.
//!
//! ```sh
//! landeck run -n 8 own_architecture --latency 3 --svg broadcast.svg
//! ```
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use landeck::architecture::{Architecture, Drawing, Group, Operation, Task, Tree, Way};
use landeck::{Job, Sum, World};
use landeck_examples::program::{self, Problem, say};

/// Collective operations by an architecture that the program brings along.
#[derive(Debug, Parser)]
#[command(name = "own_architecture")]
struct Options {
    /// Steps that a message takes to arrive, while its sender sends the next.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    latency: u32,
    /// Draw the broadcast into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// For networks on which messages take long to arrive, but little time to send: whoever has the
/// data sends them on in every step, and each message arrives `latency` steps later. With a
/// latency of 1 that is the binomial tree; the longer it takes, the more the root serves itself.
///
/// ```text
/// latency 2, eight members:
///
///                0
///    ┌───────┬───┴───┬───────┐
///    1       2       3       5          1 has them in step 2, 2 in step 3, 3 and 4 in step 4,
///  ┌─┴─┐     │                          5, 6 and 7 in step 5
///  4   6     7
/// ```
///
/// Source: Bar-Noy, Kipnis, "Designing Broadcasting Algorithms in the Postal Model for
/// Message-Passing Systems" (1992).
#[derive(Clone, Copy, Debug)]
struct Postal {
    latency: u32,
}

impl Architecture for Postal {
    fn name(&self) -> String {
        format!("postal:{}", self.latency)
    }

    fn tree(&self, group: &Group, root: u32) -> Tree {
        // Those who have the data, by the step in which they can send next.
        let mut senders = BinaryHeap::from([Reverse((0, 0))]);
        let mut edges = Vec::new();
        for next in 1..group.size() {
            let Some(Reverse((step, sender))) = senders.pop() else { break };
            edges.push((sender, next));
            senders.push(Reverse((step + 1, sender)));
            senders.push(Reverse((step + self.latency, next)));
        }
        Tree::new(group.size(), 0, edges).turned(root)
    }
}

fn main() -> ExitCode {
    program::run(own_architecture)
}

fn own_architecture(job: &Job, options: &Options) -> Result<(), Problem> {
    let postal = Postal { latency: options.latency };
    let world = job.world();
    if world.rank() == 0 {
        show(&world, postal, options)?;
    }

    // Every operation goes by it, though it only says what its trees are.
    let ours = world.via(postal);
    let last = world.size() - 1;
    let mut words = if world.rank() == last { [1, 2, 3] } else { [0; 3] };
    ours.broadcast(&mut words, last)?;
    check("the broadcast", &words, &[1, 2, 3])?;

    let mut ranks = vec![0; world.size()];
    ours.all_gather(&[world.rank()], &mut ranks)?;
    check("the allgather", &ranks, &(0..world.size()).collect::<Vec<_>>())?;

    // One operation by it, and the same as the table chooses.
    let sum = world.all_reduce(world.rank() as u64, Sum.via(postal))?;
    let usual = world.all_reduce(world.rank() as u64, Sum)?;
    check("the sum of all ranks", &[sum], &[usual])?;

    ours.barrier()?;
    if world.rank() == 0 {
        say(format_args!(
            "broadcast, allgather, allreduce, barrier: right; the ranks' sum is {sum}"
        ))?;
    }
    Ok(())
}

/// Shows the broadcast before it is done: a plan is a value.
fn show(world: &World, postal: Postal, options: &Options) -> Result<(), Problem> {
    let wrong = |error: &dyn std::fmt::Display| Problem::Wrong(error.to_string());
    let group = Group::whole(world.size() as u32).map_err(|error| wrong(&error))?;
    let task = Task::new(Operation::Broadcast);
    let way = Way::by(postal);
    let drawing = Drawing::new(&task, &way, &group);
    say(drawing.heading())?;
    let Some(path) = &options.svg else { return Ok(()) };
    std::fs::write(path, drawing.svg()).map_err(|error| {
        Problem::Own(format!("cannot write {}: {error}. Choose another place", path.display()))
    })
}

fn check<T: PartialEq + std::fmt::Debug>(
    what: &str,
    is: &[T],
    wanted: &[T],
) -> Result<(), Problem> {
    if is == wanted {
        return Ok(());
    }
    Err(Problem::Wrong(format!("{what} is {is:?}, but should be {wanted:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(latency: u32) -> Vec<Vec<u32>> {
        let group = Group::whole(8).unwrap();
        let tree = Postal { latency }.tree(&group, 0);
        (0..8).map(|member| tree.children(member).to_vec()).collect()
    }

    #[test]
    fn the_drawing() {
        assert_eq!(children(2)[..3], [vec![1, 2, 3, 5], vec![4, 6], vec![7]]);
    }

    #[test]
    fn without_latency_it_is_the_binomial_tree_and_with_much_the_flat_one() {
        assert_eq!(children(1).iter().map(Vec::len).collect::<Vec<_>>(), [3, 2, 1, 1, 0, 0, 0, 0]);
        assert_eq!(children(1000)[0].len(), 7);
    }
}
