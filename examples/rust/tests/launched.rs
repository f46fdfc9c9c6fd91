//! The examples as their users run them: under the launcher, on one process and on several. The
//! number of processes must not change a single bit of the result.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use landeck_testing::program::build;
use landeck_testing::{Trail, Watchdog};

/// How long a test may take, with the build of the launcher.
const TEST_LIMIT: Duration = Duration::from_secs(300);
/// How long one run of a program may take.
const RUN_LIMIT: Duration = Duration::from_secs(150);
/// How long everything that a run has started may go on after its end.
const GONE_LIMIT: Duration = Duration::from_secs(60);

const HEAT: &str = env!("CARGO_BIN_EXE_heat");
const NSECTION: &str = env!("CARGO_BIN_EXE_nsection");
const OWN_ARCHITECTURE: &str = env!("CARGO_BIN_EXE_own_architecture");
const ELASTIC: &str = env!("CARGO_BIN_EXE_elastic");
const ORDERED: &str = env!("CARGO_BIN_EXE_ordered");
const LATE_RECEIVER: &str = env!("CARGO_BIN_EXE_late_receiver");

#[test]
fn heat_is_the_same_on_any_number_of_processes() {
    let _watchdog = Watchdog::start(TEST_LIMIT);
    let folder = folder("heat");
    // Cells that no number of processes divides evenly.
    let sum_of = |processes: u32| {
        let picture = folder.join(format!("{processes}.png"));
        let sum = folder.join(format!("{processes}.sum"));
        let output = Command::new(launcher())
            .args(["run", "-n", &processes.to_string(), HEAT, "--size", "61x47", "--steps", "150"])
            .args(["--check", "--output"])
            .arg(&picture)
            .arg("--checksum-file")
            .arg(&sum)
            .run();
        assert_wrote(&output, "checked: one process alone gets the same, bit for bit");
        let plural = if processes == 1 { "process," } else { "processes," };
        assert_wrote(&output, &format!("{processes} {plural}"));
        assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
        fs::read_to_string(&sum).unwrap()
    };
    let wanted = sum_of(1);
    for processes in 2..=5 {
        assert_eq!(sum_of(processes), wanted, "{processes} processes");
    }
}

#[test]
fn heat_runs_alone_and_with_a_cell_for_each_process() {
    let _watchdog = Watchdog::start(TEST_LIMIT);
    let folder = folder("small");
    let picture = folder.join("heat.png");
    let alone = Command::new(HEAT)
        .args(["--size", "20", "--steps", "20", "--check", "--output"])
        .arg(&picture)
        .run();
    assert_wrote(&alone, "checked:");
    let tiny = Command::new(launcher())
        .args(["run", "-n", "4", HEAT, "--size", "2", "--steps", "9", "--check", "--output"])
        .arg(&picture)
        .run();
    assert_wrote(&tiny, "checked:");
}

#[test]
fn elastic_counts_the_same_whoever_comes_and_goes() {
    let _watchdog = Watchdog::start(TEST_LIMIT);
    for processes in ["1", "2", "3", "5"] {
        let output =
            Command::new(launcher()).args(["run", "-n", processes, ELASTIC, "100000"]).run();
        assert_wrote(&output, "9592 primes below 100000; helpers went home");
        // Helpers of long counts have been at home.
        let is_alone = processes == "1";
        let never = String::from_utf8_lossy(&output.stdout).contains(" 0 times");
        assert_eq!(never, is_alone, "{processes}: {output:?}");
    }
    assert_wrote(&Command::new(ELASTIC).arg("10").run(), "4 primes below 10;");
}

#[test]
fn a_late_receiver_gets_everything_from_a_sender_that_has_ended() {
    let _watchdog = Watchdog::start(TEST_LIMIT);
    let how = ["run", "-n", "3", "--store", "sender", LATE_RECEIVER, "5", "--late", "0.01"];
    let output = Command::new(launcher()).args(how).run();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("5 messages received, all whole"),
        "{output:?}"
    );
    let alone = Command::new(LATE_RECEIVER).run();
    assert_eq!(alone.status.code(), Some(2), "{alone:?}");
}

#[test]
fn members_of_a_group_see_one_order() {
    let _watchdog = Watchdog::start(TEST_LIMIT);
    let out = folder("ordered");
    let run = ["run", "-n", "3", ORDERED, "--seconds", "0.5", "--traces"];
    let output = Command::new(launcher()).args(run).arg(&out).run();
    assert!(output.status.success(), "{output:?}");
    let checked = Command::new(launcher()).args(["group", "check"]).arg(&out).run();
    assert_wrote(&checked, "members 0, 1, 2: the same ");
    assert_wrote(&checked, "safe lost: 0; ");
}

#[test]
fn members_of_a_group_see_one_order_when_one_is_killed() {
    let _watchdog = Watchdog::start(TEST_LIMIT);
    let (out, trail) = (folder("ordered-killed"), Trail::new());
    let mut run = Command::new(launcher());
    run.args(["run", "-n", "4", "--on-failure", "notify", "--output-dir"]).arg(&out);
    let running = trail.spawn(run.args([ORDERED, "--seconds", "3"]));
    // All are in the midst of it.
    let is_within = |rank: u32| {
        let trace = fs::read_to_string(out.join(format!("rank-{rank}.stdout")));
        trace.is_ok_and(|trace| trace.lines().count() > 200)
    };
    let give_up = Instant::now() + RUN_LIMIT;
    while !(0..4).all(is_within) {
        assert!(Instant::now() < give_up, "no traces are written");
        std::thread::sleep(Duration::from_millis(20));
    }
    let members = trail.processes().into_iter().filter(|(_, name)| name == "ordered");
    let victim = members.map(|(pid, _)| pid).max().expect("members run");
    assert!(Command::new("kill").args(["-9", &victim.to_string()]).status().unwrap().success());
    let output = trail.finish(running, RUN_LIMIT);
    assert_eq!(output.status.code(), Some(137), "{output:?}");
    trail.assert_gone(GONE_LIMIT);
    let checked = Command::new(launcher()).args(["group", "check"]).arg(&out).run();
    let text = String::from_utf8_lossy(&checked.stdout);
    assert_wrote(&checked, "safe lost: 0; ");
    assert!(text.contains(", which died: "), "{text}");
}

