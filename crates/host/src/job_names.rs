//! Names of mailboxes and groups in a job on several hosts. Processes ask the daemon of their host, which asks the arbiter.
//!
//! Question and answer are those about an object at the agent ([`landeck_groups::door`]), on a connection of their own.

use std::time::{Duration, Instant};

use landeck_groups::door::{Asked, Name, Object, ObjectAnswer, ObjectKind, ObjectQuestion};
use landeck_groups::hosts::{NameAnswer, NameQuestion, Named, NamedKind};
use landeck_memory::Segment;
use landeck_wire::{HostId, HostNumber, ProcessId};
use rustix::event::{Timespec, poll};

use crate::address::Address;
use crate::objects::ObjectError;
use crate::socket::{self, Verdict};

/// How long the name of a process that has ended here may stay: its end is on the way to the arbiter.
const END_TIME: Duration = Duration::from_secs(2);
const END_LOOK: Duration = Duration::from_millis(1);

/// Gives a mailbox or a group of the process a name in its job, which lasts until the process takes it back or ends.
///
/// # Errors
/// [`ObjectError`].
pub fn publish(
    segment: &Segment,
    process: ProcessId,
    kind: ObjectKind,
    name: &Name,
    words: [u64; 2],
) -> Result<Object, ObjectError> {
    let question = ObjectQuestion::new(process, kind, Asked::Name).named(name);
    let question = ObjectQuestion { words, ..question };
    let until = Instant::now() + END_TIME;
    loop {
        match ask(segment, &question)? {
            Err(taken) if is_over(segment, taken.owner) && Instant::now() < until => {
                let moment = Timespec { tv_sec: 0, tv_nsec: END_LOOK.as_nanos() as i64 };
                let _ = poll(&mut [], Some(&moment));
            }
            Err(taken) => return Err(taken_by(segment, kind, name, &taken)),
            Ok(named) => return Ok(named),
        }
    }
}

/// Finds the mailbox or group with this name in the job.
///
/// # Errors
/// [`ObjectError`].
pub fn find(
    segment: &Segment,
    process: ProcessId,
    kind: ObjectKind,
    name: &Name,
) -> Result<Object, ObjectError> {
    let question = ObjectQuestion::new(process, kind, Asked::Find).named(name);
    match ask(segment, &question)? {
        // The owner's end is on the way to the arbiter.
        Ok(found) if is_over(segment, found.owner) => Err(unknown(kind, Some(name))),
        Ok(found) | Err(found) => Ok(found),
    }
}

/// Takes back a name of the process by its number.
///
/// # Errors
/// [`ObjectError`].
pub fn withdraw(
    segment: &Segment,
    process: ProcessId,
    kind: ObjectKind,
    number: u64,
) -> Result<(), ObjectError> {
    let question = ObjectQuestion::new(process, kind, Asked::Close);
    match ask(segment, &ObjectQuestion { number, ..question })? {
        Ok(_) => Ok(()),
        Err(_) => {
            let verdict = Verdict::InUse;
            Err(ObjectError::Refused { kind, verdict })
        }
    }
}

/// The process that asks the daemon of this segment, and its question. `None` if no process asks so.
#[must_use]
pub fn understand(
    segment: &Segment,
    question: ObjectQuestion,
) -> Option<(ProcessId, NameQuestion)> {
    let ObjectQuestion { asked, kind, process, number, words, name, .. } = question;
    let is_known = process.host.0 == segment.plan().host
        && process.slot.0 < segment.plan().slots()
        && segment.incarnation(process.slot.0) == process.incarnation.0;
    let kind = match kind {
        ObjectKind::Mailbox => NamedKind::Mailbox,
        ObjectKind::Group => NamedKind::Group,
        ObjectKind::Segment | ObjectKind::Semaphore => return None,
    };
    if !is_known {
        return None;
    }
    let name = name.map(|name| name.as_str().to_owned());
    let question = match (asked, name) {
        (Asked::Name, Some(name)) => {
            let pid = segment.slot_record(process.slot.0).pid;
            NameQuestion::Publish { kind, name, pid, words }
        }
        (Asked::Find, Some(name)) => NameQuestion::Find { kind, name },
        (Asked::Close, None) => NameQuestion::Withdraw { number },
        _ => return None,
    };
    Some((process, question))
}

/// The daemon's answer to a process of this host.
#[must_use]
pub fn answer_of(answer: &NameAnswer) -> ObjectAnswer {
    let (verdict, named) = match answer {
        NameAnswer::Granted(named) => (Verdict::Granted, Some(named)),
        NameAnswer::Taken(named) => (Verdict::InUse, Some(named)),
        NameAnswer::Unknown => (Verdict::Unknown, None),
        NameAnswer::NotAlive => (Verdict::NotAlive, None),
        NameAnswer::TooMany => (Verdict::TooMany, None),
    };
    let mut answer = ObjectAnswer::bare(verdict);
    if let Some(&Named { number, owner, pid, words }) = named {
        answer.object = Object { number, bytes: 0, words, owner, pid };
    }
    answer
}

/// Asks the daemon. The inner error is the object that has the name already.
fn ask(
    segment: &Segment,
    question: &ObjectQuestion,
) -> Result<Result<Object, Object>, ObjectError> {
    let address = Address::of_daemon(HostId(segment.plan().host));
    let (answer, _) = socket::exchange_about(&address, question, socket::AGENT_TIME)?;
    let kind = question.kind;
    match answer.verdict {
        Verdict::Granted => Ok(Ok(answer.object)),
        Verdict::InUse => Ok(Err(answer.object)),
        Verdict::Unknown => Err(unknown(kind, question.name.as_ref())),
        verdict => Err(ObjectError::Refused { kind, verdict }),
    }
}

