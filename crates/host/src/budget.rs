//! The memory and descriptors that a job may take, computed before anything is created.
//!
//! The limits are read first: beyond a control group's memory limit an allocation kills the process, and a file that
//! outgrows the file size limit raises a signal. Only the address space of the shared heaps shrinks to fit, since that
//! does no harm. Anything else is an error that names the limit. The number of processes is never changed.

use landeck_memory::SegmentPlan;
use landeck_memory::plan::{GUESTS, SLOTS_MAX};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::memory_groups::MemoryGroups;
use crate::report::{size, thousands};

/// The limits that matter to a job; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Memory of the control group, in bytes.
    pub group_bytes: Option<u64>,
    /// The largest file, in bytes.
    pub file_bytes: Option<u64>,
    /// Address space of a process, in bytes.
    pub address_bytes: Option<u64>,
}

/// The reason why such a job cannot run here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// The segment has no room for so many processes.
    #[error(
        "a job has at most {} processes on one host, not {}; start fewer",
        thousands((*.most).into()), thousands(*.wanted)
    )]
    Processes {
        /// The number wanted.
        wanted: u64,
        /// The largest number possible.
        most: u32,
    },
    /// A memory limit is too small.
    #[error(
        "{} a shared segment of at least {needed}, but {limit} is {allowed}; raise it ({how}) or \
         start fewer processes", need(*.processes)
    )]
    Memory {
        /// The number of processes wanted.
        processes: u32,
        /// The memory that they need.
        needed: String,
        /// The name of the limit.
        limit: &'static str,
        /// The memory that the limit allows.
        allowed: String,
        /// How to raise the limit.
        how: &'static str,
    },
    /// A limit of open files is too small.
    #[error(
        "{} {needed} open files in {holder}, but the limit is {allowed}; raise it (ulimit -Hn) or \
         start fewer processes{}", need(*.processes), .hint
    )]
    Descriptors {
        /// The number of processes wanted.
        processes: u32,
        /// The number of open files that they need.
        needed: u64,
        /// The process that needs them.
        holder: &'static str,
        /// The hard limit.
        allowed: u64,
        /// Advice on what would need fewer.
        hint: &'static str,
    },
}

/// The smallest size of a heap.
const HEAP_BYTES_MIN: u64 = 64 * 1024;
const PAGE_BYTES: u64 = 4096;

impl Limits {
    /// The limits of this process and its control group.
    pub fn of_this_process(groups: &MemoryGroups) -> Limits {
        Limits {
            group_bytes: groups.limit_bytes(),
            file_bytes: getrlimit(Resource::Fsize).current,
            address_bytes: getrlimit(Resource::As).current,
        }
    }
}

/// The largest number of processes that a job has on one host.
pub const PROCESSES_MAX: u32 = SLOTS_MAX - GUESTS;

/// Checks that a segment has room for so many processes.
///
/// # Errors
/// If there are too many.
pub fn check_processes(wanted: u64) -> Result<(), BudgetError> {
    let most = PROCESSES_MAX;
    match wanted <= u64::from(most) {
        true => Ok(()),
        false => Err(BudgetError::Processes { wanted, most }),
    }
}

/// Makes the plan of a job's segment fit into the limits.
///
/// # Errors
/// If even the smallest segment does not fit.
pub fn fit_segment(mut plan: SegmentPlan, limits: Limits) -> Result<SegmentPlan, BudgetError> {
    let processes = plan.processes;
    check_processes(u64::from(processes))?;
    let bare = SegmentPlan { heap_bytes_per_process: 0, ..plan.clone() };
    let fixed = bare.total_bytes();
    if let Some(bytes) = limits.group_bytes {
        let share = bytes / 2 / u64::from(processes.max(1));
        shrink(&mut plan, share.max(HEAP_BYTES_MIN));
    }
    // The store and its records take a little more than a quarter of the heaps of the processes.
    let stores = if plan.has_host_tables() { processes.max(1).div_ceil(3) } else { 0 };
    let heaps = u64::from(plan.slots()) + u64::from(stores);
    // The program and its libraries need address space too.
    let address_bytes = limits.address_bytes.map(|bytes| bytes / 2);
    let hard = [
        (limits.file_bytes, limits.file_bytes, "the limit of the file size", "ulimit -f"),
        (address_bytes, limits.address_bytes, "the limit of address space", "ulimit -v"),
    ];
    for (usable, limit, name, how) in hard {
        let (Some(usable), Some(limit)) = (usable, limit) else { continue };
        let share = plan.heap_within(usable.saturating_sub(fixed) / heaps);
        if share < HEAP_BYTES_MIN {
            let least = SegmentPlan { heap_bytes_per_process: HEAP_BYTES_MIN, ..plan };
            let needed = least.total_bytes();
            return Err(BudgetError::Memory {
                processes,
                needed: size(if usable < limit { 2 * needed } else { needed }),
                limit: name,
                allowed: size(limit),
                how,
            });
        }
        shrink(&mut plan, share);
    }
    Ok(plan)
}

