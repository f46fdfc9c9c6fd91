//! `landeck why`: a test for each way to get stuck.

use super::*;
use landeck::{Any, Sum, Tag};
use landeck_collectives::Calibration;
use landeck_collectives::cost_parameters::CostParameters;
use landeck_collectives::record::Record;
use landeck_host::probed;

#[test]
fn two_that_receive_from_each_other() {
    if is_member() {
        return take_part(|_, world| {
            let _ = world.receive::<u32>(1 - world.rank(), Tag(7));
        });
    }
    let job = Watched::start(2, "why::two_that_receive_from_each_other");
    let output = job.until_output(&["why"], &["ranks 0 1 wait for each other."]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = support::text(&output);
    assert!(
        said.contains("rank 0 ") && said.contains("receive from rank 1, tag 7, world"),
        "{said}"
    );
    assert!(said.contains("one of them has to send first"), "{said}");
    let said = support::text(&job.landeck(&["why", "--log"]));
    assert!(said.contains("This job has no daemons: one host has all of it."), "{said}");
    job.end();
}

#[test]
fn a_send_in_one_copy_says_which_source_has_decided() {
    if is_member() {
        return take_part(|_, world| {
            let _ = world.send(&vec![0u8; 1 << 20], 1 - world.rank(), Tag(7));
        });
    }
    let name = "why::a_send_in_one_copy_says_which_source_has_decided";
    let cache = std::env::temp_dir().join(format!("landeck-why-copy-{}", std::process::id()));
    let (figures, probed) = (cache.join("landeck/figures"), cache.join("landeck/one-copy"));
    let usual = CostParameters { one_copy_from_kib: 64, ..CostParameters::default() };
    let tuned = CostParameters { line_ps: usual.line_ps + 1, ..usual };
    let kept = Record {
        machine: landeck_host::figures::machine(),
        figures: tuned,
        details: Calibration::of(&tuned),
    };
    let finding = probed::Finding::FromKib(64);
    probed::write(&probed, &probed::boot().unwrap(), finding).unwrap();
    let said_with = |options: &[&str], wanted: &str| {
        let variables = [("XDG_CACHE_HOME", &*cache), ("LANDECK_ONE_COPY", Path::new("auto"))];
        let job = Watched::start_in(2, name, options, &variables);
        job.until_said(&["why"], &format!("in one copy ({wanted}), tag 7"));
        job.end();
    };
    said_with(&[], "the probe of this host decides");
    std::fs::write(&figures, kept.to_string()).unwrap();
    said_with(&[], "the figures of landeck tune decide");
    said_with(&["--one-copy", "64K"], "as asked for");
    std::fs::remove_dir_all(cache).unwrap();
}

#[test]
fn three_that_send_too_much_in_a_circle() {
    if is_member() {
        return take_part(|_, world| {
            let much = vec![0u8; 300 << 20];
            let _ = world.send(&much, (world.rank() + 1) % 3, Tag(1));
        });
    }
    let job = Watched::start(3, "why::three_that_send_too_much_in_a_circle");
    let said = job.until_said(&["why"], "wait for each other in a circle: rank 0 for rank 1");
    assert!(said.contains("send to rank 1, 300.0 MiB, tag 1, world"), "{said}");
    assert!(said.contains("Nobody of them receives"), "{said}");
    job.end();
}

#[test]
fn two_whose_mailboxes_are_full_of_each_others_broadcasts() {
    if is_member() {
        return take_part(|job, world| {
            let names = ["first", "second"];
            let (own, other) = (names[world.rank()], names[1 - world.rank()]);
            let small = landeck::GroupOptions::default().messages(2);
            let group = job.create_group(own, small).unwrap();
            let mut inbox = job.create_mailbox().unwrap();
            let _member = group.join(&mut inbox).unwrap();
            world.barrier().unwrap();
            let group = job.open_group(other).unwrap();
            while group.broadcast(landeck::Message::new().pack(&[1u8])).is_ok() {}
        });
    }
    let job = Watched::start(2, "why::two_whose_mailboxes_are_full_of_each_others_broadcasts");
    let said = job.until_said(&["why"], "ranks 0 1 wait for each other.");
    assert!(said.contains("wait in a named group for rank 1"), "{said}");
    assert!(said.contains("Their mailboxes are full"), "{said}");
    job.end();
}

#[test]
fn a_stopped_process_is_named_and_the_job_goes_on_after_it_does() {
    if is_member() {
        return take_part(|_, world| while world.all_reduce(1u64, Sum).is_ok() {});
    }
    let job =
        Watched::start(3, "why::a_stopped_process_is_named_and_the_job_goes_on_after_it_does");
    job.until_said(&["why"], "Not stuck");
    let pid = job.pids()[2];
    signal(pid, Signal::STOP);
    let stopped = "rank 2 is stopped by a signal or a debugger";
    let missing = "allreduce, world, missing rank 2";
    let said = job.until_all_said(&["why"], &[stopped, "ranks 0 1 wait for it.", missing]);
    assert!(said.contains(&format!("kill -CONT {pid}")), "{said}");
    job.until_said(&["ps"], "stopped");
    signal(pid, Signal::CONT);
    job.until_said(&["why"], "Not stuck: nobody waits");
    job.end();
}

#[test]
fn whoever_does_not_come_is_named() {
    if is_member() {
        return take_part(|_, world| match world.rank() {
            3 => stay(),
            _ => drop(world.barrier()),
        });
    }
    let job = Watched::start(4, "why::whoever_does_not_come_is_named");
    let wait = "Not stuck: ranks 0-2 wait, for ";
    let sleeps = " for rank 3, which sleeps outside all waits of ours";
    let said = job.until_all_said(&["why"], &[wait, sleeps]);
    assert!(said.contains("missing rank 3"), "{said}");
    assert!(said.contains("ranks 0-2 ") && said.contains("barrier, world"), "{said}");
    assert_eq!(job.landeck(&["why"]).status.code(), Some(0));
    job.end();
}

#[test]
fn a_member_of_a_group_waits_for_one_that_is_in_the_operation() {
    if is_member() {
        return take_part(|_, world| {
            let group = world.split(Some((world.rank() % 2) as u32), 0).unwrap().unwrap();
            match world.rank() {
                0 | 1 | 4 => drop(group.barrier()),
                2 => drop(world.receive::<u32>(4, Tag(9))),
                _ => stay(),
            }
        });
    }
    let job = Watched::start(5, "why::a_member_of_a_group_waits_for_one_that_is_in_the_operation");
    let missing = "barrier, the group of ranks 0 2 4, missing rank 2";
    job.until_all_said(&["why"], &["ranks 2 4 wait for each other", missing]);
    job.end();
}

#[test]
fn operations_of_two_groups_in_different_order() {
    if is_member() {
        return take_part(|_, world| {
            let other = world.duplicate().unwrap();
            let _ = if world.rank() == 0 { world.barrier() } else { other.barrier() };
        });
    }
    let job = Watched::start(2, "why::operations_of_two_groups_in_different_order");
    let said = job.until_said(&["why"], "ranks 0 1 wait for each other.");
    assert!(said.contains("barrier, world, missing rank 1"), "{said}");
    assert!(said.contains("barrier, the group of ranks 0 1, missing rank 0"), "{said}");
    assert!(said.contains("call them in the same order"), "{said}");
    job.end();
}

#[test]
fn all_wait_for_anybody() {
    if is_member() {
        return take_part(|_, world| {
            let _ = world.receive::<u32>(Any, Any);
        });
    }
    let job = Watched::start(3, "why::all_wait_for_anybody");
    job.until_said(&["why"], "ranks 0-2 wait, and nobody is left who could send anything.");
    job.end();
}

#[test]
fn a_root_that_does_not_come_holds_up_a_broadcast() {
    if is_member() {
        return take_part(|_, world| match world.rank() {
            1 => stay(),
            _ => drop(world.broadcast(&mut [0u8; 100_000], 1)),
        });
    }
    let job = Watched::start(3, "why::a_root_that_does_not_come_holds_up_a_broadcast");
    job.until_said(&["why"], "broadcast with root 1, world");
    job.until_said(&["why"], "Not stuck: ranks 0 2 wait, for ");
    job.end();
}

#[test]
fn stacks_are_shown_when_asked_for() {
    if is_member() {
        return take_part(|_, world| drop(world.receive::<u32>(1 - world.rank(), Tag(7))));
    }
    let job = Watched::start(2, "why::stacks_are_shown_when_asked_for");
    job.until_said(&["why"], "wait for each other");
    let said = support::text(&job.landeck(&["why", "--stacks"]));
    assert!(said.contains("rank 0 (pid ") && said.contains("rank 1 (pid "), "{said}");
    assert!(said.contains("#0") || said.contains("state "), "{said}");
    job.end();
}

#[test]
fn programs_read_it_too() {
    if is_member() {
        return take_part(|_, world| drop(world.receive::<u32>(1 - world.rank(), Tag(7))));
    }
    let job = Watched::start(2, "why::programs_read_it_too");
    let said = job.until_said(&["why", "--json"], "\"goes_on\": false");
    let json = said.find('{').zip(said.rfind('}')).map(|(from, to)| &said[from..=to]);
    let said: serde_json::Value = serde_json::from_str(json.unwrap()).unwrap();
    assert_eq!(said["concerned"].as_array().unwrap().len(), 2);
    job.end();
}

#[test]
fn a_job_that_is_not_there_is_said_so() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
    let said = command.args(["why", "there is no such job"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    assert!(support::text(&said).contains("landeck: no job "), "{said:?}");
}
