//! The errors that functions return. Made by `cargo xtask deck`.

use std::ffi::{CStr, c_int};

/// No error.
pub(crate) const OK: c_int = 0;
/// A pointer is null: pass the address of the object or of the memory.
pub(crate) const NULL: c_int = 1;
/// A pointer cannot be right (it is misaligned, or so much memory cannot exist): pass the address of the data.
pub(crate) const POINTER: c_int = 2;
/// The object was never made: create or fetch it first.
pub(crate) const HANDLE: c_int = 3;
/// The object is of another kind: pass one of the kind that the function works on.
pub(crate) const KIND: c_int = 4;
/// The object was destroyed: create or fetch a new one.
pub(crate) const DESTROYED: c_int = 5;
/// Another thread uses the object just now: one thread at a time may.
pub(crate) const BUSY: c_int = 6;
/// This process is not in its job: call deck_init first.
pub(crate) const NOTINIT: c_int = 7;
/// Deck_init was called before: call it once.
pub(crate) const AGAIN: c_int = 8;
/// Deck_done was called: only messages can be used after it.
pub(crate) const DONE: c_int = 9;
/// A name cannot be empty: give it 1 to 64 bytes, a thread's 1 to 15.
pub(crate) const NAMEEMPTY: c_int = 10;
/// The name is too long: give it 1 to 64 bytes, a thread's 1 to 15.
pub(crate) const NAMELONG: c_int = 11;
/// The name is no UTF-8: names are texts.
pub(crate) const NAMEUTF8: c_int = 12;
/// The name has a control character in it: choose one that can be read.
pub(crate) const NAMECONTROL: c_int = 13;
/// The name is taken: choose another, or fetch the object that has it.
pub(crate) const TAKEN: c_int = 14;
/// No object of this job has the name: make it first, or check the spelling.
pub(crate) const UNKNOWN: c_int = 15;
/// The object is gone (its owner has destroyed it, or its last user has left): go on without it, or make it again.
pub(crate) const GONE: c_int = 16;
/// The call needs a process that is gone: go on without it, or end the job.
pub(crate) const DEAD: c_int = 17;
/// Another process has sent impossible data: nothing more is taken from it.
pub(crate) const BROKEN: c_int = 18;
/// Only the thread that created the mailbox retrieves from it and destroys it.
pub(crate) const NOTCREATOR: c_int = 19;
/// The next values in the message have another type: unpack them as they were packed.
pub(crate) const TYPE: c_int = 20;
/// The message has fewer values left: deck_msg_next gives their number.
pub(crate) const END: c_int = 21;
/// The message cannot be cut like this: name values that it has, and divide it into equal parts.
pub(crate) const PART: c_int = 22;
/// The message is empty or holds other things than values of one type: pack values of one type, or use the _any form.
pub(crate) const MIXED: c_int = 23;
/// There is less room than the text needs: give it more.
pub(crate) const ROOM: c_int = 24;
/// The received data are no message: their sender is broken.
pub(crate) const NOTMESSAGE: c_int = 25;
/// The text is no UTF-8: pack it as values of DECK_BYTE.
pub(crate) const NOTTEXT: c_int = 26;
/// The time is over, and nothing was lost: call again, or allow more time.
pub(crate) const TIMEDOUT: c_int = 27;
/// The call would have to wait: call again later, or the form that waits.
pub(crate) const WOULDBLOCK: c_int = 28;
/// The job is being ended: call deck_done and return.
pub(crate) const ENDED: c_int = 29;
/// A process died that held a unit of the semaphore: repair the protected data, and call deck_sem_recover.
pub(crate) const OWNERDIED: c_int = 30;
/// A semaphore has at most 65,535 units: give it fewer.
pub(crate) const UNITS: c_int = 31;
/// There is not enough memory: ask for less, or free unused objects.
pub(crate) const NOMEMORY: c_int = 32;
/// The system has no room for the thread: allow more threads, or use smaller stacks.
pub(crate) const NOTHREAD: c_int = 33;
/// The thread cannot be joined: join threads of deck_thread_create, once, and not from themselves.
pub(crate) const NOTJOINABLE: c_int = 34;
/// An argument has an invalid value: deck_error_text has the argument and its valid values.
pub(crate) const VALUE: c_int = 35;
/// There is no such architecture: flat, binary-tree, butterfly and deck2003 are some.
pub(crate) const ARCHITECTURE: c_int = 36;
/// Members bring messages of different lengths where they must be equal: pack as many values everywhere, or use the _any form.
pub(crate) const LENGTH: c_int = 37;
/// Members called different operations: all call the same in the same order.
pub(crate) const MISMATCH: c_int = 38;
/// The operation means nothing for values of this type: choose another operation or type.
pub(crate) const REDUCE: c_int = 39;
/// This process is no member of the group of all processes: create or join a group with a name.
pub(crate) const NOTMEMBER: c_int = 40;
/// No thread receives while the program does not call the library: start with deck_init_flags and DECK_PROGRESS.
pub(crate) const NOPROGRESS: c_int = 41;
/// This process cannot find its job: start it with `landeck run`.
pub(crate) const JOB: c_int = 42;
/// The agent of the job does not answer: the job is over or broken, start it again.
pub(crate) const AGENT: c_int = 43;
/// The system has refused a request: deck_error_text has the details.
pub(crate) const SYSTEM: c_int = 44;
/// This process was made by fork and is no member of the job: let its parent call, or run another program here (exec).
pub(crate) const FORKED: c_int = 45;
/// The library failed by a fault of its own: please report what it wrote to standard error.
pub(crate) const FAULT: c_int = 46;
/// The group has not started, because it has never had its minimum of members: call again when more have joined.
pub(crate) const MINIMUM: c_int = 47;
/// The group is being destroyed: close the object, and create or join another group.
pub(crate) const DESTROYING: c_int = 48;
/// The group is destroyed: close the object, and create or join another group.
pub(crate) const GROUPDESTROYED: c_int = 49;
/// The group is destroyed, but some broadcasts had no room until the time was over: give it more time, or retrieve sooner.
pub(crate) const LOSS: c_int = 50;
/// A member died before the synchronisation was complete: the others have come, go on with them.
pub(crate) const MEMBERDIED: c_int = 51;
/// This mailbox is a member of the group already: leave first, or join with another mailbox.
pub(crate) const ALREADYMEMBER: c_int = 52;
/// This process is no member of the group (any more): join it first.
pub(crate) const LEFT: c_int = 53;
/// The group has as many members as a group can have: leave with one of them first, or make another group.
pub(crate) const TOOMANY: c_int = 54;
/// The group is full, because members do not retrieve, perhaps this thread: retrieve there, or make the group with more room.
pub(crate) const FULL: c_int = 55;
/// The message is longer than the memory of the group: make the group with more bytes, or send parts.
pub(crate) const TOOLONG: c_int = 56;
/// A process is in the group twice, and collective operations have each process once: leave with one of its members.
pub(crate) const TWICE: c_int = 57;
/// The collective operations of the group went on without this member: leave and join again.
pub(crate) const LEFTBEHIND: c_int = 58;
/// No process can serve the group: start the job with more room for guests, or with `landeck run --serve-groups` for a server in the launcher.
pub(crate) const NOSERVER: c_int = 59;
/// This library does not know the size of the options: begin with their initialiser, or run with the library of the program's deck.h.
pub(crate) const OPTIONS: c_int = 60;
/// The group lives on another host and cannot be reached: go on without it, or make another group.
pub(crate) const UNREACHED: c_int = 61;
/// The server of the group, on another host, did not say in time whether it has done the call: look at the group before you call again.
pub(crate) const INDOUBT: c_int = 62;