/// Makes room for the descriptors of this process, by raising the soft limit if necessary. `holder` names the process for people.
///
/// # Errors
/// If the hard limit is too small.
pub fn make_room_for_descriptors(
    processes: u32,
    needed: u64,
    holder: &'static str,
    hint: &'static str,
) -> Result<(), BudgetError> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), maximum };
    let fits = maximum.is_none_or(|maximum| maximum >= needed);
    if fits && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    let allowed = maximum.or(current).unwrap_or(0);
    Err(BudgetError::Descriptors { processes, needed, holder, allowed, hint })
}

fn need(processes: u32) -> String {
    match processes {
        1 => "1 process needs".to_owned(),
        _ => format!("{processes} processes need"),
    }
}

fn shrink(plan: &mut SegmentPlan, heap_bytes: u64) {
    let heap_bytes = heap_bytes / PAGE_BYTES * PAGE_BYTES;
    plan.heap_bytes_per_process = plan.heap_bytes_per_process.min(heap_bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(host: u64, processes: u32) -> SegmentPlan {
        SegmentPlan { cpus: 2, ..SegmentPlan::new(host, processes) }
    }

    fn heap(processes: u32, limits: Limits) -> u64 {
        let plan = fit_segment(plan(1, processes), limits).unwrap();
        assert!(plan.is_valid());
        plan.heap_bytes_per_process
    }

    #[test]
    fn without_limits_the_plan_stays() {
        let plan = fit_segment(plan(7, 4), Limits::default()).unwrap();
        assert_eq!(plan, SegmentPlan { cpus: 2, ..SegmentPlan::new(7, 4) });
    }

    #[test]
    fn a_segment_with_a_store_fits_as_well() {
        for processes in [0, 1, 3, 4, 6, 500] {
            let plan = SegmentPlan { takes_hosts: true, ..plan(1, processes) };
            let bare = SegmentPlan { heap_bytes_per_process: 0, ..plan.clone() }.total_bytes();
            for heap in [64 << 10, 4 << 20, 64 << 20] {
                let most = bare + heap * (u64::from(plan.slots()) + 1 + u64::from(processes) / 2);
                let limits = Limits { file_bytes: Some(most), ..Limits::default() };
                let fitted = fit_segment(plan.clone(), limits);
                let fitted = fitted.expect("it fits");
                assert!(fitted.store_bytes() != 0 && fitted.total_bytes() <= most);
            }
        }
    }

    #[test]
    fn heaps_shrink_to_half_of_the_group() {
        let limits = Limits { group_bytes: Some(64 << 20), ..Limits::default() };
        assert_eq!(heap(4, limits), 8 << 20);
        assert_eq!(heap(1000, limits), HEAP_BYTES_MIN, "never less");
    }

    #[test]
    fn heaps_shrink_to_the_file_size_and_the_address_space() {
        let limits = Limits { file_bytes: Some(1 << 30), ..Limits::default() };
        let fitted = fit_segment(plan(1, 4), limits).unwrap();
        assert!(fitted.total_bytes() <= 1 << 30 && fitted.heap_bytes_per_process > 1 << 20);
        let limits = Limits { address_bytes: Some(1 << 30), ..Limits::default() };
        assert!(fit_segment(plan(1, 4), limits).unwrap().total_bytes() <= 1 << 29);
    }

    #[test]
    fn a_segment_that_does_not_fit_is_named() {
        let limits = Limits { file_bytes: Some(1 << 20), ..Limits::default() };
        let error = fit_segment(plan(1, 4), limits).unwrap_err().to_string();
        assert!(error.contains("file size is 1.0 MiB") && error.contains("ulimit -f"), "{error}");
        let limits = Limits { file_bytes: Some(512), ..Limits::default() };
        let error = fit_segment(plan(1, 1), limits).unwrap_err().to_string();
        assert!(error.starts_with("1 process needs a shared segment"), "{error}");
        assert!(error.contains("file size is 512 B;"), "{error}");
        let error = fit_segment(plan(1, 100_000), Limits::default()).unwrap_err();
        assert!(error.to_string().starts_with("a job has at most "), "{error}");
    }

    #[test]
    fn descriptors_are_counted() {
        assert_eq!(make_room_for_descriptors(1, 16, "x", ""), Ok(()));
        let error = make_room_for_descriptors(9, 1 << 40, "x", "").unwrap_err().to_string();
        assert!(error.starts_with("9 processes need 1099511627776 open files in x,"), "{error}");
    }
}
