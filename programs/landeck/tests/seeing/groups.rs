//! `landeck group`: the named groups of a job that goes on.

use super::*;
use std::io::{BufRead, BufReader};

use landeck::{Group, GroupOptions, Mailbox};

const NAME: &str = "groups::named_groups_are_listed_shown_and_watched";
/// A file of the job's folder: what comes and goes has been seen.
const SEEN: &str = "seen";

/// Both ranks are members; one comes and goes until that has been seen, then the group is destroyed.
fn take_part(job: &Job) {
    let world = job.world();
    let options = GroupOptions::default().persistent(true).minimum(2);
    let made = (world.rank() == 0).then(|| job.create_group("chat", options).unwrap());
    world.barrier().unwrap();
    let group = made.unwrap_or_else(|| job.open_group("chat").unwrap());
    let mut inbox = job.create_mailbox().unwrap();
    // In the order of the ranks.
    if world.rank() == 1 {
        world.barrier().unwrap();
    }
    let member = group.join(&mut inbox).unwrap();
    if world.rank() == 0 {
        world.barrier().unwrap();
    }
    world.barrier().unwrap();
    if world.rank() == 1 {
        member.leave().unwrap();
        come_and_go_until_seen(&group, &mut inbox);
        world.barrier().unwrap();
        return std::thread::sleep(TEST_MAX);
    }
    group.broadcast(landeck::Message::new().pack(&[1u8])).unwrap();
    // Made last: an observer that finds this group finds the broadcast too.
    let _later = job.create_group("later", options.minimum(7)).unwrap();
    world.barrier().unwrap();
    group.destroy().unwrap();
    std::thread::sleep(TEST_MAX);
}

/// Until the test says that it has seen it.
fn come_and_go_until_seen(group: &Group, inbox: &mut Mailbox) {
    let seen = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR").unwrap()).join(SEEN);
    while !seen.exists() {
        let member = group.join(inbox).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        member.leave().unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn named_groups_are_listed_shown_and_watched() {
    if support::is_member() {
        return take_part(&Job::join().unwrap());
    }
    let job = Watched::start(2, NAME);
    let said = job.until_said(&["group", "ls"], "later: 0 members, starts with 7");
    assert!(said.contains("chat: ") && said.contains(", 1 broadcast\n"), "{said}");
    let said = job.until_said(&["group", "show", "chat"], "rank 0, 1 not retrieved");
    assert!(said.contains("   0  rank 0"), "{said}");
    let mut watch = job.landeck_command(&["group", "watch", "chat"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    for wanted in [": member 1 (rank 1) has joined", ": member 1 (rank 1) has left"] {
        assert!(lines.any(|line| line.contains(wanted)), "{wanted}");
    }
    std::fs::write(job.runtime.join(SEEN), "").unwrap();
    assert!(lines.any(|line| line.contains("chat is no more")));
    watch.wait().unwrap();
    let gone = support::text(&job.landeck(&["group", "show", "chat"]));
    assert!(gone.contains("no group of this job has the name \"chat\""), "{gone}");
}
