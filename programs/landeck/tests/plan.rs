//! `landeck plan` as its users know it: what it prints, what it draws, what it says when it is
//! asked for something that there is not.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

use landeck_testing::Watchdog;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// No test may take longer.
const TEST_MAX: Duration = Duration::from_secs(120);

fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
    command.arg("plan").args(line.split_whitespace());
    command
}

fn run(line: &str) -> Output {
    command(line).output().unwrap()
}

/// The output of a `landeck plan` command that succeeds.
fn printed(line: &str) -> String {
    let output = run(line);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.as_str()), (Some(0), ""), "{line}");
    String::from_utf8(output.stdout).unwrap()
}

/// A place for a picture, which goes away with it.
struct Picture(PathBuf);

impl Picture {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("landeck-plan-{}-{name}.svg", std::process::id())))
    }

    /// The drawn picture, as SVG text.
    fn of(&self, line: &str) -> String {
        let said = printed(&format!("{line} --svg {}", self.0.display()));
        assert!(said.starts_with(&format!("{}: ", self.0.display())), "{said}");
        assert_eq!(said.lines().count(), 1);
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // it may never have been drawn
    }
}

#[test]
fn a_plan_is_written_step_by_step_and_member_by_member() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let text = printed("broadcast --architecture daisy -n 7 --clusters 3 --root 3");
    let expected = "\
broadcast by daisy: 6 messages in 3 steps
7 members in 3 clusters, root 3
clusters  0-2   3-4   5-6

step   1  3 → 0
step   2  0 → 1   3 → 5
step   3  0 → 2   3 → 4   5 → 6
";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(text.matches("\nmember ").count(), 7);
    assert!(
        text.contains("\nmember 6 of 7: broadcast\n    0  receive output[0] from 5\n"),
        "{text}"
    );
}

#[test]
fn one_member_is_shown_alone() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let text = printed("allgather -a ring -n 4 --member 2");
    assert!(text.contains("step   1  1 → 2 [1]   2 → 3 [2]\n"), "{text}");
    assert_eq!(text.matches("\nmember ").count(), 1);
}

#[test]
fn clusters_are_given_in_many_ways() {
    let _watchdog = Watchdog::start(TEST_MAX);
    for (line, clusters) in [
        ("-n 7 --clusters 2", "clusters  0-3   4-6\n"),
        ("--cluster-sizes 1,4,2", "clusters  0   1-4   5-6\n"),
        ("-n 7 --cluster-sizes 5,2", "clusters  0-4   5-6\n"),
        ("-n 5 --columns 2", "clusters  0 2 4   1 3\n"),
    ] {
        let text = printed(&format!("barrier -a pipeline {line}"));
        assert!(text.contains(clusters), "{line}: {text}");
    }
    assert!(printed("allreduce -a ring -n 3").contains("\nring is a chain here"));
    assert!(!printed("allreduce -a ring+split -n 3").contains("chain"));
    let alone = printed("broadcast -a pipeline -n 4");
    assert!(alone.starts_with("broadcast by pipeline: 3 messages in 3 steps\n4 members, root 0\n"));
}

#[test]
fn every_operation_has_a_plan_by_every_architecture() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let operations = "barrier broadcast gather scatter reduce allgather allreduce alltoall \
                      reduce-scatter scan exclusive-scan";
    let architectures = "flat pipeline daisy hierarchy:binary hierarchy:2x2 hypercube binary-tree \
                         knomial:4 butterfly ring circulant board deck2000 deck2003 mpi2003";
    for operation in operations.split_whitespace() {
        for architecture in architectures.split_whitespace() {
            let text = printed(&format!("{operation} -a {architecture} -n 6 --clusters 2"));
            assert!(text.starts_with(operation), "{text}");
        }
    }
}

#[test]
fn options_change_the_plan() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let first_line = |line: &str| printed(line).lines().next().unwrap().to_owned();
    assert_eq!(
        first_line("broadcast -a ring -n 5 --segments 4"),
        "broadcast by ring: 16 messages in 7 steps"
    );
    let split = "allreduce by ring, split: 40 messages in 8 steps";
    assert_eq!(first_line("allreduce -a ring -n 5 --split"), split);
    assert_eq!(first_line("allreduce -a ring+split -n 5"), split);
    let count = |line: &str, word: &str| printed(line).matches(word).count();
    assert_eq!(count("gather -a flat -n 3", "copy"), 1);
    assert_eq!(count("gather -a flat -n 3 --in-place", "copy"), 0);
    // All data go to the root, which combines them in one pass: so it was in DECK.
    let late = printed("reduce -a deck2003 -n 4 --member 0");
    assert!(late.contains("    5  combine "), "{late}");
    assert_eq!(late, printed("reduce -a flat -n 4 --member 0 --order late"));
    assert_ne!(late, printed("reduce -a deck2003 -n 4 --member 0 --order free"));
}

