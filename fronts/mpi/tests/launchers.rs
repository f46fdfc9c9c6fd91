//! Other launchers: a launcher of these tests that speaks PMI-1, well and badly, and MPICH's mpiexec.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::support::pmi_server::{self, Ended, Reply};
use crate::support::{
    Launcher, Library, command, libraries, mpich_or_skip, peer_or_skip, program, run,
};
use landeck_testing::program::assert_wrote;
use landeck_testing::{Random, Trail, Watchdog, leftovers, seed};

/// How long one test may take, with compiling.
const LIMIT: Duration = Duration::from_secs(1_000);
/// How long a job may go on whose launcher was killed.
const GONE_LIMIT: Duration = Duration::from_secs(100);

#[test]
fn processes_of_a_pmi_launcher_are_one_job() {
    let _watchdog = Watchdog::start(LIMIT);
    for processes in [1, 2, 4] {
        let ended = pmi_server::run(processes, &program("ring"), &[], |_, _| Reply::AsHydra);
        assert_wrote(&ended.processes[0], &format!("ring: {processes} processes agree"));
        for (output, said) in ended.processes.iter().zip(&ended.said) {
            assert!(output.status.success(), "{output:?}");
            // Slurm reads its first line with a fixed pattern.
            assert_eq!(said[0], "cmd=init pmi_version=1 pmi_subversion=1\n");
            assert_eq!(said.last().map(String::as_str), Some("cmd=finalize\n"));
            assert!(said.iter().all(|line| is_known_everywhere(line)), "{said:?}");
        }
    }
}

#[test]
fn a_launcher_may_say_less_and_more_than_hydra() {
    let _watchdog = Watchdog::start(LIMIT);
    // Slurm answers some requests without a return code, and others may say more than is asked.
    let ended = pmi_server::run(2, &program("ring"), &[], |_, command| match command {
        "get_maxes" => Reply::Line("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=256 x=y\n"),
        "get_my_kvsname" => Reply::Line("later=1 kvsname=1.0 cmd=my_kvsname\n"),
        _ => Reply::AsHydra,
    });
    assert_wrote(&ended.processes[0], "ring: 2 processes agree");
}

#[test]
fn a_launcher_that_answers_nonsense_is_told_of_and_nobody_is_alone() {
    let _watchdog = Watchdog::start(LIMIT);
    let manners: [(pmi_server::Manner, &str); 5] = [
        (|_, command| line(command == "init", "HTTP/1.1 400 Bad Request\n"), "makes no sense"),
        (|_, command| line(command == "get_maxes", "cmd=maxes rc=0 keylen_max=-1\n"), "get_maxes"),
        (|_, command| line(command == "put", "cmd=put_result rc=-1 msg=full\n"), "refused \"put\""),
        (
            |_, command| line(command == "get", "cmd=get_result rc=0 value=../../etc\n"),
            "names no job",
        ),
        (
            |_, command| if command == "barrier_in" { Reply::Gone } else { Reply::AsHydra },
            "closed the conversation",
        ),
    ];
    for (manner, words) in manners {
        let Ended { processes, .. } = pmi_server::run(2, &program("hello"), &[], manner);
        assert!(processes.iter().all(|output| !output.status.success()), "{processes:?}");
        let errors = processes.iter().map(|output| String::from_utf8_lossy(&output.stderr));
        assert!(errors.into_iter().any(|text| text.contains(words)), "{words}: {processes:?}");
    }
}

/// More than any answer has, without an end.
fn endless() -> &'static str {
    Box::leak("x".repeat(20_000).into_boxed_str())
}

