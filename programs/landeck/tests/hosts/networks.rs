//! Networks of other kinds, strangers at the daemon's port, and firewalls.

use super::members::is_member;
use super::next_run::exchange;
use super::*;
use landeck_testing::hosts::Families;

/// Runs a job with this wish, and returns where its processes were.
fn where_with(test: &str, wish: &Wish, options: &[&str]) {
    let Some(cluster) = Cluster::wished(test, wish) else { return };
    let arguments =
        [options, &["sh", "-c", "hostname; head -c 100000 /dev/zero | tr '\\0' x >&2"]].concat();
    let ended = cluster.run_clean(&mut cluster.four(&arguments));
    assert_eq!(ended.assert(0, &[]).sorted(), ["n1", "n1", "n2", "n2"]);
    assert_eq!(ended.err.matches('x').count(), 400_000);
}

#[test]
fn ipv6_alone() {
    where_with("ipv6_alone", &Wish { families: Families::V6, ..Wish::hosts(2) }, &[]);
}

#[test]
fn both_families_and_a_wish_for_one() {
    let wish = Wish { families: Families::Both, ..Wish::hosts(2) };
    where_with("both_families_and_a_wish_for_one", &wish, &["--network", "fd77::/16"]);
}

#[test]
fn small_packets() {
    where_with("small_packets", &Wish { mtu: Some(1_280), ..Wish::hosts(2) }, &[]);
}

#[test]
fn a_range_of_one_port() {
    let Some(cluster) = Cluster::pair("a_range_of_one_port") else { return };
    let running = cluster.start_four(&["--port-range", "40000-40000"], "exec sleep 60");
    for host in 0..2 {
        let ports = listening(&cluster, host);
        assert_eq!(ports, [40_000], "on host {host}");
    }
    cluster.signal(0, "landeck", "TERM");
    running.end().assert(143, &[]);
    cluster.assert_nothing_left();
}

/// The ports on which something listens for connections on a host.
fn listening(cluster: &Cluster, host: usize) -> Vec<u16> {
    let text = cluster.shell(host, "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || true");
    let mut ports: Vec<u16> = text
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (_, port) = fields.get(1)?.rsplit_once(':')?;
            (*fields.get(3)? == "0A").then(|| u16::from_str_radix(port, 16).ok())?
        })
        .collect();
    ports.sort_unstable();
    ports
}

#[test]
fn strangers_disturb_nothing() {
    let Some(cluster) = Cluster::pair("strangers_disturb_nothing") else { return };
    let mut running = cluster.start_four(
        &["--host-timeout", "1"],
        "until [ -e /tmp/go ]; do sleep 0.1; done; echo end $RANK",
    );
    let ports: Vec<u16> = (0..2).map(|host| listening(&cluster, host)[0]).collect();
    // Silent connections beyond all places, garbage, half a preamble, floods; and datagrams.
    let script = format!(
        "exec 2>/dev/null
        for to in n1/{} n2/{}; do
            for try in $(seq 150); do (exec 5<>/dev/tcp/$to; sleep 3) & done
            for try in $(seq 50); do (exec 5<>/dev/tcp/$to; head -c 2000 /dev/urandom >&5; cat <&5 >/dev/null) & done
            for try in $(seq 50); do (exec 5<>/dev/tcp/$to; printf LDK1 >&5; head -c 60 /dev/urandom >&5; sleep 2) & done
            (exec 5<>/dev/tcp/$to; head -c 5000000 /dev/zero >&5) &
            for try in $(seq 50); do head -c 300 /dev/urandom >/dev/udp/$to; done
        done
        wait",
        ports[0], ports[1]
    );
    let mut command = cluster.hosts.command(1, "/bin/bash");
    let strangers = run(command.args(["-c", &script]).stdin(Stdio::null()));
    assert!(running.goes_on(), "{:?} {strangers:?}", running.err.text());
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    let ended = running.end();
    assert_eq!(ended.assert(0, &[]).out.matches("end ").count(), 4, "{ended:?}");
    // Everybody learns that somebody knocked, but not a line for each.
    assert!(ended.err.lines().count() < 100, "{ended:?}");
    cluster.assert_nothing_left();
}

