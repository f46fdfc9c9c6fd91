//! Tests of the options for several hosts.

use landeck_joining::machines::MachineChoiceError;

use super::*;
use crate::cli::{self, Command, Usage};
use std::ffi::OsString;

/// Reads a line of `landeck run`, and settles its hosts on a host called node1.
fn settled_in(line: &str, variables: &[(&str, &str)]) -> Result<Launch, String> {
    let words = ["landeck", "run"].into_iter().chain(line.split(' ')).map(OsString::from);
    let (mut launch, asked) = match cli::parse(words.collect()) {
        Ok(Command::Run(launch, _, asked)) => (*launch, asked),
        Ok(other) => return Err(format!("{other:?}")),
        Err(Usage(error)) => return Err(error.to_string()),
    };
    let variable = |name: &str| {
        variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
    };
    let machine = |name: Option<&str>| match name {
        Some(name) => Ok(name.parse()?),
        None => Err(MachineChoiceError::None.into()),
    };
    let own = "node1.site".to_owned();
    let around = Surroundings { own, variable: &variable, machine: &machine };
    asked.settle(&mut launch, &around).map_err(|error| error.to_string())?;
    Ok(launch)
}

fn settled(line: &str) -> Result<Launch, String> {
    settled_in(line, &[])
}

/// The hosts of a job as `a:2,b:1`; "here" if it runs on this host alone.
fn hosts(launch: &Launch) -> String {
    let one = |host: &HostRequest| format!("{}:{}", host.name, host.slots);
    match &launch.hosts {
        None => "here".to_owned(),
        Some(wish) => wish.list.iter().map(one).collect::<Vec<_>>().join(","),
    }
}

const SLURM: &[(&str, &str)] =
    &[("SLURM_JOB_NODELIST", "node[1-3]"), ("SLURM_TASKS_PER_NODE", "2(x3)")];

#[test]
fn without_hosts_nothing_changes() {
    for (line, processes) in [("x", None), ("-n 3 x", Some(3)), ("--map-by node x", None)] {
        let launch = settled(line).unwrap();
        assert_eq!((hosts(&launch).as_str(), launch.programs[0].processes), ("here", processes));
        assert_eq!(launch.map_by, MapBy::default());
    }
    let one = &[("SLURM_JOB_NODELIST", "node9")][..];
    assert_eq!(hosts(&settled_in("x", one).unwrap()), "here", "an allocation of one host");
}

#[test]
fn in_a_machine_the_load_may_choose_the_hosts() {
    let launch = settled("--machine lab --map-by load -n 2 x").unwrap();
    assert_eq!(launch.machine.unwrap().order, BookingOrder::Load);
    let launch = settled("--machine lab --map-by site -n 2 x").unwrap();
    assert_eq!(launch.machine.unwrap().order, BookingOrder::Site);
    let launch = settled("--machine lab --map-by node -n 2 x").unwrap();
    assert_eq!(launch.machine.unwrap().order, BookingOrder::Spread);
}

#[test]
fn this_host_alone_is_no_other_host() {
    for (line, processes) in [
        ("--host localhost x", Some(1)),
        ("--host localhost:4 x", Some(4)),
        ("--host node1:2,127.0.0.1,node1.site x", Some(4)),
        ("--host localhost:4 -n 2 x", Some(2)),
        ("--host localhost --ppn 3 x", Some(3)),
        ("--ppn 3 x", Some(3)),
        ("-N 3 -n 5 x", Some(5)),
        ("--map-by ppr:2:node x", Some(2)),
        ("--one-by-default x", Some(1)),
        ("--one-by-default --host localhost:4 x", Some(4)),
    ] {
        let launch =
            settled_in(line, SLURM.get(..2 * usize::from(line.contains("localhost"))).unwrap());
        let launch = launch.unwrap();
        assert_eq!(
            (hosts(&launch).as_str(), launch.programs[0].processes),
            ("here", processes),
            "{line}"
        );
    }
}

#[test]
fn hosts_are_named_in_many_ways() {
    for (line, wanted) in [
        ("--host a:2,b x", "a:2,b:1"),
        ("--host a --host b,a x", "a:2,b:1"),
        ("--hosts a,b x", "a:1,b:1"),
        ("-hosts a,b -ppn 2 x", "a:1,b:1"),
        ("--host [fe80::1]:2 x", "fe80::1:2"),
        ("--host localhost,a,node1:2 x", "localhost:3,a:1"),
        ("--host a x", "a:1"),
    ] {
        assert_eq!(hosts(&settled(line).unwrap()), wanted, "{line}");
    }
}

