//! The state of a machine as a table, and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use landeck_host::report::{decimal_size, duration};
use landeck_launch::machine::{HostStatus, JobHost, JobStatus, LinkStatus, MachineStatus};
use landeck_wire::HostNumber;
use serde_json::{Value, json};

use super::size;

/// The headings of the columns.
const HEADINGS: [&str; 13] = [
    "HOST",
    SITE,
    "STATE",
    "SINCE",
    "CORES",
    "PROCESSES",
    "JOBS",
    "RUNNING",
    "LOAD",
    "FREE MEMORY",
    "CPU%",
    "MEM%",
    "DISK%",
];

/// The heading of a column that only machines with sites have.
const SITE: &str = "SITE";

/// The state of a machine as text.
pub(super) fn table(status: &MachineStatus) -> String {
    let hosts: Vec<&HostStatus> = status.hosts.iter().collect();
    let mut text = table_of(status, &hosts);
    for link in &status.links {
        let [one, other] = ends(status, link);
        let _ = writeln!(text, "  link {one} - {other}: {}", figures(link));
    }
    for job in &status.jobs {
        let hosts = job.hosts.iter().map(|host| format!("{}:{}", host.name, host.processes));
        let age = duration(Duration::from_millis(job.age_ms));
        let hosts = hosts.collect::<Vec<_>>().join(",");
        let _ = writeln!(text, "  job {} on {hosts}, for {age}", job.name);
    }
    text
}

/// The hosts of a machine as text, those with the most busy tasks for each core first.
pub(super) fn busiest_first(status: &MachineStatus) -> String {
    let mut hosts: Vec<&HostStatus> = status.hosts.iter().collect();
    hosts.sort_by_key(|host| {
        let running = host.load.map(|load| load.running_hundredths / u32::from(host.cores.max(1)));
        std::cmp::Reverse(running)
    });
    table_of(status, &hosts)
}

/// These hosts of a machine as text.
fn table_of(status: &MachineStatus, hosts: &[&HostStatus]) -> String {
    let mut text = format!("{}: {}, release {}\n", status.name, size(status), status.release);
    let rows: Vec<[String; HEADINGS.len()]> =
        hosts.iter().map(|host| cells(status, host)).collect();
    let longest = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let has_sites = hosts.iter().any(|host| !host.site.is_empty());
    let shown = (0..HEADINGS.len()).filter(|at| has_sites || HEADINGS[*at] != SITE);
    let widths: Vec<(usize, usize)> =
        shown.map(|at| (at, longest(at).max(HEADINGS[at].len()))).collect();
    let line = |cells: &[String], why: &str| {
        let padded = widths.iter().map(|(at, width)| format!("  {:<width$}", cells[*at]));
        let whole = padded.collect::<String>() + "  " + why;
        whole.trim_end().to_owned() + "\n"
    };
    text += &line(&HEADINGS.map(str::to_owned), "");
    for (row, host) in rows.iter().zip(hosts) {
        text += &line(row, &host.why);
    }
    text
}

/// The cells of a host, one for each column. A host without a load has a dash for each of its figures.
fn cells(status: &MachineStatus, host: &HostStatus) -> [String; HEADINGS.len()] {
    let hundredths = |value: u32| format!("{:.1}", f64::from(value) / 1e2);
    let gib = |kib: u64| format!("{:.1}", kib as f64 / f64::from(1 << 20));
    let none = || "-".to_owned();
    let pressure = host.load.and_then(|load| load.pressure);
    let percent = |value: Option<u32>| {
        value.map_or_else(none, |value| format!("{:.0}", f64::from(value) / 1e2))
    };
    [
        host.name.clone(),
        host.site.clone() + if host.is_gateway { " (gateway)" } else { "" },
        host.state.as_str().to_owned(),
        duration(Duration::from_millis(host.since_ms)),
        host.cores.to_string(),
        host.processes.to_string(),
        jobs_on(status, host).count().to_string(),
        host.load.map_or_else(none, |load| hundredths(load.running_hundredths)),
        host.load.map_or_else(none, |load| hundredths(load.average_hundredths)),
        host.load.map_or_else(none, |load| {
            format!("{} of {} GiB", gib(load.available_kib), gib(load.memory_kib))
        }),
        percent(pressure.map(|pressure| pressure.processor)),
        percent(pressure.map(|pressure| pressure.memory)),
        percent(pressure.map(|pressure| pressure.disk)),
    ]
}

