//! `landeck simulate`: tables, pages, pictures and the critical path; wrong options are explained; equal command
//! lines give equal figures.

use landeck_testing::Watchdog;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

struct Ran {
    code: Option<i32>,
    said: String,
    errors: String,
}

fn simulate(line: &str) -> Ran {
    simulate_with(line, &[])
}

/// Runs `landeck simulate` with these variables in the environment.
fn simulate_with(line: &str, variables: &[(&str, &Path)]) -> Ran {
    let _watchdog = Watchdog::start(Duration::from_secs(400));
    let output = Command::new(env!("CARGO_BIN_EXE_landeck"))
        .arg("simulate")
        .args(line.split_whitespace())
        .envs(variables.iter().copied())
        .output()
        .expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ran { code: output.status.code(), said: text(output.stdout), errors: text(output.stderr) }
}

/// A directory of its own, below the one for tests.
fn place(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("simulate").join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

#[test]
fn a_platform_without_an_end_is_refused() {
    let ran = simulate("barrier -a ring -n 4 --platform /dev/zero");
    let words = "landeck: --platform: cannot read /dev/zero: it has more than 1.0 MiB";
    assert!(ran.code == Some(2) && ran.errors.starts_with(words), "{}", ran.errors);
}

#[test]
fn the_papers_line_gives_a_table() {
    let line =
        "broadcast --architecture daisy -n 120 --clusters 8 --platform myrinet2000 --sizes 4..40K";
    let ran = simulate(line);
    assert_eq!((ran.code, ran.errors.as_str()), (Some(0), ""));
    for words in ["Simulated, not measured. Platform myrinet2000", "daisy, 8", "40,000", "mean"] {
        assert!(ran.said.contains(words), "{words}: {}", ran.said);
    }
    assert_eq!(simulate(line).said, ran.said, "the same again");
}

#[test]
fn all_architectures_stand_side_by_side() {
    let ran = simulate("broadcast -n 16 --sizes 8");
    let names = ["flat", "pipeline", "daisy", "hierarchy", "hypercube", "binary-tree", "knomial"];
    assert!(names.iter().all(|name| ran.said.contains(name)), "{}", ran.said);
    assert!(!ran.said.contains("board"), "hosts have no board together");
    assert!(simulate("broadcast -n 4 --sizes 8 --platform host").said.contains("board"));
}

#[test]
fn figures_that_cannot_be_read_are_told_of_by_their_line() {
    let cache = place("damaged");
    fs::create_dir_all(cache.join("landeck")).expect("a directory");
    fs::write(cache.join("landeck/figures"), "machine = \"some\"\nline_ps = fast\n")
        .expect("a file");
    let line = "broadcast -a board -n 4 --sizes 8 --platform host";
    let ran = simulate_with(line, &[("XDG_CACHE_HOME", &cache)]);
    assert_eq!(ran.code, Some(0));
    for words in ["figures: line 2 is \"line_ps = fast\"", "`landeck tune` measures anew"] {
        assert!(ran.errors.contains(words), "{words}: {}", ran.errors);
    }
    let empty = place("never-measured");
    let usual = simulate_with(line, &[("XDG_CACHE_HOME", &empty)]);
    assert_eq!((usual.errors.as_str(), usual.said), ("", ran.said), "those that are usual");
}

#[test]
fn a_death_ends_the_operation_of_those_behind_it() {
    let line = "broadcast --architecture pipeline -n 8 --sizes 8 --platform myrinet2000 --kill";
    let ran = simulate(&format!("{line} 3@1us"));
    assert_eq!((ran.code, ran.errors.as_str()), (Some(0), ""));
    let what = |members: &str| {
        let line = ran.said.lines().find(|line| line.trim_start().starts_with(members));
        line.unwrap_or_else(|| panic!("{members} is not in {}", ran.said)).to_owned()
    };
    assert!(what("0 to 1").contains("done"), "{}", ran.said);
    assert!(what("2 ").contains("PeerFailed: member 3"), "{}", ran.said);
    assert!(what("3 ").contains("ended"), "{}", ran.said);
    assert!(what("4 to 7").contains("PeerFailed: member 3"), "{}", ran.said);
    assert!(simulate(&format!("{line} 3@1s")).said.contains("Nobody fails"));
    for (wrong, said) in [("8@1us", "0 to 7"), ("3", "3@12us"), ("3@11s", "at most 10 s")] {
        let ran = simulate(&format!("{line} {wrong}"));
        assert!(ran.code != Some(0) && ran.errors.contains(said), "{wrong}: {}", ran.errors);
    }
}

#[test]
fn the_grid_of_the_paper_is_written_as_a_page() {
    let place = place("paper");
    let ran =
        simulate(&format!("broadcast --paper --platform myrinet2000 --out {}", place.display()));
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert!(ran.said.contains("Table 1") && ran.said.contains("4,610"), "{}", ran.said);
    let page = fs::read_to_string(place.join("index.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 10, "two for each architecture, and two of all");
    assert_eq!(page.matches("<table>").count(), 10);
    let pictures = fs::read_dir(&place).unwrap().flatten();
    let pictures = pictures.filter(|file| file.path().extension().is_some_and(|end| end == "svg"));
    assert_eq!(pictures.count(), 10);
}

#[test]
fn a_map_shows_who_wins_where() {
    let place = place("map");
    let line = "allreduce -a butterfly,ring+split -n 4,16 --sizes 8,8M --map --out";
    let ran = simulate(&format!("{line} {}", place.display()));
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    let map = fs::read_to_string(place.join("map.svg")).unwrap();
    assert!(map.contains(">butterfly<") && map.contains(">ring+split<"), "each wins somewhere");
}

#[test]
fn one_run_is_explained() {
    let ran = simulate("broadcast -a pipeline -n 24 --clusters 8 --sizes 4 --explain --per-host 1");
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert!(ran.said.contains("The critical path:"), "{}", ran.said);
    assert!(ran.said.contains("member 0 sends 4 B to 3"), "{}", ran.said);
    assert!(ran.said.contains("Of the time: sending"), "{}", ran.said);
    assert_eq!(ran.said.matches("under way").count(), 9, "eight messages, and their share");
}

#[test]
fn a_platform_of_ones_own_is_read_and_what_is_wrong_with_it_is_said() {
    let place = place("platform");
    fs::create_dir_all(&place).unwrap();
    let text = "about = \"mine\"\n[network]\nhosts = 4\noverhead = \"1 us\"\nlatency = \"2 us\"\n\
                gap = \"0 s\"\nrate = \"1 GB/s\"\n";
    let file = place.join("mine.toml");
    fs::write(&file, text).unwrap();
    let line = format!("message --sizes 1000 --per-host 1 --platform {}", file.display());
    let ran = simulate(&line);
    assert!(ran.said.contains("5.00"), "1 + 2 + 1 + 1: {}", ran.said);
    fs::write(&file, text.replace("\"2 us\"", "\"soon\"")).unwrap();
    let ran = simulate(&line);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.errors.contains("mine.toml, line 5: invalid value: string \"soon\""),
        "{}",
        ran.errors
    );
    fs::write(&file, b"about = \"mine\"\n[network]\nhosts = 4 # v\xf6llig\n").unwrap();
    let ran = simulate(&line);
    assert_eq!(ran.code, Some(2));
    assert!(ran.errors.contains("mine.toml, line 3: this is no text in UTF-8"), "{}", ran.errors);
}

#[test]
fn a_seed_gives_the_same_noise_again() {
    let line = |seed| {
        format!("allreduce -a butterfly -n 16 --sizes 8 --jitter 30 --loss 1000 --seed {seed}")
    };
    assert_eq!(simulate(&line(1)).said, simulate(&line(1)).said);
    assert_ne!(simulate(&line(1)).said, simulate(&line(2)).said);
}

#[test]
fn options_with_wrong_values_are_explained() {
    for (line, words) in [
        ("broadcast -n 0", "numbers from 1 to 65,536 are wanted, and 0 is none"),
        ("broadcast -n 70000", "numbers from 1 to 65,536 are wanted, and 70000"),
        ("broadcast --sizes 4Q", "\"4Q\" is no number"),
        ("broadcast --sizes -4", "\"-4\" is no number"),
        ("broadcast --seed -1", "a whole number from 0 to"),
        ("broadcast --out /dev/null/figures", "cannot write /dev/null/figures: "),
        ("broadcast --sizes 2000G", "numbers from 0 to 1,099,511,627,776 are wanted"),
        ("broadcast --clusters 99", "--clusters 99: that is more than -n 24 says"),
        ("broadcast --clusters 0", "numbers from 1 to 65,536 are wanted, and 0 is none"),
        ("broadcast --seed x", "a whole number from 0 to"),
        ("broadcast --platform myrinet", "did you mean \"myrinet2000\"?"),
        ("broadcast --platform ./none.toml", "cannot read ./none.toml"),
        ("broadcast -a dasy", "did you mean \"daisy\"?"),
        ("broadcast -a board", "the board is memory that all members share"),
        ("broadcast -n 500 --platform myrinet2000", "need 250 hosts; platform myrinet2000 has 96"),
        ("broadcast --root 24", "--root 24: the group has 24 members, 0 to 23"),
        ("broadcast --root -1", "a whole number is wanted, 0 or more"),
        ("broadcast --jitter -1", "a whole number is wanted, from 0 to 1,000"),
        ("barrier --root 1", "--root: barrier has no root"),
        ("barrier --segments 2", "--segments: barrier has no segments"),
        ("broadcast --explain", "--explain shows one run"),
        ("allreduce --paper", "--paper shows broadcasts"),
        ("alltoall -n 8000 -a flat --per-host 8 --sizes 1", "members can be simulated: take fewer"),
        ("message -a flat", "do not apply to one message"),
        ("message -n 2", "do not apply to one message"),
        ("message --root 5", "do not apply to one message"),
        ("message --kill 1@1us", "do not apply to one message"),
        ("broadcast --sizes 99999999999G", "\"99999999999G\" is too large"),
        ("barrier --measured", "--platform host, or with --hosts a,b"),
        ("barrier --measured --hosts a,b -n 3", "--hosts names 2, which take one process each"),
        ("barrier --measured --platform host -n 33", "up to 32 processes"),
        ("scan --measured --platform host -n 2", "scan is not among what is measured"),
        ("broadcats", "did you mean broadcast?"),
        ("broadcast --map", "--out"),
    ] {
        let ran = simulate(line);
        assert_eq!(ran.code, Some(2), "{line}");
        assert!(ran.errors.contains(words), "{line}: {}", ran.errors);
    }
}

#[test]
fn measured_figures_stand_beside_simulated_ones() {
    // How near they are is a matter of this machine, and so is whether the processors stay in their places meanwhile.
    let is_measured = |ran: &Ran| {
        let is_measured = !ran.said.contains("so nothing was measured. Run it again");
        let is_met = is_measured && ran.said.contains("2 of 2 figures are within");
        assert_eq!(ran.code, Some(if is_met { 0 } else { 1 }), "{}{}", ran.said, ran.errors);
        is_measured
    };
    let ran = simulate("message --platform host --measured --sizes 8,65536");
    is_measured(&ran);
    assert!(ran.said.contains("the largest difference is"), "{}", ran.said);
    let ran = simulate("allreduce -a board,flat -n 2 --platform host --measured --sizes 8");
    if is_measured(&ran) {
        assert!(ran.said.contains("board:") && ran.said.contains("flat:"), "{}", ran.said);
    }
}