#[test]
fn a_launcher_that_lies_is_told_of_and_nobody_waits() {
    let _watchdog = Watchdog::start(LIMIT);
    let manners: [(pmi_server::Manner, &str); 9] = [
        (|_, command| line(command == "get_my_kvsname", endless()), "xxx... ("),
        (|_, command| line(command == "get_maxes", "cmd=maxes rc=0 keylen_max=64\n"), "get_maxes"),
        (
            |_, command| line(command == "get_maxes", "cmd=maxes keylen_max=9 vallen_max=1024\n"),
            "cannot be sent to the launcher",
        ),
        (|_, command| line(command == "get", "cmd=get_result rc=0\n"), "makes no sense"),
        // The answers to what was not asked yet.
        (
            |_, command| line(command == "init", "cmd=response_to_init\ncmd=put_result rc=0\n"),
            "answer to \"get_maxes\" makes no sense",
        ),
        // What it was told it has lost, and all are said to have come before they have.
        (
            |_, command| match command {
                "put" => Reply::Line("cmd=put_result rc=0\n"),
                _ => line(command == "barrier_in", "cmd=barrier_out\n"),
            },
            "knows no value of",
        ),
        // A job that there is not: those who look for it are elsewhere.
        (
            |_, command| line(command == "get", "cmd=get_result value=00000000000000ff.61\n"),
            "must stay on one host",
        ),
        (
            |rank, command| match (rank, command) {
                (1, "get") => Reply::Last("cmd=get_result rc=0 val"),
                _ => Reply::AsHydra,
            },
            "closed the conversation before it answered \"get\"",
        ),
        (
            |rank, command| match (rank, command) {
                (0, "put") => Reply::Last("cmd=put_result rc=0\n"),
                _ => Reply::AsHydra,
            },
            "closed the conversation before it answered \"barrier_in\"",
        ),
    ];
    for (manner, words) in manners {
        let Ended { processes, .. } = pmi_server::run(2, &program("hello"), &[], manner);
        assert!(processes.iter().all(|output| !output.status.success()), "{words}: {processes:?}");
        let errors = processes.iter().map(|output| String::from_utf8_lossy(&output.stderr));
        assert!(errors.into_iter().any(|text| text.contains(words)), "{words}: {processes:?}");
    }
}

#[test]
fn a_launcher_that_tells_wrong_places_is_told_of_and_nobody_waits() {
    let _watchdog = Watchdog::start(LIMIT);
    // What the processes are told, and what one of them says.
    let told: [(&[(&str, &str)], &str); 8] = [
        (&[("0", "0")], "PMI_SIZE is \"0\""),
        (&[("2", "2")], "PMI_RANK is 2, but PMI_SIZE is 2"),
        (&[("0", "")], "PMI_SIZE is \"\""),
        (&[("0", "99999999999999999999")], "PMI_SIZE is \"99999999999999999999\""),
        (&[("0", "4294967295")], "not 4,294,967,295"),
        (&[("0", "1000000")], "not 1,000,000"),
        (&[("0", "2"), ("0", "2")], "has not"),
        (&[("0", "2"), ("2", "3")], "it has no process of that number"),
    ];
    for (places, words) in told {
        let places: Vec<_> =
            places.iter().map(|&(rank, size)| (rank.to_owned(), size.to_owned())).collect();
        let Ended { processes, .. } =
            pmi_server::run_told(&places, &program("hello"), &[], |_, _| Reply::AsHydra);
        assert!(processes.iter().all(|output| !output.status.success()), "{words}: {processes:?}");
        let errors = processes.iter().map(|output| String::from_utf8_lossy(&output.stderr));
        assert!(errors.into_iter().any(|text| text.contains(words)), "{words}: {processes:?}");
    }
}

#[test]
fn a_launcher_that_goes_ends_the_job() {
    let _watchdog = Watchdog::start(LIMIT);
    // Rank 0 keeps the membership and sees it; that the agent is gone is how the others see it.
    for victim in ["0", "2"] {
        let arguments = [victim, "exit"];
        let ended = pmi_server::run(3, &program("killed"), &arguments, |_, _| Reply::AsHydra);
        for (rank, output) in ended.processes.iter().enumerate() {
            let wanted = if rank.to_string() == victim { 7 } else { 58 };
            assert_eq!(output.status.code(), Some(wanted), "rank {rank}: {output:?}");
        }
    }
}

