//! The routes between the hosts of a machine as text, and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use landeck_host::report::duration;
use landeck_launch::machine::{MachineStatus, RouteStatus};
use landeck_wire::HostNumber;
use serde_json::{Value, json};

use super::status::{figures_between, name_of};

/// The routes as text: a block for each host that they lead to, the route that is taken first, with its reason.
pub(super) fn text(status: &MachineStatus, routes: &[RouteStatus]) -> String {
    let lines = routes.chunk_by(|one, next| one.to == next.to).flat_map(|of_host| {
        // A route with a broken step comes last, until that connects again.
        let (broken, well): (Vec<_>, Vec<_>) =
            of_host.iter().partition(|route| route.broken.is_some());
        let ordered: Vec<&RouteStatus> = well.into_iter().chain(broken).collect();
        let ends =
            format!("{} -> {}: ", name_of(status, of_host[0].from), name_of(status, of_host[0].to));
        let blanks = " ".repeat(ends.chars().count());
        let line = |(place, route): (usize, &&RouteStatus)| {
            let begin = if place == 0 { ends.clone() } else { blanks.clone() };
            let figures = match place {
                0 => figures_between(status, route.from, route.to).unwrap_or_default(),
                _ => String::new(),
            };
            (begin + &gateways(status, route) + &reason(status, route, &ordered), figures)
        };
        ordered.iter().enumerate().map(line).collect::<Vec<_>>()
    });
    let lines: Vec<(String, String)> = lines.collect();
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (line, figures) in lines {
        let whole = format!("{line:<width$}  {figures}");
        let _ = writeln!(text, "{}", whole.trim_end());
    }
    text
}

/// The routes as JSON, the best to each host first.
pub(super) fn value(status: &MachineStatus, routes: &[RouteStatus]) -> Value {
    let name = |host: &HostNumber| name_of(status, *host);
    let one = |route: &RouteStatus| {
        json!({
            "from": name(&route.from),
            "to": name(&route.to),
            "gateways": route.gateways.iter().map(name).collect::<Vec<_>>(),
            "mib_s": route.mib_ns as f64 / 1e9,
            "broken": route.broken.map(|(from, to)| [name_of(status, from), name_of(status, to)]),
        })
    };
    routes.iter().map(one).collect()
}

fn gateways(status: &MachineStatus, route: &RouteStatus) -> String {
    match route.gateways.as_slice() {
        [] => "direct".to_owned(),
        several => {
            let names: Vec<&str> = several.iter().map(|host| name_of(status, *host)).collect();
            names.join(", ")
        }
    }
}

/// The reason for the place of a route among all to a host.
fn reason(status: &MachineStatus, route: &RouteStatus, all: &[&RouteStatus]) -> String {
    if let Some((from, to)) = route.broken {
        let (from, to) = (name_of(status, from), name_of(status, to));
        return format!(" ({from} did not reach {to} a moment ago)");
    }
    let time = |route: &RouteStatus| duration(Duration::from_nanos(route.mib_ns));
    match all {
        [_] if route.gateways.is_empty() => String::new(),
        [_] => " (the only way)".to_owned(),
        _ => format!(" (1 MiB takes {})", time(route)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::status::tests::machine;
    use super::*;
    use landeck_launch::machine::HostStatus;

    #[test]
    fn each_route_has_its_reason() {
        let mut status = machine();
        for (number, name) in [(7, "gate"), (8, "door")] {
            let (number, name) = (HostNumber(number), name.to_owned());
            status.hosts.push(HostStatus { number, name, ..status.hosts[0].clone() });
        }
        let route = |gateways: &[u16], mib_ns, broken| RouteStatus {
            from: HostNumber(0),
            to: HostNumber(1),
            gateways: gateways.iter().map(|host| HostNumber(*host)).collect(),
            mib_ns,
            broken,
        };
        let only = [route(&[7, 8], 25_000_000, None)];
        assert_eq!(
            text(&status, &only),
            "adalovelace -> bob: gate, door (the only way)  31 us, 1.2 GB/s\n"
        );
        assert_eq!(
            text(&status, &[route(&[], 8_400_000, None)]),
            "adalovelace -> bob: direct  31 us, 1.2 GB/s\n"
        );
        let both = [
            route(&[7], 1_700_000, Some((HostNumber(7), HostNumber(1)))),
            route(&[], 84_000_000, None),
        ];
        let expected = "\
adalovelace -> bob: direct (1 MiB takes 84 ms)                  31 us, 1.2 GB/s
                    gate (gate did not reach bob a moment ago)
";
        assert_eq!(text(&status, &both), expected);
        assert_eq!(value(&status, &both)[0]["broken"], json!(["gate", "bob"]));
    }
}
