//! `landeck doctor --hostfile`: the reports of several hosts, each by a remote shell that runs `landeck doctor` there.

use landeck_hostfile::HostRequest;
use landeck_hostfile::host_list::is_this_host;
use landeck_launch::hosts_options::PortRange;
use landeck_launch::remote_start::{
    STARTS_AT_ONCE, StartTool, failure_text, find_daemon, last_lines, not_run, quoted,
};
use serde_json::{Value, json};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a host has for its report.
const REPORT_TIME: Duration = Duration::from_secs(40);
/// The beginning of the line with the release of a host's program.
const RELEASE: &str = "landeck-doctor 1 release ";
/// The line that says that a host has no such program.
const NO_PROGRAM: &str = "landeck-doctor 1 no landeck";
/// The line that says that a host has no daemon.
const NO_DAEMON: &str = "landeck-doctor 1 no landeckd";
/// The release of this program.
const OWN_RELEASE: &str = concat!("landeck ", env!("CARGO_PKG_VERSION"));
/// The most bytes that are read from a host.
const REPORT_BYTES_MAX: u64 = 1 << 20;

/// The way to the hosts, and what is checked beyond the usual.
pub(super) struct Remote {
    /// The command that reaches another host; `None` means ssh.
    pub(super) rsh: Option<Vec<String>>,
    /// The folder of Landeck there.
    pub(super) prefix: Option<PathBuf>,
    /// The ports that daemons will use.
    pub(super) ports: Option<PortRange>,
}

/// The report of one host.
#[derive(Debug, PartialEq)]
pub(super) struct HostReport {
    host: String,
    /// The reasons why no job can run there.
    faults: Vec<String>,
    /// The findings of `landeck doctor` there.
    findings: Vec<Value>,
}

impl HostReport {
    /// Whether no job can run there.
    pub(super) fn is_wrong(&self) -> bool {
        !self.faults.is_empty() || self.findings.iter().any(|one| one["health"] == "wrong")
    }
}

impl Remote {
    /// The script that each host runs: the release, what is missing, then the findings.
    fn script(&self, own: Option<PathBuf>, daemon: Option<PathBuf>) -> String {
        let words = |first: Option<PathBuf>, name: &str| {
            let below = self.prefix.as_ref().map(|prefix| prefix.join("bin").join(name));
            let paths = [first, below].into_iter().flatten();
            let mut words: Vec<String> =
                paths.map(|path| quoted(path.as_os_str().as_bytes())).collect();
            words.push(name.to_owned());
            words.join(" ")
        };
        let ports = self.ports.map_or_else(String::new, |range| format!(" --port-range {range}"));
        let is_there = "command -v \"$p\" >/dev/null 2>&1";
        format!(
            "d=; for p in {}; do if {is_there}; then d=$p; break; fi; done; \
             [ \"$d\" ] || echo {NO_DAEMON}; \
             for p in {}; do if {is_there}; then echo \"{RELEASE}$(\"$p\" --version)\"; \
             exec \"$p\" doctor --json{ports}; fi; done; echo {NO_PROGRAM}",
            words(daemon, "landeckd"),
            words(own, "landeck"),
        )
    }

    fn command(&self, host: &HostRequest, own_host: &str, script: &str) -> (String, Command) {
        if is_this_host(&host.name, own_host) {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]);
            return ("sh".to_owned(), shell);
        }
        let tool = self.rsh.clone().map_or(StartTool::Ssh, StartTool::Rsh);
        tool.command(&[&host.target()], script)
    }
}

/// Examines these hosts, many at the same time.
pub(super) fn examine_all(remote: &Remote, hosts: &[HostRequest]) -> Vec<HostReport> {
    let script = remote.script(std::env::current_exe().ok(), find_daemon());
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let examine = |host: &HostRequest| {
        let (tool, command) = remote.command(host, &own, &script);
        match answer_of(&tool, command) {
            Ok(text) => report_of(host, &tool, &text, OWN_RELEASE),
            Err((what, said)) => HostReport {
                host: host.name.clone(),
                faults: vec![failure_text(
                    &host.name,
                    &host.target(),
                    &what,
                    &last_lines(&said).join("\n"),
                    None,
                )],
                findings: Vec::new(),
            },
        }
    };
    let mut reports = Vec::new();
    for some in hosts.chunks(STARTS_AT_ONCE) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|host| scope.spawn(|| examine(host))).collect();
            let ended = threads.into_iter().filter_map(|thread| thread.join().ok());
            reports.extend(ended);
        });
    }
    reports
}