#[test]
fn an_abort_comes_first() {
    let _watchdog = Watchdog::start(LIMIT);
    let ended = pmi_server::run(3, &program("killed"), &["1", "abort"], |_, _| Reply::AsHydra);
    let aborts: Vec<&String> =
        ended.said.iter().flatten().filter(|line| line.starts_with("cmd=abort")).collect();
    assert!(aborts.first().is_some_and(|line| line.contains("exitcode=3 ")), "{aborts:?}");
    assert_eq!(ended.processes[1].status.code(), Some(3), "{:?}", ended.processes[1]);
}

#[test]
fn a_killed_process_ends_the_job_of_mpiexec() {
    let _watchdog = Watchdog::start(LIMIT);
    if !mpich_or_skip("a_killed_process_ends_the_job_of_mpiexec") {
        return;
    }
    for victim in ["0", "1", "3"] {
        let arguments = [victim, "kill"];
        let output = run(Launcher::Mpiexec, Library::Ours, 4, &program("killed"), &arguments);
        assert!(!output.status.success(), "{output:?}");
        let written = String::from_utf8_lossy(&output.stdout);
        assert!(!written.contains("in vain"), "{written}");
    }
}

#[test]
fn the_code_of_an_abort_reaches_mpiexec() {
    let _watchdog = Watchdog::start(LIMIT);
    if !mpich_or_skip("the_code_of_an_abort_reaches_mpiexec") {
        return;
    }
    let killed = program("killed");
    for victim in ["0", "2", "0", "2"] {
        let output = run(Launcher::Mpiexec, Library::Ours, 3, &killed, &[victim, "abort"]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
    }
    // What was printed before is not lost, though the launcher kills; but what is on its way through
    // this launcher may be, so it goes into a file.
    let file = std::env::temp_dir().join(format!("landeck-abort-{}", std::process::id()));
    let script = format!("exec \"$0\" 0 abort >'{}'", file.display());
    let program = killed.to_string_lossy();
    let output =
        run(Launcher::Mpiexec, Library::Ours, 1, "sh".as_ref(), &["-c", &script, &program]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let written = std::fs::read_to_string(&file);
    let _ = std::fs::remove_file(&file);
    assert!(written.as_ref().is_ok_and(|text| text.contains("rank 0 aborts")), "{written:?}");
}

#[test]
fn jobs_of_two_launchers_run_at_once() {
    let _watchdog = Watchdog::start(LIMIT);
    if !mpich_or_skip("jobs_of_two_launchers_run_at_once") {
        return;
    }
    let ring = program("ring");
    let trail = Trail::new();
    let launchers = [Launcher::Mpiexec, Launcher::Mpiexec, Launcher::Landeck, Launcher::None];
    let children: Vec<Child> = launchers
        .iter()
        .map(|launcher| trail.spawn(&mut piped(command(*launcher, Library::Ours, 2, &ring))))
        .collect();
    for (launcher, child) in launchers.iter().zip(children) {
        let processes = if matches!(launcher, Launcher::None) { 1 } else { 2 };
        let output = trail.finish(child, GONE_LIMIT);
        assert_wrote(&output, &format!("ring: {processes} processes agree"));
    }
    trail.assert_gone(GONE_LIMIT);
}

#[test]
fn launchers_can_be_nested() {
    let _watchdog = Watchdog::start(LIMIT);
    if !mpich_or_skip("launchers_can_be_nested") {
        return;
    }
    let hello = program("hello");
    for (outer, inner) in
        [(Launcher::Mpiexec, Launcher::Landeck), (Launcher::Landeck, Launcher::Mpiexec)]
    {
        let inside = command(inner, Library::Ours, 3, &hello);
        let words: Vec<String> =
            inside.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = run(outer, Library::Ours, 1, inside.get_program().as_ref(), &words);
        assert_wrote(&output, "hello: 3 processes agree");
    }
}

#[test]
fn a_launcher_is_reached_at_its_port() {
    let _watchdog = Watchdog::start(LIMIT);
    if !mpich_or_skip("a_launcher_is_reached_at_its_port") {
        return;
    }
    let mut command = mpiexec_with("-pmi-port", 2, &program("hello"));
    let trail = Trail::new();
    let output = trail.run(&mut command, GONE_LIMIT);
    assert_wrote(&output, "hello: 2 processes agree");
    trail.assert_gone(GONE_LIMIT);
}

#[test]
fn the_notice_of_a_death_ends_nobody() {
    let _watchdog = Watchdog::start(LIMIT);
    if !mpich_or_skip("the_notice_of_a_death_ends_nobody") {
        return;
    }
    // What this launcher does where a signal ended a process is another matter: it kills the others.
    let mut command = mpiexec_with("-disable-auto-cleanup", 3, &program("survivors"));
    let trail = Trail::new();
    let output = trail.run(&mut command, GONE_LIMIT);
    let written = String::from_utf8_lossy(&output.stdout);
    for rank in 0..2 {
        assert!(written.contains(&format!("rank {rank} goes on")), "{output:?}");
    }
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    trail.assert_gone(GONE_LIMIT);
}

#[test]
fn the_launcher_of_intel_mpi_is_understood() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "the_launcher_of_intel_mpi_is_understood";
    let Some(mpiexec) = peer_or_skip("impi", "mpiexec", test) else { return };
    let trail = Trail::new();
    let run = |processes: &str, name: &str, arguments: &[&str]| {
        let mut command = Command::new(&mpiexec);
        command.args(["-n", processes]).arg(program(name)).args(arguments);
        trail.run(command.env("LD_LIBRARY_PATH", libraries()), GONE_LIMIT)
    };
    for processes in ["1", "2", "4"] {
        let output = run(processes, "ring", &[]);
        assert_wrote(&output, &format!("ring: {processes} processes agree"));
    }
    assert_eq!(run("3", "killed", &["1", "abort"]).status.code(), Some(3));
    trail.assert_gone(GONE_LIMIT);
}

/// A command below `mpirun` of Open MPI, if that is installed.
fn open_mpi_or_skip(test: &str, processes: &str) -> Option<Command> {
    let mut command = Command::new(peer_or_skip("ompi", "mpirun", test)?);
    command.args(["--oversubscribe", "-n", processes]).env("LD_LIBRARY_PATH", libraries());
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
    }
    Some(command)
}