#[test]
fn a_hostfile_is_read() {
    let path = std::env::temp_dir().join(format!("landeck-hosts-{}", std::process::id()));
    std::fs::write(&path, "a slots=2\nb # one\n").unwrap();
    let path = path.to_str().unwrap();
    for option in ["-f", "--hostfile", "--machinefile", "-machinefile"] {
        assert_eq!(hosts(&settled(&format!("{option} {path} x")).unwrap()), "a:2,b:1", "{option}");
    }
    std::fs::write(path, "a\nb slotz=2\n").unwrap();
    let error = settled(&format!("-f {path} x")).unwrap_err();
    std::fs::remove_file(path).unwrap();
    assert!(
        error.starts_with(&format!("--hostfile {path}: line 2: \"slotz=2\" is not")),
        "{error}"
    );
    let error = settled("-f /no/such/file x").unwrap_err();
    assert!(error.starts_with("--hostfile /no/such/file: there is no such file; give"), "{error}");
}

#[test]
fn the_hosts_of_an_allocation_are_used() {
    let launch = settled_in("x", SLURM).unwrap();
    assert_eq!(hosts(&launch), "node1:2,node2:2,node3:2");
    assert_eq!(launch.hosts.unwrap().start, HostStart::Slurm);
    let start = |line: &str| settled_in(line, SLURM).unwrap().hosts.unwrap().start;
    assert_eq!(start("--host node1,node2 x"), HostStart::Slurm);
    assert_eq!(start("--host node1,other x"), HostStart::Ssh);
    assert_eq!(start("--start by-hand x"), HostStart::ByHand);
    assert_eq!(start("--rsh rsh x"), HostStart::Ssh);
    let error = settled_in("x", &[("SLURM_JOB_NODELIST", "n[")]).unwrap_err();
    assert!(error.starts_with("SLURM_JOB_NODELIST, which Slurm sets: "), "{error}");
    let launch = settled_in("--host a,b x", &[("SLURM_JOB_NODELIST", "n[")]).unwrap();
    assert_eq!(hosts(&launch), "a:1,b:1", "the command line decides");
}

#[test]
fn all_wishes_end_in_one_value() {
    let wish = |line: &str| settled(&format!("--host a,b {line} x")).unwrap().hosts.unwrap();
    let defaults = HostsOptions::new(from_words("a,b").unwrap());
    assert_eq!(wish("-n 4"), defaults);
    let all = wish(
        "--map-by node:pe=2 --ppn 2 --remote-prefix /opt/l --host-timeout 500ms --port-range 4000-4100 \
         --network 10.0.0.0/8 --network fd00::/8 --plain --rsh rsh",
    );
    let wanted = HostsOptions {
        map_by: RanksBy::Node,
        per_host: Some(2),
        rsh: vec!["rsh".to_owned()],
        remote_prefix: Some("/opt/l".into()),
        host_timeout: Duration::from_millis(500),
        ports: Some(PortRange { first: 4000, last: 4100 }),
        networks: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
        is_plain: true,
        ..defaults
    };
    assert_eq!(all, wanted);
    assert_eq!(wish("--map-by ppr:3:node").per_host, Some(3));
    assert_eq!(command_words(" ssh  -p 22 ").unwrap().0, ["ssh", "-p", "22"]);
}

#[test]
fn mappings_are_for_hosts_or_for_their_parts() {
    let read = |text: &str| {
        let asked = map_by(text).unwrap();
        (asked.here, asked.order, asked.per_host)
    };
    let pairs: MapBy = "numa:pe=2".parse().unwrap();
    assert_eq!(read("numa:pe=2"), (pairs, BookingOrder::Fill, None));
    assert_eq!(read("node:numa:pe=2"), (pairs, BookingOrder::Spread, None));
    assert_eq!(read("load:numa:pe=2"), (pairs, BookingOrder::Load, None));
    assert_eq!(read("site:pe=2"), ("pe=2".parse().unwrap(), BookingOrder::Site, None));
    assert_eq!(read("load"), (MapBy::default(), BookingOrder::Load, None));
    assert_eq!(read("ppr:4:node"), (MapBy::default(), BookingOrder::Fill, Some(4)));
    assert_eq!(read("PPR:4:Node:numa:PE=2"), (pairs, BookingOrder::Fill, Some(4)));
    for text in [
        "",
        "nodes",
        "loads",
        "ppr:2:load",
        "node:",
        "ppr",
        "ppr:4",
        "ppr:0:node",
        "ppr:2:socket",
        "socket",
        "ppr:2:node:",
    ] {
        let error = map_by(text).unwrap_err();
        assert!(
            error.contains("choose slot, core, l3, numa, node, site, load, ppr:N:node"),
            "{text}: {error}"
        );
    }
}