#[test]
fn a_picture_has_an_arrow_for_each_message() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let picture = Picture::new("arrows");
    let drawn = picture.of("broadcast -a daisy -n 24 --clusters 5");
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"), "{drawn}");
    // Each arrow says what it is; the legend has one of each kind, and the picture has a title.
    assert_eq!(drawn.matches("<title>step ").count(), 23);
    assert_eq!(drawn.matches("<line class=\"far\"").count(), 4 + 1);
    assert_eq!(drawn.matches("<line class=\"near\"").count(), 19 + 1);
    assert_eq!(drawn.matches("<line class=\"lane\"").count(), 24);
    for name in ["cluster 4", "leader", "root", "23 messages in 8 steps"] {
        assert!(drawn.contains(name), "{name}");
    }
}

#[test]
fn pictures_are_well_formed() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let picture = Picture::new("forms");
    for line in [
        "allreduce -a butterfly -n 6",
        "allreduce -a board:together -n 6",
        "barrier -a hypercube -n 64 --clusters 8",
        "scan -a circulant -n 1",
        "alltoall -a flat -n 9 --columns 3",
    ] {
        let drawn = picture.of(line);
        assert_closed(&drawn);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{line}");
    }
}

/// Every element that begins ends, in the right order.
fn assert_closed(drawn: &str) {
    let mut open = Vec::new();
    for tag in drawn.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn whoever_has_seen_enough_may_go() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let mut line = command("alltoall -a flat -n 64");
    let mut child = line.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("alltoall by flat: 4032 messages"), "{first}");
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0));
}

#[test]
fn an_impossible_plan_is_explained() {
    let _watchdog = Watchdog::start(TEST_MAX);
    for (line, words) in [
        ("dance -a flat -n 3", "choose one of barrier, broadcast"),
        ("scan -a dasy -n 3", "did you mean \"daisy\"?); there are flat, pipeline"),
        ("scan -a knomial:1 -n 3", "give a radix of 2 or more"),
        ("scan -n 3", "--architecture <NAME>"),
        ("scan -a flat", "--np <N>"),
        ("scan -a flat -n 0", "a whole number is wanted, from 1 to 1,024, such as 4"),
        ("scan -a flat -n -1", "a whole number is wanted, from 1 to 1,024, such as 4"),
        ("gather -a flat -n 3 --root -1", "a whole number is wanted, 0 or more"),
        ("gather -a flat -n 3 --member two", "a whole number is wanted, 0 or more"),
        ("scan -a flat -n 3 --root 1", "landeck: --root: scan has no root. Leave the option out."),
        ("gather -a flat -n 3 --root 3", "--root 3: the group has 3 members, 0 to 2. Choose one"),
        ("gather -a flat -n 3 --member 9", "--member 9: the group has 3 members, 0 to 2"),
        ("gather -a flat -n 3 --segments 2", "--segments: gather has no segments"),
        ("gather -a flat -n 3 --order late", "--order: gather combines no data"),
        ("barrier -a flat -n 3 --in-place", "--in-place: barrier has no contribution in place"),
        ("gather -a flat -n 3 --cluster-sizes 1,1", "2 members together, -n says 3. Make them"),
        ("gather -a flat --cluster-sizes 999,999", "1998 members together, at most 1024"),
        (
            "gather -a flat -n 3 --clusters 2 --columns 2",
            "--clusters <N> cannot be used with --columns <N>; leave one of them out",
        ),
        (
            "gather -a flat -n 7 --clusters 9",
            "--clusters 9: the group has 7 members. Give 7 or less.",
        ),
        (
            "gather -a flat -n 7 --columns 9",
            "--columns 9: the group has 7 members. Give 7 or less.",
        ),
        ("reduce -a board -n 3 --split", "--split: board cannot be split; leave +split out"),
        ("reduce -a flat -n 3 --svg /no/such.svg", "cannot write /no/such.svg: No such file"),
    ] {
        let output = run(line);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {error}");
        assert!(error.contains(words) && output.stdout.is_empty(), "{line}: {error}");
    }
}
