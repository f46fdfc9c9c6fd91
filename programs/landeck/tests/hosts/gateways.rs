//! Two sites that reach each other over gateways alone: words, messages and output pass them, and another one takes over.

use landeck::{Job, Tag};
use landeck_testing::hosts::Cable;

use super::members::is_member;
use super::next_run::exchange;
use super::*;

/// The description of two sites that meet in a network in the middle.
fn description(gateways: &[&str]) -> String {
    let gateways: Vec<String> = gateways.iter().map(|host| format!("{host:?}")).collect();
    format!(
        "network.a = {{ addresses = '10.77.1.0/24', site = 'a' }}
        network.b = {{ addresses = '10.77.2.0/24', site = 'b' }}
        network.middle = {{ addresses = '10.77.0.0/24', gateway = [{}] }}",
        gateways.join(", ")
    )
}

/// So many hosts at two sites, of which those with these numbers meet in the middle, with a machine on all of them.
fn lab(test: &str, hosts: usize, gateways: &[usize], options: &[&str]) -> Option<Cluster> {
    let cables = gateways.iter().map(|host| Cable { host: *host, network: 0 }).collect();
    let cluster = Cluster::wished(test, &Wish { sites: 2, cables, ..Wish::hosts(hosts) })?;
    let names: Vec<String> = (0..hosts).map(|host| cluster.hosts.name(host)).collect();
    let names_of: Vec<&str> = gateways.iter().map(|host| names[*host].as_str()).collect();
    let named: String = names.iter().map(|name| format!("\nhost.{name} = {{}}")).collect();
    let text = description(&names_of) + &named;
    cluster.shell(0, &format!("cat >/tmp/lab.toml <<'END'\n{text}\nEND"));
    let start = ["vm", "start", "--rsh", "landeck-rsh"];
    let started = run(&mut cluster.landeck(&[&start, options, &["/tmp/lab.toml"]].concat()));
    let said = started.assert(0, &[]).out.split_once("gateways ").map_or("", |(_, rest)| rest);
    let said = said.split(',').next().unwrap_or("");
    assert!(names_of.iter().all(|name| said.contains(name)), "{started:?}");
    Some(cluster)
}

impl Cluster {
    /// The routes from the first host, in the words of the command.
    fn routes(&self) -> String {
        run(&mut self.landeck(&["vm", "routes"])).assert(0, &[]).out.clone()
    }

    /// A test of this program as a job of the machine, a process on each host.
    fn job_on_each(&self, test: &str, options: &[&str]) -> Command {
        let program = std::env::current_exe().unwrap();
        let hosts = self.hosts.count().to_string();
        let first = ["run", "--name", "j", "--map-by", "node", "-n", &hosts];
        let last = [program.to_str().unwrap(), test, "--exact", "--nocapture", "--test-threads=1"];
        self.landeck(&[&first[..], options, &last].concat())
    }

    fn touch_everywhere(&self, file: &str) {
        (0..self.hosts.count()).for_each(|host| drop(self.shell(host, &format!("touch {file}"))));
    }
}

/// The last rank waits for a message that comes once there is a file.
fn late_message() {
    let job = Job::join().unwrap();
    let world = job.world();
    println!("ready");
    if world.rank() == 0 {
        let go = Path::new("/tmp/go");
        wait_until("the file", || go.exists());
        world.send(&[7u64], world.size() - 1, Tag(1)).unwrap();
    } else if world.rank() + 1 == world.size() {
        let mut came = [0u64];
        world.receive_into(&mut came, 0, Tag(1)).unwrap();
        println!("came {}", came[0]);
    }
    job.leave().unwrap();
}

