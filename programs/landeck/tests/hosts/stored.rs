//! Messages whose data stay on a host until their receivers fetch them, while their senders go on, end or are killed.

use std::io::{BufRead, stdin};

use landeck::{ErrorKind, HostOfJob, Job, MailboxAddress, Message, Outbox, Store, Tag, World};

use super::machines::lab;
use super::members::is_member;
use super::sites::two_sites;
use super::*;

/// The words of a long message: 1 MiB.
const LONG: usize = 128 << 10;
/// The words of `landeck top` about each host where data stay.
const STORED: &str = " stored on ";
const GO: Tag = Tag(1_000);
/// No process sends with this tag. A receive with it ends when the other process ends.
const NEVER: Tag = Tag(1_001);
/// The messages that go to each store.
const COUNT: u64 = 4;

fn words(number: u64) -> Vec<u64> {
    (0..LONG as u64).map(|at| at.wrapping_mul(0x9e37_79b9) ^ number).collect()
}

/// Sends so many long messages, and a short one behind each.
fn send(world: &World, to: usize, count: u64) {
    for number in 0..count {
        world.send(&words(number), to, Tag(number as u32)).unwrap();
        world.send(&[number], to, Tag(number as u32)).unwrap();
    }
}

/// Receives those messages from the last to the first.
fn receive(world: &World, from: usize, count: u64) {
    let mut received = vec![0; LONG];
    for number in (0..count).rev() {
        let status = world.receive_into(&mut received, from, Tag(number as u32)).unwrap();
        assert_eq!(status.bytes() as usize, 8 * LONG, "message {number}");
        assert!(received == words(number), "message {number}");
        assert_eq!(world.receive::<u64>(from, Tag(number as u32)).unwrap().0, number);
    }
}

/// Waits until the file is there that lets processes of this host go on.
fn await_go() {
    while !Path::new("/tmp/go").exists() {
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the end of another process, however it comes.
fn await_end(world: &World, of: usize) {
    let error = world.receive::<u8>(of, NEVER).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::PeerFailed { .. }), "{error}");
}

impl Cluster {
    /// The processes of a job as a test of this program, in a machine that stays.
    fn kept(&self, test: &str, options: &[&str]) -> Command {
        let program = std::env::current_exe().unwrap();
        let last = [program.to_str().unwrap(), test, "--exact", "--nocapture", "--test-threads=1"];
        self.landeck(&[&["run", "--name", "kept"][..], options, &last].concat())
    }

    fn top(&self) -> String {
        run(&mut self.landeck(&["top", "--once", "-d", "0.05"])).out
    }

    /// Waits until data are stored on a host, or on none.
    fn await_stored(&self, text: &str) {
        let is_so = |top: &str| match text {
            "" => !top.contains(STORED),
            text => top.contains(text) && top.matches(STORED).count() == 1,
        };
        let mut last = String::new();
        let until = Instant::now() + RUN_MAX;
        while !is_so(&last) {
            assert!(Instant::now() < until, "{text:?} is not shown: {last}");
            last = self.top();
        }
    }

    /// Kills the process that has said its number behind a word.
    fn kill_said(&self, host: usize, running: &Running, word: &str) {
        let said = running.out.text();
        let number = said.split_once(word).unwrap().1.lines().next().unwrap();
        let pid = number.parse().unwrap();
        self.signal_pid(host, pid, "KILL");
        wait_until("it is gone", || self.processes(host).iter().all(|it| it.pid != pid));
    }

    /// Waits until messages are stored on the host of rank 2. Returns its name and its place.
    fn await_store(&self, running: &Running) -> (String, usize) {
        running.out.wait_for("the messages", |text| text.contains("sent by"));
        let said = running.out.text();
        let store = said.split_once("they wait on ").unwrap().1.lines().next().unwrap().to_owned();
        self.await_stored(&format!("4 messages stored on {store}"));
        let host = (0..self.hosts.count()).find(|host| self.hosts.name(*host) == store);
        (store, host.unwrap())
    }

    /// Starts two processes, and waits until the messages of the first one are stored on its host.
    fn stored_by_first(&self, test: &str) -> Running {
        let options = ["--store", "sender", "--on-failure", "notify"];
        let running = start(&mut self.members(test, "n1:1,n2:1", &options));
        running.out.wait_for("the messages", |text| text.contains("sent by"));
        self.await_stored("4 messages stored on n1");
        running
    }

    fn go(&self) {
        (0..self.hosts.count()).for_each(|host| drop(self.shell(host, "touch /tmp/go")));
    }
}

