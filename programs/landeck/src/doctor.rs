//! `landeck doctor`: a report on this host's features and lacks.

use crate::hosts::{HostsError, read_hostfile};
use clap::Args;
use landeck::unstable::host::examination::{Finding, Health, examine};
use landeck::unstable::host::say::{SayError, say};
use serde_json::json;
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
    /// Check the hosts in this file instead, and the ways between them
    #[arg(short = 'f', long, value_name = "FILE")]
    hostfile: Option<PathBuf>,
}

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DoctorError {
    #[error(transparent)]
    Hosts(#[from] HostsError),
    #[error(transparent)]
    Say(#[from] SayError),
    #[error(
        "--hostfile: this build checks its own host only, and the file names {hosts}; run `landeck doctor` \
         on each"
    )]
    SeveralHosts { hosts: usize },
}

impl DoctorArguments {
    /// Prints the report.
    pub(crate) fn run(&self) -> Result<ExitCode, DoctorError> {
        if let Some(path) = &self.hostfile {
            return Err(DoctorError::SeveralHosts { hosts: read_hostfile(path)?.len() });
        }
        let findings = examine();
        let text = if self.json { as_json(&findings) } else { as_text(&findings) };
        say(&text)?;
        let is_wrong = findings.iter().any(|finding| finding.health == Health::Wrong);
        Ok(ExitCode::from(u8::from(is_wrong)))
    }
}

fn as_text(findings: &[Finding]) -> String {
    let count = |health| findings.iter().filter(|finding| finding.health == health).count();
    let lines = findings.iter().map(|Finding { subject, health, found, consequence }| {
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

fn as_json(findings: &[Finding]) -> String {
    let finding = |finding: &Finding| {
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

    fn finding(health: Health) -> Finding {
        let (found, consequence) = ("this".to_owned(), "that".to_owned());
        Finding { subject: "thing", health, found, consequence }
    }

    #[test]
    fn what_is_wrong_is_counted() {
        assert!(as_text(&[finding(Health::Good)]).ends_with("Nothing is wrong.\n"));
        let text = as_text(&[finding(Health::Lacking), finding(Health::Wrong)]);
        assert!(text.ends_with("1 wrong, 1 could be better.\n"), "{text}");
        assert!(text.contains("  WRONG   thing             this\n"), "{text}");
    }
}
