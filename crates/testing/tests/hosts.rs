//! Clusters of network namespaces: what their hosts share and do not share, how they are cut and killed, and that
//! nothing of them is left.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use landeck_testing::hosts::{Cable, Families, Hosts, WhyNot, Wish};
use landeck_testing::program::succeed;
use landeck_testing::{Trail, Watchdog};

/// No test may take longer.
const LIMIT: Duration = Duration::from_secs(100);
/// Nothing may be left longer than this.
const GONE_WITHIN: Duration = Duration::from_secs(60);
/// In the environment of a process that makes a cluster to be killed.
const VICTIM: &str = "LANDECK_TEST_MAKER";
/// In the environment of a process that makes a cluster from a checkout elsewhere: a program that it names.
const ELSEWHERE: &str = "LANDECK_TEST_ELSEWHERE";

/// Runs a script of bash on a host; returns what it wrote.
fn bash(hosts: &Hosts, host: usize, script: &str) -> String {
    let output = succeed(hosts.command(host, "bash").args(["-c", script]).stdin(Stdio::null()));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Starts a script of bash on a host; its output goes into a pipe.
fn start(hosts: &Hosts, host: usize, script: &str) -> Child {
    let mut command = hosts.command(host, "bash");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Whether a host reaches an address: a port that nobody listens at is refused at once by a host that is reached, and by
/// no other. An address that no route leads to is known as such at once.
fn reaches(hosts: &Hosts, host: usize, address: &str, seconds: u32) -> bool {
    let script = format!(
        "LC_ALL=C timeout {seconds} bash -c 'exec 3<>/dev/tcp/{address}/9' 2>&1 | grep -q refused && echo 1 || echo 0"
    );
    bash(hosts, host, &script) == "1"
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + GONE_WITHIN;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {GONE_WITHIN:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The one test that fails where no hosts can be made. The others that need some are skipped there.
#[test]
fn hosts_can_be_made_here() {
    let _watchdog = Watchdog::start(LIMIT);
    if let Err(why) = Hosts::new(&Wish::hosts(2)) {
        panic!("every test over hosts is skipped: {why}");
    }
}

#[test]
fn where_no_hosts_can_be_made_one_test_says_so_with_the_cure() {
    let _watchdog = Watchdog::start(LIMIT);
    let scene = Scene::new("/var/tmp");
    let refused = [
        (
            "unshare",
            "unshare: unshare failed: Operation not permitted",
            "docs/hosts-on-a-laptop.md",
        ),
        ("ip", "Error: Unknown device type.", "modprobe -a veth bridge"),
    ];
    for (program, words, cure) in refused {
        let folder = scene.0.join(program);
        fs::create_dir(&folder).unwrap();
        let text = format!("#!/bin/sh\necho '{words}' >&2\nexit 1\n");
        fs::write(folder.join(program), text).unwrap();
        fs::set_permissions(folder.join(program), fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let run = |test: &str| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            let output = command.args([test, "--exact"]).env("PATH", &path).output().unwrap();
            (output.status.success(), String::from_utf8(output.stdout).unwrap())
        };
        let (passed, said) = run("hosts_can_be_made_here");
        assert!(!passed && said.contains(words) && said.contains(cure), "{program}: {said}");
        for test in
            ["exit_codes_and_signals_come_back", "a_paused_host_goes_on_and_a_killed_one_does_not"]
        {
            let (passed, said) = run(test);
            let skipped = format!("SKIPPED {test}: hosts cannot be made here");
            assert!(passed && said.contains(&skipped) && said.contains(words), "{program}: {said}");
        }
    }
}

#[test]
fn hosts_have_names_files_and_processes_of_their_own() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "hosts_have_names_files_and_processes_of_their_own";
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    assert_eq!(
        (bash(&hosts, 0, "hostname"), bash(&hosts, 1, "hostname")),
        ("n1".into(), "n2".into())
    );
    let here = std::env::current_dir().unwrap();
    assert_eq!(Path::new(&bash(&hosts, 1, "pwd")), here);
    for folder in ["/tmp", "/run", "/dev/shm", "$HOME"] {
        bash(&hosts, 0, &format!("echo mine >{folder}/landeck-mark"));
        let there = bash(&hosts, 1, &format!("test -e {folder}/landeck-mark; echo $?"));
        assert_eq!(there, "1", "{folder} is shared");
        let folder = if folder == "$HOME" { "/run/home" } else { folder };
        assert!(!Path::new(folder).join("landeck-mark").exists(), "{folder} is this computer's");
    }
    // The first process and this shell, and none of other hosts.
    assert_eq!(bash(&hosts, 0, "cd /proc; set -- [0-9]*; echo $#"), "2");
    assert_eq!(bash(&hosts, 0, "ls /sys/class/net"), "eth0\nlo");
}

/// A folder of a test, removed at its end.
struct Scene(PathBuf);

impl Scene {
    fn new(place: &str) -> Scene {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("landeck scene {} {count}", std::process::id());
        let scene = Path::new(place).join(name);
        let _ = fs::remove_dir_all(&scene);
        fs::create_dir_all(&scene).unwrap();
        Scene(scene)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The maker is this test in a checkout elsewhere: a copy of its program in a build folder, started in a working
/// directory there, with a program in its search path and one that is named.
#[test]
fn a_checkout_is_seen_wherever_it_lies() {
    if std::env::var_os(ELSEWHERE).is_some() {
        return look_around_elsewhere();
    }
    let _watchdog = Watchdog::start(LIMIT);
    let test = "a_checkout_is_seen_wherever_it_lies";
    if Hosts::or_skip(test, &Wish::hosts(1)).is_none() {
        return;
    }
    let places = ["/tmp", "/dev/shm", "/run", "/root", "/var/tmp"];
    let is_open = |place: &&str| fs::create_dir_all(Path::new(place).join("landeck-open")).is_ok();
    for place in places.into_iter().filter(is_open) {
        fs::remove_dir(Path::new(place).join("landeck-open")).unwrap();
        let scene = Scene::new(place);
        let at = |name: &str| scene.0.join(name);
        for folder in ["real/target/debug/deps", "tools/bin", "tools/lib", "named"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        symlink("real", at("linked")).unwrap();
        fs::write(at("real/target/CACHEDIR.TAG"), "").unwrap();
        fs::write(at("tools/lib/word"), "from the library\n").unwrap();
        let program = at("linked/target/debug/deps/a test");
        // A program that this process writes may be open for that in a child of another test, and cannot be started then.
        succeed(Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program));
        let texts = [
            ("tools/bin/landeck-found", "#!/bin/sh\ncat \"${0%/bin/*}/lib/word\"\n"),
            ("named/program", "#!/bin/sh\necho named\n"),
        ];
        for (name, text) in texts {
            fs::write(at(name), text).unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = std::env::var("PATH").unwrap();
        let mut maker = Command::new(&program);
        maker.args([test, "--exact", "--nocapture"]).env(ELSEWHERE, at("named/program"));
        maker.env("PATH", format!("{}:{path}", at("tools/bin").display()));
        maker.env("CARGO_TARGET_DIR", at("linked/target")).current_dir(at("linked"));
        let said = String::from_utf8(succeed(&mut maker).stdout).unwrap();
        assert!(said.contains("SEEN"), "{place}: {said}");
    }
}

/// The part of the maker elsewhere.
fn look_around_elsewhere() {
    let named = PathBuf::from(std::env::var_os(ELSEWHERE).unwrap());
    let hosts = Hosts::new(&Wish { visible: vec![named.clone()], ..Wish::hosts(2) }).unwrap();
    let here = std::env::current_dir().unwrap();
    let own = std::env::current_exe().unwrap();
    let linked = named.parent().unwrap().with_file_name("linked");
    fs::create_dir_all("target/later").unwrap(); // as a test builds something
    for host in 0..2 {
        assert_eq!(Path::new(&bash(&hosts, host, "pwd -P")), here);
        let see = |what: &str| bash(&hosts, host, &format!("test -e '{what}'; echo $?"));
        assert_eq!(see("target/later"), "0");
        assert_eq!(see(&linked.join("target/later").display().to_string()), "0");
        let listed = succeed(hosts.command(host, &own).args(["--list"])).stdout;
        assert!(String::from_utf8(listed).unwrap().contains("wherever_it_lies"));
        assert_eq!(bash(&hosts, host, "landeck-found"), "from the library");
        assert_eq!(succeed(&mut hosts.command(host, &named)).stdout, b"named\n");
    }
    let far = format!("landeck-rsh n2 \"'{}'\"", named.display());
    assert_eq!(bash(&hosts, 0, &far), "named");
    println!("SEEN");
}

#[test]
fn a_program_is_started_on_another_host_without_a_network() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "a_program_is_started_on_another_host_without_a_network";
    let Some(mut hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    hosts.cut(1).unwrap();
    let far = |words: &str| bash(&hosts, 0, &format!("export OWN=1; {words}"));
    assert_eq!(far("landeck-rsh n2 hostname"), "n2");
    assert_eq!(far("landeck-rsh n2 'echo $OWN.$HOME; pwd'"), "./run/home\n/run/home");
    assert_eq!(far("landeck-rsh -q -o A=b n2 'exit 7' || echo $?"), "7");
    assert_eq!(
        far("seq 100000 | landeck-rsh n2 'cat; echo error >&2' 2>/dev/null | wc -l"),
        "100000"
    );
    assert_eq!(far("landeck-rsh n3 true 2>&1 || echo $?").lines().last(), Some("255"));
    // A caller whose host dies meanwhile is told.
    let mut caller = start(&hosts, 0, "landeck-rsh n2 'echo in; sleep 1000'; echo $?");
    let mut lines = BufReader::new(caller.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "in");
    hosts.kill(1).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "255");
    caller.wait().unwrap();
    until("n2 is known to be down", || {
        bash(&hosts, 0, "landeck-rsh n2 true 2>/dev/null || echo $?") == "255"
    });
    hosts.start(1).unwrap();
    assert_eq!(bash(&hosts, 0, "landeck-rsh n2 hostname"), "n2");
}

#[test]
fn hosts_talk_over_their_cables() {
    let _watchdog = Watchdog::start(LIMIT);
    let wish = Wish {
        sites: 2,
        mtu: Some(1_400),
        rate: Some("100mbit".to_owned()),
        families: Families::Both,
        ..Wish::hosts(3)
    };
    let Some(hosts) = Hosts::or_skip("hosts_talk_over_their_cables", &wish) else { return };
    assert_eq!((hosts.site(1), hosts.address(2).to_string()), (0, "10.77.2.3".to_owned()));
    assert_eq!(bash(&hosts, 0, "cat /sys/class/net/eth0/mtu"), "1400");
    let knock = |address: &str, seconds: u32| reaches(&hosts, 0, address, seconds);
    for address in ["n2", "10.77.1.2", "fd77:0:0:1::2", "10.77.2.3", "fd77:0:0:2::3"] {
        assert!(knock(address, 20), "{address}");
    }
    hosts.cut(2).unwrap();
    assert_eq!((knock("10.77.2.3", 1), knock("n2", 20)), (false, true));
    hosts.join(2).unwrap();
    until("n3 is reached again", || knock("10.77.2.3", 1));
    bash(&hosts, 2, "landeck-cut n2 0.1; landeck-cut n2");
    assert!(!knock("10.77.1.2", 1));
    bash(&hosts, 0, "landeck-join n2");
    until("n2 is reached again", || knock("10.77.1.2", 1));
}

/// Two sites of two hosts, which meet in n2 and n3 alone.
fn met_in_the_middle() -> Wish {
    let cables = vec![Cable { host: 1, network: 0 }, Cable { host: 2, network: 0 }];
    Wish { sites: 2, cables, ..Wish::hosts(4) }
}

#[test]
fn sites_meet_only_in_hosts_with_further_cables() {
    let _watchdog = Watchdog::start(LIMIT);
    let wish = Wish {
        mtu: Some(1_400),
        rate: Some("100mbit".to_owned()),
        families: Families::Both,
        ..met_in_the_middle()
    };
    let test = "sites_meet_only_in_hosts_with_further_cables";
    let Some(hosts) = Hosts::or_skip(test, &wish) else { return };
    for (host, reached) in [
        (0, &["n2", "10.77.1.2", "fd77:0:0:1::2"][..]),
        (1, &["n1", "10.77.0.3", "fd77:0:0:0::3"]),
        (2, &["n4", "10.77.0.2", "fd77:0:0:0::2"]),
        (3, &["n3", "10.77.2.3", "fd77:0:0:2::3"]),
    ] {
        for address in reached {
            assert!(reaches(&hosts, host, address, 20), "n{} to {address}", host + 1);
        }
    }
    for (host, unreached) in [
        (0, &["n3", "n4", "10.77.0.2", "10.77.0.3", "fd77:0:0:2::3", "fd77:0:0:0::3"][..]),
        (1, &["n3", "n4", "fd77:0:0:2::3"]),
        (3, &["n1", "n2", "10.77.0.2", "fd77:0:0:1::2"]),
    ] {
        for address in unreached {
            assert!(!reaches(&hosts, host, address, 20), "n{} to {address}", host + 1);
        }
    }
    assert_eq!(bash(&hosts, 1, "ls /sys/class/net"), "eth0\neth1\nlo");
    assert_eq!(bash(&hosts, 1, "cat /sys/class/net/eth1/mtu"), "1400");
    assert!(bash(&hosts, 1, "tc qdisc show dev eth1").contains("rate 100Mbit"));
}

#[test]
fn sites_that_are_apart_do_not_meet() {
    let _watchdog = Watchdog::start(LIMIT);
    let wish = Wish { sites: 2, apart: true, ..Wish::hosts(3) };
    let Some(hosts) = Hosts::or_skip("sites_that_are_apart_do_not_meet", &wish) else { return };
    assert!(reaches(&hosts, 0, "n2", 20) && !reaches(&hosts, 0, "n3", 20));
    assert!(!reaches(&hosts, 2, "n1", 20));
}

#[test]
fn one_cable_of_several_is_cut_and_joined() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "one_cable_of_several_is_cut_and_joined";
    let Some(mut hosts) = Hosts::or_skip(test, &met_in_the_middle()) else { return };
    // What n2 reaches of its site and of the middle.
    let reached =
        |hosts: &Hosts| ["10.77.1.1", "10.77.0.3"].map(|address| reaches(hosts, 1, address, 1));
    let until_whole = |hosts: &Hosts| {
        until("n2 reaches both networks", || reached(hosts) == [true; 2]);
    };
    until_whole(&hosts);
    hosts.cut_cable(1, 1).unwrap();
    until("n2 reaches its site alone", || reached(&hosts) == [true, false]);
    hosts.join_cable(1, 1).unwrap();
    until_whole(&hosts);
    hosts.cut_cable(1, 0).unwrap();
    until("n2 reaches the middle alone", || reached(&hosts) == [false, true]);
    hosts.join(1).unwrap();
    until_whole(&hosts);
    bash(&hosts, 3, "landeck-cut n2/eth1 0.1; landeck-cut n2/eth1");
    until("n2 reaches its site alone", || reached(&hosts) == [true, false]);
    bash(&hosts, 3, "landeck-cut n2");
    assert_eq!(reached(&hosts), [false; 2]);
    bash(&hosts, 3, "landeck-join n2/eth1");
    until("n2 reaches the middle alone", || reached(&hosts) == [false, true]);
    bash(&hosts, 3, "landeck-join n2");
    until_whole(&hosts);
    for wrong in ["n2/eth2", "n1/eth1", "n2/lo", "n2/", "n5", "bin"] {
        let script = format!("landeck-cut {wrong} 2>&1");
        let output = hosts.command(0, "bash").args(["-c", &script]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(!output.status.success() && said.contains("landeck-cut: "), "{wrong}: {said}");
    }
    let error = hosts.cut_cable(1, 2).unwrap_err().to_string();
    assert_eq!(error, "n2 has no cable eth2: its last one is eth1");
    until_whole(&hosts);
    hosts.kill(1).unwrap();
    assert!(!reaches(&hosts, 2, "10.77.0.2", 1));
    hosts.start(1).unwrap();
    until_whole(&hosts);
    until("n3 reaches n2", || reaches(&hosts, 2, "10.77.0.2", 1));
}

#[test]
fn a_host_on_two_networks_passes_nothing_on() {
    let _watchdog = Watchdog::start(LIMIT);
    let wish = Wish { sites: 2, cables: vec![Cable { host: 1, network: 2 }], ..Wish::hosts(4) };
    let test = "a_host_on_two_networks_passes_nothing_on";
    let Some(hosts) = Hosts::or_skip(test, &wish) else { return };
    for address in ["n1", "n3", "n4", "10.77.2.4"] {
        assert!(reaches(&hosts, 1, address, 20), "{address}");
    }
    assert!(reaches(&hosts, 2, "10.77.2.2", 20) && !reaches(&hosts, 2, "n2", 20));
    assert!(!reaches(&hosts, 0, "n3", 20));
    // Even if n1 and n3 take n2 for a router.
    bash(&hosts, 0, "ip route add default via 10.77.1.2");
    bash(&hosts, 2, "ip route add default via 10.77.2.2");
    let send = || bash(&hosts, 0, "echo x >/dev/udp/10.77.2.3/9");
    let count = |host, name: &str| {
        let (protocol, field) = name.split_once('.').unwrap();
        let script = format!(
            "awk '$1 == \"{protocol}:\" {{
                 if (!column) {{ for (i = 2; i <= NF; i++) if ($i == \"{field}\") column = i }}
                 else print $column
             }}' /proc/net/snmp"
        );
        bash(&hosts, host, &script).parse::<u64>().unwrap()
    };
    until("n2 drops what is for others", || {
        send();
        count(1, "Ip.InAddrErrors") > 0
    });
    assert_eq!((count(1, "Ip.ForwDatagrams"), count(2, "Udp.NoPorts")), (0, 0));
    // The same packets arrive when n2 is told to pass them on, so nothing else held them up.
    bash(&hosts, 1, "echo 1 >/proc/sys/net/ipv4/ip_forward");
    until("n3 has a packet of n1", || {
        send();
        count(2, "Udp.NoPorts") > 0
    });
}

#[test]
fn exit_codes_and_signals_come_back() {
    let _watchdog = Watchdog::start(LIMIT);
    let Some(hosts) = Hosts::or_skip("exit_codes_and_signals_come_back", &Wish::hosts(1)) else {
        return;
    };
    let status = |script: &str| hosts.command(0, "sh").args(["-c", script]).status().unwrap();
    assert_eq!(status("exit 7").code(), Some(7));
    assert_eq!(status("kill -KILL $$").signal(), Some(9));
    let missing = hosts.command(0, "/no/such/program").stderr(Stdio::null()).status().unwrap();
    assert_eq!(missing.code(), Some(127));
}

#[test]
fn a_paused_host_goes_on_and_a_killed_one_does_not() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "a_paused_host_goes_on_and_a_killed_one_does_not";
    let Some(mut hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    let mut child = start(&hosts, 1, "while read -r line; do echo \"$line\"; done");
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut echo = |line: &str| {
        let _ = writeln!(input, "{line}"); // a dead program reads nothing
        lines.next().map(Result::unwrap)
    };
    assert_eq!(echo("one").as_deref(), Some("one"));
    hosts.pause(1).unwrap();
    assert_eq!(state_of_children(child.id()), "T", "the shell is stopped");
    hosts.resume(1).unwrap();
    assert_eq!(echo("two").as_deref(), Some("two"));
    bash(&hosts, 1, "echo mine >/tmp/landeck-mark");
    hosts.kill(1).unwrap();
    assert_eq!(echo("three"), None);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert!(hosts.kill(1).is_err(), "it has no power");
    hosts.start(1).unwrap();
    assert!(hosts.start(1).is_err(), "it runs");
    assert_eq!(bash(&hosts, 1, "hostname; test -e /tmp/landeck-mark || echo empty"), "n2\nempty");
}

/// The states of the children of a process, as /proc names them.
fn state_of_children(pid: u32) -> String {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let state = |child: &str| {
        let text = fs::read_to_string(format!("/proc/{child}/stat")).unwrap();
        text.rsplit_once(") ").unwrap().1[..1].to_owned()
    };
    children.split_whitespace().map(state).collect()
}

#[test]
fn nothing_is_left_when_the_maker_is_killed() {
    let test = "nothing_is_left_when_the_maker_is_killed";
    if std::env::var_os(VICTIM).is_some() {
        return make_and_wait();
    }
    let _watchdog = Watchdog::start(LIMIT);
    match Hosts::new(&Wish::hosts(1)) {
        Ok(hosts) => {
            let before = namespaces_of(&hosts);
            drop(hosts);
            until("a dropped cluster is gone", || members_of(&before).is_empty());
        }
        Err(why) if why.is_of_this_computer() => {
            writeln!(std::io::stdout(), "SKIPPED {test}: {why}").unwrap();
            return;
        }
        Err(why) => panic!("{why}"),
    }
    let trail = Trail::new();
    let mut maker = Command::new(std::env::current_exe().unwrap());
    maker.args([test, "--exact", "--nocapture"]).env(VICTIM, "1");
    maker.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut maker = trail.spawn(&mut maker);
    let lines = BufReader::new(maker.stdout.take().unwrap()).lines().map(Result::unwrap);
    let made =
        lines.filter_map(|line| line.split_once("NAMESPACES ").map(|(_, all)| all.to_owned()));
    let made: BTreeSet<String> = made.take(1).flat_map(|all| words(&all)).collect();
    assert!(members_of(&made).len() >= 4, "the first process, two hosts, a program: {made:?}");
    maker.kill().unwrap();
    maker.wait().unwrap();
    until("no process is in the namespaces", || members_of(&made).is_empty());
    trail.assert_gone(GONE_WITHIN);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains("landeck-hosts"), "{mounts}");
    assert!(
        !Path::new("/sys/class/net/host1-eth0").exists()
            && !Path::new("/sys/class/net/site1").exists()
    );
}

/// The part of the maker that is killed.
fn make_and_wait() {
    let hosts = Hosts::new(&Wish::hosts(2)).unwrap();
    let mut program = hosts.command(1, "sh");
    let mut program = program
        .args(["-c", "trap '' TERM INT HUP; echo in; setsid sleep 1000 & wait"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 3];
    program.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    let all: Vec<String> = namespaces_of(&hosts).into_iter().collect();
    println!("NAMESPACES {}", all.join(" "));
    program.wait().unwrap();
}

/// The network and process namespaces of the hosts and of what joins them.
fn namespaces_of(hosts: &Hosts) -> BTreeSet<String> {
    // A folder of the first process names that process: /proc/PID/root/...
    let folder = hosts.folder(0);
    let first = folder.components().nth(2).unwrap().as_os_str().to_string_lossy().into_owned();
    let mut all = BTreeSet::new();
    for kind in ["net", "pid", "mnt"] {
        all.extend(fs::read_link(format!("/proc/{first}/ns/{kind}")).map(name_of));
        for host in 0..hosts.count() {
            all.insert(bash(hosts, host, &format!("readlink /proc/self/ns/{kind}")));
        }
    }
    all
}

fn name_of(link: std::path::PathBuf) -> String {
    link.to_string_lossy().into_owned()
}

/// The processes in any of these namespaces.
fn members_of(namespaces: &BTreeSet<String>) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let is_in = |pid: &u32| {
        let mut links =
            ["net", "pid", "mnt"].map(|kind| fs::read_link(format!("/proc/{pid}/ns/{kind}")));
        links.iter_mut().flatten().any(|link| namespaces.contains(&name_of(link.clone())))
    };
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_in).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[test]
fn ssh_asks_nothing() {
    let _watchdog = Watchdog::start(LIMIT);
    let wish = Wish { ssh: true, ..Wish::hosts(2) };
    let Some(hosts) = Hosts::or_skip("ssh_asks_nothing", &wish) else { return };
    assert_eq!(bash(&hosts, 0, "ssh n2 'hostname; echo $HOME'"), "n2\n/run/home");
    assert_eq!(bash(&hosts, 1, "ssh n1 landeck-rsh n2 hostname"), "n2");
    assert_eq!(bash(&hosts, 0, "ssh n2 'exit 7' || echo $?"), "7");
}

#[test]
fn slurm_runs_programs_on_all_hosts() {
    let _watchdog = Watchdog::start(LIMIT);
    let wish = Wish { slurm: true, ..Wish::hosts(2) };
    let Some(hosts) = Hosts::or_skip("slurm_runs_programs_on_all_hosts", &wish) else { return };
    assert_eq!(bash(&hosts, 0, "srun -N 2 hostname | sort"), "n1\nn2");
    let script = "salloc -N 2 bash -c 'scontrol show hostnames' 2>/dev/null";
    assert_eq!(bash(&hosts, 1, script), "n1\nn2");
}

#[test]
fn packets_are_lost_as_often_as_wished() {
    let _watchdog = Watchdog::start(LIMIT);
    let wish = Wish { drop_percent: 50.0, ..Wish::hosts(2) };
    let Some(hosts) = Hosts::or_skip("packets_are_lost_as_often_as_wished", &wish) else { return };
    bash(&hosts, 0, "for i in $(seq 200); do echo x >/dev/udp/n2/9; done");
    // Of 200 packets, fewer than 40 or more than 160 are lost once in 10^17 runs.
    let arrived = "awk '/^Udp:/ && $2 + 0 == $2 { print $3 }' /proc/net/snmp";
    let arrived: u32 = bash(&hosts, 1, arrived).parse().unwrap();
    assert!((40..=160).contains(&arrived), "{arrived} of 200 packets arrived");
}

#[test]
fn a_wish_that_cannot_be_fulfilled_says_why() {
    let _watchdog = Watchdog::start(LIMIT);
    let senseless = Hosts::new(&Wish { sites: 3, ..Wish::hosts(2) }).unwrap_err();
    assert!(matches!(&senseless, WhyNot::Wish(text) if text.contains("3 sites of 2 hosts")));
    match Hosts::new(&Wish { rate: Some("fast".to_owned()), ..Wish::hosts(1) }) {
        Err(WhyNot::Failed(text)) => assert!(text.contains("fast"), "{text}"),
        Err(why) if why.is_of_this_computer() => {}
        other => panic!("{other:?}"),
    }
}