#[test]
fn the_launcher_of_open_mpi_is_understood() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "the_launcher_of_open_mpi_is_understood";
    let trail = Trail::new();
    for processes in ["1", "2", "4"] {
        let Some(mut command) = open_mpi_or_skip(test, processes) else { return };
        let output = trail.run(command.arg(program("ring")), GONE_LIMIT);
        assert_wrote(&output, &format!("ring: {processes} processes agree"));
    }
    for (arguments, wanted) in [(["1", "abort"], Some(3)), (["0", "abort"], Some(3))] {
        let Some(mut command) = open_mpi_or_skip(test, "3") else { return };
        let output = trail.run(command.arg(program("killed")).args(arguments), GONE_LIMIT);
        assert_eq!(output.status.code(), wanted, "{output:?}");
    }
    for victim in ["0", "2"] {
        let Some(mut command) = open_mpi_or_skip(test, "3") else { return };
        let output = trail.run(command.arg(program("killed")).args([victim, "kill"]), GONE_LIMIT);
        assert!(!output.status.success(), "{output:?}");
        let written = String::from_utf8_lossy(&output.stdout);
        assert!(!written.contains("in vain"), "{written}");
    }
    trail.assert_gone(GONE_LIMIT);
}

#[test]
fn a_launcher_of_open_mpi_that_is_killed_takes_its_job_with_it() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "a_launcher_of_open_mpi_that_is_killed_takes_its_job_with_it";
    let Some(mut command) = open_mpi_or_skip(test, "3") else { return };
    let trail = Trail::new();
    let mut child = trail.spawn(&mut piped({
        command.arg(program("killed"));
        command
    }));
    let mut lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
    for _ in 0..3 {
        let line = lines.next().expect("a line for each process").expect("a text");
        assert!(line.ends_with(" is in"), "{line}");
    }
    let there = trail.processes();
    let victim = there.iter().find(|(_, name)| name.starts_with("prte")).expect("it runs");
    kill(victim.0);
    assert!(!trail.finish(child, GONE_LIMIT).status.success());
    trail.assert_gone(GONE_LIMIT);
}