/// The sender is the first to end. The receiver posts its mailbox before, and takes everything when nobody else is there.
fn end_first() {
    let job = Job::join().unwrap();
    let world = job.world();
    let mut mailbox = job.create_mailbox().unwrap();
    let mine = mailbox.address().to_words();
    let mut its = mine;
    world.send_receive(&mine, (1 - world.rank(), GO), &mut its, (1 - world.rank(), GO)).unwrap();
    if world.rank() == 0 {
        let outbox = job.open_mailbox_by_address(MailboxAddress::from_words(its)).unwrap();
        send(&world, 1, COUNT);
        outbox.post(Message::new().pack_text("a letter").pack(&words(9))).unwrap();
        println!("all sent");
        return job.leave().unwrap();
    }
    await_end(&world, 0);
    println!("alone");
    await_go();
    let mut letter = mailbox.retrieve().unwrap();
    assert_eq!(letter.unpack_text().unwrap(), "a letter");
    assert!(letter.unpack_all::<u64>() == words(9));
    receive(&world, 0, COUNT);
    println!("whole");
    drop(mailbox);
    job.leave().unwrap();
}

#[test]
fn a_sender_ends_first_and_its_data_wait_behind_two_gateways() {
    let test = "stored::a_sender_ends_first_and_its_data_wait_behind_two_gateways";
    if is_member() {
        return end_first();
    }
    let Some(cluster) = two_sites(test) else { return };
    let options = ["-n", "2", "--map-by", "site", "--store", "sender"];
    let running = start(&mut cluster.kept(test, &options));
    running.out.wait_for("the sender's end", |text| text.contains("alone\n"));
    // A message takes a little more than its values: the names of their kinds.
    cluster.await_stored("5 messages stored on n1: 5 MB of 101 MB");
    cluster.go();
    let ended = running.end();
    assert!(ended.assert(0, &[]).out.contains("whole\n"), "{ended:?}");
}

/// Each place for data, by a world, a mailbox and a single post. Rank 0 says where they must be now.
fn everywhere() {
    let job = Job::join().unwrap();
    let (world, rank) = (job.world(), job.world().rank());
    let mut mailbox = job.create_mailbox().unwrap();
    mailbox.set_store(job.store_named("n3").unwrap()).unwrap();
    let error = job.store_named("n9").unwrap_err();
    assert_eq!(error.to_string(), NO_STORE);
    let mut its = mailbox.address().to_words();
    world.broadcast(&mut its, 1).unwrap();
    let steps = ["sender", "n3", "n2", "least-loaded", "auto", "mailbox", "post"];
    for step in steps {
        match rank {
            0 => {
                let address = MailboxAddress::from_words(its);
                let outbox = || job.open_mailbox_by_address(address).unwrap();
                let post = |outbox: Outbox| {
                    let letter = |number| Message::new().pack(&words(number)).clone();
                    (0..COUNT).for_each(|number| outbox.post(&letter(number)).unwrap());
                };
                match step {
                    "mailbox" => post(outbox()),
                    "post" => post(outbox().storing(job.store_named("sender").unwrap()).unwrap()),
                    named => {
                        world.set_store(job.store_named(named).unwrap()).unwrap();
                        send(&world, 1, COUNT);
                    }
                }
                println!("sent by {step}");
                stdin().lock().read_line(&mut String::new()).unwrap();
                world.send(&[1u8], 1, GO).unwrap();
                world.receive::<u8>(1, GO).unwrap();
            }
            1 => {
                world.receive::<u8>(0, GO).unwrap();
                match step {
                    "mailbox" | "post" => (0..COUNT).for_each(|number| {
                        assert!(mailbox.retrieve().unwrap().unpack_all::<u64>() == words(number));
                    }),
                    _ => receive(&world, 0, COUNT),
                }
                world.send(&[1u8], 0, GO).unwrap();
            }
            _ => {}
        }
    }
    world.barrier().unwrap();
    println!("whole");
    drop(mailbox);
    job.leave().unwrap();
}

const NO_STORE: &str =
    "n9 is no host of this job on which data can be stored: name one with a process of the job";

