//! A machine of `landeck vm start` that stands on the hosts while a candidate has its turn.

use std::time::Duration;

use crate::candidate::{Candidate, Places};
use crate::cluster::{Cluster, REMOTE_SHELL};
use crate::launch;

/// The name of the machine.
pub(crate) const NAME: &str = "bench";
/// The variable by which jobs find it.
pub(crate) const VARIABLE: &str = "LANDECK_MACHINE";
/// The file that describes it, on the first host.
const FILE: &str = "/tmp/bench.toml";
/// A command about a machine that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A machine, until this is dropped.
#[derive(Debug)]
pub(crate) struct Standing<'a> {
    cluster: &'a Cluster,
    places: &'a Places,
}

impl<'a> Standing<'a> {
    /// Starts a machine of the first hosts.
    ///
    /// # Errors
    /// When a host does not join.
    pub(crate) fn start(
        cluster: &'a Cluster,
        places: &'a Places,
        hosts: u32,
    ) -> Result<Self, String> {
        let standing = Standing { cluster, places };
        let others = (2..=hosts).map(|host| format!("n{host}")).collect::<Vec<_>>().join(" ");
        let words = format!("start --name {NAME} --all --rsh {REMOTE_SHELL} {others}");
        standing.call(&words).map(|_| standing)
    }

    /// Starts a machine from a file that describes it: on the first host, and on all others that the file names.
    ///
    /// # Errors
    /// When a host does not join.
    pub(crate) fn start_described(
        cluster: &'a Cluster,
        places: &'a Places,
        description: &str,
    ) -> Result<Self, String> {
        const WRITE: &str = r#"printf %s "$0" >"$1""#;
        let words = ["/bin/sh", "-c", WRITE, description, FILE].map(str::to_owned);
        let written = launch::run(&mut cluster.on_first(&words)?, TIMEOUT);
        written.trouble.map_or(Ok(()), |trouble| Err(format!("{FILE}: {trouble}")))?;
        let standing = Standing { cluster, places };
        let words = format!("start --name {NAME} --all --rsh {REMOTE_SHELL} {FILE}");
        standing.call(&words).map(|_| standing)
    }

    /// From the start of the command that adds a host to its end.
    ///
    /// # Errors
    /// When the host does not join.
    pub(crate) fn add(&self, host: &str) -> Result<Duration, String> {
        self.call(&format!("add --rsh {REMOTE_SHELL} {host}"))
    }

    /// Runs a command about the machine on the first host, and returns its time.
    fn call(&self, words: &str) -> Result<Duration, String> {
        let launcher = self.places.launcher(Candidate::LandeckMachine).display().to_string();
        let all = [launcher.as_str(), "vm"].into_iter().chain(words.split_whitespace());
        let mut command = self.cluster.on_first(&all.map(str::to_owned).collect::<Vec<_>>())?;
        self.places.set_environment(Candidate::LandeckMachine, &mut command);
        command.env_remove(VARIABLE);
        let outcome = launch::run(&mut command, TIMEOUT);
        match outcome.trouble {
            Some(trouble) => Err(format!("landeck vm {words}: {trouble}")),
            None => Ok(outcome.wall),
        }
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        // It may be gone with its hosts, after a launch that hung.
        let _ = self.call("stop --now");
    }
}

/// The processor time and the memory of the daemon of one host, with the process that forks its guardians.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DaemonUse {
    pub(crate) processor_ns: u64,
    pub(crate) resident_kib: u64,
}

/// Prints two kinds of lines for a daemon and for the process that forks its guardians: of each thread the time on a processor, the time of
/// waiting for one and the number of turns, and `VmRSS:` with the resident memory.
const SHOW_DAEMONS: &str = r#"
    for process in /proc/[0-9]*; do
        read -r name 2>/dev/null <$process/comm || continue
        case $name in landeckd | landeck-server) ;; *) continue ;; esac
        cat $process/task/*/schedstat
        grep VmRSS: $process/status
    done"#;

impl DaemonUse {
    /// Looks at the daemon of a host, by its place in the cluster.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn of(cluster: &Cluster, host: usize) -> Result<DaemonUse, String> {
        let words = ["/bin/sh", "-c", SHOW_DAEMONS].map(str::to_owned);
        let output = cluster.on(host, &words)?.output().map_err(|error| error.to_string())?;
        let found = DaemonUse::parse(&String::from_utf8_lossy(&output.stdout));
        found.ok_or_else(|| format!("there is no landeckd on host n{}", host + 1))
    }

    /// The sum over all processes and threads; none if there is no process.
    fn parse(text: &str) -> Option<DaemonUse> {
        let mut sum = DaemonUse::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match (words.next()?, words.next()) {
                ("VmRSS:", Some(kib)) => sum.resident_kib += kib.parse::<u64>().ok()?,
                (processor_ns, _) => sum.processor_ns += processor_ns.parse::<u64>().ok()?,
            }
        }
        (sum.resident_kib > 0).then_some(sum)
    }

    /// The share of a processor that was used since an earlier look, in percent.
    pub(crate) fn share_since(&self, earlier: &DaemonUse, time: Duration) -> f64 {
        let used_ns = self.processor_ns.saturating_sub(earlier.processor_ns);
        100.0 * used_ns as f64 / time.as_nanos() as f64
    }

    pub(crate) fn resident_mib(&self) -> f64 {
        self.resident_kib as f64 / 1_024.0
    }
}

/// The words that run a command so many times, one after the other, in a shell.
pub(crate) fn repeated(times: u32, words: &[String]) -> Vec<String> {
    const LOOP: &str = r#"i=0; while [ $i -lt "$0" ]; do "$@" || exit; i=$((i + 1)); done"#;
    let shell = ["/bin/sh".to_owned(), "-c".to_owned(), LOOP.to_owned(), times.to_string()];
    shell.into_iter().chain(words.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_use_of_all_processes_of_a_daemon_adds_up() {
        let text =
            "5000000 77 3\n2000000 1 1\nVmRSS:\t    9000 kB\n1000000 0 2\nVmRSS:\t    1240 kB\n";
        let found = DaemonUse::parse(text).unwrap();
        assert_eq!(found, DaemonUse { processor_ns: 8_000_000, resident_kib: 10_240 });
        assert_eq!(found.resident_mib(), 10.0);
        let earlier = DaemonUse { processor_ns: 3_000_000, ..found };
        assert_eq!(found.share_since(&earlier, Duration::from_secs(1)), 0.5);
        assert_eq!(DaemonUse::parse(""), None);
        assert_eq!(DaemonUse::parse("cat: no such file\nVmRSS: 1 kB\n"), None);
    }

    #[test]
    fn a_repeated_command_ends_with_its_first_failure() {
        let run = |script: &str| {
            let words = repeated(3, &["/bin/sh", "-c", script].map(str::to_owned));
            let mut command = std::process::Command::new(&words[0]);
            let output = command.args(&words[1..]).output().unwrap();
            (output.status.code(), String::from_utf8(output.stdout).unwrap())
        };
        assert_eq!(run("echo a"), (Some(0), "a\na\na\n".to_owned()));
        assert_eq!(run("echo a; exit 3"), (Some(3), "a\n".to_owned()));
    }
}
