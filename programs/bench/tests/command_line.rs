//! The benchmark on the command line: the reader of its output may be gone, as after `| head`, and a wrong line is
//! answered by one line.

use std::process::Command;

#[test]
fn a_list_whose_reader_is_gone_ends_well() {
    let (reader, writer) = std::io::pipe().expect("there is one");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_landeck-bench"));
    let ended = command.arg("list").stdout(writer).output().expect("it can be started");
    let complaints = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && complaints.is_empty(), "{ended:?}");
}

#[test]
fn a_wrong_line_is_answered_by_one_line() {
    for (arguments, words) in
        [(&["--nosuch"][..], "'--nosuch'"), (&["--rounds", "x"], "'x'"), (&["nosuch"], "'nosuch'")]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landeck-bench"));
        let ended = command.args(arguments).output().expect("it can be started");
        let complaint = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), complaint.lines().count()), (Some(2), 1), "{complaint}");
        assert!(
            complaint.starts_with("landeck-bench: ") && complaint.contains(words),
            "{complaint}"
        );
    }
}

#[test]
fn a_figure_that_needs_hosts_says_so() {
    for (arguments, words) in [
        (&["--figure", "hosts_round"][..], "add --hosts 2"),
        (&["--hosts", "2", "--figure", "round"], "leave --hosts out"),
        (&["--hosts", "2", "--figure", "hosts_collectives_8"], "add --hosts 8"),
        (&["--hosts", "3"], "'3'"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landeck-bench"));
        let ended = command.arg("--no-build").args(arguments).output().expect("it can be started");
        let complaint = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && complaint.contains(words), "{complaint}");
    }
}
