//! The experiments of the papers of 1997 and 1999 in a debug build, as short as they can be: every pace is measured, and
//! tables, values and pictures are written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use landeck_testing::Watchdog;
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::program::{build, succeed};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A folder with a measuring program and the library of this tree.
fn folder(name: &str, source: &str) -> PathBuf {
    let library = build(env!("CARGO")).join("libmpi_abi.so");
    // The hosts have a /tmp of their own.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("front")).expect("the target folder can be written");
    symlink(&library, folder.join("front/libmpi_abi.so.1")).expect("a link can be made");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-O1", "-DMPI_ABI", "-o"]).arg(folder.join(format!("{source}.abi")));
    gcc.arg("-I").arg(format!("{ROOT}/fronts/mpi/include"));
    succeed(gcc.arg(format!("{ROOT}/bench/{source}.c")).arg(library));
    // The benchmark asks for these two of everybody, and this test needs neither.
    for name in ["points.abi", "collectives.abi"] {
        fs::write(folder.join(name), "").expect("the folder can be written");
    }
    folder
}

/// Runs a command of the benchmark, and returns the report.
fn measure(folder: &Path, words: &str) -> String {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_landeck-bench"));
    bench.arg("--no-build").arg("--folder").arg(folder).args(words.split(' '));
    succeed(bench.args(["--with", "none", "--output"]).arg(folder.join("out")));
    fs::read_to_string(folder.join("out/report.txt")).expect("it was written")
}

fn are_there(folder: &Path, files: &[&str]) {
    for file in files {
        assert!(folder.join("out").join(file).exists(), "{file} is not written");
    }
    fs::remove_dir_all(folder).expect("what was written can be removed");
}

#[test]
fn many_senders_are_measured_at_every_pace() {
    let name = "many_senders_are_measured_at_every_pace";
    let Some(hosts) = Hosts::or_skip(name, &Wish::hosts(3)) else { return };
    drop(hosts);
    let folder = folder("bench-incast", "gather");
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    let report = measure(&folder, "incast --quick --senders 2 --bytes 2000,100000 --rate 1000");
    for pace in ["none", "fixed:1", "calibrated", "credit", "segmentation"] {
        assert!(report.contains(&format!(" Landeck, {pace} |")), "{pace} is not in\n{report}");
    }
    let rows = report.lines().filter(|line| line.starts_with("| 2 | "));
    assert_eq!(
        rows.filter(|line| !line.contains(" - ")).count(),
        3,
        "a value is missing in\n{report}"
    );
    assert!(report.contains("| 24 | 80000 | 300 ms * n | 8,069 | 19% |"), "{report}");
    are_there(&folder, &["incast.json", "open.json", "incast-2000.png", "incast-100000.png"]);
}

#[test]
fn segmentation_is_measured_against_reservation() {
    let name = "segmentation_is_measured_against_reservation";
    let Some(hosts) = Hosts::or_skip(name, &Wish::hosts(2)) else { return };
    drop(hosts);
    let folder = folder("bench-tokens", "echo");
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    let report = measure(&folder, "tokens --rounds 1 --time 5 --bytes 100,16385,1048576");
    let rows = ["| 100 B | ", "| 16385 B | ", "| 1 MiB | "];
    for row in rows {
        let line = report.lines().find(|line| line.starts_with(row));
        let is_full = |line: &&str| line.matches('|').count() == 6 && !line.contains(" - ");
        assert!(line.filter(is_full).is_some(), "{row} is not whole in\n{report}");
    }
    assert!(report.contains("best 415 Mb/s") && report.contains("\nHere: best "), "{report}");
    are_there(&folder, &["tokens.json", "tokens.png"]);
}
