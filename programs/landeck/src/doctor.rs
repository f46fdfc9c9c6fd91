//! `landeck doctor`: a report on this host's features and lacks.

mod hosts;

use crate::hosts::{HostsError, RshWords, command_words, ports, read_hostfile};
use clap::Args;
use landeck_host::say::{SayError, say};
use landeck_launch::examination::{Health, HostFinding, examine};
use landeck_launch::hosts_options::PortRange;
use serde_json::json;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;

/// Check this host: the features that jobs can use, those that it lacks, and the consequences.
///
/// The checks try each feature if possible. Exit code: 0 if jobs can run, 1 if something is wrong.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// Check the hosts in this file instead, each by a remote shell
    #[arg(short = 'f', long, value_name = "FILE")]
    hostfile: Option<PathBuf>,
    /// The command that reaches another host, with its options [default: ssh]
    #[arg(long, value_name = "COMMAND", value_parser = command_words, requires = "hostfile")]
    rsh: Option<RshWords>,
    /// The folder of Landeck on the other hosts [default: this one's]
    #[arg(long, value_name = "DIRECTORY", requires = "hostfile")]
    remote_prefix: Option<PathBuf>,
    /// Check that daemons can listen at these ports
    #[arg(long, value_name = "FIRST-LAST", value_parser = ports)]
    port_range: Option<PortRange>,
}

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DoctorError {
    #[error(transparent)]
    Hosts(#[from] HostsError),
    #[error(transparent)]
    Say(#[from] SayError),
}

impl DoctorArguments {
    /// Prints the report.
    pub(crate) fn run(&self) -> Result<ExitCode, DoctorError> {
        if let Some(path) = &self.hostfile {
            let reports = hosts::examine_all(&self.remote(), &read_hostfile(path)?);
            let text = if self.json { hosts::as_json(&reports) } else { hosts::as_text(&reports) };
            say(&text)?;
            let is_wrong = reports.iter().any(hosts::HostReport::is_wrong);
            return Ok(ExitCode::from(u8::from(is_wrong)));
        }
        let mut findings = examine();
        findings.extend(self.port_range.map(free_ports));
        let text = if self.json { as_json(&findings) } else { as_text(&findings) };
        say(&text)?;
        let is_wrong = findings.iter().any(|finding| finding.health == Health::Wrong);
        Ok(ExitCode::from(u8::from(is_wrong)))
    }

    fn remote(&self) -> hosts::Remote {
        hosts::Remote {
            rsh: self.rsh.clone().map(|RshWords(words)| words),
            prefix: self.remote_prefix.clone(),
            ports: self.port_range,
        }
    }
}

/// Tries to listen at each of these ports.
fn free_ports(range: PortRange) -> HostFinding {
    let all = u32::from(range.last) - u32::from(range.first) + 1;
    let is_free = |port: &u16| TcpListener::bind(("0.0.0.0", *port)).is_ok();
    let free = (range.first..=range.last).filter(is_free).count();
    let found = format!("{free} of the {all} ports {range} are free");
    let (health, consequence) = match free {
        0 => (Health::Wrong, "no daemon can listen there; give another --port-range"),
        _ => (Health::Good, "none"),
    };
    HostFinding { subject: "ports", health, found, consequence: consequence.to_owned() }
}

fn as_text(findings: &[HostFinding]) -> String {
    let count = |health| findings.iter().filter(|finding| finding.health == health).count();
    let lines = findings.iter().map(|HostFinding { subject, health, found, consequence }| {
        let sign = match health {
            Health::Good => "    good",
            Health::Lacking => " lacking",
            Health::Wrong => "  WRONG ",
        };
        let first = format!("{sign}  {subject:<17} {found}\n");
        match (*health, consequence.as_str()) {
            (Health::Good, "none") => first,
            _ => format!("{first}{:28}{consequence}\n", ""),
        }
    });
    let lines: String = lines.collect();
    let end = match (count(Health::Wrong), count(Health::Lacking)) {
        (0, 0) => "Nothing is wrong.".to_owned(),
        (0, lacking) => format!("Nothing is wrong; {lacking} could be better."),
        (wrong, lacking) => format!("{wrong} wrong, {lacking} could be better."),
    };
    format!("{lines}{end}\n")
}

fn as_json(findings: &[HostFinding]) -> String {
    let finding = |finding: &HostFinding| {
        json!({
            "subject": finding.subject,
            "health": finding.health.as_str(),
            "found": finding.found,
            "consequence": finding.consequence,
        })
    };
    format!("{:#}\n", findings.iter().map(finding).collect::<serde_json::Value>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(health: Health) -> HostFinding {
        let (found, consequence) = ("this".to_owned(), "that".to_owned());
        HostFinding { subject: "thing", health, found, consequence }
    }

    #[test]
    fn a_range_without_a_free_port_is_wrong() {
        let is_free_later = || {
            let taken = TcpListener::bind(("0.0.0.0", 0)).unwrap();
            let port = taken.local_addr().unwrap().port();
            let range = PortRange { first: port, last: port };
            let found = free_ports(range);
            assert_eq!((found.health, found.subject), (Health::Wrong, "ports"), "{found:?}");
            drop(taken);
            free_ports(range).found.starts_with("1 of the 1 ports")
        };
        // Another program may get the same port at once.
        assert!((0..10).any(|_| is_free_later()));
    }

    #[test]
    fn wrong_and_lacking_findings_are_counted() {
        assert!(as_text(&[finding(Health::Good)]).ends_with("Nothing is wrong.\n"));
        let text = as_text(&[finding(Health::Lacking), finding(Health::Wrong)]);
        assert!(text.ends_with("1 wrong, 1 could be better.\n"), "{text}");
        assert!(text.contains("  WRONG   thing             this\n"), "{text}");
    }
}