#[test]
fn a_firewall_lets_the_range_of_ports_through() {
    let test = "a_firewall_lets_the_range_of_ports_through";
    let Some(cluster) = Cluster::pair(test) else { return };
    let rules = "
        table inet wall {
            chain in {
                type filter hook input priority 0; policy drop;
                iifname lo accept
                ct state established,related accept
                tcp dport 40000-40010 accept
                udp dport 40000-40010 accept
            }
        }";
    for host in 0..2 {
        let mut command = cluster.hosts.command(host, "/bin/sh");
        let script = "command -v nft >/dev/null || exit 77; printf '%s' \"$1\" | nft -f -";
        let output = command.args(["-c", script, "sh", rules]).output().unwrap();
        if output.status.code() != Some(0) {
            println!(
                "SKIPPED {test}: {}",
                String::from_utf8_lossy(&output.stderr).replace('\n', " ")
            );
            return;
        }
    }
    let ended = cluster.run_clean(&mut cluster.four(&["--port-range", "40000-40010", "hostname"]));
    assert_eq!(ended.assert(0, &[]).sorted(), ["n1", "n1", "n2", "n2"]);
    // Where no port is reached, the streams of the remote shell carry everything.
    let ended = cluster.run_clean(&mut cluster.four(&["hostname"]));
    assert_eq!(ended.assert(0, &[]).sorted(), ["n1", "n1", "n2", "n2"]);
}

/// Puts the processes of a host behind a router with addresses of their own, which all such hosts have: they reach the others, and
/// nobody reaches them.
const BEHIND_A_ROUTER: &str = "
    set -e
    ip netns add behind
    ip link add inner type veth peer name eth0 netns behind
    ip address add 192.168.0.1/24 dev inner
    ip link set inner up
    ip -n behind address add 192.168.0.2/24 dev eth0
    ip -n behind link set lo up
    ip -n behind link set eth0 up
    ip -n behind route add default via 192.168.0.1
    echo 1 >/proc/sys/net/ipv4/ip_forward
    nft -f - <<END
table ip nat {
    chain out {
        type nat hook postrouting priority srcnat;
        oifname \"eth0\" masquerade
    }
}
END";
/// A remote shell to hosts behind routers: the command is a file there.
const RSH: &str = "#!/bin/sh
host=$1; shift
file=$(mktemp /run/hosts/talks/behind.XXXXXX)
printf '%s\\n' \"$*\" >$file
exec landeck-rsh $host \"ip netns exec behind sh $file\"
";

#[test]
fn hosts_behind_two_routers_with_equal_addresses_are_two_hosts() {
    const TEST: &str = "networks::hosts_behind_two_routers_with_equal_addresses_are_two_hosts";
    if is_member() {
        return exchange();
    }
    let wish = Wish { routers: true, ..Wish::hosts(3) };
    let test = "hosts_behind_two_routers_with_equal_addresses_are_two_hosts";
    let Some(cluster) = Cluster::wished(test, &wish) else { return };
    (1..3).for_each(|host| drop(cluster.shell(host, BEHIND_A_ROUTER)));
    cluster.shell(0, &format!("cat >/tmp/rsh <<'END'\n{RSH}END\nchmod +x /tmp/rsh"));
    let start = ["vm", "start", "--name", "lab", "--rsh", "/tmp/rsh", "n2", "n3"];
    let started = run(&mut cluster.landeck(&start));
    assert!(started.assert(0, &[]).out.starts_with("lab: 3 hosts, "), "{started:?}");
    assert_eq!(cluster.where_on(0, &["--map-by", "node", "-n", "3"]), ["n1", "n2", "n3"]);
    // The founder reaches no host, and is reached.
    cluster.shell(0, "touch /tmp/go");
    (1..3).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    let program = std::env::current_exe().unwrap();
    let program = [program.to_str().unwrap(), TEST, "--exact", "--nocapture", "--test-threads=1"];
    let talks = |processes: &str| {
        let words = ["run", "--map-by", "node", "-n", processes];
        run(&mut cluster.landeck(&[&words[..], &program].concat()))
    };
    let two = talks("2");
    assert_eq!(two.assert(0, &[]).out.matches("has all\n").count(), 2, "{two:?}");
    // The other two do not reach each other: no gateway joins them yet.
    let three = talks("3");
    three.assert(137, &["on n2", "on n3", "no address of either host leads to the other one"]);
    cluster.stop_lab();
}
