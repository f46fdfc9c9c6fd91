//! Started collective operations over hosts, whose members compute between start and wait.

use crate::machines::driving;

use crate::by_seed;

#[test]
fn whoever_comes_last_drives_its_host_and_nobody_waits_for_one_that_computes() {
    let reports = by_seed(4_000, driving::run);
    if reports.len() > 1 {
        let messages: usize = reports.iter().map(|report| report.messages).sum();
        let early: usize = reports.iter().map(|report| report.early).sum();
        assert!(messages > 10_000 && early > 4_000, "{messages} messages, {early} through early");
    }
}

#[test]
fn nobody_waits_for_a_lost_host_and_whoever_succeeds_has_all_data() {
    let reports = by_seed(4_000, driving::run_with_loss);
    if reports.len() > 1 {
        let succeeded: usize = reports.iter().map(|report| report.succeeded).sum();
        let failed: usize = reports.iter().map(|report| report.failed).sum();
        assert!(succeeded > 1_000 && failed > 1_000, "{succeeded} succeeded, {failed} failed");
    }
}
