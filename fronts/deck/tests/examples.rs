//! The examples in `examples/c/deck`, each with a result that is checked.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{RUN_LIMIT, alone, compiled, launcher, run, watched};
use landeck_testing::Trail;
use landeck_testing::program::{assert_wrote, forget_package, succeed};

/// How long one test may take, with compiling.
const LIMIT: Duration = Duration::from_secs(400);
/// The name of the chat's job, before the number of the test's process.
const CHAT: &str = "deck-chat";

fn example(name: &str, libraries: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c/deck");
    compiled(&folder.join(format!("{name}.c")), libraries)
}

/// Returns the output of an example on so many nodes.
fn written(name: &str, nodes: &str, arguments: &[&str]) -> String {
    let program = example(name, &["-ldeck"]);
    let mut all = vec!["-n", nodes, program.to_str().expect("a path of ours")];
    all.extend(arguments);
    let output = run(&all);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} on {nodes}: {:?}\n{errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_first_program_adds_up() {
    let _watchdog = watched(LIMIT);
    assert_eq!(written("first", "4", &[]), "the sum of 4 nodes is 6\n");
}

#[test]
fn the_first_program_says_why_it_cannot_start() {
    let _watchdog = watched(LIMIT);
    let program = example("first", &["-ldeck"]);
    let output = Trail::new().run(alone(&program).env("LANDECK_JOB", "nope"), RUN_LIMIT);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("first.c:12: deck_init: ") && said.ends_with(" (DECK_EJOB)\n"), "{said}");
    // The name is said where other jobs run that it could be mistaken for.
    assert!(said.contains("nope") || said.contains("no job of this user"), "{said}");
}

#[test]
fn the_paper_of_2000_is_measured() {
    let _watchdog = watched(LIMIT);
    let text = written("bcast_sync", "4", &["20"]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    for (line, members) in lines[1..4].iter().zip(2..) {
        let values: Vec<f64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert_eq!((values.len(), values[0]), (8, f64::from(members)), "{line}");
        assert!(values.iter().all(|&value| value > 0.0), "{line}");
    }
}

#[test]
fn the_paper_of_2003_is_measured() {
    let _watchdog = watched(LIMIT);
    for architecture in [&[][..], &["deck2003"], &["mpi2003"]] {
        for nodes in ["2", "5"] {
            let text = written("collective", nodes, &[&["20"], architecture].concat());
            assert!(text.starts_with(&format!(" {nodes} members:")), "{text}");
            assert_eq!(text.matches("scatter-gather").count(), 2, "{text}");
        }
    }
}

#[test]
fn the_root_is_found_by_any_number_of_nodes() {
    let _watchdog = watched(LIMIT);
    for nodes in ["1", "2", "3", "4", "7"] {
        let text = written("roots", nodes, &[]);
        assert!(text.starts_with("root 0.7390851332 after "), "{nodes}: {text}");
    }
}

#[test]
fn workers_come_and_go() {
    let _watchdog = watched(LIMIT);
    for (nodes, tasks) in [("2", "30"), ("4", "100"), ("6", "200")] {
        let text = written("farm", nodes, &[tasks]);
        let last = text.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("{tasks} tasks, ")), "{text}");
        assert!(last.ends_with("sum right"), "{text}");
        // Beside others a worker may have too little to do to go home.
        assert!(nodes != "2" || !last.contains(" 0 times"), "{text}");
    }
}

#[test]
fn two_terminals_talk() {
    let _watchdog = watched(LIMIT);
    let chat = example("chat", &["-ldeck"]);
    let path = chat.to_str().expect("a path of ours");
    let name = format!("{CHAT}-{}", std::process::id());
    let trail = Trail::new();
    let spawned = |command: &mut Command| {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        trail.spawn(command)
    };
    let first = &mut launcher(&["--name", &name, "-n", "1", path, "kitchen", "ada"]);
    let mut ada = spawned(first);
    let mut heard = BufReader::new(ada.stdout.take().expect("a pipe"));
    let mut hears = || {
        let mut line = String::new();
        heard.read_line(&mut line).expect("it can be read");
        line
    };
    assert_eq!(hears(), "you are in\n");
    let mut bob = spawned(alone(&chat).args(["kitchen", "bob"]).env("LANDECK_JOB", &name));
    assert_eq!(hears(), "bob: comes in\n");
    let mut hand = ada.stdin.take().expect("a pipe");
    hand.write_all(b"hello\n").expect("it reads");
    // Who goes at once hears nothing any more.
    let mut of_bob = BufReader::new(bob.stdout.take().expect("a pipe"));
    let mut text = String::new();
    while !text.ends_with("ada: hello\n") {
        assert_ne!(of_bob.read_line(&mut text).expect("it can be read"), 0, "{text}");
    }
    assert!(text.contains("you are in\n"), "{text}");
    let mut other = bob.stdin.take().expect("a pipe");
    other.write_all(b"hello, too\n").expect("it reads");
    assert_eq!(hears(), "bob: hello, too\n");
    drop(other);
    assert_eq!(hears(), "bob: goes\n");
    drop(hand);
    let ended = trail.finish(bob, RUN_LIMIT);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let ended = trail.finish(ada, RUN_LIMIT);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn three_libraries_are_in_one_group() {
    let mut cargo = Command::new(env!("CARGO"));
    forget_package(&mut cargo);
    // Of the whole workspace, the libraries have the features that they have in other tests: nothing is built again.
    cargo.args(["build", "--quiet", "--workspace", "--bin=mixed"]);
    let own = std::env::current_exe().expect("this test has a file");
    let built = own.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    if built.ends_with("release") {
        cargo.arg("--release");
    }
    succeed(&mut cargo);
    let _watchdog = watched(LIMIT);
    let deck = example("mixed_deck", &["-ldeck"]);
    let mpi = example("mixed_mpi", &["-lmpi_abi", "-ldeck"]);
    let rust = built.join("mixed");
    let [deck, mpi, rust] = [&deck, &mpi, &rust].map(|path| path.to_str().expect("a path of ours"));
    let output = run(&["-n", "1", deck, ":", "-n", "1", mpi, ":", "-n", "1", rust]);
    for who in ["DECK", "MPI", "Rust"] {
        assert_wrote(&output, &format!("{who}: hellos 6, all processes 75, the group 6"));
    }
}
