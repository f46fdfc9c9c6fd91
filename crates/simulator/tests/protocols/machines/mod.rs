//! The protocols of several hosts on links and hosts that fail.
//!
//! The machines are those that the daemon drives. The modelled rest is hosts with clocks of their own, links, stopped
//! daemons and paused hosts. A run depends on its seed alone. A property that fails ends the run with a [`ProtocolFailure`], which
//! shows the seed and the last events.
//!
//! | module | content |
//! |---|---|
//! | [`carried`] | the positions of relayed messages and of contents of trunks, over connections that break |
//! | [`driving`] | a started collective operation, whose members compute |
//! | [`growth`] | jobs to which hosts are added |
//! | [`hosts`] | the arbiter and several hosts: leases, detectors, words |
//! | [`incast`] | many senders and one receiver behind a port with a small buffer |
//! | [`lanes`] | two daemons that open lanes between their processes |
//! | [`names`] | processes of several hosts that publish, find and take back names |
//! | [`order`] | ordered groups over hosts: homes, holders, parties |
//! | [`pairs`] | the positions of one pair over lanes that break |
//! | [`routes`] | pairs of hosts whose connections pass gateways, under cuts |
//! | [`silences`] | a connection that carries nothing, or whose receiver does not read |
//! | [`stored`] | messages whose data stay on hosts, over connections that break and relays that start again |
//! | [`voters`] | voters of a machine: their disks, clocks and messages |
//! | [`voters_directed`] | such runs in which certain faults meet |
//! | [`voters_faults`] | the faults of such a run, and what must hold about time |
//! | `growth_parts` | the parts of such jobs, and a checker for each property |
//! | `host_checks` | the properties of hosts, a checker each |
//! | `hosts_setting` | the faults of a run |
//! | `route_checks` | the properties of routes and of pairs behind gateways, a checker each |
//! | `route_setting` | drawn machines of several networks, their paths and their faults |
//! | `stored_checks` | the properties of such messages, a checker each |
//! | `stored_host` | a host that stores data, and its relay |
//! | `voters_checks` | the properties of the voters' log, a checker each |
//! | `voters_network` | cuts, and which hosts reach each other |
//! | `clock`, `link`, `draw`, `event_log` | clocks, links, random numbers, the last events |

pub(crate) mod carried;
mod clock;
mod draw;
pub(crate) mod driving;
mod event_log;
pub(crate) mod growth;
mod growth_parts;
mod host_checks;
pub(crate) mod hosts;
mod hosts_setting;
pub(crate) mod incast;
pub(crate) mod lanes;
mod link;
pub(crate) mod names;
pub(crate) mod order;
pub(crate) mod pairs;
mod route_checks;
mod route_setting;
pub(crate) mod routes;
pub(crate) mod silences;
pub(crate) mod stored;
mod stored_checks;
mod stored_host;
pub(crate) mod voters;
mod voters_checks;
pub(crate) mod voters_directed;
pub(crate) mod voters_faults;
mod voters_network;

pub(crate) use event_log::ProtocolFailure;
pub(crate) use hosts_setting::{FaultRates, HostsSetting};
