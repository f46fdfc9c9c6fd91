//! One figure over hosts, measured once in a debug build: the hosts are made, the job and the floor run on them, and
//! the table and the values are written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use landeck_testing::Watchdog;
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::program::{build, succeed};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Compiles a measuring program; those over MPI with the header and the library of this tree.
fn compile(folder: &Path, source: &str, target: &str, library: Option<&Path>) {
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-O1", "-DMPI_ABI", "-o"]).arg(folder.join(target));
    gcc.arg("-I").arg(format!("{ROOT}/fronts/mpi/include"));
    gcc.arg(format!("{ROOT}/bench/{source}.c")).args(library);
    succeed(&mut gcc);
}

#[test]
fn a_figure_over_two_hosts_is_measured() {
    let name = "a_figure_over_two_hosts_is_measured";
    let Some(hosts) = Hosts::or_skip(name, &Wish::hosts(2)) else { return };
    drop(hosts);
    let built = build(env!("CARGO"));
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    // The hosts have a /tmp of their own.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-hosts");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("front")).expect("the target folder can be written");
    let library = built.join("libmpi_abi.so");
    symlink(&library, folder.join("front/libmpi_abi.so.1")).expect("a link can be made");
    compile(&folder, "points", "points.abi", Some(&library));
    compile(&folder, "collectives", "collectives.abi", Some(&library));
    compile(&folder, "sockets", "sockets", None);

    let mut bench = Command::new(env!("CARGO_BIN_EXE_landeck-bench"));
    bench.args(["--hosts", "2", "--figure", "hosts_round", "--figure", "hosts_kill"]);
    bench.args(["--quick", "--rounds", "1", "--peers", "none", "--no-build", "--folder"]);
    bench.arg(&folder).arg("--output").arg(folder.join("out"));
    let said = succeed(&mut bench);
    let said = String::from_utf8_lossy(&said.stdout);
    let values = fs::read_to_string(folder.join("out/hosts_round.json")).expect("it was written");
    let picture = folder.join("out/hosts_round.png").exists();
    fs::remove_dir_all(&folder).expect("what was written can be removed");
    for candidate in ["landeck-plain", "landeck-mpi", "sockets"] {
        assert!(said.contains(&format!("    {candidate} ")), "{candidate} has no row in {said}");
    }
    assert!(said.contains("hosts_kill "), "no verdict on survivors in {said}");
    let of_launches = values
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("\"candidate\"") || line.starts_with("\"trouble\""));
    let of_launches = of_launches.collect::<Vec<_>>().join(" ");
    assert!(of_launches.contains("\"trouble\": null") && picture, "{of_launches}\n{said}");
    assert!(!of_launches.contains("\"trouble\": \""), "{of_launches}");
}