#[test]
fn nsection_takes_the_same_way_on_any_number_of_processes() {
    let _watchdog = Watchdog::start(TEST_LIMIT);
    for function in ["quartic", "cosine", "kepler"] {
        let way_of = |processes: u32| {
            let output = nsection(processes, &["--function", function, "--parts", "12", "--trace"]);
            let text = String::from_utf8(output.stdout).unwrap();
            // All but the number of evaluations, which depends on who looks where.
            text.rsplit_once(", ").unwrap().0.to_owned()
        };
        let wanted = way_of(1);
        for processes in 2..=5 {
            assert_eq!(way_of(processes), wanted, "{function} on {processes} processes");
        }
    }
}

#[test]
fn nsection_finds_the_root_with_a_part_for_each_process() {
    let _watchdog = Watchdog::start(TEST_LIMIT);
    for processes in 1..=5 {
        let output = nsection(processes, &["--function", "cosine"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let root: f64 = text.split(' ').nth(1).unwrap().parse().unwrap();
        assert!((root - 0.739_085_133_215_160_6).abs() < 1e-12, "{processes} processes: {text}");
    }
}

#[test]
fn an_architecture_of_ones_own_carries_every_operation() {
    let _watchdog = Watchdog::start(TEST_LIMIT);
    let folder = folder("own_architecture");
    for (processes, latency, messages) in [(1, 2, 0), (2, 1, 1), (5, 2, 4), (8, 3, 7)] {
        let picture = folder.join(format!("{processes}.svg"));
        let output = Command::new(launcher())
            .args(["run", "-n", &processes.to_string(), OWN_ARCHITECTURE])
            .args(["--latency", &latency.to_string(), "--svg"])
            .arg(&picture)
            .run();
        let plural = if messages == 1 { "" } else { "s" };
        let heading = format!("broadcast by postal:{latency}: {messages} message{plural} in ");
        assert_wrote(&output, &heading);
        let sum = processes * (processes - 1) / 2;
        let right = "broadcast, allgather, allreduce, barrier: right; the ranks' sum is";
        assert_wrote(&output, &format!("{right} {sum}"));
        assert!(fs::read_to_string(&picture).unwrap().contains(&heading));
    }
}

#[test]
fn mistakes_in_the_options_are_told_once() {
    let _watchdog = Watchdog::start(TEST_LIMIT);
    let mistakes: [(&str, &[&str], &str); 5] = [
        (HEAT, &["--size", "2"], "heat: a plate of 2x2 cells cannot be divided into 5 blocks"),
        (HEAT, &["--size", "many"], "a number of cells from 1 to"),
        (NSECTION, &["--from", "5", "--to", "6"], "nsection: the function is 253 at 5"),
        (NSECTION, &["--from", "1", "--to", "0"], "nsection: there is no interval from 1 to 0"),
        (NSECTION, &["--tolerance", "-1"], "a number above 0 is wanted"),
    ];
    for (program, options, message) in mistakes {
        let output = Command::new(launcher()).args(["run", "-n", "5", program]).args(options).run();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        assert_eq!(said.matches(message).count(), 1, "{options:?}: {said}");
    }
}

#[test]
fn a_picture_that_cannot_be_written_ends_the_job_before_the_work() {
    let _watchdog = Watchdog::start(TEST_LIMIT);
    let output = Command::new(launcher())
        .args(["run", "-n", "3", HEAT, "--steps", "1000000000", "--output", "/proc/no/heat.png"])
        .run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("heat: rank 0: cannot write /proc/no/heat.png:"), "{said}");
}

/// A command with a limit, that leaves nobody behind.
trait Run {
    fn run(&mut self) -> Output;
}

impl Run for Command {
    fn run(&mut self) -> Output {
        let trail = Trail::new();
        let output = trail.run(self, RUN_LIMIT);
        trail.assert_gone(GONE_LIMIT);
        output
    }
}

fn nsection(processes: u32, options: &[&str]) -> Output {
    let output = Command::new(launcher())
        .args(["run", "-n", &processes.to_string(), NSECTION])
        .args(options)
        .run();
    assert_wrote(&output, "root ");
    output
}

/// Checks that a run went well and wrote a line that starts so.
fn assert_wrote(output: &Output, start: &str) {
    let written = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && written.lines().any(|line| line.starts_with(start)),
        "wanted {start:?} and a good end, got {:?}\nstandard output: {written}\nstandard error: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
    );
}

/// An empty folder of the test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("examples-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// The launcher, which is another package: built once, beside the examples.
fn launcher() -> &'static Path {
    static LAUNCHER: OnceLock<PathBuf> = OnceLock::new();
    LAUNCHER.get_or_init(|| build(env!("CARGO")).join("landeck"))
}
