//! `landeck group check`: directories of traces that hold, and of traces that were edited, cut or lost.

use super::*;
use landeck::traces::{
    GroupTrace, MemberName, MessageName, TraceEnd, TraceEvent, TraceHead, TraceLevel, TracedView,
};

/// A directory of the test's own, with the traces of two members.
struct Traces(PathBuf);

impl Traces {
    fn new(name: &str) -> Self {
        let directory = format!("landeck-traces-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        std::fs::create_dir_all(&directory).unwrap();
        let traces = Self(directory);
        traces.write("rank-0.stdout", &trace(0, [1, 2]).encode());
        traces.write("rank-1.stdout", &trace(1, [1, 2]).encode());
        traces.write("rank-1.stderr", "a program says something\n");
        traces
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.join(file), text).unwrap();
    }

    fn check(&self) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
        let output = command.args(["group", "check"]).arg(&self.0).output().unwrap();
        (output.status.code(), support::text(&output))
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The trace of a member that delivers two messages of member 0 in this order.
fn trace(id: u32, order: [u64; 2]) -> GroupTrace {
    let name = |id| MemberName { id, since: 2 };
    let joined = vec![id];
    let view = TracedView { number: 2, members: vec![0, 1], joined, ..TracedView::default() };
    let (level, sum) = (TraceLevel::Total, 0);
    let mut events = vec![TraceEvent::View(view)];
    if id == 0 {
        let send = |number| [TraceEvent::Send { number, level, sum }, TraceEvent::Sent(number)];
        events.extend([1, 2].into_iter().flat_map(send));
    }
    events.extend(order.map(|number| {
        let message = MessageName { sender: name(0), number };
        TraceEvent::Delivered { message, level, sum, at: None }
    }));
    events.push(TraceEvent::Ended(TraceEnd::Left));
    let head = TraceHead { group: "ord".into(), member: name(id), rank: id, host: "n1".into() };
    GroupTrace { source: String::new(), head, events }
}

#[test]
fn traces_that_hold_are_told_so() {
    let (code, said) = Traces::new("hold").check();
    assert!(said.contains("\nmembers 0, 1: the same 2 messages\nsafe lost: 0; "), "{said}");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_violation_has_its_own_line_and_exit_code() {
    let traces = Traces::new("order");
    traces.write("rank-1.stdout", &trace(1, [2, 1]).encode());
    let (code, said) = traces.check();
    let line = "VIOLATED total order: member 0 delivered message 1 of member 0 before message 2 of \
                member 0, member 1 after it\n";
    assert!(code == Some(1) && said.contains(line), "{said}");
}

#[test]
fn an_edited_or_cut_trace_is_named_with_its_line() {
    let traces = Traces::new("edited");
    let text = trace(1, [1, 2]).encode();
    traces.write("rank-1.stdout", &text.replacen("total 00000000", "total 00000001", 1));
    let (code, said) = traces.check();
    let line = "rank-1.stdout: line 4 was edited, or lines before it were cut\n";
    assert!(code == Some(1) && said.contains(line), "{said}");
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.pop();
    traces.write("rank-1.stdout", &lines.concat());
    let (code, said) = traces.check();
    let line = "rank-1.stdout: line 5 is the last and no end, but member 1 is in the last view";
    assert!(code == Some(1) && said.contains(line), "{said}");
    std::fs::remove_file(traces.0.join("rank-1.stdout")).unwrap();
    let (code, said) = traces.check();
    let line = "rank-0.stdout: there is no trace of member 1, which its views name\n";
    assert!(code == Some(1) && said.contains(line), "{said}");
}

#[test]
fn several_groups_are_checked_each_for_itself() {
    let traces = Traces::new("several");
    let mut other = trace(0, [1, 2]);
    other.head.group = "two words".into();
    let TraceEvent::View(view) = &mut other.events[0] else { unreachable!() };
    view.members = vec![0];
    traces.write("other", &other.encode());
    let (code, said) = traces.check();
    assert!(said.contains("group ord\nmembers 0, 1: the same 2 messages\n"), "{said}");
    assert!(said.contains("group two words\nmember 0: 2 messages\n"), "{said}");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_directory_without_traces_is_refused() {
    let traces = Traces::new("none");
    traces.write("rank-0.stdout", "");
    traces.write("rank-1.stdout", "");
    let (code, said) = traces.check();
    assert!(
        code == Some(2) && said.contains(" has no trace of a group: give the directory"),
        "{said}"
    );
    let (code, said) = Traces(traces.0.join("missing")).check();
    assert!(code == Some(2) && said.contains("missing: No such file or directory"), "{said}");
}