#[test]
fn data_stay_where_a_world_a_mailbox_or_a_post_wishes() {
    let test = "stored::data_stay_where_a_world_a_mailbox_or_a_post_wishes";
    if is_member() {
        return everywhere();
    }
    let Some(cluster) = Cluster::wished(test, &Wish::hosts(3)) else { return };
    let mut running = start(cluster.members(test, "n1:1,n2:1,n3:1", &[]).stdin(Stdio::piped()));
    let places = [
        ("sender", "n1"),
        ("n3", "n3"),
        ("n2", "n2"),
        ("least-loaded", "n3"),
        ("auto", "n1"),
        ("mailbox", "n3"),
        ("post", "n1"),
    ];
    for (step, host) in places {
        running.out.wait_for(step, |text| text.contains(&format!("sent by {step}\n")));
        cluster.await_stored(&format!("4 messages stored on {host}: 4 MB"));
        let input = running.stdin.as_mut().unwrap();
        std::io::Write::write_all(input, b"\n").unwrap();
    }
    let ended = running.end();
    assert_eq!(ended.assert(0, &[]).out.matches("whole\n").count(), 3, "{ended:?}");
    let refused = run(&mut cluster.members(test, "n1:1,n2:1", &["--store", "n3"]));
    refused.assert(125, &["--store: the job has no host of that name; it is on n1, n2"]);
    cluster.assert_nothing_left();
}

/// Data that stay, for all kinds of receives: with a deadline, of a held message, posted before, too short, given up with a
/// mailbox, and by a receiver that leaves without them.
fn all_kinds() {
    let job = Job::join().unwrap();
    let world = job.world();
    let mut mailbox = job.create_mailbox().unwrap();
    let mut its = mailbox.address().to_words();
    world.broadcast(&mut its, 1).unwrap();
    if world.rank() == 0 {
        send(&world, 1, 3);
        world.send(&[1u8], 1, GO).unwrap();
        // The receive is posted, and the data are asked for while they go to the store.
        for number in 0..20 {
            world.receive::<u8>(1, GO).unwrap();
            world.send(&words(number), 1, Tag(50)).unwrap();
        }
        let outbox = job.open_mailbox_by_address(MailboxAddress::from_words(its)).unwrap();
        (0..3).for_each(|number| outbox.post_values(&words(number)).unwrap());
        world.send(&[1u8], 1, GO).unwrap();
        world.receive::<u8>(1, GO).unwrap();
        send(&world, 1, 2);
        println!("left behind");
        stdin().lock().read_line(&mut String::new()).unwrap();
        world.send(&[1u8], 1, GO).unwrap();
        return job.leave().unwrap();
    }
    let mut received = vec![0u64; LONG];
    world.receive::<u8>(0, GO).unwrap();
    let moment = Duration::from_micros(200);
    let mut missed = 0;
    while let Err(error) = world.receive_into_within(&mut received, 0, Tag(0), moment) {
        assert!(matches!(error.kind, ErrorKind::TimedOut(_)), "{error}");
        missed += 1;
    }
    assert!(received == words(0));
    println!("missed {missed}");
    let held = world.hold(0, Tag(1)).unwrap();
    assert!(held.receive_vec::<u64>().unwrap() == words(1));
    let error = world.receive_into(&mut [0u64; 9], 0, Tag(2)).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Truncated { .. }), "{error}");
    for number in 0..20 {
        world
            .scope(|scope| {
                let request = scope.receive_into(&mut received, 0, Tag(50))?;
                world.send(&[1u8], 0, GO)?;
                request.wait()
            })
            .unwrap();
        assert!(received == words(number), "message {number}");
    }
    assert!(mailbox.retrieve().unwrap().unpack_all::<u64>() == words(0));
    world.receive::<u8>(0, GO).unwrap(); // all are posted
    drop(mailbox);
    println!("dropped");
    world.send(&[1u8], 0, GO).unwrap();
    world.receive::<u8>(0, GO).unwrap();
    println!("leaves");
    job.leave().unwrap();
}