#[test]
fn numbers_have_the_bounds_of_their_hosts() {
    let refused = settled("-n 16369 x").unwrap_err();
    assert_eq!(refused, "-n 16369: a whole number is wanted, from 1 to 16,368, such as 4");
    assert!(settled("-n 16368 x").is_ok());
    assert!(settled("--host a,b -n 16369 x").is_ok());
    let refused = settled("--host a,b -n 1048576 x : y").unwrap_err();
    assert!(refused.starts_with("a job has at most 1,048,576 processes, not 1048577"), "{refused}");
    assert!(settled("--host a,b -n 1048577 x").is_err());
}

#[test]
fn wrong_wishes_are_explained() {
    for (line, words) in [
        ("--host a:2: x", "entry 1: \"a:2:\" has several colons; write NAME:SLOTS"),
        ("--host a -f b x", "cannot be used with"),
        ("--ppn 0 x", "a whole number is wanted, from 1 to 16,368"),
        ("--ppn 2 --map-by ppr:3:node x", "--ppn 2: --map-by ppr:3:node says another number"),
        (
            "--map-by load x",
            "--map-by load: only a machine that stays knows how busy its hosts are",
        ),
        ("--no-machine --map-by load x", "--map-by load: only a machine"),
        ("--host a,b --map-by load x", "--map-by load: only a machine"),
        ("--map-by site x", "--map-by site: only a machine that stays has sites; start one from"),
        ("--host a,b --map-by site x", "--map-by site: only a machine"),
        ("--host a --start slurm --rsh ssh x", "--rsh: the hosts are not started by such"),
        ("--remote-prefix lib x", "an absolute path is wanted, such as /opt/landeck"),
        ("--host-timeout 0.4 x", "a time from 0.5 to 3600 seconds is wanted, such as 3"),
        ("--host-timeout 61m x", "a time from 0.5 to 3600 seconds is wanted, such as 3"),
        ("--port-range 9-3 x", "two ports are wanted"),
        ("--network eth0 x", "a network is wanted as address/bits, such as 10.1.0.0/16"),
        ("--start rsh x", "possible values: ssh, slurm, by-hand"),
        ("--rsh= x", "a command is wanted, such as ssh"),
    ] {
        let error = settled(line).unwrap_err();
        assert!(error.contains(words), "{line}: {error}");
    }
    let limit = std::env::temp_dir().join(format!("landeck-limit-{}", std::process::id()));
    std::fs::write(&limit, "localhost slots=1 max_slots=2\n").unwrap();
    let error = settled(&format!("-f {} -n 3 x", limit.display())).unwrap_err();
    std::fs::remove_file(&limit).unwrap();
    assert!(error.starts_with("3 processes do not fit: max_slots permits 2"), "{error}");
}

#[test]
fn commands_are_quoted_as_in_a_shell() {
    for (text, words) in [
        ("ssh  -p 2222 ", &["ssh", "-p", "2222"][..]),
        ("ssh -o 'LogLevel ERROR'", &["ssh", "-o", "LogLevel ERROR"]),
        (r#"ssh -o "LogLevel ERROR" x"y z"'"'"#, &["ssh", "-o", "LogLevel ERROR", "xy z\""]),
        (r#"a\ b "\"\n" '' '\'"#, &["a b", r#""\n"#, "", r"\"]),
    ] {
        assert_eq!(command_words(text).unwrap().0, words, "{text}");
    }
    assert!(command_words(" ").unwrap_err().contains("a command is wanted"));
    for text in ["ssh 'x", "\"", "x\\"] {
        assert!(command_words(text).unwrap_err().contains("stands open"), "{text}");
    }
}
