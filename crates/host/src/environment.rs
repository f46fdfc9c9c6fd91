//! The environment of a started process: inherited variables, removed ones, and its identity.
//!
//! A process started by Landeck must not take itself for a process of another launcher. So the variables by which
//! launchers identify a process are removed from the inherited ones: `PMI_*`, `PMIX_*`, `HYDI_*`, `HYDRA_*`, `OMPI_*`,
//! `PRTE_*`, `MPI_LOCAL*`, the variables that `srun` and `torchrun` set for each task, and `LANDECK_*` of an outer job.
//! Settings that a *user* makes are kept: those ending in `_MCA_...` (`OMPI_MCA_btl`), and `PRTE_ALLOW_RUN_AS_ROOT*`.
//!
//! In their place come the names that scripts look for: `RANK` and related ones as `torchrun` sets them,
//! `OMPI_COMM_WORLD_*`, `PMI_RANK`, `PMI_SIZE`, `MPI_LOCALRANKID`, `MPI_LOCALNRANKS`. Never `PMI_FD` or `PMIX_*`: those
//! promise a service. Nor `MASTER_PORT`: only a process that listens on a port can promise it. A job on several hosts
//! also sets `NODE_RANK`, and `MASTER_ADDR` to an address of rank 0's host that the others reach. If the user sets `MASTER_ADDR`, it is passed on. A restarted process also has
//! `LANDECK_RESTART`, the number of the restart. `LANDECK_STDOUT` says which file the launcher gave a process as its
//! standard output.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};

use crate::standard_output;

/// A variable that the user chose for the processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: OsString,
    /// Its value; `None` means the launcher's own.
    pub value: Option<OsString>,
}

/// The identity of a process, as its environment states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Its rank in the job; `None` if it is started while the job runs.
    pub rank: Option<u32>,
    /// The number of processes of the job.
    pub processes: u32,
    /// Its slot, which is its number among the processes of this host.
    pub slot: u32,
    /// The number of processes of the job on this host.
    pub local_processes: u32,
    /// The identity of the job's segment on this host, as the processes and the agent use it.
    pub job: &'a str,
    /// Its standard output, as device and inode, by which the process recognises it.
    pub stdout: Option<&'a str>,
    /// Its host among those of the job; `None` if there is only one.
    pub node: Option<Node<'a>>,
}

/// The host of a process of a job on several hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node<'a> {
    /// Its number among the hosts with processes of the job, counted from 0.
    pub number: u32,
    /// The address at which the others reach the host of rank 0.
    pub first: &'a str,
}

/// The variable with the number of the guardian, a common ancestor of the job's processes on a host.
pub const GUARDIAN_VARIABLE: &str = "LANDECK_GUARDIAN";

/// The number of an ancestor that this process has in common with the other processes of its job on this host: its
/// guardian's, or where another launcher has started them that of the parent. Nothing depends on its being true but whom
/// this process lets read its memory.
pub fn common_ancestor() -> u32 {
    let parent =
        || rustix::process::getppid().map_or(0, |parent| parent.as_raw_pid().cast_unsigned());
    own_text(GUARDIAN_VARIABLE).and_then(|text| text.parse().ok()).unwrap_or_else(parent)
}

/// Variables that belong to a host or to a session on it: each host of a job has its own.
const OF_A_HOST: [&str; 3] = ["HOSTNAME", "DISPLAY", "TMPDIR"];
const OF_A_SESSION: [&str; 3] = ["SSH_", "XDG_", "DBUS_"];

/// The variables that all processes of one program share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
    /// Whether its processes inherit variables, on other hosts those of their own host.
    inherits: bool,
    /// Exports whose variable is not set.
    pub missing: Vec<OsString>,
}

impl Environment {
    /// Builds the environment from the launcher's. With `inherit` false (`--env-none`) only the exports remain.
    pub fn new(
        launcher: impl Iterator<Item = (OsString, OsString)>,
        inherit: bool,
        exports: &[Export],
    ) -> Environment {
        let launcher: Vec<(OsString, OsString)> = launcher.collect();
        let (variables, missing) = (Vec::new(), Vec::new());
        let mut environment = Environment { variables, inherits: inherit, missing };
        for export in exports {
            let own = || launcher.iter().find(|(name, _)| *name == export.name);
            let value = export.value.as_ref().or_else(|| own().map(|(_, value)| value));
            match value {
                Some(value) => environment.set(&export.name, value),
                None => environment.missing.push(export.name.clone()),
            }
        }
        if inherit {
            let exported = |name: &OsStr| exports.iter().any(|export| export.name == name);
            let inherited = launcher
                .into_iter()
                .filter(|(name, _)| !belongs_to_a_launcher(name) && !exported(name));
            environment.variables.extend(inherited);
        }
        environment
    }

