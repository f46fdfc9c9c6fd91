//! The helpers of the repository end well when the reader of their output is gone, as after `| head`.

use std::process::Command;

#[test]
fn a_count_whose_reader_is_gone_ends_well() {
    let (reader, writer) = std::io::pipe().expect("there is one");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let ended = command.arg("count").stdout(writer).output().expect("it can be started");
    let complaints = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && complaints.is_empty(), "{ended:?}");
}
