//! The properties of routes, and of pairs whose connections pass gateways, a checker each.

use std::collections::BTreeMap;
use std::time::Duration;

use landeck_machine::routes::{GATEWAYS_MAX, Route};
use landeck_wire::HostNumber;

use super::host_checks::{Check, ensure};
use super::route_setting::DrawnMachine;

/// A step that a host has found broken counts as that for so long.
pub(super) const BROKEN_TIME: Duration = Duration::from_secs(10);

/// The steps that a host has found broken, and when.
pub(super) type Noted = BTreeMap<(HostNumber, HostNumber), Duration>;

/// Whether a step counts as broken.
pub(super) fn is_noted(noted: &Noted, step: (HostNumber, HostNumber), now: Duration) -> bool {
    noted.get(&step).is_some_and(|at| now < *at + BROKEN_TIME)
}

/// The hosts of a route.
pub(super) fn hosts_of(ends: (HostNumber, HostNumber), route: &Route) -> Vec<HostNumber> {
    [&[ends.0][..], &route.gateways, &[ends.1]].concat()
}

/// A route has no loop, at most 8 gateways, none that is no gateway, and each host has a network in common with the next.
pub(super) fn routes_are_paths(
    machine: &DrawnMachine,
    ends: (HostNumber, HostNumber),
    routes: &[Route],
) -> Check {
    for (number, route) in routes.iter().enumerate() {
        let hosts = hosts_of(ends, route);
        let has_loop = (1..hosts.len()).any(|at| hosts[..at].contains(&hosts[at]));
        ensure(!has_loop, "a route has no loop", || format!("{hosts:?}"))?;
        let is_short = route.gateways.len() <= GATEWAYS_MAX && GATEWAYS_MAX == 8;
        ensure(is_short, "a route has at most 8 gateways", || format!("{hosts:?}"))?;
        let pass = route.gateways.iter().all(|host| machine.place(*host).is_gateway);
        ensure(pass, "a route leads over gateways", || format!("{hosts:?}"))?;
        let cost = machine.cost(&hosts);
        ensure(cost == Some(route.mib_ns), "each host of a route reaches the next one", || {
            format!("{hosts:?} takes {cost:?} ns, not {}", route.mib_ns)
        })?;
        let is_new = routes[..number].iter().all(|other| other.gateways != route.gateways);
        ensure(is_new, "no route is twice in a list", || format!("{hosts:?}"))?;
    }
    Ok(())
}

/// A route is broken for as long as a step of it counts as broken, and no longer.
pub(super) fn broken_steps_are_known(
    ends: (HostNumber, HostNumber),
    routes: &[Route],
    noted: &Noted,
    now: Duration,
) -> Check {
    for route in routes {
        let hosts = hosts_of(ends, route);
        let mut steps = hosts.windows(2).map(|pair| (pair[0], pair[1]));
        let broken = steps.find(|step| is_noted(noted, *step, now));
        ensure(route.broken == broken, "a step counts as broken for 10 s", || {
            format!("{hosts:?} is broken at {:?}, not at {broken:?}", route.broken)
        })?;
    }
    Ok(())
}

/// Of all routes the fastest is first. There is one whose steps do not count as broken if that can be, and one without the
/// gateways of the fastest.
pub(super) fn the_fastest_is_first(
    machine: &DrawnMachine,
    ends: (HostNumber, HostNumber),
    routes: &[Route],
    noted: &Noted,
    now: Duration,
) -> Check {
    let mut paths: Vec<(Vec<HostNumber>, u64)> = Vec::new();
    machine.each_path(ends, &|_| true, &mut |path, cost| paths.push((path.to_vec(), cost)));
    let fastest = paths.iter().map(|(_, cost)| *cost).min();
    let first = routes.first().map(|route| route.mib_ns);
    ensure(first == fastest, "the fastest route is first", || {
        format!("the first of {ends:?} takes {first:?} ns, the fastest {fastest:?} ns")
    })?;
    let is_well =
        |path: &[HostNumber]| !path.windows(2).any(|pair| is_noted(noted, (pair[0], pair[1]), now));
    let has_well = paths.iter().any(|(path, _)| is_well(path));
    let is_there = routes.iter().any(|route| is_well(&hosts_of(ends, route)));
    ensure(is_there == has_well, "there is a route that is not broken", || {
        format!("{ends:?}: {is_there}, {has_well}; {noted:?} since then")
    })?;
    let is_beside = |path: &[HostNumber], route: &Route| {
        let gateways = &path[1..path.len() - 1];
        !(gateways.is_empty() && route.gateways.is_empty())
            && gateways.iter().all(|host| !route.gateways.contains(host))
    };
    let mut best = routes.iter().filter(|route| Some(route.mib_ns) == fastest).peekable();
    let is_empty = best.peek().is_none();
    let avoids = best.any(|best| {
        let is_possible = paths.iter().any(|(path, _)| is_beside(path, best));
        !is_possible || routes.iter().any(|route| is_beside(&hosts_of(ends, route), best))
    });
    ensure(is_empty || avoids, "a further route avoids the gateways of the fastest", || {
        format!("{ends:?}: {routes:?}")
    })
}

/// A way that has failed is not tried before its time while another one exists.
pub(super) fn another_way_is_tried(
    machine: &DrawnMachine,
    ends: (HostNumber, HostNumber),
    failed: Option<&[HostNumber]>,
    is_broken: impl Fn((HostNumber, HostNumber)) -> bool,
) -> Check {
    let Some(failed) = failed else { return Ok(()) };
    let has_other = machine.has_path(ends, |step| !is_broken(step));
    ensure(!has_other, "a way that failed waits while there is another one", || {
        let mut other = Vec::new();
        machine.each_path(ends, &|step| !is_broken(step), &mut |path, _| other = path.to_vec());
        format!("{failed:?} is tried again, although {other:?} may be well")
    })
}