    /// The environment that travels to other hosts: without the variables that belong to a host or a session, unless
    /// they are exported.
    pub fn for_other_hosts(mut self, exports: &[Export]) -> Environment {
        let exported = |name: &OsStr| exports.iter().any(|export| export.name == name);
        self.variables.retain(|(name, _)| exported(name) || !belongs_to_a_host(name));
        self
    }

    /// The environment on another host than the launcher's. If its processes inherit variables, those that belong to a
    /// host or a session have the values of `own`, unless the launcher has sent others.
    pub fn with_own(mut self, own: impl Iterator<Item = (OsString, OsString)>) -> Environment {
        let is_wanted =
            |name: &OsStr| self.inherits && belongs_to_a_host(name) && self.get(name).is_none();
        let own: Vec<(OsString, OsString)> = own.filter(|(name, _)| is_wanted(name)).collect();
        self.variables.extend(own);
        self
    }

    /// The value of a variable.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        let found = self.variables.iter().find(|(own, _)| own == name.as_ref());
        found.map(|(_, value)| value.as_os_str())
    }

    /// The environment of one process, each variable as `NAME=value`. Only the number of the segment's descriptor is
    /// missing, which the guardian adds.
    pub fn of_process(&self, identity: Identity<'_>) -> Vec<CString> {
        let mut own = own_variables(identity);
        if let Some(Node { number, first }) = identity.node {
            own.push(("NODE_RANK", number.to_string()));
            if self.get("MASTER_ADDR").is_none() {
                own.push(("MASTER_ADDR", first.to_owned()));
            }
        }
        let is_own = |name: &OsStr| own.iter().any(|(own, _)| OsStr::new(own) == name);
        let shared = self.variables.iter().filter(|(name, _)| !is_own(name));
        let shared = shared.filter_map(|(name, value)| assignment(name, value));
        shared
            .chain(own.iter().filter_map(|(name, value)| {
                assignment(OsStr::new(name), OsStr::new(value.as_str()))
            }))
            .collect()
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &OsStr, value: &OsStr) {
        match self.variables.iter_mut().find(|(own, _)| own == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.variables.push((name.to_owned(), value.to_owned())),
        }
    }
}

impl Export {
    /// Parses `NAME` or `NAME=value`; `None` without a name.
    pub fn parse(text: &OsStr) -> Option<Export> {
        let bytes = text.as_bytes();
        let cut = bytes.iter().position(|&byte| byte == b'=');
        let (name, value) = match cut {
            Some(at) => (&bytes[..at], Some(OsStr::from_bytes(&bytes[at + 1..]).to_owned())),
            None => (bytes, None),
        };
        (!name.is_empty()).then(|| Export { name: OsStr::from_bytes(name).to_owned(), value })
    }
}

/// The variables that tell a process its identity, under every name that programs look for. Without a rank it has only
/// its slot.
fn own_variables(identity: Identity<'_>) -> Vec<(&'static str, String)> {
    let slot = identity.slot.to_string();
    let mut own = vec![
        ("LANDECK_SLOT", slot.clone()),
        ("LANDECK_JOB", identity.job.to_owned()),
        (standard_output::VARIABLE, identity.stdout.unwrap_or_default().to_owned()),
    ];
    let Some(rank) = identity.rank.map(|rank| rank.to_string()) else { return own };
    let (size, local_size) = (identity.processes.to_string(), identity.local_processes.to_string());
    own.extend([
        ("RANK", rank.clone()),
        ("WORLD_SIZE", size.clone()),
        ("LOCAL_RANK", slot.clone()),
        ("LOCAL_WORLD_SIZE", local_size.clone()),
        ("OMPI_COMM_WORLD_RANK", rank.clone()),
        ("OMPI_COMM_WORLD_SIZE", size.clone()),
        ("OMPI_COMM_WORLD_LOCAL_RANK", slot.clone()),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", local_size.clone()),
        ("OMPI_COMM_WORLD_NODE_RANK", slot.clone()),
        ("PMI_RANK", rank),
        ("PMI_SIZE", size),
        ("PMI_LOCAL_RANK", slot.clone()),
        ("PMI_LOCAL_SIZE", local_size.clone()),
        ("MPI_LOCALRANKID", slot),
        ("MPI_LOCALNRANKS", local_size),
    ]);
    own
}