#[test]
fn nothing_is_left_whichever_process_is_killed_whenever() {
    let _watchdog = Watchdog::start(LIMIT);
    if !mpich_or_skip("nothing_is_left_whichever_process_is_killed_whenever") {
        return;
    }
    let killed = program("killed");
    let mut random = Random::new(seed());
    for _ in 0..12 {
        let trail = Trail::new();
        let child = trail.spawn(&mut piped(command(Launcher::Mpiexec, Library::Ours, 3, &killed)));
        // Starting takes about as long. The launcher itself is spared: that of MPICH waits for ever
        // when a part of it dies while it starts.
        let members = loop {
            wait(Duration::from_millis(1 + random.below(100)));
            let there = trail.processes();
            let members: Vec<u32> = there
                .into_iter()
                .filter_map(|(pid, name)| (name == "killed").then_some(pid))
                .collect();
            if !members.is_empty() {
                break members;
            }
        };
        kill(*random.pick(&members));
        let output: Output = trail.finish(child, GONE_LIMIT);
        assert!(!output.status.success(), "{output:?}");
        trail.assert_gone(GONE_LIMIT);
    }
    // Other tests are running processes of their own.
    let files: Vec<String> =
        leftovers().into_iter().filter(|left| !left.starts_with("process ")).collect();
    assert_eq!(files, [""; 0]);
}

#[test]
fn a_launcher_that_is_killed_takes_its_job_with_it() {
    let _watchdog = Watchdog::start(LIMIT);
    if !mpich_or_skip("a_launcher_that_is_killed_takes_its_job_with_it") {
        return;
    }
    let killed = program("killed");
    for part in ["mpiexec", "hydra_pmi_proxy"] {
        let trail = Trail::new();
        let mut command = piped(command(Launcher::Mpiexec, Library::Ours, 3, &killed));
        let mut child = trail.spawn(&mut command);
        let mut lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
        for _ in 0..3 {
            let line = lines.next().expect("a line for each process").expect("a text");
            assert!(line.ends_with(" is in"), "{line}");
        }
        let there = trail.processes();
        let victim = there.iter().find(|(_, name)| name == part).expect("it runs");
        kill(victim.0);
        assert!(!trail.finish(child, GONE_LIMIT).status.success());
        trail.assert_gone(GONE_LIMIT);
    }
}

/// MPICH's mpiexec with an option before those that say what to start.
fn mpiexec_with(option: &str, processes: u32, program: &Path) -> Command {
    let inside = command(Launcher::Mpiexec, Library::Ours, processes, program);
    let mut command = Command::new(inside.get_program());
    command.arg(option).args(inside.get_args());
    command.envs(inside.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

fn kill(pid: u32) {
    // It may have ended meanwhile.
    let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).output();
}

/// Lets that time go by.
fn wait(time: Duration) {
    let (_silent, ear) = mpsc::channel::<()>();
    let _ = ear.recv_timeout(time);
}

fn piped(mut command: Command) -> Command {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn line(is_meant: bool, line: &'static str) -> Reply {
    if is_meant { Reply::Line(line) } else { Reply::AsHydra }
}

/// Whether every launcher knows the request: others end the job under hydra.
fn is_known_everywhere(line: &str) -> bool {
    const KNOWN: [&str; 7] =
        ["init", "get_maxes", "get_my_kvsname", "put", "barrier_in", "get", "finalize"];
    let command = line.split_ascii_whitespace().next().and_then(|word| word.strip_prefix("cmd="));
    command.is_some_and(|command| KNOWN.contains(&command)) && line.len() <= 1024
}
