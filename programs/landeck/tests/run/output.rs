//! Lines of different processes never mix.

use super::*;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;

/// Every process writes its letter in many pieces; a line must be of one letter.
const MIXER: &str = "
    letter=$(printf abcdefgh | cut -c$((RANK + 1)))
    i=0
    while [ $i -lt 200 ]; do
        printf $letter$letter$letter
        printf \"$letter%0.s\" 1 2 3 4 5 6 7
        echo $letter
        i=$((i + 1))
    done";

fn assert_unmixed(text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 8 * 200);
    for letter in "abcdefgh".chars() {
        let whole = letter.to_string().repeat(11);
        assert_eq!(lines.iter().filter(|line| **line == whole).count(), 200, "{letter}");
    }
}

#[test]
fn lines_are_whole_in_a_pipe() {
    assert_unmixed(&run_shells(8, &[], MIXER).out);
}

#[test]
fn lines_are_whole_in_a_file() {
    let path = std::env::temp_dir().join(format!("landeck-mix-{}", std::process::id()));
    let file = File::create(&path).unwrap();
    let _watchdog = Watchdog::start(TEST_MAX);
    let trail = Trail::new();
    let mut command = landeck_run(&["-n", "8", "sh", "-c", MIXER]);
    let child = trail.spawn(command.stdin(Stdio::null()).stdout(file).stderr(Stdio::piped()));
    assert!(trail.finish(child, RUN_MAX).status.success());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_unmixed(&text);
}

#[test]
fn lines_are_whole_when_both_streams_are_one() {
    let launcher = env!("CARGO_BIN_EXE_landeck");
    let script = "printf ou; printf er >&2; echo t; echo r >&2";
    let line = format!("{launcher} run -n 4 --tag sh -c '{script}' 2>&1");
    let ended = run_command(Command::new("sh").args(["-c", &line]));
    // One pipe for both: what a process wrote is in the order in which it wrote.
    for rank in 0..4 {
        let tag = format!("[{rank}] ");
        let own: Vec<&str> = ended.out.lines().filter_map(|line| line.strip_prefix(&tag)).collect();
        assert_eq!(own, ["ouert", "r"], "{}", ended.out);
    }
}

#[test]
fn very_long_lines_are_cut_only_between_processes() {
    let script = "letter=$(printf abcd | cut -c$((RANK + 1)))
        head -c 300000 /dev/zero | tr '\\0' $letter; echo";
    let ended = run_shells(4, &[], script);
    for letter in "abcd".chars() {
        assert_eq!(ended.out.chars().filter(|&other| other == letter).count(), 300_000);
    }
    for line in ended.out.lines() {
        let first = line.chars().next().unwrap_or(' ');
        assert!(line.chars().all(|letter| letter == first), "a line of two processes");
    }
}

#[test]
fn a_last_line_without_an_end_is_not_lost() {
    assert_eq!(run(&["-n", "1", "printf", "no end"]).out, "no end");
    let ended = run_shells(2, &[], "printf $RANK");
    assert_eq!(sorted(&ended.out), ["0", "1"]);
}

#[test]
fn streams_stay_apart() {
    let ended = run_shells(2, &["--tag"], "echo out; echo err >&2");
    assert_eq!(sorted(&ended.out), ["[0] out", "[1] out"]);
    assert_eq!(sorted(&ended.err), ["[0] err", "[1] err"]);
}

#[test]
fn tags_are_as_wide_as_the_largest_rank() {
    let ended = run_shells(11, &["--tag=host"], "echo x");
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    assert_eq!(sorted(&ended.out)[0], format!("[ 0@{host}] x"));
    assert!(ended.out.contains(&format!("[10@{host}] x\n")));
}

#[test]
fn each_stream_of_each_rank_can_have_a_file() {
    let folder = std::env::temp_dir().join(format!("landeck-files-{}", std::process::id()));
    let path = folder.join("new").display().to_string();
    let script = "echo out $RANK; echo err $RANK >&2; [ $RANK = 1 ] && exit 3; exec sleep 50";
    let ended = run_shells(2, &["--output-dir", &path], script);
    let read = |name: &str| std::fs::read_to_string(folder.join("new").join(name)).unwrap();
    let texts = ["rank-0.stdout", "rank-0.stderr", "rank-1.stdout", "rank-1.stderr"].map(read);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(texts[2..], ["out 1\n", "err 1\n"]);
    assert!(texts[0].len() <= "out 0\n".len() && texts[1].len() <= "err 0\n".len());
    assert_eq!((ended.code, ended.out.as_str()), (Some(3), ""));
    assert!(ended.err.contains("Its last lines: \"err 1\""), "{}", ended.err);
}

#[test]
fn a_slow_reader_slows_the_processes() {
    let script = "echo ready; exec yes $RANK$RANK$RANK";
    let mut running = start(&mut landeck_run(&["-n", "2", "sh", "-c", script]));
    for _ in 0..2 {
        while running.line() != "ready" {}
    }
    // Each process must come to a halt in a full pipe: its processor time stands still.
    let members = loop {
        // One that is being replaced by `yes` this moment has no environment to be known by.
        let members = running.members();
        if members.len() == 2 {
            break members;
        }
        std::thread::yield_now();
    };
    let is_asleep =
        |pid: &u32| status_field(*pid, "State").is_some_and(|state| state.starts_with('S'));
    while !members.iter().all(is_asleep) {
        std::thread::yield_now();
    }
    let resident = status_field(running.child.id(), "VmRSS").unwrap();
    let kibibytes: u64 = resident.split(' ').next().unwrap().parse().unwrap();
    assert!(kibibytes < 32 * 1024, "the launcher holds {resident}");
    running.signal(rustix::process::Signal::KILL);
    running.end();
}

/// A terminal: our side, and the side for a program.
pub(crate) fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    (File::from(ours), File::options().read(true).write(true).open(name).unwrap())
}

#[test]
fn a_progress_bar_moves_on_a_terminal() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let trail = Trail::new();
    let (mut ours, theirs) = terminal();
    let script = "[ $RANK = 1 ] && exec sleep 50
        test -t 1 && ! test -t 2 && printf '10%%'; read answer; printf '\\r20%%'; sleep 50";
    let mut command = landeck_run(&["-n", "2", "sh", "-c", script]);
    let mut child = trail.spawn(command.stdin(Stdio::piped()).stdout(theirs).stderr(Stdio::null()));
    let mut seen = [0; 64];
    // The first part comes though the line has no end, and so does its next state.
    let count = ours.read(&mut seen).unwrap();
    assert_eq!(&seen[..count], b"10%");
    drop(child.stdin.take());
    let count = ours.read(&mut seen).unwrap();
    assert_eq!(&seen[..count], b"\r20%");
    trail.kill();
    child.wait().unwrap();
    trail.assert_gone(GONE_WITHIN);
}
