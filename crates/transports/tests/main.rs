//! The real channels against the conformance suite, strangers, and full mailboxes.

mod conformance;
mod full_mailbox;
mod hostile_lanes;
mod lane_breaks;
mod reconnecting;
mod support;
mod welcome;
