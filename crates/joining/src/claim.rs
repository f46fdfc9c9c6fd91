//! Detects launchers that claim a process in a way that Landeck does not understand.
//!
//! Each of their processes would otherwise become a job of one and compute the same result. So attaching fails with
//! advice.

use landeck_host::say::quoted;

/// The reason why a process is no job of one although no launcher answers.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// A launcher started it as one of several, and left no way to reach the launcher.
    #[error(
        "this process was started as one of {size} (PMI_SIZE), but neither PMI_FD nor PMI_PORT \
         leads to the launcher: start the program with `landeck run` or with mpiexec of MPICH, or \
         unset PMI_SIZE to run it alone"
    )]
    Pmi {
        /// The number of processes.
        size: u32,
    },
    /// A variable that should give a number of processes has another value.
    #[error(
        "{name} is {}, which is no number of processes: unset it to run the program alone, or start \
         the program with `landeck run`",
        quoted(value)
    )]
    Senseless {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// Slurm started it as one of several, without a protocol between them.
    #[error(
        "srun started this process as one of {size} (SLURM_STEP_NUM_TASKS) that have no way to find \
         each other: use srun --mpi=pmi2, start one `landeck run` instead, or unset \
         SLURM_STEP_NUM_TASKS to run it alone"
    )]
    Slurm {
        /// The number of processes.
        size: u32,
    },
}

/// Fails if a launcher claims the process of this environment. Call it only if neither our launcher nor one that speaks
/// PMI-1 or PMIx does.
///
/// # Errors
/// [`ClaimError`].
pub fn refuse(variable: impl Fn(&str) -> Option<String>) -> Result<(), ClaimError> {
    let is_set = |name: &&str| variable(name).is_some();
    // A single process needs nobody to find others.
    let several = |name: &'static str| match variable(name).map(|value| (value.parse(), value)) {
        Some((Ok(size @ 2..), _)) => Ok(Some(size)),
        Some((Err(_), value)) => Err(ClaimError::Senseless { name, value }),
        _ => Ok(None),
    };
    match (several("PMI_SIZE")?, several("SLURM_STEP_NUM_TASKS")?) {
        (Some(size), _) => Err(ClaimError::Pmi { size }),
        (None, Some(size)) if is_set(&"SLURM_PROCID") => Err(ClaimError::Slurm { size }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(variables: &[(&str, &str)]) -> Result<(), ClaimError> {
        refuse(|name| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn launchers_that_are_not_understood_are_refused_by_name() {
        assert_eq!(outcome(&[("PMI_SIZE", "4")]), Err(ClaimError::Pmi { size: 4 }));
        let step = ("SLURM_STEP_NUM_TASKS", "3");
        let error = outcome(&[step, ("SLURM_PROCID", "2")]).unwrap_err();
        assert!(error.to_string().contains("as one of 3"), "{error}");
        for value in ["", "many", "-1"] {
            let error = outcome(&[("PMI_SIZE", value)]).unwrap_err().to_string();
            let words = format!("PMI_SIZE is {value:?}, which is no number of processes");
            assert!(error.starts_with(&words), "{error}");
        }
    }

    #[test]
    fn a_process_that_is_alone_is_let_alone() {
        assert_eq!(outcome(&[]), Ok(()));
        assert_eq!(outcome(&[("PMI_SIZE", "1"), ("PMI_RANK", "0")]), Ok(()));
        assert_eq!(outcome(&[("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_PROCID", "0")]), Ok(()));
        // A batch script that starts the program itself.
        assert_eq!(outcome(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), Ok(()));
    }
}