/// Runs a remote shell for a limited time, and returns its standard output; else what happened, and what it said.
fn answer_of(tool: &str, mut command: Command) -> Result<String, (String, String)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Keys pressed at the terminal must not signal the remote shell.
    let mut child = command
        .process_group(0)
        .spawn()
        .map_err(|error| (format!("\"{tool}\" cannot be started: {error}"), String::new()))?;
    let until = Instant::now() + REPORT_TIME;
    let (sender, receiver) = mpsc::channel();
    read_apart(child.stdout.take(), Stream::Output, &sender);
    read_apart(child.stderr.take(), Stream::Errors, &sender);
    drop(sender);
    let (mut output, mut errors) = (None, Vec::new());
    loop {
        match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok((Stream::Output, bytes)) => output = Some(bytes),
            Ok((Stream::Errors, bytes)) => errors = bytes,
            Err(_) => break,
        }
    }
    let said = String::from_utf8_lossy(&errors).into_owned();
    let Some(output) = output else {
        let _ = child.kill();
        let _ = child.wait();
        return Err((format!("no report has come within {} s", REPORT_TIME.as_secs()), said));
    };
    // The exit code of `landeck doctor` is 1 if something is wrong, which its findings say.
    match child.wait() {
        Ok(status) if status.success() || !output.is_empty() => {
            Ok(String::from_utf8_lossy(&output).into_owned())
        }
        Ok(status) => Err((format!("{tool} ended with {status}"), said)),
        Err(error) => Err((error.to_string(), said)),
    }
}

#[derive(Clone, Copy)]
enum Stream {
    Output,
    Errors,
}

/// Reads a stream to its end in a thread. A remote shell that leaves it open holds up that thread alone.
fn read_apart(
    stream: Option<impl Read + Send + 'static>,
    which: Stream,
    sender: &mpsc::Sender<(Stream, Vec<u8>)>,
) {
    let (Some(stream), sender) = (stream, sender.clone()) else { return };
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before a failure counts.
        let _ = stream.take(REPORT_BYTES_MAX).read_to_end(&mut bytes);
        let _ = sender.send((which, bytes));
    });
}

/// The report in what a host has written. A greeting of its shell may stand in front of it.
fn report_of(asked: &HostRequest, tool: &str, text: &str, own_release: &str) -> HostReport {
    let host = &asked.name;
    let mut faults = Vec::new();
    let mut has_program = false;
    for line in text.lines() {
        if let Some((_, release)) = line.split_once(RELEASE) {
            has_program = true;
            if release.trim() != own_release {
                faults.push(format!(
                    "host {host} has release \"{}\", and this host \"{own_release}\": install one release on all hosts",
                    release.trim()
                ));
            }
        }
        if line.ends_with(NO_DAEMON) {
            faults.push(format!(
                "host {host}: there is no landeckd, neither where it is on this host nor in PATH. Install Landeck \
                 there, or name its folder with --remote-prefix"
            ));
        }
        if line.ends_with(NO_PROGRAM) {
            faults.push(format!("host {host}: there is no landeck, so nothing else was checked"));
        }
    }
    let own = text.find(RELEASE).map(|at| &text[at..]);
    let findings = own.and_then(|own| Some(serde_json::from_str(&own[own.find("\n[")?..])));
    let findings: Vec<Value> = findings.and_then(Result::ok).unwrap_or_default();
    if findings.is_empty() && faults.is_empty() {
        let what = if has_program { "its landeck doctor" } else { "its remote shell" };
        let what = format!("{what} has written no report");
        let (said, target) = (last_lines(text).join("\n"), asked.target());
        let usual = (!has_program).then(|| not_run(tool, &target));
        faults.push(failure_text(host, &target, &what, &said, usual));
    }
    HostReport { host: host.clone(), faults, findings }
}