/// The value of a variable of this process, if it is set. Bytes that are no text are replaced, so the value is refused
/// wherever a number or a name is wanted.
pub fn own_text(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Whether a launcher sets this variable to tell its own processes their identity.
fn belongs_to_a_launcher(name: &OsStr) -> bool {
    const PREFIXES: [&str; 13] = [
        "PMI_",
        "PMIX_",
        "HYDI_",
        "HYDRA_",
        "OMPI_",
        "PRTE_",
        "MPI_LOCAL",
        "LANDECK_SEGMENT",
        "LANDECK_SLOT",
        "LANDECK_STDOUT",
        "LANDECK_JOB",
        "LANDECK_RESTART",
        GUARDIAN_VARIABLE,
    ];
    const NAMES: [&str; 18] = [
        "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
        "MPI_NRANKS",
        "SLURM_PROCID",
        "SLURM_LOCALID",
        "SLURM_GTIDS",
        "SLURM_TASK_PID",
        "SLURM_STEP_TASKS_PER_NODE",
        "SLURM_PMIX_MAPPING_SERV",
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "ROLE_RANK",
        "ROLE_WORLD_SIZE",
        "ROLE_NAME",
        "TORCHELASTIC_RUN_ID",
    ];
    const OF_THE_USER: [&str; 4] =
        ["OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "PRTE_ALLOW_RUN_AS_ROOT"];
    let Some(name) = name.to_str() else { return false };
    let starts_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    (starts_with(&PREFIXES) && !starts_with(&OF_THE_USER)) || NAMES.contains(&name)
}

/// Whether a variable means something only on one host, or in one session on it.
fn belongs_to_a_host(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    OF_A_HOST.contains(&name) || OF_A_SESSION.iter().any(|prefix| name.starts_with(prefix))
}

/// `NAME=value`; `None` if it contains a zero byte, which no environment can hold.
fn assignment(name: &OsStr, value: &OsStr) -> Option<CString> {
    let mut text = OsString::with_capacity(name.len() + value.len() + 1);
    text.push(name);
    text.push("=");
    text.push(value);
    CString::new(text.into_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)], inherit: bool, exports: &[&str]) -> Environment {
        let launcher = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let exports: Vec<Export> =
            exports.iter().map(|text| Export::parse(OsStr::new(text)).unwrap()).collect();
        Environment::new(launcher, inherit, &exports)
    }

    fn of_rank_2(environment: &Environment) -> Vec<String> {
        let identity = Identity {
            rank: Some(2),
            processes: 4,
            slot: 2,
            local_processes: 4,
            job: "00ff",
            stdout: Some("13:7"),
            node: None,
        };
        texts(environment, identity)
    }

    fn texts(environment: &Environment, identity: Identity<'_>) -> Vec<String> {
        let all = environment.of_process(identity);
        all.into_iter().map(|variable| variable.into_string().unwrap()).collect()
    }

    fn has(all: &[String], wanted: &str) -> bool {
        all.iter().any(|variable| variable == wanted)
    }

    #[test]
    fn a_process_knows_who_it_is() {
        let all = of_rank_2(&environment(&[("HOME", "/h"), ("RANK", "7")], true, &[]));
        for wanted in [
            "HOME=/h",
            "RANK=2",
            "WORLD_SIZE=4",
            "OMPI_COMM_WORLD_LOCAL_RANK=2",
            "PMI_SIZE=4",
            "MPI_LOCALNRANKS=4",
            "LANDECK_SLOT=2",
            "LANDECK_JOB=00ff",
            "LANDECK_STDOUT=13:7",
        ] {
            assert!(has(&all, wanted), "{wanted}");
        }
        assert_eq!(all.iter().filter(|variable| variable.starts_with("RANK=")).count(), 1);
        assert!(!all.iter().any(|variable| variable.starts_with("PMI_FD")));
        assert!(!all.iter().any(|variable| variable.starts_with("MASTER_")));
    }

    #[test]
    fn a_process_on_another_host_knows_its_place() {
        let launcher = environment(
            &[("HOME", "/h"), ("SSH_TTY", "1"), ("TMPDIR", "/a"), ("DISPLAY", ":0")],
            true,
            &["DISPLAY=:7"],
        );
        let exports = [Export { name: "DISPLAY".into(), value: None }];
        let travelling = launcher.for_other_hosts(&exports);
        let own = [("TMPDIR", "/b"), ("HOME", "/other"), ("DISPLAY", ":3"), ("XDG_SEAT", "s")];
        let own = own.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let identity = Identity {
            rank: Some(5),
            processes: 8,
            slot: 1,
            local_processes: 4,
            job: "00ff",
            stdout: None,
            node: Some(Node { number: 1, first: "a" }),
        };
        let all = texts(&travelling.with_own(own), identity);
        for wanted in [
            "HOME=/h",
            "TMPDIR=/b",
            "DISPLAY=:7",
            "XDG_SEAT=s",
            "RANK=5",
            "LOCAL_RANK=1",
            "LANDECK_SLOT=1",
            "WORLD_SIZE=8",
            "LOCAL_WORLD_SIZE=4",
            "NODE_RANK=1",
            "MASTER_ADDR=a",
        ] {
            assert!(has(&all, wanted), "{wanted}: {all:?}");
        }
        assert!(!all.iter().any(|text| text.starts_with("SSH_TTY")), "{all:?}");
    }

    #[test]
    fn launchers_are_forgotten_and_users_are_not() {
        let inherited = [
            ("PMI_FD", "5"),
            ("PMIX_RANK", "1"),
            ("HYDI_CONTROL_FD", "6"),
            ("OMPI_UNIVERSE_SIZE", "3"),
            ("PRTE_LAUNCHED", "1"),
            ("MPI_LOCALRANKID", "1"),
            ("SLURM_PROCID", "1"),
            ("TORCHELASTIC_RUN_ID", "x"),
            ("LANDECK_STDOUT", "13:6"),
        ];
        let kept = [
            ("OMPI_MCA_btl", "self"),
            ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
            ("SLURM_JOB_ID", "4"),
            ("MASTER_PORT", "29500"),
            ("LANDECK_SEED", "3"),
            ("MPICH_ASYNC", "1"),
        ];
        let both: Vec<_> = inherited.iter().chain(&kept).copied().collect();
        let environment = environment(&both, true, &[]);
        inherited.iter().for_each(|(name, _)| assert_eq!(environment.get(name), None, "{name}"));
        for (name, value) in kept {
            assert_eq!(environment.get(name), Some(OsStr::new(value)), "{name}");
        }
    }

    #[test]
    fn exports_come_first() {
        let variables = [("A", "1"), ("B", "2"), ("PMI_FD", "5")];
        let some = environment(&variables, true, &["A=9", "C=x=y", "PMI_FD", "D"]);
        for (name, value) in [("A", "9"), ("B", "2"), ("C", "x=y"), ("PMI_FD", "5")] {
            assert_eq!(some.get(name), Some(OsStr::new(value)), "{name}");
        }
        assert_eq!(some.missing, ["D"]);
        assert_eq!(of_rank_2(&some).iter().filter(|text| text.starts_with("A=")).count(), 1);
    }

    #[test]
    fn nothing_is_inherited_when_told_so() {
        let bare = environment(&[("A", "1"), ("B", "2")], false, &["B", "E="]);
        assert_eq!(bare.variables, [("B".into(), "2".into()), ("E".into(), "".into())]);
        assert!(has(&of_rank_2(&bare), "RANK=2"));
    }

    #[test]
    fn exports_are_read() {
        let parsed = |text: &str| Export::parse(OsStr::new(text));
        assert_eq!(parsed("A"), Some(Export { name: "A".into(), value: None }));
        assert_eq!(parsed("A="), Some(Export { name: "A".into(), value: Some("".into()) }));
        assert_eq!(parsed("=x"), None);
    }
}