/// The jobs with processes on a host.
fn jobs_on<'a>(
    status: &'a MachineStatus,
    host: &HostStatus,
) -> impl Iterator<Item = &'a JobStatus> {
    let number = host.number;
    status.jobs.iter().filter(move |job| job.hosts.iter().any(|its| its.number == number))
}

/// The names of the hosts of a link.
fn ends<'a>(status: &'a MachineStatus, link: &LinkStatus) -> [&'a str; 2] {
    [name_of(status, link.hosts.0), name_of(status, link.hosts.1)]
}

/// The sites with their hosts, and the gateways, behind a comma each; nothing for a machine without them.
pub(super) fn sites_and_gateways(status: &MachineStatus) -> String {
    let mut sites: Vec<(&str, Vec<&str>)> = Vec::new();
    for host in status.hosts.iter().filter(|host| !host.site.is_empty()) {
        match sites.iter_mut().find(|(site, _)| *site == host.site) {
            Some((_, hosts)) => hosts.push(&host.name),
            None => sites.push((&host.site, vec![&host.name])),
        }
    }
    let gateways = status.hosts.iter().filter(|host| host.is_gateway);
    let gateways: Vec<&str> = gateways.map(|host| host.name.as_str()).collect();
    let mut text = String::new();
    if !sites.is_empty() {
        let each: Vec<String> =
            sites.iter().map(|(site, hosts)| format!("{site}: {}", hosts.join(" "))).collect();
        let plural = if sites.len() == 1 { "" } else { "s" };
        let _ = write!(text, ", {} site{plural} ({})", sites.len(), each.join("; "));
    }
    if !gateways.is_empty() {
        let plural = if gateways.len() == 1 { "" } else { "s" };
        let _ = write!(text, ", gateway{plural} {}", gateways.join(" "));
    }
    text
}

/// The name of a host.
pub(super) fn name_of(status: &MachineStatus, number: HostNumber) -> &str {
    let known = status.hosts.iter().find(|host| host.number == number);
    known.map_or("", |host| host.name.as_str())
}

/// The figures of the link between two hosts, if a job has had it measured.
pub(super) fn figures_between(
    status: &MachineStatus,
    one: HostNumber,
    other: HostNumber,
) -> Option<String> {
    let is_it = |link: &&LinkStatus| [(one, other), (other, one)].contains(&link.hosts);
    status.links.iter().find(is_it).map(figures)
}

/// The latency of a link in seconds, and its rate in bytes for each second, if they were found.
fn latency_and_rate(link: &LinkStatus) -> [Option<f64>; 2] {
    let seconds = |ps: u64| ps as f64 / 1e12;
    [link.sight.latency_ps.map(seconds), link.sight.kib_ps.map(|ps| 1024.0 / seconds(ps))]
}

fn figures(link: &LinkStatus) -> String {
    let [latency_s, rate] = latency_and_rate(link);
    let latency = latency_s.map(|seconds| format!("{:.0} us", seconds * 1e6));
    let rate = rate.map(|rate| format!("{}/s", decimal_size(rate as u64)));
    latency.into_iter().chain(rate).collect::<Vec<_>>().join(", ")
}

/// The state of a machine for programs.
pub(super) fn value(status: &MachineStatus) -> Value {
    let link = |link: &LinkStatus| {
        let [latency_s, bytes_per_s] = latency_and_rate(link);
        json!({
            "hosts": ends(status, link),
            "latency_s": latency_s,
            "bytes_per_s": bytes_per_s,
        })
    };
    let job = |job: &JobStatus| {
        let host = |host: &JobHost| json!({"name": host.name, "processes": host.processes});
        let hosts = job.hosts.iter().map(host);
        json!({
            "job": job.job.to_string(),
            "name": job.name,
            "age_s": job.age_ms as f64 / 1e3,
            "hosts": hosts.collect::<Vec<_>>(),
        })
    };
    json!({
        "name": status.name.to_string(),
        "release": status.release,
        "hosts": status.hosts.iter().map(|host| host_value(status, host)).collect::<Vec<_>>(),
        "links": status.links.iter().map(link).collect::<Vec<_>>(),
        "jobs": status.jobs.iter().map(job).collect::<Vec<_>>(),
    })
}

