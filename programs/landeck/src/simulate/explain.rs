//! The critical path of one run, as text.

use landeck_simulator::{SimulationReport, Time, What};

/// Lists the critical path of a run and sums up its time by kind.
pub(crate) fn text(heading: &str, report: &SimulationReport) -> String {
    let path = report.history.critical_path();
    let mut text = format!(
        "{heading}: {}, {} messages, {} B of data.\nThe critical path:\n{:>12}  {:>10}\n",
        report.time(),
        report.messages,
        report.bytes,
        "from us",
        "us"
    );
    let mut shares = Shares::default();
    let mut before = Time::ZERO;
    for record in &path {
        let turn_ps = record.start.since(before);
        if turn_ps > 0 {
            text.push_str(&line(before, turn_ps, "waits for its turn on the processor"));
            shares.turns_ps += turn_ps;
        }
        // Time that overlaps with the line before counts there.
        let begin = record.start.max(before);
        let span_ps = record.end.since(begin);
        text.push_str(&line(begin, span_ps, &record.what.to_string()));
        shares.add(&record.what, span_ps);
        before = record.end;
    }
    text.push_str(&shares.text(report.time()));
    text
}

fn line(from: Time, span_ps: u64, what: &str) -> String {
    format!("{:>12.3}  {:>10.3}  {what}\n", from.us(), span_ps as f64 / 1e6)
}

/// The time of a critical path by kind, in picoseconds.
#[derive(Default)]
struct Shares {
    sending_ps: u64,
    travel_ps: u64,
    waiting_ps: u64,
    receiving_ps: u64,
    work_ps: u64,
    turns_ps: u64,
}

impl Shares {
    fn add(&mut self, what: &What, span_ps: u64) {
        match what {
            What::Send { .. } => self.sending_ps += span_ps,
            What::Receive { .. } | What::Handshake { .. } => self.receiving_ps += span_ps,
            What::Work { .. } | What::Call { .. } => self.work_ps += span_ps,
            What::Travel { waited_ps, .. } => {
                let waited_ps = span_ps.min(*waited_ps);
                self.waiting_ps += waited_ps;
                self.travel_ps += span_ps - waited_ps;
            }
        }
    }

    fn text(&self, whole: Time) -> String {
        let parts = [
            ("sending", self.sending_ps),
            ("under way", self.travel_ps),
            ("behind other messages", self.waiting_ps),
            ("receiving", self.receiving_ps),
            ("calling, copying and combining", self.work_ps),
            ("waiting for a turn", self.turns_ps),
        ];
        let percent = |part_ps: u64| 100.0 * part_ps as f64 / whole.ps().max(1) as f64;
        let parts = parts.into_iter().filter(|(_, part_ps)| *part_ps > 0);
        let parts: Vec<String> =
            parts.map(|(name, part_ps)| format!("{name} {:.0}%", percent(part_ps))).collect();
        format!("Of the time: {}.\n", parts.join(", "))
    }
}
