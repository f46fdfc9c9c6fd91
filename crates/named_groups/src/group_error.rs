//! Why a group refuses a call.

use landeck_protocols::service::MEMBERS_MAX;

/// Why a group refuses a call. The group is as it was before, unless the text says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The group has not had its minimum of members in the time given.
    #[error(
        "the group \"{group}\" has {have} members and starts with {want}: wait longer, or have more join"
    )]
    MinimumNotReached {
        /// The group.
        group: String,
        /// How many members it has.
        have: u32,
        /// How many members it needs.
        want: u32,
    },
    /// The group is being destroyed.
    #[error("the group \"{group}\" is being destroyed: it takes nothing new; make another one")]
    Destroying {
        /// The group.
        group: String,
    },
    /// The group has ended.
    #[error(
        "the group \"{group}\" is no more: it was destroyed, or its last member has left; make it anew"
    )]
    GroupDestroyed {
        /// The group.
        group: String,
    },
    /// The group was destroyed before all held broadcasts found room.
    #[error(
        "the group \"{group}\" is destroyed; broadcasts that waited for {} are lost: have them retrieve, or allow more time", named(.members)
    )]
    DestroyedWithLoss {
        /// The group.
        group: String,
        /// The members that had not retrieved, so that there was no room.
        members: Vec<u32>,
    },
    /// A member died during a synchronisation, or since the one before.
    #[error(
        "member {member} of the group \"{group}\" died before this synchronisation was complete: all others have come; go on without it"
    )]
    MemberDied {
        /// The group.
        group: String,
        /// The member.
        member: u32,
    },
    /// The mailbox is a member already.
    #[error(
        "this mailbox is member {member} of the group \"{group}\" already: join with another one"
    )]
    AlreadyMember {
        /// The group.
        group: String,
        /// The member's number.
        member: u32,
    },
    /// The mailbox is not a member, or not any more.
    #[error(
        "member {member} of the group \"{group}\" is none any more: it has left, or was put out because its mailbox stayed full; join again"
    )]
    NoMember {
        /// The group.
        group: String,
        /// The member's number.
        member: u32,
    },
    /// The group has as many members as a group can have.
    #[error(
        "the group \"{group}\" has {MEMBERS_MAX} members, as many as a group can have: leave one, or make another group"
    )]
    TooManyMembers {
        /// The group.
        group: String,
    },
    /// Messages that members have not retrieved leave no room.
    #[error(
        "the group \"{group}\" is full: {} let {waiting} messages wait. Retrieve there, make the group with more room, or put out who does not retrieve (`WhenFull::Evict`)", named(.members)
    )]
    Full {
        /// The group.
        group: String,
        /// The members that have retrieved least.
        members: Vec<u32>,
        /// How many messages wait for them.
        waiting: u64,
    },
    /// The message is longer than the group's memory.
    #[error(
        "a message of {bytes} bytes is too long for the group \"{group}\", which has room for {most}: make it with more (`GroupOptions::bytes`), or send parts"
    )]
    TooLong {
        /// The group.
        group: String,
        /// Bytes of the message.
        bytes: u64,
        /// The most bytes that a message can have.
        most: u64,
    },
    /// No group can have these options.
    #[error("a group cannot be made so: {what}")]
    Options {
        /// The wrong option, and its range.
        what: String,
    },
    /// A process has joined twice, and a world has each process once.
    #[error(
        "a process has joined the group \"{group}\" twice: collective operations have one member of each process; use `sync` and `broadcast`, or leave with one of them"
    )]
    TwiceInProcess {
        /// The group.
        group: String,
    },
    /// The group no longer knows the participants of the member's next operation.
    #[error(
        "operation {number} of the group \"{group}\" went by members that nobody knows any more: this member was left behind; leave, and join again"
    )]
    LeftBehind {
        /// The group.
        group: String,
        /// The number of the operation.
        number: u64,
    },
    /// The group has no server, and this process cannot become it.
    #[error(
        "the group \"{group}\" has no server, and this process cannot be one: {why}. Start the job with more room for guests, or make the group without a server"
    )]
    NoServer {
        /// The group.
        group: String,
        /// Why it cannot, in words.
        why: String,
    },
    /// The launcher was to serve the group, and it serves none.
    #[error(
        "the group \"{group}\" cannot be made: its server is to be in the launcher, which serves no groups. Start the job with `landeck run --serve-groups`, or have another process serve it"
    )]
    NoServingLauncher {
        /// The group.
        group: String,
    },
    /// The group lives on another host, where no process serves it.
    #[error(
        "the group \"{group}\" lives on {host} and cannot be reached: {why}. Go on without it, or make another group here"
    )]
    Unreached {
        /// The group.
        group: String,
        /// The host where its log lies.
        host: String,
        /// The reason, in words.
        why: &'static str,
    },
    /// The server of a group on another host did not say in time whether a call has taken effect.
    #[error(
        "the server of the group \"{group}\" on {host} did not say within the time limit whether it has done this call: look at the group's state before you call again, or allow more time"
    )]
    InDoubt {
        /// The group.
        group: String,
        /// The host where its log lies.
        host: String,
    },
    /// The group's memory holds words that no process writes.
    #[error(
        "the memory of the group \"{group}\" was overwritten ({what}): destroy it, and make another one"
    )]
    Broken {
        /// The group.
        group: String,
        /// The part that is wrong.
        what: &'static str,
    },
}

fn named(members: &[u32]) -> String {
    let names: Vec<String> = members.iter().map(u32::to_string).collect();
    match &names[..] {
        [] => "nobody".into(),
        [one] => format!("member {one}"),
        many => format!("members {}", many.join(", ")),
    }
}
