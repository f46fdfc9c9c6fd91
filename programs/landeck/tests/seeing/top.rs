//! `landeck top` and `landeck ps`.

use super::*;
use landeck::Tag;

#[test]
fn traffic_is_seen_while_it_flows() {
    if is_member() {
        return take_part(|_, world| {
            let other = 1 - world.rank();
            loop {
                world.send(&[0u8; 1000], other, Tag(1)).unwrap();
                world.receive_into(&mut [0u8; 1000], other, Tag(1)).unwrap();
            }
        });
    }
    let job = Watched::start(2, "top::traffic_is_seen_while_it_flows");
    job.until_said(&["ps"], "rank 1");
    let give_up = Instant::now() + SEEN_WITHIN;
    loop {
        let said = support::text(&job.landeck(&["top", "--once", "-d", "0.3"]));
        let row = said.lines().find(|line| line.starts_with("rank 0")).unwrap_or_default();
        let words: Vec<&str> = row.split_whitespace().collect();
        // rank 0 PID STATE %CPU %WAIT MESSAGES BYTES UNIT MESSAGES ...
        let messages = words.get(6).and_then(|word| word.parse::<u64>().ok());
        if messages.is_some_and(|messages| messages > 100) {
            assert!(said.contains("2 of 2 processes alive"), "{said}");
            break;
        }
        assert!(Instant::now() < give_up, "{said}");
    }
    job.end();
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    if is_member() {
        return take_part(|_, _| stay());
    }
    let job = Watched::start(1, "top::without_a_terminal_it_says_what_to_do");
    job.until_said(&["ps"], "rank 0");
    let said = support::text(&job.landeck(&["top", "--once", "-d", "0.1"]));
    assert!(said.contains("wait "), "{said}");
    job.end();
}

#[test]
fn programs_that_never_join_are_shown_as_well() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let trail = Trail::new();
    let name = format!("sleepers-{}", std::process::id());
    let landeck = || Command::new(env!("CARGO_BIN_EXE_landeck"));
    let mut command = landeck();
    command.args(["run", "-n", "2", "--name", &name, "sleep", "300"]);
    let child = trail.spawn(&mut command);
    let give_up = Instant::now() + SEEN_WITHIN;
    loop {
        let said = support::text(&landeck().args(["why", &name]).output().unwrap());
        // Both are there when both are started.
        if ["has not joined the job", "ranks 0 1 "].iter().all(|words| said.contains(words)) {
            break;
        }
        assert!(Instant::now() < give_up, "{said}");
    }
    signal(child.id(), Signal::TERM);
    trail.finish(child, support::RUN_MAX);
    trail.assert_gone(support::GONE_WITHIN);
}
