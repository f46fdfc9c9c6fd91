//! Random deaths for some minutes: `LANDECK_SOAK=1`, and `LANDECK_SEED` for the deaths of an earlier run.

use super::*;
use landeck_testing::Random;

/// How long it goes on.
const SOAK_TIME: Duration = Duration::from_secs(300);
/// Each kind of death must have come this often.
const EACH_MIN: u32 = 20;

/// The kinds of deaths, and the exit code of the run if it must be one.
const KINDS: [(&str, Option<i32>); 6] = [
    ("a process", Some(137)),
    ("a guardian", Some(137)),
    ("a guardian server", Some(137)),
    ("a daemon", Some(137)),
    ("a launcher", None),
    ("a host", Some(137)),
];

#[test]
fn random_deaths_leave_nothing() {
    if !is_soak() {
        return;
    }
    let test = "random_deaths_leave_nothing";
    let Some(mut cluster) = Cluster::wished(test, &Wish::hosts(3)) else { return };
    let seed = std::env::var("LANDECK_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("LANDECK_SEED={seed}");
    let mut random = Random::new(seed);
    let mut counts = [0; KINDS.len()];
    let began = Instant::now();
    let mut round = 0;
    while began.elapsed() < SOAK_TIME || counts.iter().any(|count| *count < EACH_MIN) {
        // The kinds take turns, so that none is rare; all else is by chance.
        let kind = round % KINDS.len();
        round += 1;
        let host = random.below(3) as usize;
        let is_far_host = kind != 5 || host > 0;
        if !is_far_host {
            continue;
        }
        one_death(&mut cluster, kind, host, &mut random);
        counts[kind] += 1;
        if began.elapsed() > SOAK_TIME * 3 {
            break;
        }
    }
    for ((kind, _), count) in KINDS.iter().zip(counts) {
        println!("{kind}: {count} deaths");
        assert!(count >= EACH_MIN, "{kind}: only {count} deaths");
    }
}

/// Starts a job, kills something after a while, and checks the end.
fn one_death(cluster: &mut Cluster, kind: usize, host: usize, random: &mut Random) {
    let arguments =
        ["run", "--rsh", "landeck-rsh", "--host", "n1:2,n2:2,n3:2", "--host-timeout", "0.5"];
    let script = "echo ready; while :; do echo $RANK; sleep 0.05; done";
    let running = start(&mut cluster.landeck(&[&arguments[..], &["sh", "-c", script]].concat()));
    running.out.wait_for("six processes", |text| text.matches("ready\n").count() == 6);
    thread::sleep(Duration::from_millis(random.below(200)));
    let name = match kind {
        0 => "sh",
        1 => "landeck-guard",
        2 => "landeck-server",
        3 => "landeckd",
        4 => "landeck",
        _ => "",
    };
    let host = if kind == 4 { 0 } else { host };
    if name.is_empty() {
        cluster.hosts.kill(host).unwrap();
    } else {
        let mut all = cluster.processes(host);
        all.retain(|process| process.name == name && !cluster.before[host].contains(&process.pid));
        all.retain(|process| kind != 0 || process.line.contains("echo ready; while"));
        // The remote shell is a shell with the same words in its line; a process of the job has no child of its own kind.
        let at = random.below(all.len() as u64) as usize;
        let pid =
            all.get(at).unwrap_or_else(|| panic!("no {name}: {:?}", cluster.processes(host))).pid;
        let _ = cluster.hosts.command(host, "kill").args(["-9", &pid.to_string()]).status();
    }
    let died = Instant::now();
    let ended = running.end();
    let (kind, code) = KINDS[kind];
    assert!(died.elapsed() < Duration::from_secs(20), "{kind} on host {host}: {ended:?}");
    if let Some(code) = code {
        assert_eq!(ended.status.code(), Some(code), "{kind} on host {host}: {ended:?}");
    }
    if name.is_empty() {
        (0..3)
            .filter(|other| *other != host)
            .for_each(|other| cluster.assert_nothing_left_on(other));
        cluster.hosts.start(host).unwrap();
        cluster.note_processes(host);
    }
    cluster.assert_nothing_left();
}
