//! Names of a job on several hosts.

use crate::machines::names;

use crate::by_seed;

#[test]
fn a_name_has_one_owner_and_ends_with_it() {
    let reports = by_seed(400, names::run);
    if reports.len() > 1 {
        let given: usize = reports.iter().map(|report| report.given).sum();
        let taken: usize = reports.iter().map(|report| report.taken).sum();
        assert!(given > 4_000 && taken > 4_000, "{given} names given, {taken} refused");
    }
}