#[test]
fn everything_passes_two_gateways() {
    const TEST: &str = "gateways::everything_passes_two_gateways";
    if is_member() {
        return if Path::new("/tmp/late").exists() { late_message() } else { exchange() };
    }
    let Some(cluster) = lab("everything_passes_two_gateways", 4, &[1, 2], &[]) else { return };
    let status = run(&mut cluster.landeck(&["vm", "status"]));
    for part in ["2 sites", "b (gateway)"] {
        let both = cluster.routes() + &status.assert(0, &[]).out;
        assert!(part == "2 sites" || both.contains(part), "{both}");
    }
    let routes = cluster.routes();
    for line in
        ["n1 -> n2: direct", "n1 -> n3: n2 (the only way)", "n1 -> n4: n2, n3 (the only way)"]
    {
        assert!(routes.contains(line), "{line}: {routes}");
    }
    for path in ["auto", "relay", "daemons"] {
        cluster.touch_everywhere("/tmp/go");
        let all = run(&mut cluster.job_on_each(TEST, &["--path", path]));
        assert_eq!(all.assert(0, &[]).out.matches("has all\n").count(), 4, "{all:?}");
        (0..4).for_each(|host| drop(cluster.shell(host, "rm /tmp/go")));
    }
    cluster.touch_everywhere("/tmp/late");
    let running = start(&mut cluster.job_on_each(TEST, &[]));
    running.out.wait_for("all", |text| text.matches("ready\n").count() == 4);
    wait_until("the wait is explained", || {
        let why = run(&mut cluster.landeck(&["why", "j"]));
        why.out.contains("through n3, n2") || why.out.contains("through n2, n3")
    });
    cluster.shell(0, "touch /tmp/go");
    let ended = running.end();
    assert!(ended.assert(0, &[]).out.contains("came 7"), "{ended:?}");
    // The only way to others is not removed before them.
    let removed = run(&mut cluster.landeck(&["vm", "remove", "n2"]));
    removed.assert(1, &["n3, n4 are reached over n2 alone"]);
    run(&mut cluster.landeck(&["vm", "stop"])).assert(0, &[]);
    cluster.assert_nothing_left();
}

/// Rank 0 sends numbers to all others in turn, and gets each back, until there is a file.
fn numbers() {
    let job = Job::join().unwrap();
    let world = job.world();
    let go = Path::new("/tmp/go");
    for number in 0u64.. {
        if world.rank() != 0 {
            let mut came = [0u64; 2];
            world.receive_into(&mut came, 0, Tag(1)).unwrap();
            assert_eq!(came[0], number, "none is lost, and none comes twice");
            world.send(&came, 0, Tag(2)).unwrap();
            if came[1] == 1 {
                break;
            }
            continue;
        }
        let is_last = go.exists();
        let sent = [number, u64::from(is_last)];
        for to in 1..world.size() {
            world.send(&sent, to, Tag(1)).unwrap();
            let mut came = [0u64; 2];
            world.receive_into(&mut came, to, Tag(2)).unwrap();
            assert_eq!(came, sent);
        }
        if number % 16 == 0 {
            println!("{number} numbers");
        }
        if is_last {
            break;
        }
    }
    println!("all numbers");
    job.leave().unwrap();
}

#[test]
fn another_gateway_takes_over_and_nothing_is_lost() {
    const TEST: &str = "gateways::another_gateway_takes_over_and_nothing_is_lost";
    if is_member() {
        return numbers();
    }
    let test = "another_gateway_takes_over_and_nothing_is_lost";
    let options = ["--host-timeout", "3"]; // under load, hosts are silent for a second
    let Some(cluster) = lab(test, 6, &[1, 2, 3, 4], &options) else { return };
    let mut running = start(&mut cluster.job_on_each(TEST, &["--on-failure", "notify"]));
    let out = running.out.clone();
    let count = || out.text().matches(" numbers\n").count();
    let goes_on = || {
        let before = count();
        wait_until("numbers go on", || count() > before + 1);
    };
    // The gateways that are used at the moment, as numbers of hosts: the near one and the far one.
    let used = || {
        let routes = cluster.routes();
        let names = routes.split_once("n1 -> n6: n").unwrap().1;
        let (near, far) = names.split_once(", n").unwrap();
        [near, &far[..1]].map(|number| number.parse::<usize>().unwrap() - 1)
    };
    goes_on();
    // A cable on one side of a gateway, a gateway whose daemon is stopped, and one whose daemon is killed.
    let [near, _] = used();
    cluster.hosts.cut_cable(near, 1).unwrap();
    goes_on();
    cluster.hosts.join_cable(near, 1).unwrap();
    for at in 0..2 {
        let host = used()[at];
        let stopped = cluster.daemon(host);
        cluster.signal_pid(host, stopped, "STOP");
        goes_on();
        cluster.signal_pid(host, stopped, "CONT");
    }
    for at in 0..2 {
        let host = used()[at];
        cluster.signal_pid(host, cluster.daemon(host), "KILL");
        goes_on();
    }
    assert!(running.goes_on());
    cluster.shell(0, "touch /tmp/go");
    let ended = running.end();
    assert_eq!(ended.assert(0, &[]).out.matches("all numbers").count(), 6, "{ended:?}");
    let states = cluster.status_on(0)["hosts"].clone();
    assert!(states.as_array().unwrap().iter().all(|host| host["state"] == "up"), "{states}");
}