/// Every error: its number, its name, what it says.
pub(crate) const ALL: &[(c_int, &CStr, &CStr)] = &[
    (0, c"DECK_OK", c"no error"),
    (1, c"DECK_ENULL", c"a pointer is null: pass the address of the object or of the memory"),
    (2, c"DECK_EPOINTER", c"a pointer cannot be right (it is misaligned, or so much memory cannot exist): pass the address of the data"),
    (3, c"DECK_EHANDLE", c"the object was never made: create or fetch it first"),
    (4, c"DECK_EKIND", c"the object is of another kind: pass one of the kind that the function works on"),
    (5, c"DECK_EDESTROYED", c"the object was destroyed: create or fetch a new one"),
    (6, c"DECK_EBUSY", c"another thread uses the object just now: one thread at a time may"),
    (7, c"DECK_ENOTINIT", c"this process is not in its job: call deck_init first"),
    (8, c"DECK_EAGAIN", c"deck_init was called before: call it once"),
    (9, c"DECK_EDONE", c"deck_done was called: only messages can be used after it"),
    (10, c"DECK_ENAMEEMPTY", c"a name cannot be empty: give it 1 to 64 bytes, a thread's 1 to 15"),
    (11, c"DECK_ENAMELONG", c"the name is too long: give it 1 to 64 bytes, a thread's 1 to 15"),
    (12, c"DECK_ENAMEUTF8", c"the name is no UTF-8: names are texts"),
    (13, c"DECK_ENAMECONTROL", c"the name has a control character in it: choose one that can be read"),
    (14, c"DECK_ETAKEN", c"the name is taken: choose another, or fetch the object that has it"),
    (15, c"DECK_EUNKNOWN", c"no object of this job has the name: make it first, or check the spelling"),
    (16, c"DECK_EGONE", c"the object is gone (its owner has destroyed it, or its last user has left): go on without it, or make it again"),
    (17, c"DECK_EDEAD", c"the call needs a process that is gone: go on without it, or end the job"),
    (18, c"DECK_EBROKEN", c"another process has sent impossible data: nothing more is taken from it"),
    (19, c"DECK_ENOTCREATOR", c"only the thread that created the mailbox retrieves from it and destroys it"),
    (20, c"DECK_ETYPE", c"the next values in the message have another type: unpack them as they were packed"),
    (21, c"DECK_EEND", c"the message has fewer values left: deck_msg_next gives their number"),
    (22, c"DECK_EPART", c"the message cannot be cut like this: name values that it has, and divide it into equal parts"),
    (23, c"DECK_EMIXED", c"the message is empty or holds other things than values of one type: pack values of one type, or use the _any form"),
    (24, c"DECK_EROOM", c"there is less room than the text needs: give it more"),
    (25, c"DECK_ENOTMESSAGE", c"the received data are no message: their sender is broken"),
    (26, c"DECK_ENOTTEXT", c"the text is no UTF-8: pack it as values of DECK_BYTE"),
    (27, c"DECK_ETIMEDOUT", c"the time is over, and nothing was lost: call again, or allow more time"),
    (28, c"DECK_EWOULDBLOCK", c"the call would have to wait: call again later, or the form that waits"),
    (29, c"DECK_EENDED", c"the job is being ended: call deck_done and return"),
    (30, c"DECK_EOWNERDIED", c"a process died that held a unit of the semaphore: repair the protected data, and call deck_sem_recover"),
    (31, c"DECK_EUNITS", c"a semaphore has at most 65,535 units: give it fewer"),
    (32, c"DECK_ENOMEMORY", c"there is not enough memory: ask for less, or free unused objects"),
    (33, c"DECK_ENOTHREAD", c"the system has no room for the thread: allow more threads, or use smaller stacks"),
    (34, c"DECK_ENOTJOINABLE", c"the thread cannot be joined: join threads of deck_thread_create, once, and not from themselves"),
    (35, c"DECK_EVALUE", c"an argument has an invalid value: deck_error_text has the argument and its valid values"),
    (36, c"DECK_EARCHITECTURE", c"there is no such architecture: flat, binary-tree, butterfly and deck2003 are some"),
    (37, c"DECK_ELENGTH", c"members bring messages of different lengths where they must be equal: pack as many values everywhere, or use the _any form"),
    (38, c"DECK_EMISMATCH", c"members called different operations: all call the same in the same order"),
    (39, c"DECK_EREDUCE", c"the operation means nothing for values of this type: choose another operation or type"),
    (40, c"DECK_ENOTMEMBER", c"this process is no member of the group of all processes: create or join a group with a name"),
    (41, c"DECK_ENOPROGRESS", c"no thread receives while the program does not call the library: start with deck_init_flags and DECK_PROGRESS"),
    (42, c"DECK_EJOB", c"this process cannot find its job: start it with `landeck run`"),
    (43, c"DECK_EAGENT", c"the agent of the job does not answer: the job is over or broken, start it again"),
    (44, c"DECK_ESYSTEM", c"the system has refused a request: deck_error_text has the details"),
    (45, c"DECK_EFORKED", c"this process was made by fork and is no member of the job: let its parent call, or run another program here (exec)"),
    (46, c"DECK_EFAULT", c"the library failed by a fault of its own: please report what it wrote to standard error"),
    (47, c"DECK_EMINIMUM", c"the group has not started, because it has never had its minimum of members: call again when more have joined"),
    (48, c"DECK_EDESTROYING", c"the group is being destroyed: close the object, and create or join another group"),
    (49, c"DECK_EGROUPDESTROYED", c"the group is destroyed: close the object, and create or join another group"),
    (50, c"DECK_ELOSS", c"the group is destroyed, but some broadcasts had no room until the time was over: give it more time, or retrieve sooner"),
    (51, c"DECK_EMEMBERDIED", c"a member died before the synchronisation was complete: the others have come, go on with them"),
    (52, c"DECK_EALREADYMEMBER", c"this mailbox is a member of the group already: leave first, or join with another mailbox"),
    (53, c"DECK_ELEFT", c"this process is no member of the group (any more): join it first"),
    (54, c"DECK_ETOOMANY", c"the group has as many members as a group can have: leave with one of them first, or make another group"),
    (55, c"DECK_EFULL", c"the group is full, because members do not retrieve, perhaps this thread: retrieve there, or make the group with more room"),
    (56, c"DECK_ETOOLONG", c"the message is longer than the memory of the group: make the group with more bytes, or send parts"),
    (57, c"DECK_ETWICE", c"a process is in the group twice, and collective operations have each process once: leave with one of its members"),
    (58, c"DECK_ELEFTBEHIND", c"the collective operations of the group went on without this member: leave and join again"),
    (59, c"DECK_ENOSERVER", c"no process can serve the group: start the job with more room for guests, or with `landeck run --serve-groups` for a server in the launcher"),
    (60, c"DECK_EOPTIONS", c"this library does not know the size of the options: begin with their initialiser, or run with the library of the program's deck.h"),
    (61, c"DECK_EUNREACHED", c"the group lives on another host and cannot be reached: go on without it, or make another group"),
    (62, c"DECK_EINDOUBT", c"the server of the group, on another host, did not say in time whether it has done the call: look at the group before you call again"),
];