/// The reports as lines that begin with their hosts. What is good is counted.
pub(super) fn as_text(reports: &[HostReport]) -> String {
    let mut text = String::new();
    for HostReport { host, faults, findings } in reports {
        for fault in faults {
            let fault = fault.replace('\n', &format!("\n{host}:         "));
            text += &format!("{host}:  WRONG   {fault}\n");
        }
        let word = |finding: &Value, key: &str| finding[key].as_str().unwrap_or("").to_owned();
        let mut good = 0;
        for finding in findings {
            let sign = match finding["health"].as_str() {
                Some("good") => {
                    good += 1;
                    continue;
                }
                Some("lacking") => "lacking",
                _ => " WRONG ",
            };
            let (subject, found) = (word(finding, "subject"), word(finding, "found"));
            let consequence = word(finding, "consequence");
            text += &format!("{host}: {sign}  {subject:<17} {found}; {consequence}\n");
        }
        if !findings.is_empty() {
            text += &format!("{host}:    good  {good} of {} checks\n", findings.len());
        }
    }
    let wrong = reports.iter().filter(|report| report.is_wrong()).count();
    text + &match wrong {
        0 => format!("Jobs can run on all {} hosts.\n", reports.len()),
        _ => format!("Jobs cannot run on {wrong} of {} hosts.\n", reports.len()),
    }
}

/// The reports for programs.
pub(super) fn as_json(reports: &[HostReport]) -> String {
    let report = |HostReport { host, faults, findings }: &HostReport| json!({ "host": host, "faults": faults, "findings": findings });
    format!("{:#}\n", reports.iter().map(report).collect::<Value>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "landeck 0.1.0";
    const GOOD: &str =
        r#"[{"subject": "kernel", "health": "good", "found": "6.1", "consequence": "none"}]"#;

    fn report_of(host: &str, text: &str, own_release: &str) -> HostReport {
        super::report_of(&HostRequest::new(host, 1), "ssh", text, own_release)
    }

    #[test]
    fn a_host_with_the_same_release_is_good() {
        let text = format!("Welcome to n2\n[motd] be kind\n{RELEASE}{OWN}\n{GOOD}\n");
        let report = report_of("n2", &text, OWN);
        assert!(!report.is_wrong(), "{report:?}");
        assert_eq!(
            as_text(&[report]),
            "n2:    good  1 of 1 checks\nJobs can run on all 1 hosts.\n"
        );
    }

    #[test]
    fn a_missing_program_or_report_of_a_host_is_named() {
        let faults = |text: &str| report_of("n2", text, OWN).faults.join("\n");
        assert!(faults(&format!("{RELEASE}landeck 0.0.9\n{GOOD}\n")).contains("one release"));
        let missing = faults(&format!("{NO_DAEMON}\n{RELEASE}{OWN}\n{GOOD}\n"));
        assert!(missing.contains("there is no landeckd"), "{missing}");
        assert!(faults(&format!("{NO_PROGRAM}\n")).contains("there is no landeck,"));
        let silent = faults("\nThis account is currently not available.\n");
        let wanted = "host n2: its remote shell has written no report\n  This account is currently not available.\n  The \
                      command was not run there";
        assert!(silent.starts_with(wanted) && silent.ends_with("ssh n2 true"), "{silent}");
        let report = report_of("n2", "", OWN);
        assert!(!as_text(&[report]).contains("checks"));
        let wrong = GOOD.replace("good", "wrong");
        let report = report_of("n2", &format!("{RELEASE}{OWN}\n{wrong}\n"), OWN);
        assert!(report.is_wrong());
        let text = as_text(&[report]);
        assert!(text.starts_with("n2:  WRONG   kernel            6.1; none\n"), "{text}");
        assert!(text.ends_with("Jobs cannot run on 1 of 1 hosts.\n"), "{text}");
    }

    #[test]
    fn a_remote_shell_runs_the_script() {
        let rsh = ["sh", "-c", "shift 0; eval \"$1\""].map(String::from);
        let remote = Remote { rsh: Some(rsh.to_vec()), prefix: None, ports: None };
        let script = remote.script(Some("/nowhere/landeck".into()), None);
        // The shell takes the host as its name, and the line as its argument.
        let (tool, mut command) = remote.command(&HostRequest::new("far-away", 1), "n1", &script);
        command.env("PATH", "/usr/bin:/bin");
        let text = answer_of(&tool, command).unwrap();
        assert!(text.contains(NO_PROGRAM) && text.contains(NO_DAEMON), "{text}");
        let (what, _) = answer_of("no", Command::new("/no/such/shell")).unwrap_err();
        assert!(what.contains("cannot be started"), "{what}");
    }
}
