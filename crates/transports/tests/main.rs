//! The real channels against the conformance suite, strangers, and full mailboxes.

mod conformance;
mod full_mailbox;
mod hostile_lanes;
mod support;
mod welcome;
