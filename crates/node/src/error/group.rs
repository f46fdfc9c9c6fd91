//! Why a group does not do what was asked.

use landeck_groups::service::MEMBERS_MAX;

/// Why a group does not do what was asked. It is as it was before, unless the text says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// There never were as many members as it takes.
    #[error(
        "the group \"{group}\" has {have} members and starts with {want}: wait longer, or have more join"
    )]
    MinimumNotReached {
        /// The group.
        group: String,
        /// Members there are.
        have: u32,
        /// Members it takes.
        want: u32,
    },
    /// It is being destroyed.
    #[error("the group \"{group}\" is being destroyed: it takes nothing new; make another one")]
    Destroying {
        /// The group.
        group: String,
    },
    /// It is no more.
    #[error(
        "the group \"{group}\" is no more: it was destroyed, or its last member has left; make it anew"
    )]
    GroupDestroyed {
        /// The group.
        group: String,
    },
    /// It was destroyed before all broadcasts that were held had room.
    #[error(
        "the group \"{group}\" is destroyed; broadcasts that waited for {} are lost: have them retrieve, or allow more time", named(.members)
    )]
    DestroyedWithLoss {
        /// The group.
        group: String,
        /// Who had not taken what there was no room beside.
        members: Vec<u32>,
    },
    /// A member died while all waited for each other.
    #[error(
        "member {member} of the group \"{group}\" died during the synchronisation: all others have come; go on without it"
    )]
    MemberDied {
        /// The group.
        group: String,
        /// The member.
        member: u32,
    },
    /// The mailbox is a member.
    #[error(
        "this mailbox is member {member} of the group \"{group}\" already: join with another one"
    )]
    AlreadyMember {
        /// The group.
        group: String,
        /// Its number.
        member: u32,
    },
    /// The mailbox is no member (any more).
    #[error(
        "member {member} of the group \"{group}\" is none any more: it has left, or was put out because its mailbox stayed full; join again"
    )]
    NoMember {
        /// The group.
        group: String,
        /// Its number.
        member: u32,
    },
    /// There are as many members as there can be.
    #[error(
        "the group \"{group}\" has {MEMBERS_MAX} members, as many as a group can have: leave one, or make another group"
    )]
    TooManyMembers {
        /// The group.
        group: String,
    },
    /// What members have not retrieved leaves no room.
    #[error(
        "the group \"{group}\" is full: {} let {waiting} messages wait. Retrieve there, make the group with more room, or put out who does not retrieve (`WhenFull::Evict`)", named(.members)
    )]
    Full {
        /// The group.
        group: String,
        /// Who has taken least.
        members: Vec<u32>,
        /// How many messages wait for these.
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
        /// Bytes that there is room for.
        most: u64,
    },
    /// What was asked for cannot be the shape of a group.
    #[error("a group cannot be made so: {what}")]
    Options {
        /// What cannot be, and what can.
        what: String,
    },
    /// A world has each process once.
    #[error(
        "a process has joined the group \"{group}\" twice: collective operations have one member of each process; use `sync` and `broadcast`, or leave with one of them"
    )]
    TwiceInProcess {
        /// The group.
        group: String,
    },
    /// The members that the next operations of a process go by are too old to be known.
    #[error(
        "operation {number} of the group \"{group}\" went by members that nobody knows any more: this member was left behind; leave, and join again"
    )]
    LeftBehind {
        /// The group.
        group: String,
        /// Which operation.
        number: u64,
    },
    /// Nobody can serve the group.
    #[error(
        "the group \"{group}\" has no server, and this process cannot be one: {why}. Start the job with more room for guests, or make the group without a server"
    )]
    NoServer {
        /// The group.
        group: String,
        /// What was in the way.
        why: String,
    },
    /// The launcher was to serve the group.
    #[error(
        "the group \"{group}\" cannot be made: its server is to be in the launcher, which serves no groups. Start the job with `landeck run --serve-groups`, or have another process serve it"
    )]
    NoServingLauncher {
        /// The group.
        group: String,
    },
    /// The group's memory holds what no process writes.
    #[error(
        "the memory of the group \"{group}\" was overwritten ({what}): destroy it, and make another one"
    )]
    Broken {
        /// The group.
        group: String,
        /// What was seen.
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
