//! Four deliveries of a message: the hosts, the jobs, the table and the picture.

use std::fmt::Write;

use landeck_testing::hosts::{Cable, Wish};
use plotters::style::RGBColor;

use crate::candidate::Candidate;
use crate::papers::grid::{Launch, Study, USUAL};
use crate::papers::pictures::note;
use crate::papers::tables::end_line;
use crate::papers::values::{ValuePlace, Values};
use crate::plot::colour;
use crate::sample::size_label;
use crate::statistics::{Middle, short};
use crate::strips::{Strip, StripGroup, Strips};

/// The hosts of the study.
pub(super) const HOSTS: u32 = 4;
/// The machine of two sites, which meet in n2.
const TWO_SITES: &str = "\
[network.a]
addresses = \"10.77.1.0/24\"
site = \"a\"
[network.b]
addresses = \"10.77.2.0/24\"
site = \"b\"
gateway = [\"n2\"]
[host.n1]
[host.n2]
[host.n3]
[host.n4]
";
/// The way of a job whose messages go through the daemons of both hosts.
const DAEMONS: &str = "daemons";
/// Short messages, and long ones whose data may wait elsewhere.
const SIZES: [u64; 3] = [8, 128 << 10, 1 << 20];
/// Messages of a batch.
const MESSAGES: u32 = 16;
const BROWN: RGBColor = RGBColor(140, 90, 40);
const TEAL: RGBColor = RGBColor(0, 140, 150);

/// A delivery of the paper, as this study measures it.
#[derive(Clone, Copy, Debug)]
struct Delivery {
    /// Its number in the paper, or the paper's figure.
    number: &'static str,
    data: &'static str,
    is_direct: bool,
    /// As the measuring program names it.
    operation: &'static str,
    way: &'static str,
}

const DELIVERIES: [Delivery; 8] = [
    Delivery::of("1", "to the receiver's host", true, "direct", USUAL),
    Delivery::of("2", "to the receiver's host", false, "gateway", USUAL),
    Delivery::of("3", "wait on the sender's host", true, "direct, sender", USUAL),
    Delivery::of("3", "wait on a third host", true, "direct, third", USUAL),
    Delivery::of("4", "wait on the sender's host", false, "gateway, sender", USUAL),
    Delivery::of("4", "wait on a third host", false, "gateway, third", USUAL),
    Delivery::of("fig. 9", "through both daemons", true, "direct", DAEMONS),
    Delivery::of("fig. 9", "through both daemons", false, "gateway", DAEMONS),
];

impl Delivery {
    const fn of(
        number: &'static str,
        data: &'static str,
        is_direct: bool,
        operation: &'static str,
        way: &'static str,
    ) -> Self {
        Self { number, data, is_direct, operation, way }
    }

    fn place(&self, bytes: u64) -> ValuePlace {
        let who = Candidate::LandeckMachine.name();
        let here = ValuePlace::here(self.operation, self.way, HOSTS, bytes);
        ValuePlace { who, hosts: HOSTS, ..here }
    }

    fn colour(&self) -> RGBColor {
        match (self.way, self.operation) {
            (DAEMONS, _) => BROWN,
            (_, "direct" | "gateway") => colour(Candidate::Landeck),
            _ => TEAL,
        }
    }
}

/// Two sites of two hosts each. The second host is on both networks.
pub(super) fn wish() -> Wish {
    let cables = vec![Cable { host: 1, network: 2 }];
    Wish { sites: 2, cables, ..Wish::hosts(HOSTS as usize) }
}

/// A job over lanes, and one through daemons.
pub(super) fn launches() -> Vec<Launch> {
    let launch = |figure, way, path| Launch {
        n: HOSTS,
        hosts: HOSTS,
        by: Candidate::LandeckMachine,
        machine: Some(TWO_SITES),
        figure,
        way,
        path,
        sizes: SIZES.to_vec(),
        iterations: MESSAGES,
        ..Launch::of(Study::Deliveries)
    };
    vec![launch("stored", USUAL, None), launch("unstored", DAEMONS, Some(DAEMONS))]
}

/// The time of a message in a batch, and how many times as long as the first delivery a long one takes.
pub(super) fn table(text: &mut String, values: &Values) {
    let _ = writeln!(
        text,
        "  Each value is a {MESSAGES}th of a batch of {MESSAGES} messages, until all are received. Where data wait, the receiver\n  \
         begins when all are stored. Data of up to 64 KiB never wait. Ratios are those of each round, to the first row."
    );
    let _ = write!(text, "\n  {:<8}{:<28}{:<10}", "", "data", "hosts");
    for bytes in SIZES {
        let _ = write!(text, "{:>24}", size_label(bytes));
    }
    let longest = SIZES[SIZES.len() - 1];
    let _ = writeln!(text, "{:>24}", format!("{}, ratio", size_label(longest)));
    for delivery in &DELIVERIES {
        let hosts = if delivery.is_direct { "direct" } else { "gateway" };
        let _ = write!(text, "  {:<8}{:<28}{hosts:<10}", delivery.number, delivery.data);
        for bytes in SIZES {
            let _ = write!(text, "{:>24}", words(values.at(&delivery.place(bytes))));
        }
        let ratio = values.ratio(&delivery.place(longest), &DELIVERIES[0].place(longest));
        let _ = write!(text, "{:>24}", words(ratio));
        end_line(text);
    }
}

/// A median with its spread; a dash where nothing was measured.
fn words(middle: Option<Middle>) -> String {
    let spread =
        |it: Middle| format!("{} ({} to {})", short(it.median), short(it.min), short(it.max));
    middle.map_or_else(|| "-".to_owned(), spread)
}

/// The long message in each delivery.
pub(super) fn strips(values: &Values) -> Strips {
    let bytes = SIZES[SIZES.len() - 1];
    let group = |name: &str, is_direct: bool| {
        let its = DELIVERIES.iter().filter(|delivery| delivery.is_direct == is_direct);
        let strips = its.filter_map(|delivery| {
            let spread = values.at(&delivery.place(bytes))?;
            Some(Strip { name: delivery.data.to_owned(), colour: delivery.colour(), spread })
        });
        StripGroup { name: name.to_owned(), strips: strips.collect() }
    };
    Strips {
        title: format!(
            "1999: the data of {} go to the receiver's host, or wait elsewhere",
            size_label(bytes)
        ),
        note: note(values),
        unit: "us".to_owned(),
        groups: vec![
            group("Hosts that reach each other", true),
            group("Hosts that meet in a gateway", false),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::values::tests::values_at;

    fn measured() -> Values {
        let entries = [(0, 0, 1_000.0), (0, 2, 2_500.0), (1, 0, 900.0), (1, 2, 1_800.0)];
        let value =
            |(round, row, us): (usize, usize, f64)| (DELIVERIES[row].place(1 << 20), round, us);
        values_at(Study::Deliveries, entries.map(value))
    }

    #[test]
    fn a_row_has_its_ratio_of_each_round_and_dashes_where_data_never_wait() {
        let mut text = String::new();
        table(&mut text, &measured());
        let row =
            text.lines().find(|line| line.starts_with("  3       wait on the sender")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[..9], ["3", "wait", "on", "the", "sender's", "host", "direct", "-", "-"]);
        assert_eq!(words[9..].join(" "), "2,150 (1,800 to 2,500) 2.25 (2 to 2.50)");
    }

    #[test]
    fn a_strip_stands_for_each_measured_delivery() {
        let strips = strips(&measured());
        let counts: Vec<usize> = strips.groups.iter().map(|group| group.strips.len()).collect();
        assert_eq!(counts, [2, 0]);
        assert_eq!(strips.groups[0].strips[1].name, "wait on the sender's host");
    }

    #[test]
    fn both_jobs_run_in_the_machine_of_two_sites() {
        let launches = launches();
        let paths: Vec<Option<&str>> = launches.iter().map(|launch| launch.path).collect();
        assert_eq!(paths, [None, Some("daemons")]);
        assert!(launches.iter().all(|launch| launch.machine == Some(TWO_SITES) && launch.n == 4));
        assert_eq!(wish().cables, [Cable { host: 1, network: 2 }]);
    }
}
