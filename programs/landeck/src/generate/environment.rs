//! The environment variables for users, as in the manual page of `landeck run`.

use landeck::settings::SETTINGS;

use clap_mangen::roff::{Roff, bold, roman};

/// Names and effects of the variables that are no settings of a job; `docs/environment.md` has equal rows.
const OTHERS: [(&str, &str); 10] = [
    (
        "LANDECK_JOB",
        "a process that is started by hand joins this running job as a guest: its name, or the first digits of \
         its identity",
    ),
    (
        "LANDECK_MPI_INITIAL_ERRHANDLER",
        "the initial error handler of an MPI program: mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return",
    ),
    (
        "SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE, PBS_NODEFILE, LSB_DJOB_HOSTFILE, PE_HOSTFILE",
        "the hosts of an allocation, which landeck run uses if there are several and no option names hosts",
    ),
    ("MPIEXEC_TIMEOUT", "a time in seconds, after which mpiexec ends the job"),
    (
        "OMP_NUM_THREADS, MKL_NUM_THREADS, OPENBLAS_NUM_THREADS, BLIS_NUM_THREADS, RAYON_NUM_THREADS, \
         NUMEXPR_NUM_THREADS, JULIA_NUM_THREADS, GOMAXPROCS",
        "if one of them asks for more than one thread, processes are not bound unless --bind-to or --map-by says so",
    ),
    (
        "XDG_RUNTIME_DIR",
        "the index of running jobs is the folder landeck in it; without the variable it is /tmp/landeck-UID",
    ),
    (
        "XDG_CACHE_HOME, HOME",
        "the figures of landeck tune are in landeck/figures below the first, or below .cache of the second, and what \
         the probe for one copy has found in landeck/one-copy",
    ),
    ("PATH", "where programs without a slash in their names are found"),
    (
        "LD_LIBRARY_PATH",
        "where the loader looks for libmpi_abi.so.1 first, and landeck doctor with it",
    ),
    ("PMIX_PREFIX", "under a launcher that speaks PMIx, the installation in which libpmix.so.2 is"),
];

fn variables() -> impl Iterator<Item = (&'static str, &'static str)> {
    SETTINGS.iter().map(|setting| (setting.variable, setting.effect)).chain(OTHERS)
}

/// Adds the section to a page.
pub(super) fn add_to(page: &mut Roff) {
    page.control("SH", ["ENVIRONMENT"]);
    for (names, effect) in variables() {
        page.control("TP", []);
        page.text([bold(names)]);
        page.text([roman(effect)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_book_has_the_same_rows() {
        let page = include_str!("../../../../docs/environment.md").replace('`', "");
        for (names, effect) in variables() {
            let row = format!("| {names} | {effect} |");
            assert!(page.contains(&row), "docs/environment.md has no row {row}");
        }
    }
}
