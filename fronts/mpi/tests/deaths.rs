//! kill -9 of one rank in the middle of each operation, while the others stay: every one of them is told at once.

use std::process::Command;
use std::time::Duration;

use crate::support::{Launcher, Library, command, program};
use landeck_testing::{Watchdog, deaths};

/// How long the test may take, with compiling.
const LIMIT: Duration = Duration::from_secs(1_000);

#[test]
fn the_others_are_told_of_a_death_in_every_operation_while_all_of_them_stay() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("deaths");
    let names = &mut command(Launcher::None, Library::Ours, 1, &program);
    let job = |processes: u64| {
        // The number of a process on another host is another process here.
        let usual = command(Launcher::LandeckHere, Library::Ours, processes as u32, &program);
        let mut job = Command::new(usual.get_program());
        job.args(["run", "--on-failure", "notify"]).args(usual.get_args().skip(1));
        job.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
        job
    };
    deaths::kill_in_each_operation(names, job, |text, pid| {
        text.contains(&format!("(pid {pid}) was killed by signal 9"))
            // A status of several has no more than the class.
            || text == "MPI_ERR_PROC_ABORTED: a process that is gone"
    });
}
