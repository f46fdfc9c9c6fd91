//! Hosts that are added to jobs.

use crate::machines::growth;

use crate::by_seed;

#[test]
fn a_host_is_added_once_all_others_know_its_places() {
    let reports = by_seed(1_000, growth::run);
    if reports.len() > 1 {
        let added: usize = reports.iter().map(|report| report.added).sum();
        let refused: usize = reports.iter().map(|report| report.refused).sum();
        let given_up: usize = reports.iter().map(|report| report.given_up).sum();
        let guests: u32 = reports.iter().map(|report| report.guests).sum();
        let text =
            format!("{added} added, {refused} refused, {given_up} given up, {guests} guests");
        assert!(added > 1_000 && refused > 1_000 && given_up > 100 && guests > 1_000, "{text}");
    }
}
