//! The machines of several hosts: leases, lost hosts, words, and the lanes that daemons open.
//!
//! The daemon drives them, and the simulator runs them with lost datagrams, cut links, stopped daemons and paused
//! hosts. Each machine has the boot-time clock of one host as an argument. No two hosts' clocks are compared.
//!
//! | module | content |
//! |---|---|
//! | [`timing`] | the times that follow from `--host-timeout` |
//! | [`lease`] | a host's side: how long its view is valid, and when its part of the job ends |
//! | [`detector`] | the arbiter's side: when a host is lost, and when it is gone |
//! | [`arbiter`] | words: numbered once, kept until every host has them; blocks of group numbers |
//! | [`snapshot`] | everything that words have said, for a host without a copy of them |
//! | [`follower`] | a host's copy of the words, and the changes of far records |
//! | [`dialling`] | lanes between processes, as the daemons of both ends see them |
//! | [`measuring`] | which hosts measure their link when, and what follows from the times |
//! | [`booking`] | which job has which processors of a machine |
//! | [`growth`] | hosts that are added to a job while it runs |
//! | [`runs`] | which numbers a daemon gives that has started again |
//! | [`load`] | how busy a host is |
//! | [`load_report`] | that as a line of text, for all programs of a machine |
//! | [`store`] | messages whose data stay on a host until they are fetched |
//! | [`names`] | the arbiter's table of names: one owner for each name of a job |

pub mod arbiter;
pub mod booking;
pub mod detector;
pub mod dialling;
pub mod follower;
pub mod growth;
pub mod lease;
pub mod load;
pub mod load_report;
pub mod measuring;
pub mod names;
pub mod runs;
pub mod snapshot;
pub mod store;
pub mod timing;

pub use arbiter::{AdmissionError, Arbiter, ArbiterOutput, NumberBlock, NumbersError};
pub use booking::{BookedShare, Booking, BookingOrder, BookingWish, NothingFree};
pub use detector::{Detector, DetectorOutput, HostSight};
pub use dialling::{DialContent, DialMessage, DialOutput, Dialling, HostReach};
pub use follower::{FarChange, FarState, FarSubject, FollowerOutput, HostRecord, WordFollower};
pub use growth::{Growth, GrowthOutput, NewHost, Prospect};
pub use lease::{HostEnd, Lease, LeaseOutput};
pub use load::{HostLoad, HostPressure};
pub use load_report::{LoadReport, LoadReportError};
pub use measuring::{LinkProbe, LinkSight, Measuring, MeasuringTurn, ProbeStep};
pub use names::NameTable;
pub use runs::{numbers_before, run_of};
pub use snapshot::{HostStanding, Snapshot};
pub use store::{MessageStore, STORED_MESSAGES_MAX, StoreRefusal, StoredMessage};
pub use timing::HostTiming;
