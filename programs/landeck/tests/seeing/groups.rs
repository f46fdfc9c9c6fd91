//! `landeck group`: the named groups of a job that goes on.

use super::*;
use landeck::GroupOptions;

const NAME: &str = "groups::named_groups_are_listed_shown_and_watched";

/// Both ranks are members; one comes and goes for some time, then the group is destroyed.
fn take_part(job: &Job) {
    let world = job.world();
    let options = GroupOptions::default().persistent(true).minimum(2);
    let made = (world.rank() == 0).then(|| job.create_group("chat", options).unwrap());
    world.barrier().unwrap();
    let group = made.unwrap_or_else(|| job.open_group("chat").unwrap());
    let mut inbox = job.mailbox().unwrap();
    let member = group.join(&mut inbox).unwrap();
    world.barrier().unwrap();
    let rank = world.rank();
    let later = (rank == 0).then(|| job.create_group("later", options.minimum(7)).unwrap());
    if rank == 1 {
        member.leave().unwrap();
        for _ in 0..60 {
            std::thread::sleep(Duration::from_millis(50));
            let member = group.join(&mut inbox).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            member.leave().unwrap();
        }
        world.barrier().unwrap();
    } else {
        group.broadcast(landeck::Message::new().pack(&[1u8])).unwrap();
        world.barrier().unwrap();
        group.destroy().unwrap();
    }
    std::thread::sleep(TEST_MAX);
    drop(later);
}

#[test]
fn named_groups_are_listed_shown_and_watched() {
    if support::is_member() {
        return take_part(&Job::join().unwrap());
    }
    let job = Watched::start(2, NAME);
    let said = job.until_said(&["group", "ls"], "later: 0 members, starts with 7");
    assert!(said.contains("chat: ") && said.contains(", 1 broadcasts"), "{said}");
    let said = job.until_said(&["group", "show", "chat"], "process 0, 1 not retrieved");
    assert!(said.contains("   0  process 0"), "{said}");
    let watched = support::text(&job.landeck(&["group", "watch", "chat"]));
    for wanted in ["(process 1) has joined", "(process 1) is gone", "chat is no more"] {
        assert!(watched.contains(wanted), "{wanted}: {watched}");
    }
    let gone = support::text(&job.landeck(&["group", "show", "chat"]));
    assert!(gone.contains("no group of this job has the name \"chat\""), "{gone}");
}
