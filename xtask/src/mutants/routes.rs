//! The mutants of routes over gateways.

use super::list::Mutant;

const ROUTES: &str = "crates/machine/src/routes.rs";

pub(super) const ROUTE_MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "a route leads over gateways (any host passes on)",
        file: ROUTES,
        line: "self.gateways().filter(|host| *host != to).chain([to]).collect();",
        changed: "self.places.keys().copied().filter(|host| *host != to).chain([to]).collect();",
        test: "routes::",
    },
    Mutant {
        breaks: "a route has no loop (a way may come back to a host)",
        file: ROUTES,
        line: "if cheapest.get(&step).is_none_or(|least| cost < *least) {",
        changed: "if cheapest.get(&step).is_none_or(|least| cost > *least) {",
        test: "routes::",
    },
    Mutant {
        breaks: "a route has no loop (it leads over the host that dials)",
        file: ROUTES,
        line: "gateways.pop(); // the host itself",
        changed: "let _ = from; // the host itself",
        test: "routes::",
    },
    Mutant {
        breaks: "a route has at most 8 gateways",
        file: ROUTES,
        line: "while layers.len() <= GATEWAYS_MAX + 1 {",
        changed: "while layers.len() <= GATEWAYS_MAX + 2 {",
        test: "routes::",
    },
    Mutant {
        breaks: "a route may have 8 gateways",
        file: ROUTES,
        line: "while layers.len() <= GATEWAYS_MAX + 1 {",
        changed: "while layers.len() <= GATEWAYS_MAX {",
        test: "routes::",
    },
    Mutant {
        breaks: "each host of a route reaches the next one",
        file: ROUTES,
        line: "            .filter(|other| other.network == one.network)",
        changed: "            .filter(|other| other.network <= one.network)",
        test: "routes::",
    },
    Mutant {
        breaks: "the fastest route is first (the fastest link counts)",
        file: ROUTES,
        line: "up_to_meeting(&one.links).max(up_to_meeting(&other.links))",
        changed: "up_to_meeting(&one.links).min(up_to_meeting(&other.links))",
        test: "routes::",
    },
    Mutant {
        breaks: "a further route avoids the gateways of the fastest",
        file: ROUTES,
        line: "before as u64 + u64::from(is_direct)",
        changed: "u64::from(is_direct)",
        test: "routes::",
    },
    Mutant {
        breaks: "a step counts as broken for 10 s (it is forgotten too early)",
        file: ROUTES,
        line: "const BROKEN_TIME: Duration = Duration::from_secs(10);",
        changed: "const BROKEN_TIME: Duration = Duration::from_secs(6);",
        test: "routes::",
    },
    Mutant {
        breaks: "a step counts as broken for 10 s (it is never forgotten)",
        file: ROUTES,
        line: "is_some_and(|at| now < *at + BROKEN_TIME)",
        changed: "is_some_and(|at| *at < now + BROKEN_TIME)",
        test: "routes::",
    },
    Mutant {
        breaks: "a step counts as broken for 10 s (though a connection has passed it)",
        file: ROUTES,
        line: "self.broken.remove(&(step[0], step[1]));",
        changed: "let _ = step;",
        test: "routes::",
    },
    Mutant {
        breaks: "a step counts as broken for 10 s (though its host is connected again)",
        file: ROUTES,
        line: "self.broken.retain(|(from, to), _| ![from, to].contains(&&host));",
        changed: "let _ = host;",
        test: "routes::",
    },
    Mutant {
        breaks: "a way that failed waits while there is another one (it is not in the list)",
        file: ROUTES,
        line: "found.extend(new.map(|gateways| self.route(from, gateways, to, now)));",
        changed: "let _ = new;",
        test: "routes::",
    },
    Mutant {
        breaks: "a pair is connected where a path is well (the route that failed last is tried again)",
        file: ROUTES,
        line: "(self.broken.get(&step) <= time).then_some(0)",
        changed: "(self.broken.get(&step) != time).then_some(0)",
        test: "routes::",
    },
];