fn unknown(kind: ObjectKind, name: Option<&Name>) -> ObjectError {
    match name {
        Some(name) => ObjectError::Unknown { kind, name: name.as_str().to_owned() },
        None => ObjectError::Gone { kind },
    }
}

/// The error that another object has a name already.
#[must_use]
pub fn taken_by(segment: &Segment, kind: ObjectKind, name: &Name, taken: &Object) -> ObjectError {
    let (name, pid) = (name.as_str().to_owned(), taken.pid);
    match host_name(segment, taken.owner) {
        Some(host) => ObjectError::TakenElsewhere { kind, name, pid, host },
        None => ObjectError::Taken { kind, name, pid },
    }
}

/// The name of the host of a process that is elsewhere, or its number. `None` for a process of this host.
#[must_use]
pub fn host_name(segment: &Segment, process: ProcessId) -> Option<String> {
    if process.host.0 == segment.plan().host {
        return None;
    }
    let far = (0..segment.plan().far).map(|far| segment.far_record(far));
    let record = far.into_iter().find(|record| record.process.host == process.host.0)?;
    let HostNumber(number) = HostNumber(record.host_number);
    Some(match segment.host_name(number).to_string() {
        name if name.is_empty() => format!("host {number}"),
        name => name,
    })
}

/// Whether this host knows already that a process has ended.
fn is_over(segment: &Segment, process: ProcessId) -> bool {
    if process.host.0 == segment.plan().host {
        let record = segment.slot_record(process.slot.0);
        return record.incarnation != process.incarnation.0 || record.state.is_gone();
    }
    let far = (0..segment.plan().far).map(|far| segment.far_record(far));
    far.into_iter().any(|record| {
        let it = record.process;
        (it.host, it.slot, it.incarnation)
            == (process.host.0, process.slot.0, process.incarnation.0)
            && record.state.is_gone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::{FarProcess, FarRecord, SegmentPlan, SlotRecord, SlotState};
    use landeck_wire::{Incarnation, Slot};

    fn segment() -> Segment {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&SegmentPlan { ranks: 3, far: 1, hosts: 2, ..plan });
        let state = SlotState::Alive;
        let near = SlotRecord { incarnation: 3, pid: 411, state, ..SlotRecord::default() };
        segment.set_slot_record(1, near);
        let process = FarProcess { host: 2, slot: 0, incarnation: 1 };
        let far = FarRecord { process, host_number: 1, state, ..FarRecord::default() };
        segment.set_far_record(0, far);
        segment
    }

    fn process(host: u64, slot: u32, incarnation: u32) -> ProcessId {
        let incarnation = Incarnation(incarnation);
        ProcessId { host: HostId(host), slot: Slot(slot), incarnation }
    }

    #[test]
    fn the_daemon_understands_what_processes_ask() {
        let (segment, name) = (segment(), Name::new("inbox").unwrap());
        let own = process(1, 1, 3);
        let question = |process, asked| ObjectQuestion::new(process, ObjectKind::Mailbox, asked);
        let named = ObjectQuestion { words: [4, 5], ..question(own, Asked::Name).named(&name) };
        let kind = NamedKind::Mailbox;
        let publish = NameQuestion::Publish { kind, name: "inbox".into(), pid: 411, words: [4, 5] };
        let decode = |question: &ObjectQuestion| understand(&segment, question.clone());
        assert_eq!(decode(&named), Some((own, publish)));
        let find = |kind| NameQuestion::Find { kind, name: "inbox".into() };
        assert_eq!(decode(&question(own, Asked::Find).named(&name)), Some((own, find(kind))));
        let group = ObjectQuestion::new(own, ObjectKind::Group, Asked::Find).named(&name);
        assert_eq!(decode(&group), Some((own, find(NamedKind::Group))));
        let close = ObjectQuestion { number: 8, ..question(own, Asked::Close) };
        assert_eq!(decode(&close), Some((own, NameQuestion::Withdraw { number: 8 })));
        for stranger in [process(1, 1, 2), process(1, 99, 3)] {
            assert_eq!(decode(&question(stranger, Asked::Find).named(&name)), None);
        }
        assert_eq!(decode(&question(own, Asked::Find)), None, "without a name");
        let segment_of = ObjectQuestion { kind: ObjectKind::Segment, ..named };
        assert_eq!(decode(&segment_of), None, "only mailboxes and groups have names over hosts");
    }

    #[test]
    fn an_owner_elsewhere_is_named_with_its_host_and_known_to_be_over() {
        let segment = segment();
        let name = Name::new("inbox").unwrap();
        let owned_by = |owner| Object { number: 1, bytes: 0, words: [0; 2], owner, pid: 77 };
        let far = process(2, 0, 1);
        let kind = ObjectKind::Mailbox;
        let text = taken_by(&segment, kind, &name, &owned_by(far)).to_string();
        assert!(text.contains("made by process 77 on host 1:"), "{text}");
        let near = taken_by(&segment, kind, &name, &owned_by(process(1, 1, 3)));
        assert!(matches!(near, ObjectError::Taken { .. }), "{near}");
        assert!(!is_over(&segment, far) && !is_over(&segment, process(1, 1, 3)));
        assert!(is_over(&segment, process(1, 1, 2)), "another process has its slot");
        let record = segment.far_record(0);
        segment.set_far_record(0, FarRecord { state: SlotState::Dead, ..record });
        assert!(is_over(&segment, far));
    }
}