#[test]
fn all_kinds_of_receives_fetch_what_stays() {
    let test = "stored::all_kinds_of_receives_fetch_what_stays";
    if is_member() {
        return all_kinds();
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    let mut command = cluster.members(test, "n1:1,n2:1", &["--store", "sender"]);
    let mut running = start(command.stdin(Stdio::piped()));
    running.out.wait_for("the last ones", |text| text.contains("left behind"));
    // What was posted to the mailbox that was dropped is freed.
    cluster.await_stored("2 messages stored on n1: 2 MB");
    drop(running.stdin.take());
    let ended = running.end();
    assert!(ended.assert(0, &[]).out.contains("leaves\n"), "{ended:?}");
    cluster.assert_nothing_left();
}

/// More messages than a store has room for.
fn too_many() {
    const MANY: u64 = 110;
    let job = Job::join().unwrap();
    let world = job.world();
    if world.rank() == 0 {
        send(&world, 1, MANY);
    } else {
        await_go();
        // In their order: the last ones are sent when the first are received.
        let mut received = vec![0; LONG];
        for number in 0..MANY {
            world.receive_into(&mut received, 0, Tag(number as u32)).unwrap();
            assert!(received == words(number), "message {number}");
            assert_eq!(world.receive::<u64>(0, Tag(number as u32)).unwrap().0, number);
        }
        println!("whole");
    }
    job.leave().unwrap();
}

#[test]
fn a_full_store_makes_its_senders_wait() {
    let test = "stored::a_full_store_makes_its_senders_wait";
    if is_member() {
        return too_many();
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    let running = start(&mut cluster.members(test, "n1:1,n2:1", &["--store", "sender"]));
    // Each has 1 MiB, and the store a quarter of 384 MiB.
    cluster.await_stored("96 messages stored on n1: 101 MB of 101 MB");
    wait_until("the sender waits", || {
        run(&mut cluster.landeck(&["why"])).out.contains("send to rank 1 on n2")
    });
    cluster.go();
    let ended = running.end();
    assert!(ended.assert(0, &[]).out.contains("whole\n"), "{ended:?}");
    cluster.assert_nothing_left();
}

/// Rank 0 stores messages for rank 1, on the host of rank 2 if there is one, and lives on. Rank 1 takes them, or an error.
fn fetch_later() {
    let job = Job::join().unwrap();
    let (world, rank) = (job.world(), job.world().rank());
    if world.size() == 3 {
        let own = job.hosts().into_iter().find(HostOfJob::is_own).unwrap();
        let mut number = [own.number()];
        world.broadcast(&mut number, 2).unwrap();
        let host = job.hosts().into_iter().find(|host| host.number() == number[0]).unwrap();
        world.set_store(Store::from(&host)).unwrap();
        if rank == 0 {
            println!("they wait on {}", host.name());
        }
    }
    if rank == 0 {
        send(&world, 1, COUNT);
        println!("sent by {}", std::process::id());
        await_go();
    } else if rank == 1 {
        println!("receiver {}", std::process::id());
        await_go();
        let mut received = vec![0u64; LONG];
        let lost = (0..COUNT).find_map(|number| {
            let came = world.receive_into(&mut received, 0, Tag(number as u32));
            assert!(came.is_err() || received == words(number), "message {number}");
            came.err()
        });
        match lost {
            None => println!("whole"),
            Some(error) => println!("{error}"),
        }
    } else {
        await_go();
    }
    job.leave().unwrap();
}

#[test]
fn a_killed_sender_loses_nothing_that_is_stored() {
    let test = "stored::a_killed_sender_loses_nothing_that_is_stored";
    if is_member() {
        return fetch_later();
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    let running = cluster.stored_by_first(test);
    cluster.kill_said(0, &running, "sent by ");
    cluster.go();
    let ended = running.end();
    assert!(ended.out.contains("whole\n"), "{ended:?}");
    cluster.assert_nothing_left();
}

#[test]
fn what_a_killed_receiver_leaves_is_freed() {
    let test = "stored::what_a_killed_receiver_leaves_is_freed";
    if is_member() {
        return fetch_later();
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    let running = cluster.stored_by_first(test);
    cluster.kill_said(1, &running, "receiver ");
    cluster.await_stored("");
    cluster.go();
    running.end();
    cluster.assert_nothing_left();
}

#[test]
fn a_daemon_that_starts_again_goes_on_with_its_store() {
    let test = "stored::a_daemon_that_starts_again_goes_on_with_its_store";
    if is_member() {
        return fetch_later();
    }
    let Some(cluster) = lab(test, 3, &["n2", "n3"]) else { return };
    let options = ["-n", "3", "--map-by", "node", "--on-failure", "notify"];
    let running = start(&mut cluster.kept(test, &options));
    let (store, host) = cluster.await_store(&running);
    let before = cluster.daemon(host);
    cluster.signal_pid(host, before, "KILL");
    wait_until("the next run", || cluster.named(host, "landeckd").iter().any(|it| *it != before));
    cluster.await_stored(&format!("4 messages stored on {store}"));
    cluster.go();
    let ended = running.end();
    assert!(ended.assert(0, &[]).out.contains("whole\n"), "{ended:?}");
}

#[test]
fn a_lost_store_is_named() {
    let test = "stored::a_lost_store_is_named";
    if is_member() {
        return fetch_later();
    }
    let Some(cluster) = lab(test, 3, &["n2", "n3"]) else { return };
    let options = ["-n", "3", "--map-by", "node", "--on-failure", "notify"];
    let running = start(&mut cluster.kept(test, &options));
    let (store, host) = cluster.await_store(&running);
    cluster.kill_for_good(host);
    wait_until("it is lost", || cluster.state_of(&store).0 != "up");
    cluster.go();
    let ended = running.end();
    let lost = format!("the message from rank 0 on n1 is lost: its data were stored on {store}");
    assert!(ended.out.contains(&lost), "{ended:?}");
}
