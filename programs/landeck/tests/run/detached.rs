//! Jobs that go on without their terminal, and `landeck end`, which ends any job from outside.

use super::*;
use crate::output::terminal;
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};

/// Says "ready", and runs until there is the file `go` in the working directory.
const UNTIL_GO: &str = "echo ready; until [ -e go ]; do sleep 0.05; done; echo end";

/// Jobs with names of one test, whose files lie in a folder of their own.
struct Detached {
    folder: PathBuf,
    trail: Trail,
    _watchdog: Watchdog,
}

impl Detached {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("landeck-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { folder, trail: Trail::new(), _watchdog: Watchdog::start(TEST_MAX) }
    }

    /// The name of a job, which no other test has.
    fn name(&self, name: &str) -> String {
        format!("{name}-{}", self.folder.file_name().unwrap().to_str().unwrap())
    }

    /// `landeck` with these words.
    fn landeck(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
        self.surround(command.args(words));
        command
    }

    fn surround<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.current_dir(&self.folder).env("XDG_STATE_HOME", &self.folder)
    }

    /// Runs `landeck` to its end. What it has started may go on.
    fn run(&self, words: &[&str]) -> Ended {
        Ended::from(self.trail.run(&mut self.landeck(words), RUN_MAX))
    }

    /// Detaches a job of two shells, and checks what is said of it. Returns the PID of its launcher and its output file.
    fn detach(&self, name: &str, options: &[&str], script: &str) -> (u32, PathBuf) {
        let usual = ["run", "--detach", "--name", name, "-n", "2"];
        let ended = self.run(&[&usual, options, &["sh", "-c", script]].concat());
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
        let (first, second) = ended.out.trim_end().split_once('\n').unwrap();
        assert_eq!(second, format!("See it by: landeck ps {name}. End it by: landeck end {name}"));
        let (_, rest) = first.split_once(") has begun, launcher pid ").unwrap();
        let (pid, file) = rest.split_once(". Output: ").unwrap();
        (pid.parse().unwrap(), PathBuf::from(file))
    }

    /// Starts a job that is not detached, and waits until its two processes run.
    fn attach(&self, name: &str, options: &[&str], script: &str) -> Child {
        let usual = ["run", "--name", name, "-n", "2"];
        let mut command = self.landeck(&[&usual, options, &["sh", "-c", script]].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.trail.spawn(&mut command);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (0..2).for_each(|_| assert_eq!(lines.next().unwrap().unwrap(), "ready"));
        child
    }

    fn finish(&self, child: Child) -> Ended {
        self.trail.finish(child, RUN_MAX).into()
    }

    fn go(&self) {
        fs::write(self.folder.join("go"), "").unwrap();
    }

    /// The text of a file, once there is nothing left of all jobs.
    fn at_the_end(&self, file: &Path) -> String {
        self.trail.assert_gone(GONE_WITHIN);
        fs::read_to_string(file).unwrap()
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Waits until a file has these lines so many times.
fn wait_for_lines(file: &Path, line: &str, count: usize) {
    while fs::read_to_string(file).unwrap_or_default().lines().filter(|own| *own == line).count()
        < count
    {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_detached_job_has_no_input_and_keeps_its_output() {
    let jobs = Detached::new("a_detached_job_has_no_input");
    let script = format!("cat; echo wrong >&2; {UNTIL_GO}");
    // It runs when the command returns, which waits for the end of its own output here: the job holds none of it.
    let (launcher, file) = jobs.detach(&jobs.name("job"), &["--tag"], &script);
    assert!(file.starts_with(jobs.folder.join("landeck")), "{file:?}");
    wait_for_lines(&file, "[0] ready", 1);
    // The end of a terminal is none of its own.
    send(launcher, Signal::HUP);
    jobs.go();
    let text = jobs.at_the_end(&file);
    let lines = sorted(&text);
    let [last, wanted @ ..] = lines.as_slice() else { panic!("{text}") };
    assert_eq!(
        wanted[..],
        ["[0] end", "[0] ready", "[0] wrong", "[1] end", "[1] ready", "[1] wrong"]
    );
    assert!(
        last.starts_with("The job has ended after ") && last.ends_with(" Exit code 0."),
        "{last}"
    );
}

#[test]
fn a_closed_terminal_ends_a_job_unless_it_is_detached() {
    let jobs = Detached::new("a_closed_terminal");
    let (attached, detached) = (jobs.name("attached"), jobs.name("detached"));
    let landeck = env!("CARGO_BIN_EXE_landeck");
    let line = format!(
        "{landeck} run -n 1 --detach --name {detached} sh -c '{UNTIL_GO}' && \
         exec {landeck} run -n 1 --name {attached} sh -c 'echo begun; exec sleep 100'"
    );
    let (ours, theirs) = terminal();
    let mut command = Command::new("setsid");
    jobs.surround(command.args(["--ctty", "--wait", "sh", "-c", &line]));
    let own = || Stdio::from(theirs.try_clone().unwrap());
    command.stdin(own()).stdout(own()).stderr(own());
    let mut shell = jobs.trail.spawn(&mut command);
    drop((command, theirs));
    let mut lines = BufReader::new(ours);
    let mut seen = String::new();
    while !seen.ends_with("begun\n") && !seen.ends_with("begun\r\n") {
        assert_ne!(lines.read_line(&mut seen).unwrap(), 0, "{seen}");
    }
    drop(lines);
    shell.wait().unwrap();
    let listed = || jobs.run(&["ps"]).out;
    while listed().contains(&attached) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(listed().contains(&detached), "it has ended with the terminal");
    jobs.go();
    let file = seen.split("Output: ").nth(1).unwrap().split(['\r', '\n']).next().unwrap();
    let text = jobs.at_the_end(Path::new(file));
    assert!(text.starts_with("ready\nend\nThe job has ended"), "{text}");
}

#[test]
fn a_job_that_does_not_begin_says_what_it_would_say_with_a_terminal() {
    let jobs = Detached::new("a_job_that_does_not_begin");
    fs::write(jobs.folder.join("text"), "no program").unwrap();
    assert!(
        Command::new("chmod").arg("+x").arg(jobs.folder.join("text")).status().unwrap().success()
    );
    for words in
        [&["-n", "2", "./nowhere"][..], &["-n", "2", "./text"], &["-C", "/nowhere", "true"]]
    {
        let both = [&["run"][..], &["run", "--detach"]].map(|how| jobs.run(&[how, words].concat()));
        let [attached, detached] = both.map(|ended| (ended.code, ended.out, ended.err));
        assert!(attached.0.is_some_and(|code| code >= 125), "{attached:?}");
        assert_eq!(attached, detached, "{words:?}");
    }
    let left: Vec<_> = fs::read_dir(jobs.folder.join("landeck")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    for (words, said) in [
        (&["--stdin", "0"], "--detach cannot be used with --stdin <WHO>; leave one of them out"),
        (&["--tag", "--dry-run"], "--detach cannot be used with --dry-run; leave one of them out"),
    ] {
        let ended = jobs.run(&[&["run", "--detach"], &words[..], &["true"]].concat());
        assert_eq!((ended.code, ended.err), (Some(2), format!("landeck: {said}\n")));
    }
    let mut homeless = jobs.landeck(&["run", "--detach", "true"]);
    homeless.env_remove("XDG_STATE_HOME").env_remove("HOME");
    let ended = Ended::from(jobs.trail.run(&mut homeless, RUN_MAX));
    assert_eq!(ended.code, Some(125), "{ended:?}");
    assert!(ended.err.contains("set one, or use --output-dir"), "{ended:?}");
    jobs.trail.assert_gone(GONE_WITHIN);
}

#[test]
fn a_detached_job_writes_into_the_output_directory_and_ends_by_a_signal() {
    let jobs = Detached::new("a_detached_job_writes");
    let script = "echo out $RANK; echo err $RANK >&2; exec sleep 100";
    let options = ["--output-dir", "out"];
    let (launcher, place) = jobs.detach(&jobs.name("job"), &options, script);
    assert_eq!(place, jobs.folder.join("out"));
    let [out, err] = ["rank-1.stdout", "rank-1.stderr"].map(|name| place.join(name));
    wait_for_lines(&out, "out 1", 1);
    wait_for_lines(&err, "err 1", 1);
    send(launcher, Signal::TERM);
    let text = jobs.at_the_end(&place.join("launcher.stderr"));
    assert_eq!(text, "The job was ended by SIGTERM. Exit code 143.\n");
}

#[test]
fn jobs_are_ended_by_their_names() {
    let jobs = Detached::new("jobs_are_ended_by_their_names");
    let [one, two, other] = ["one", "two", "other"].map(|name| jobs.name(name));
    let (_, file) = jobs.detach(&one, &[], "exec sleep 100");
    let attached = jobs.attach(&two, &[], "echo ready; exec sleep 100");
    let polite = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let polite = jobs.attach(&other, &[], polite);
    // An unknown name ends nothing.
    let unknown = jobs.run(&["end", &one, "nobody"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(
        unknown.err.starts_with("landeck: no job is called \"nobody\": there is "),
        "{unknown:?}"
    );
    for name in [&one, &two, &other] {
        assert!(unknown.err.contains(&format!("{name} (")), "{unknown:?}");
    }
    let listed = jobs.run(&["ps", &one]).out;
    let digits = listed.split(' ').next().unwrap();
    let ended = jobs.run(&["end", "--timeout", "9e18", digits, &two, &other, &one]);
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "", ""));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let said = |code: i32| {
        format!("The job was ended by `landeck end` on host {host}. Exit code {code}.\n")
    };
    let [attached, polite] = [attached, polite].map(|child| jobs.finish(child));
    assert_eq!((attached.code, attached.err), (Some(143), said(143)));
    // The shells say that their sleep was ended.
    assert!(polite.code == Some(0) && polite.err.ends_with(&said(0)), "{polite:?}");
    assert_eq!(jobs.at_the_end(&file), said(143));
    assert_eq!(jobs.run(&["end", &one]).code, Some(2));
}

#[test]
fn a_name_of_several_jobs_ends_none_and_a_stubborn_one_is_killed() {
    let jobs = Detached::new("a_name_of_several_jobs");
    let name = jobs.name("twin");
    let stubborn = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let (_, first) = jobs.detach(&name, &["--grace", "100"], stubborn);
    let (_, second) = jobs.detach(&name, &["--grace", "0.2"], stubborn);
    let unclear = jobs.run(&["end", &name]);
    assert_eq!(unclear.code, Some(2), "{unclear:?}");
    assert_eq!(unclear.err.matches(&format!("{name} (")).count(), 2, "{unclear:?}");
    let identity = |file: &Path| {
        let stem = file.file_stem().unwrap().to_str().unwrap().to_owned();
        stem.rsplit('-').next().unwrap().to_owned()
    };
    let late = jobs.run(&["end", "--timeout", "0.1", &identity(&first)]);
    assert_eq!(late.code, Some(124), "{late:?}");
    assert!(late.err.contains(&format!("{name} (")), "{late:?}");
    assert!(late.err.contains("has not ended within 0.1 s (--timeout)"), "{late:?}");
    assert_eq!(jobs.run(&["end", &identity(&second)]).code, Some(0));
    assert!(fs::read_to_string(second).unwrap().ends_with("Exit code 137.\n"));
    jobs.trail.kill();
    jobs.trail.assert_gone(GONE_WITHIN);
}
