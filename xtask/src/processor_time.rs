//! The processor time of programs that this one has started and waited for, and of all that those waited for: what work
//! costs, however busy the machine is.

use std::fs;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// The places of user and system time of children, counted from the field after the program's name.
const OF_CHILDREN: [usize; 2] = [13, 14];

/// The processor time of this process's children so far; zero on a system that does not tell.
pub(crate) fn of_children() -> Duration {
    below("self")
}

/// The processor time of a child's children, once it has ended, which this waits for; its status is still there to take.
pub(crate) fn below_child(child: &Child) -> Duration {
    let end = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let _ = waitid(WaitId::Pid(Pid::from_child(child)), end);
    below(&child.id().to_string())
}

fn below(process: &str) -> Duration {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis(ticks(&status).unwrap_or(0) * 1000 / per_second)
}

/// The clock ticks of children in the text of `/proc/PID/stat`.
fn ticks(status: &str) -> Option<u64> {
    // The name stands in parentheses, and may have blanks and parentheses itself.
    let (_, fields) = status.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    OF_CHILDREN.iter().map(|place| fields.get(*place)?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn user_and_system_time_are_summed() {
        let status = "7 (a) b) S 1 7 7 0 -1 4194304 5 6 0 0 20 3 400 50 20 0 1 0 99 1 2";
        assert_eq!(ticks(status), Some(450));
        assert_eq!(ticks("7 (a) S 1"), None);
        assert_eq!(ticks(""), None);
    }

    const COMPUTES: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";

    #[test]
    fn the_time_of_a_child_is_counted_when_it_has_ended() {
        let before = of_children();
        assert!(Command::new("sh").args(["-c", COMPUTES]).status().unwrap().success());
        assert!(of_children() > before, "a child has computed for a while");
    }

    #[test]
    fn the_time_below_a_child_is_counted_before_its_status_is_taken() {
        let mut child = Command::new("timeout").args(["60", "sh", "-c", COMPUTES]).spawn().unwrap();
        assert!(below_child(&child) > Duration::ZERO, "its child has computed for a while");
        assert!(child.wait().unwrap().success());
    }
}
