//! The properties that a check judges, and their violations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Violations of one property whose words are kept. More of them are counted.
const TOLD_MAX: usize = 5;

/// A property that groups promise, as far as the traces of applications show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// There is a trace of each member, and no trace was cut.
    WholeTraces,
    /// A member is in each of its views.
    OwnViews,
    /// The numbers of a member's views grow.
    GrowingViews,
    /// A member sends and delivers nothing before its first view, and sends nothing after its end.
    WithinMembership,
    /// A view is the same for all members that see it.
    OneSequenceOfViews,
    /// Members that see the views of the stream miss none.
    NoViewMissed,
    /// A view is the one before without the departed and with the joined members.
    ViewsFollow,
    /// The order of the ranks of members that stay does not change.
    RanksStay,
    /// A member that went does not come back, and nothing of it is delivered after the view without it.
    GoneForGood,
    /// The members of a lost host go in one view.
    OneViewPerHost,
    /// Each delivered message was sent, with these bytes and at this level.
    NothingInvented,
    /// A message whose sender was told that it was not sent is delivered nowhere.
    RefusedNowhere,
    /// No member delivers a message twice.
    NothingTwice,
    /// The messages of a sender are delivered in the order in which it sent them.
    SenderOrder,
    /// A member that delivers two messages of a sender delivers those between.
    NoSenderGap,
    /// All members deliver messages in one order.
    TotalOrder,
    /// A member misses no message that others delivered between two of its own.
    NoGap,
    /// A message stands behind all that its sender had delivered before it sent it.
    CausalOrder,
    /// A message has one number at all members, and numbers grow.
    OneNumber,
    /// A message is delivered in the same view at all members.
    SameView,
    /// Members deliver the same messages before the same view.
    SameBeforeView,
    /// A new member delivers all messages behind its first view.
    JoinersStart,
    /// A sender delivers its own messages.
    OwnMessages,
    /// Messages sent before a synchronisation are in all mailboxes when it is complete.
    SyncCovers,
    /// A synchronisation is complete only when all members have come.
    SyncWaits,
    /// A safe message that anybody delivered, or whose call returned, is delivered by all survivors.
    SafeStays,
    /// Survivors deliver all that stands before a safe message, wherever that was delivered.
    SafePrefix,
    /// Safe messages are in one order at all members, those of lost hosts too.
    SafeOrder,
}

impl Property {
    /// All properties.
    pub const ALL: [Self; 28] = [
        Self::WholeTraces,
        Self::OwnViews,
        Self::GrowingViews,
        Self::WithinMembership,
        Self::OneSequenceOfViews,
        Self::NoViewMissed,
        Self::ViewsFollow,
        Self::RanksStay,
        Self::GoneForGood,
        Self::OneViewPerHost,
        Self::NothingInvented,
        Self::RefusedNowhere,
        Self::NothingTwice,
        Self::SenderOrder,
        Self::NoSenderGap,
        Self::TotalOrder,
        Self::NoGap,
        Self::CausalOrder,
        Self::OneNumber,
        Self::SameView,
        Self::SameBeforeView,
        Self::JoinersStart,
        Self::OwnMessages,
        Self::SyncCovers,
        Self::SyncWaits,
        Self::SafeStays,
        Self::SafePrefix,
        Self::SafeOrder,
    ];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WholeTraces => "whole traces",
            Self::OwnViews => "a member is in its views",
            Self::GrowingViews => "growing views",
            Self::WithinMembership => "nothing outside a membership",
            Self::OneSequenceOfViews => "one sequence of views",
            Self::NoViewMissed => "no view missed",
            Self::ViewsFollow => "views follow from each other",
            Self::RanksStay => "ranks stay",
            Self::GoneForGood => "gone for good",
            Self::OneViewPerHost => "one view per lost host",
            Self::NothingInvented => "nothing invented",
            Self::RefusedNowhere => "refused is delivered nowhere",
            Self::NothingTwice => "nothing twice",
            Self::SenderOrder => "sender's order",
            Self::NoSenderGap => "no gap of a sender",
            Self::TotalOrder => "total order",
            Self::NoGap => "no gap",
            Self::CausalOrder => "causal order",
            Self::OneNumber => "one number per message",
            Self::SameView => "same view",
            Self::SameBeforeView => "same messages before a view",
            Self::JoinersStart => "new members miss nothing",
            Self::OwnMessages => "own messages",
            Self::SyncCovers => "messages before a synchronisation",
            Self::SyncWaits => "synchronisations wait for all",
            Self::SafeStays => "safe messages stay",
            Self::SafePrefix => "all before a safe message stays",
            Self::SafeOrder => "order of safe messages",
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A property that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{property}: {text}")]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// The messages, members and views.
    pub text: String,
}

/// The findings of a check so far.
#[derive(Default)]
pub(super) struct Findings {
    /// The properties of which the traces had a case.
    pub(super) judged: BTreeSet<Property>,
    /// The number of violations of each property.
    pub(super) counts: BTreeMap<Property, usize>,
    /// The first violations of each property.
    pub(super) violations: Vec<Violation>,
}

impl Findings {
    /// Judges a case of a property. The words are made only if it does not hold.
    pub(super) fn judge(&mut self, property: Property, holds: bool, text: impl FnOnce() -> String) {
        self.judged.insert(property);
        if holds {
            return;
        }
        let count = self.counts.entry(property).or_default();
        *count += 1;
        if *count <= TOLD_MAX {
            self.violations.push(Violation { property, text: text() });
        }
    }
}
