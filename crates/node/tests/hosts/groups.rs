//! Worlds over hosts: division, duplication, bridges, names.

use landeck::{Any, Bridge, Job, Sum, Tag, World};

use crate::job::{EACH, RANKS, on_hosts};

/// Each member hears each other one, and all combine.
fn check(world: &World) {
    let (rank, size) = (world.rank(), world.size());
    for distance in 1..size {
        let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
        let mut got = [0];
        let sent = world.send_receive(&[rank], (to, Tag(1)), &mut got, (from, Tag(1)));
        assert_eq!((sent.unwrap().rank(), got[0]), (from, from));
    }
    assert_eq!(world.all_reduce(1usize, Sum).unwrap(), size);
}

#[test]
fn worlds_are_divided_duplicated_and_named() {
    on_hosts("groups::worlds_are_divided_duplicated_and_named", |job| {
        let world = job.world();
        let rank = world.rank();
        for round in 0..20 {
            let copy = world.duplicate().unwrap();
            check(&copy);
            let making = copy.start_duplicate().unwrap();
            check(&making.finish().unwrap());
            let turned = copy.split(Some(0), -(rank as i64)).unwrap().unwrap();
            assert_eq!(turned.rank(), RANKS - 1 - rank);
            check(&turned);
            let across = turned.split(Some(rank as u32 % 2), 0).unwrap().unwrap();
            assert_eq!(across.size(), 2);
            check(&across);
            let here = turned.split_by_host(rank as i64).unwrap();
            assert_eq!((here.size(), here.rank()), (EACH, rank % EACH));
            check(&here);
            let three = world.subset(&[3, 0, 2]).unwrap();
            assert_eq!(three.is_some(), rank != 1);
            if let Some(three) = three {
                check(&three);
                check(&world.among(&[0, 3, 2], Tag(round)).unwrap());
                check(&world.named(&[2, 3, 0], &format!("name {round}")).unwrap());
            }
        }
    });
}

/// The bridge between the even and the odd ranks, each on both hosts.
fn connect(job: &Job) -> Bridge {
    let world = job.world();
    let rank = world.rank();
    let own = world.split(Some(rank as u32 % 2), 0).unwrap().unwrap();
    let leads = own.rank() == 1;
    own.bridge(1, leads.then_some((&world, 3 - rank % 2)), Tag(7)).unwrap()
}

fn check_bridge(bridge: &Bridge, rank: usize, theirs: &[usize]) {
    let remote = bridge.remote();
    assert_eq!(remote.size(), theirs.len());
    (0..theirs.len()).for_each(|to| remote.send(&[rank], to, Tag(1)).unwrap());
    for _ in 0..theirs.len() {
        let (value, status) = remote.receive::<usize>(Any, Any).unwrap();
        assert_eq!(value, theirs[status.rank()]);
    }
    check(bridge.local());
}

#[test]
fn bridges_connect_groups_over_hosts() {
    on_hosts("groups::bridges_connect_groups_over_hosts", |job| {
        let world = job.world();
        let rank = world.rank();
        let theirs = [1 - rank % 2, 3 - rank % 2];
        for round in 0..5 {
            let bridge = connect(job);
            check_bridge(&bridge, rank, &theirs);
            check_bridge(&bridge.duplicate().unwrap(), rank, &theirs);
            let merged = bridge.merge(rank % 2 == 1).unwrap();
            assert_eq!(merged.rank(), rank % 2 * 2 + rank / 2);
            check(&merged);
            // One group is on one host, the other on the other.
            let here = world.split_by_host(0).unwrap();
            let leads = here.rank() == 0;
            let other = if rank < EACH { EACH } else { 0 };
            let hosts = here.bridge(0, leads.then_some((&world, other)), Tag(8)).unwrap();
            let theirs: Vec<usize> = (other..other + EACH).collect();
            check_bridge(&hosts, rank, &theirs);
            let own: Vec<usize> = (0..RANKS).filter(|&it| (it < EACH) == (rank < EACH)).collect();
            let named = world.bridge_named(
                &own,
                0,
                (rank % EACH == 0).then_some(other),
                &format!("named {round}"),
            );
            check_bridge(&named.unwrap(), rank, &theirs);
        }
    });
}

#[test]
fn more_groups_are_made_than_one_lease_has_numbers() {
    on_hosts("groups::more_groups_are_made_than_one_lease_has_numbers", |job| {
        let world = job.world();
        for round in 0..2_500u32 {
            // The first member names the group, so each host does in turn.
            let key = if round % 2 == 0 { 0 } else { -(world.rank() as i64) };
            let parent =
                if round % 2 == 0 { &world } else { &world.split(Some(0), key).unwrap().unwrap() };
            let made = parent.duplicate().unwrap();
            if round % 500 == 0 {
                check(&made);
            }
        }
    });
}

#[test]
fn members_agree_and_revoke_over_hosts() {
    on_hosts("groups::members_agree_and_revoke_over_hosts", |job| {
        let world = job.world();
        let rank = world.rank();
        for round in 0..20u32 {
            let flags = !(1 << rank) & 0xff | round << 8;
            assert_eq!(world.agree(flags).unwrap(), 0xf0 | round << 8);
            assert_eq!(world.shrink().unwrap().size(), RANKS);
        }
        let copy = world.duplicate().unwrap();
        if rank == 1 {
            copy.revoke().unwrap();
        }
        let revoked = copy.receive::<u8>((rank + 1) % RANKS, Tag(1)).unwrap_err();
        assert!(matches!(revoked.kind, landeck::ErrorKind::Revoked { .. }), "{revoked}");
        assert_eq!(copy.agree(7).unwrap(), 7);
        check(&copy.shrink().unwrap());
        check(&world);
    });
}
