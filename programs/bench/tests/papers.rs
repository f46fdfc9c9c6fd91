//! The papers' studies on two hosts, and that of deliveries on four, in a debug build and as short as they can be: every program
//! runs, the counts of messages are those of the papers and of the plans, and tables and pictures are written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use landeck_testing::Watchdog;
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::program::{build, succeed};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Compiles a measuring program with a library of this tree, which it finds in a folder of its own.
fn compile(
    folder: &Path,
    built: &Path,
    (source, target): (&str, &str),
    (front, name): (&str, &str),
) {
    let (place, library) = (folder.join(front), built.join(name));
    fs::create_dir_all(&place).expect("the target folder can be written");
    symlink(&library, place.join(format!("{name}.1"))).expect("a link can be made");
    let headers = if front == "front" { "mpi" } else { "deck" };
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-O1", "-DMPI_ABI", "-o"]).arg(folder.join(target));
    gcc.arg("-I").arg(format!("{ROOT}/fronts/{headers}/include"));
    succeed(gcc.arg(format!("{ROOT}/bench/{source}.c")).arg(library));
}

/// A folder with everything that the command looks for.
fn folder() -> PathBuf {
    let built = build(env!("CARGO"));
    // The hosts have a /tmp of their own.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-papers");
    let _ = fs::remove_dir_all(&folder);
    compile(&folder, &built, ("papers", "papers.abi"), ("front", "libmpi_abi.so"));
    compile(&folder, &built, ("deck", "deck"), ("front-deck", "libdeck.so"));
    folder
}

#[test]
fn the_papers_are_measured_on_two_hosts() {
    let name = "the_papers_are_measured_on_two_hosts";
    let Some(hosts) = Hosts::or_skip(name, &Wish::hosts(2)) else { return };
    drop(hosts);
    let folder = folder();
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    let mut bench = Command::new(env!("CARGO_BIN_EXE_landeck-bench"));
    bench.arg("--no-build").arg("--folder").arg(&folder);
    bench.args(["papers", "--hosts", "2", "--quick", "--with", "none", "--processes", "4"]);
    let said = succeed(bench.arg("--output").arg(folder.join("out")));
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let is_there = |file: &str| folder.join("out").join(file).exists();
    let pictures = ["hosts-service", "hosts-sizes", "hosts-reduce-100", "hosts-barrier"];
    for picture in pictures {
        assert!(is_there(&format!("{picture}.png")), "{picture} is not drawn\n{said}");
    }
    for row in ["paper's server", "Landeck's MPI", "daisy@2", "deck2003", "relay, Landeck's MPI"] {
        assert!(said.contains(row), "{row} has no place in {said}");
    }
    // At the commas stand the service, the deliveries, the collective operations and the searches.
    let right: Vec<&str> =
        said.lines().filter(|line| line.contains("counts of messages")).collect();
    let all_right = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[0] == words[2] && words[0] != "0"
    };
    assert!(right.len() == 4 && right.iter().all(all_right), "{said}");
    fs::remove_dir_all(&folder).expect("what was written can be removed");
}

#[test]
fn deliveries_are_measured_at_two_sites() {
    let Some(hosts) = Hosts::or_skip("deliveries_are_measured_at_two_sites", &Wish::hosts(4))
    else {
        return;
    };
    drop(hosts);
    build(env!("CARGO"));
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-deliveries");
    let _ = fs::remove_dir_all(&folder);
    let mut bench = Command::new(env!("CARGO_BIN_EXE_landeck-bench"));
    bench.args(["--no-build", "papers", "--hosts", "4", "--study", "deliveries", "--quick"]);
    let said = succeed(bench.arg("--output").arg(&folder));
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let rows: Vec<&str> = said
        .lines()
        .filter(|line| line.contains(" direct ") || line.contains(" gateway "))
        .collect();
    assert_eq!(rows.len(), 8, "{said}");
    // Short messages travel with their header, and everything else has a time.
    assert_eq!(rows.concat().matches(" - ").count(), 4, "{said}");
    assert!(folder.join("hosts-deliveries.png").exists(), "{said}");
    fs::remove_dir_all(&folder).expect("what was written can be removed");
}
