//! How everybody starts a job over hosts.

use std::path::Path;
use std::process::Command;

use crate::candidate::{Candidate, Places};
use crate::cluster::{Cluster, REMOTE_SHELL};
use crate::figure::FigurePart;
use crate::standing;

/// Runs a command, and takes the code of a job with processes that were killed for a good end.
const KILLED_IS_WELL: &str = "\"$@\"; code=$?; [ $code = 137 ] || exit $code";

/// A command to be run on the first host.
#[derive(Debug)]
struct Line {
    words: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

/// Starts `program` in the processes of a part, as `Places::command` does on one host.
///
/// # Errors
/// When the hosts were ended and cannot be made again.
pub(crate) fn command(
    cluster: &Cluster,
    places: &Places,
    candidate: Candidate,
    part: &FigurePart,
    program: &Path,
    arguments: &[String],
) -> Result<Command, String> {
    wrapped(cluster, places, candidate, part, program, arguments, |words| words)
}

/// As `command`, for a program on the first host that is given these words, such as one that repeats them.
///
/// # Errors
/// When the hosts were ended and cannot be made again.
pub(crate) fn wrapped(
    cluster: &Cluster,
    places: &Places,
    candidate: Candidate,
    part: &FigurePart,
    program: &Path,
    arguments: &[String],
    wrap: impl FnOnce(Vec<String>) -> Vec<String>,
) -> Result<Command, String> {
    let line = line(places, candidate, part, program, arguments);
    let mut command = cluster.on_first(&wrap(line.words))?;
    places.set_environment(candidate, &mut command);
    command.env_remove(standing::VARIABLE);
    command.envs(line.environment);
    Ok(command)
}

/// The words and variables by which a candidate starts a part. Nobody is bound to processors: each host believes that
/// all of them are its own, so that two hosts would take the same one.
fn line(
    places: &Places,
    candidate: Candidate,
    part: &FigurePart,
    program: &Path,
    arguments: &[String],
) -> Line {
    let (n, hosts) = (part.n, part.hosts);
    let each = n.div_ceil(hosts.max(1));
    let all = places.processors;
    let processors = places.cluster.as_ref().map_or(all, |cluster| cluster.processors_of_host(all));
    let named = |slots: &dyn Fn(u32) -> String| {
        let hosts = (1..=hosts).map(|host| format!("n{host}{}", slots(host)));
        hosts.collect::<Vec<_>>().join(",")
    };
    let more = |host| if host == 1 { part.extra } else { 0 };
    let with_slots = named(&|host| format!(":{}", each + more(host)));
    let bare = named(&|_| String::new());
    let mut environment = Vec::new();
    let mut words = vec![places.launcher(candidate).display().to_string()];
    let mut say = |text: &str| words.extend(text.split(' ').map(str::to_owned));
    match candidate {
        Candidate::OpenMpi => {
            say("--allow-run-as-root --bind-to none --mca pml ob1 --mca btl self,sm,tcp");
            say(&format!("--mca plm_rsh_agent {REMOTE_SHELL} --host {with_slots} -n {n}"));
            if n > places.processors {
                say("--mca mpi_yield_when_idle 1");
            }
        }
        Candidate::IntelMpi => {
            say(&format!("-hosts {} -ppn {each} -n {n}", bare));
            // Its package has the provider beside the library, and looks elsewhere.
            let library = places.peers.join("venv-impi/lib").display().to_string();
            environment.extend([
                ("I_MPI_HYDRA_BOOTSTRAP", "rsh".to_owned()),
                ("I_MPI_HYDRA_BOOTSTRAP_EXEC", REMOTE_SHELL.to_owned()),
                ("I_MPI_PIN", "0".to_owned()),
                ("FI_PROVIDER", "tcp".to_owned()),
                ("FI_PROVIDER_PATH", library.clone()),
                ("LD_LIBRARY_PATH", library),
            ]);
        }
        Candidate::Mpich | Candidate::MpichThrottled => {
            say(&format!("-launcher rsh -launcher-exec {REMOTE_SHELL}"));
            say(&format!("-hosts {} -ppn {each} -n {n}", bare));
            environment.push(("UCX_TLS", "self,tcp".to_owned()));
        }
        Candidate::Sockets => say(&format!("{REMOTE_SHELL} n2")),
        _ => {
            say(&format!("run -n {}", n + part.extra));
            if candidate == Candidate::LandeckMachine {
                environment.push((standing::VARIABLE, standing::NAME.to_owned()));
                // Otherwise the first hosts are filled, each with as many processes as it has processors.
                if each < processors {
                    say("--map-by node");
                }
            } else if hosts > 1 {
                say(&format!("--rsh {REMOTE_SHELL} --host {with_slots}"));
            }
            if hosts > 1 && !part.runs_true {
                say("--bind-to none");
            }
            if candidate == Candidate::LandeckPlain {
                say("--plain");
            }
            if part.kills {
                say("--on-failure notify");
            }
        }
    }
    if !candidate.starts_itself() {
        words.push(program.display().to_string());
    }
    words.extend_from_slice(arguments);
    if part.kills {
        words.splice(0..0, ["/bin/sh", "-c", KILLED_IS_WELL, "sh"].map(str::to_owned));
    }
    Line { words, environment }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;

    fn places() -> Places {
        Places {
            root: "/r".into(),
            peers: "/p".into(),
            programs: "/t".into(),
            other: None,
            cluster: None,
            processors: 2,
        }
    }

    #[test]
    fn in_a_machine_a_job_has_its_hosts_without_their_names() {
        let machine = |figure: &str, part: usize| words(Candidate::LandeckMachine, figure, part);
        let run = "/t/landeck run";
        assert_eq!(machine("hosts_start", 1), format!("{run} -n 4 p x"));
        assert_eq!(
            machine("hosts_round", 0),
            format!("{run} -n 2 --map-by node --bind-to none p x")
        );
        assert_eq!(machine("hosts_neighbours", 1), format!("{run} -n 4 --bind-to none p x"));
        assert_eq!(machine("hosts_neighbours", 0), format!("{run} -n 4 p x"));
        assert_eq!(
            words(Candidate::LandeckMpi, "hosts_start", 1),
            format!("{run} -n 4 --rsh landeck-rsh --host n1:2,n2:2 p x")
        );
        let part = FigurePart::spread(2, 2);
        let line = line(&places(), Candidate::LandeckMachine, &part, Path::new("p"), &[]);
        assert_eq!(line.environment, [("LANDECK_MACHINE", "bench".to_owned())]);
    }

    fn words(candidate: Candidate, figure: &str, part: usize) -> String {
        let part = &Figure::by_name(figure).unwrap().parts[part];
        line(&places(), candidate, part, Path::new("p"), &["x".to_owned()]).words.join(" ")
    }

    #[test]
    fn everybody_is_told_the_hosts_and_how_to_reach_them() {
        let round = |candidate| words(candidate, "hosts_round", 0);
        assert_eq!(
            round(Candidate::LandeckPlain),
            "/t/landeck run -n 2 --rsh landeck-rsh --host n1:1,n2:1 --bind-to none --plain p x"
        );
        assert_eq!(
            round(Candidate::LandeckMpi),
            "/t/landeck run -n 2 --rsh landeck-rsh --host n1:1,n2:1 --bind-to none p x"
        );
        assert_eq!(
            round(Candidate::Mpich),
            "/p/venv-mpich/bin/mpiexec -launcher rsh -launcher-exec landeck-rsh -hosts n1,n2 -ppn 1 -n 2 p x"
        );
        assert!(
            round(Candidate::OpenMpi)
                .ends_with("--mca plm_rsh_agent landeck-rsh --host n1:1,n2:1 -n 2 p x")
        );
        assert_eq!(round(Candidate::Sockets), "/p/sockets landeck-rsh n2 x");
    }

    #[test]
    fn a_job_on_one_host_has_no_network() {
        assert_eq!(words(Candidate::LandeckMpi, "hosts_neighbours", 0), "/t/landeck run -n 4 p x");
        assert!(words(Candidate::LandeckMpi, "hosts_neighbours", 1).contains("--host n1:2,n2:2"));
    }

    #[test]
    fn a_job_whose_processes_are_killed_may_say_so() {
        let line = words(Candidate::LandeckMpi, "hosts_kill", 0);
        assert!(
            line.starts_with("/bin/sh -c ") && line.contains("--on-failure notify p"),
            "{line}"
        );
    }

    #[test]
    fn intel_finds_its_provider_beside_its_library() {
        let part = &Figure::by_name("hosts_round").unwrap().parts[0];
        let line = line(&places(), Candidate::IntelMpi, part, Path::new("p"), &[]);
        assert!(line.environment.contains(&("FI_PROVIDER_PATH", "/p/venv-impi/lib".to_owned())));
        assert_eq!(line.words.join(" "), "/p/venv-impi/bin/mpiexec -hosts n1,n2 -ppn 1 -n 2 p");
    }

    #[test]
    fn crowded_processes_of_open_mpi_yield() {
        assert!(words(Candidate::OpenMpi, "hosts_start", 0).contains("mpi_yield_when_idle"));
        assert!(!words(Candidate::OpenMpi, "hosts_round", 0).contains("mpi_yield_when_idle"));
    }
}
