//! The benchmark ends well when the reader of its output is gone, as after `| head`.

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
