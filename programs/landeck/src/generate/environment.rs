//! The environment variables for users, as in the manual page of `landeck run`.

use clap_mangen::roff::{Roff, bold, roman};

/// Names and effects; `docs/environment.md` has equal rows.
const VARIABLES: [(&str, &str); 17] = [
    ("LANDECK_COLLECTIVES", "the ways of collective operations, as --collectives"),
    (
        "LANDECK_CLUSTERS",
        "the criterion for members close to each other, as --clusters: caches, hosts or none",
    ),
    (
        "LANDECK_CHECKING",
        "1: members of every collective operation compare counts, types and operations first, and a difference is \
         an error; 0: they do not (default)",
    ),
    ("LANDECK_PATH", "the path of messages between hosts, as --path: auto, lane or relay"),
    (
        "LANDECK_LANES",
        "the most lanes of a process, beyond which messages go over relays; else half of its limit of open files, and \
         at most 1024",
    ),
    (
        "LANDECK_INCAST",
        "the pace of many-to-one steps between hosts, as --incast: none, fixed:K, calibrated, credit, credit:BYTES or tokens",
    ),
    (
        "LANDECK_ONE_COPY",
        "the length from which data on one host are copied once by the kernel, as --one-copy: auto, never or a \
         number of bytes",
    ),
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

/// Adds the section to a page.
pub(super) fn add_to(page: &mut Roff) {
    page.control("SH", ["ENVIRONMENT"]);
    for (names, effect) in VARIABLES {
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
        for (names, effect) in VARIABLES {
            let row = format!("| {names} | {effect} |");
            assert!(page.contains(&row), "docs/environment.md has no row {row}");
        }
    }
}