fn host_value(status: &MachineStatus, host: &HostStatus) -> Value {
    let hundredths = |value: u32| f64::from(value) / 1e2;
    let pressure = |value: u32| json!({"some_percent_10_s": hundredths(value)});
    let load = host.load.map(|load| {
        json!({
            "running": hundredths(load.running_hundredths),
            "average": hundredths(load.average_hundredths),
            "memory_bytes": load.memory_kib << 10,
            "free_memory_bytes": load.available_kib << 10,
            "pressure": load.pressure.map(|its| json!({
                "processor": pressure(its.processor),
                "memory": pressure(its.memory),
                "disk": pressure(its.disk),
            })),
        })
    });
    json!({
        "number": host.number.0,
        "name": host.name,
        "state": host.state.as_str(),
        "site": host.site,
        "is_gateway": host.is_gateway,
        "since_s": host.since_ms as f64 / 1e3,
        "cores": host.cores,
        "processes": host.processes,
        "jobs": jobs_on(status, host).map(|job| job.name.as_str()).collect::<Vec<_>>(),
        "load": load,
        "why": host.why,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use landeck_launch::machine::{HostLoad, HostPressure, HostState, LinkSight};
    use landeck_wire::JobId;

    /// A machine with a busy host and a lost one, which share a job.
    pub(in super::super) fn machine() -> MachineStatus {
        let host = |number: u16, name: &str| HostStatus {
            number: HostNumber(number),
            name: name.to_owned(),
            state: HostState::Up,
            since_ms: 90_000,
            cores: 4,
            processes: 3,
            why: String::new(),
            load: None,
            site: String::new(),
            is_gateway: false,
            networks: Vec::new(),
        };
        let load = HostLoad {
            running_hundredths: 250,
            average_hundredths: 104,
            memory_kib: 16 << 20,
            available_kib: 3 << 19,
            pressure: Some(HostPressure { processor: 5_040, memory: 0, disk: 149 }),
        };
        let sight = LinkSight { latency_ps: Some(31_400_000), gap_ps: None, kib_ps: Some(853_333) };
        let lost = HostStatus {
            state: HostState::Lost,
            why: "no answer for 12.0 s, gone in 49.0 s".to_owned(),
            ..host(1, "bob")
        };
        let part = |number, name: &str| JobHost {
            number: HostNumber(number),
            name: name.to_owned(),
            processes: 3,
        };
        MachineStatus {
            name: "lab".parse().unwrap(),
            release: "0.1.0".to_owned(),
            hosts: vec![HostStatus { load: Some(load), ..host(0, "adalovelace") }, lost],
            links: vec![LinkStatus { hosts: (HostNumber(0), HostNumber(1)), sight }],
            jobs: vec![JobStatus {
                job: JobId(7),
                name: "heat".to_owned(),
                hosts: vec![part(0, "adalovelace"), part(1, "bob")],
                age_ms: 3_000,
            }],
        }
    }

    #[test]
    fn the_table_has_hosts_with_their_load_links_and_jobs() {
        let expected = "\
lab: 1 host, 4 processors, release 0.1.0
  HOST         STATE  SINCE   CORES  PROCESSES  JOBS  RUNNING  LOAD  FREE MEMORY      CPU%  MEM%  DISK%
  adalovelace  up     90.0 s  4      3          1     2.5      1.0   1.5 of 16.0 GiB  50    0     1
  bob          lost   90.0 s  4      3          1     -        -     -                -     -     -      no answer for 12.0 s, gone in 49.0 s
  link adalovelace - bob: 31 us, 1.2 GB/s
  job heat on adalovelace:3,bob:3, for 3.0 s
";
        assert_eq!(table(&machine()), expected);
    }

    #[test]
    fn the_busiest_hosts_come_first_and_those_without_a_load_last() {
        let mut machine = machine();
        let load = machine.hosts[0].load.unwrap();
        let busier = HostLoad { running_hundredths: load.running_hundredths + 4, ..load };
        let carol = HostStatus { name: "carol".to_owned(), ..machine.hosts[0].clone() };
        machine.hosts.push(HostStatus { load: Some(busier), ..carol });
        let text = busiest_first(&machine);
        let first_words = text.lines().map(|line| line.split_whitespace().next().unwrap());
        let wanted = ["lab:", "HOST", "carol", "adalovelace", "bob"];
        assert_eq!(first_words.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn programs_get_numbers_with_their_units() {
        let value = value(&machine());
        let host = &value["hosts"][0];
        assert_eq!(host["load"]["running"], 2.5);
        assert_eq!(host["load"]["free_memory_bytes"], 3_u64 << 29);
        assert_eq!(host["load"]["pressure"]["processor"]["some_percent_10_s"], 50.4);
        assert_eq!(host["jobs"], json!(["heat"]));
        assert_eq!(value["hosts"][1]["load"], Value::Null);
        assert_eq!(value["links"][0]["hosts"], json!(["adalovelace", "bob"]));
        assert_eq!(value["links"][0]["latency_s"], 31.4e-6);
    }
}
