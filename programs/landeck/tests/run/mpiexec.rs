//! The command under the names that scripts for other MPIs use.

use super::*;
use std::os::unix::process::CommandExt;

fn mpiexec(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
    command.arg0("/opt/lib/landeck/bin/mpiexec").args(arguments);
    command.env_remove("MPIEXEC_TIMEOUT");
    command
}

#[test]
fn a_line_of_mpiexec_starts_a_job() {
    let script = "echo $A $B $RANK of $WORLD_SIZE in $PWD";
    let shell = ["sh", "-c", script];
    let line = [
        &["-l", "-genv", "A", "all", "-n", "2"][..],
        &shell,
        &[":", "-np", "1", "-env", "B", "one", "-wdir", "/usr"],
        &shell,
    ];
    let ended = run_command(mpiexec(&line.concat()).current_dir("/"));
    let wanted = ["[0] all 0 of 3 in /", "[1] all 1 of 3 in /", "[2] all one 2 of 3 in /usr"];
    assert_eq!(sorted(&ended.out), wanted, "{ended:?}");
}

#[test]
fn there_is_one_process_if_nobody_says_how_many() {
    assert_eq!(run_command(&mut mpiexec(&["echo", "-n", "x"])).out, "x");
}

#[test]
fn exit_codes_go_through() {
    assert_eq!(run_command(&mut mpiexec(&["-n", "2", "sh", "-c", "exit $RANK"])).code, Some(1));
    assert_eq!(run_command(&mut mpiexec(&["-n", "1", "/no/such/program"])).code, Some(127));
    let timed = run_command(mpiexec(&["sleep", "20"]).env("MPIEXEC_TIMEOUT", "0.2"));
    assert_eq!(timed.code, Some(124), "{timed:?}");
}

#[test]
fn unknown_and_unsupported_options_are_refused_by_name() {
    for (line, words) in [
        (&["-frob", "true"][..], "mpiexec: -frob: there is no such option"),
        (&["-rankmap", "(block)", "true"], "mpiexec: -rankmap is not supported"),
        (&["-n", "many", "true"], "many"),
    ] {
        let ended = run_command(&mut mpiexec(line));
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{line:?}");
        assert!(ended.err.contains(words), "{ended:?}");
    }
}

#[test]
fn help_and_version_are_those_of_mpiexec() {
    assert!(run_command(&mut mpiexec(&["-help"])).out.starts_with("Usage: mpiexec"));
    assert!(run_command(&mut mpiexec(&["--version"])).out.starts_with("mpiexec (Landeck) "));
}
