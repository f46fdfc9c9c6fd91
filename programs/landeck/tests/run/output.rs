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
    assert!(ended.err.contains("Its last lines:\n    out 1\n    err 1\n"), "{}", ended.err);
}

#[test]
fn a_named_pipe_is_no_file_for_output() {
    let folder = std::env::temp_dir().join(format!("landeck-fifo-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let made = Command::new("mkfifo").arg(folder.join("rank-0.stderr")).status().unwrap();
    let path = folder.display().to_string();
    let ended = run(&["-n", "1", "--output-dir", &path, "true"]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(made.success());
    assert_eq!(ended.code, Some(125));
    let words = format!("landeck: output file {path}/rank-0.stderr: this is a named pipe");
    assert!(ended.err.starts_with(&words), "{}", ended.err);
}

#[test]
fn a_directory_for_output_is_no_file() {
    let ended = run(&["-n", "1", "--output-dir", "/dev/null", "true"]);
    assert_eq!(ended.code, Some(125));
    assert!(ended.err.starts_with("landeck: --output-dir /dev/null: this is no"), "{}", ended.err);
}

/// A stream that takes nothing, as a file on a full disk.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// Runs a command whose standard output takes nothing. What it says about that comes once.
fn run_into_full(command: &mut Command) -> Ended {
    let trail = Trail::new();
    let child = trail.spawn(command.stdin(Stdio::null()).stdout(full()).stderr(Stdio::piped()));
    let ended = Ended::from(trail.finish(child, RUN_MAX));
    trail.assert_gone(GONE_WITHIN);
    assert_eq!(ended.err.matches("No space left on device").count(), 1, "{}", ended.err);
    ended
}

#[test]
fn a_full_disk_is_said_and_ends_no_process() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let script = "echo $RANK; sleep 0.2; echo again; echo done >&2";
    let ended = run_into_full(&mut landeck_run(&["-n", "2", "sh", "-c", script]));
    assert_eq!(ended.code, Some(125));
    let words = "landeck: cannot write to standard output: No space left on device";
    assert!(ended.err.starts_with(words), "{}", ended.err);
    assert_eq!(ended.err.matches("done\n").count(), 2, "{}", ended.err);
    // A failure of the job comes first.
    let ended = run_into_full(&mut landeck_run(&["-n", "1", "sh", "-c", "echo $RANK; exit 3"]));
    assert_eq!(ended.code, Some(3));
}

#[test]
fn a_full_disk_of_standard_error_is_an_exit_code() {
    let _watchdog = Watchdog::start(TEST_MAX);
    for (arguments, code) in [(&["sh", "-c", "echo x >&2"][..], 125), (&["no-such-program"], 127)] {
        let trail = Trail::new();
        let mut command = landeck_run(&[&["-n", "1"], arguments].concat());
        let child = trail.spawn(command.stdin(Stdio::null()).stdout(full()).stderr(full()));
        assert_eq!(trail.finish(child, RUN_MAX).status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn output_files_on_a_full_disk_are_named() {
    let folder = std::env::temp_dir().join(format!("landeck-full-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.join("rank-1.stdout")).unwrap();
    let path = folder.display().to_string();
    let ended = run_shells(2, &["--output-dir", &path], "echo $RANK; echo $RANK");
    let other = std::fs::read_to_string(folder.join("rank-0.stdout")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((ended.code, other.as_str()), (Some(125), "0\n0\n"), "{}", ended.err);
    let words = format!("landeck: cannot write to {path}/rank-1.stdout: No space left");
    assert!(ended.err.starts_with(&words) && ended.err.lines().count() == 1, "{}", ended.err);
}

#[test]
fn a_file_that_becomes_too_large_is_said() {
    let path = std::env::temp_dir().join(format!("landeck-large-{}", std::process::id()));
    // As large as the limit allows, and without a block.
    File::create(&path).unwrap().set_len(150_000 * 1024).unwrap();
    let launcher = env!("CARGO_BIN_EXE_landeck");
    let script = "echo more; echo end >&2";
    let line = format!(
        "ulimit -f 150000; {launcher} run -n 1 sh -c '{script}' >>{}; echo $?",
        path.display()
    );
    let ended = run_command(Command::new("bash").args(["-c", &line]));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(ended.out, "125\n", "{}", ended.err);
    let words = "landeck: cannot write to standard output: File too large";
    assert!(ended.err.contains(words) && ended.err.contains("end\n"), "{}", ended.err);
}

#[test]
fn every_command_says_that_its_answer_is_lost() {
    let _watchdog = Watchdog::start(TEST_MAX);
    for line in [
        "--help",
        "--version",
        "help run",
        "run --help",
        "run -n 2 --dry-run true",
        "ps",
        "doctor",
        "plan barrier -a ring -n 3",
        "simulate barrier -a ring -n 4 --spread",
        "tune --show",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
        let ended = run_into_full(command.args(line.split(' ')));
        assert!(matches!(ended.code, Some(1 | 2 | 125)), "{line}: {:?}", ended.code);
        let words = "landeck: cannot write to standard output: ";
        assert!(ended.err.starts_with(words), "{line}: {}", ended.err);
        // Where only the reader is gone there is nothing to say.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.stdout(writer).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    }
}

#[test]
fn completions_that_cannot_be_written_are_said() {
    let folder = std::env::temp_dir().join(format!("landeck-lost-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    for name in ["landeck.bash", "landeck.1", "launcher.md"] {
        std::os::unix::fs::symlink("/dev/full", folder.join(name)).unwrap();
    }
    let generate = |what: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
        run_command(command.args(["generate", what]).arg(&folder))
    };
    let all = ["completions", "man", "reference"].map(generate);
    std::fs::remove_dir_all(&folder).unwrap();
    for ended in all {
        assert_eq!(ended.code, Some(1));
        let words = format!("landeck: {}: No space left on device", folder.display());
        assert!(ended.err.starts_with(&words) && ended.err.lines().count() == 1, "{}", ended.err);
    }
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
