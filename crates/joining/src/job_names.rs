//! Names of mailboxes and groups in a job on several hosts. Processes ask the daemon of their host, which asks the arbiter.
//!
//! Question and answer are those about an object at the agent ([`landeck_protocols::door`]), on a connection of their own.

use std::time::{Duration, Instant};

use landeck_memory::Segment;
use landeck_protocols::door::{
    Name, Object, ObjectAnswer, ObjectKind, ObjectQuestion, ObjectRequest,
};
use landeck_wire::{HostNumber, ProcessId, SegmentId};

use crate::address::{Address, pause};
use crate::objects::{ObjectError, granted};
use crate::socket::{self, ExchangeError, Verdict};

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
    let question = ObjectQuestion::new(process, kind, ObjectRequest::Name).named(name);
    let question = ObjectQuestion { words, ..question };
    let until = Instant::now() + END_TIME;
    loop {
        match ask(segment, &question)? {
            Err(taken) if is_over(segment, taken.owner) && Instant::now() < until => {
                pause(END_LOOK);
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
    let question = ObjectQuestion::new(process, kind, ObjectRequest::Find).named(name);
    match ask(segment, &question)? {
        // The owner's end is on the way to the arbiter.
        Ok(found) if is_over(segment, found.owner) => {
            Err(ObjectError::Unknown { kind, name: name.as_str().to_owned() })
        }
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
    let question = ObjectQuestion::new(process, kind, ObjectRequest::Close);
    match ask(segment, &ObjectQuestion { number, ..question })? {
        Ok(_) => Ok(()),
        Err(_) => {
            let verdict = Verdict::InUse;
            Err(ObjectError::Refused { kind, verdict })
        }
    }
}

/// Claims to say why the process aborts its job. The inner error is the claim of another process, which was first; it holds
/// until the job is over.
///
/// # Errors
/// [`ObjectError`], also when the daemon does not answer in this time.
pub(crate) fn claim_abort(
    segment: &Segment,
    process: ProcessId,
    words: [u64; 2],
    within: Duration,
) -> Result<Result<Object, Object>, ObjectError> {
    let kind = ObjectKind::Abort;
    let question = ObjectQuestion::new(process, kind, ObjectRequest::Name);
    let question = ObjectQuestion { words, ..question }.named(&Name::new(kind.as_str())?);
    ask_within(segment, &question, within)
}

/// The PID of the process of this segment that asks about names. `None` if there is no such process.
#[must_use]
pub fn pid_of_asker(segment: &Segment, question: &ObjectQuestion) -> Option<u32> {
    let ProcessId { segment: host, slot, incarnation } = question.process;
    let is_here = host.0 == segment.plan().host
        && slot.0 < segment.plan().slots()
        && segment.incarnation(slot.0) == incarnation.0;
    is_here.then(|| segment.slot_record(slot.0).pid)
}

/// Asks the daemon. The inner error is the object that has the name already.
fn ask(
    segment: &Segment,
    question: &ObjectQuestion,
) -> Result<Result<Object, Object>, ObjectError> {
    ask_within(segment, question, socket::AGENT_TIME)
}

fn ask_within(
    segment: &Segment,
    question: &ObjectQuestion,
    within: Duration,
) -> Result<Result<Object, Object>, ObjectError> {
    let address = Address::of_daemon(SegmentId(segment.plan().host));
    let ask = || socket::exchange_about(&address, question, within);
    let (answer, _) = match ask() {
        // The daemon has ended before it answered. It may have started again.
        Err(ExchangeError::NobodyThere { .. }) => {
            let (answer, passed) = ask()?;
            (done_before(question, answer), passed)
        }
        asked => asked?,
    };
    match answer.verdict {
        Verdict::InUse => Ok(Err(answer.object)),
        _ => granted(question, answer).map(|answer| Ok(answer.object)),
    }
}

/// The answer to a question that was asked again, since nobody knows whether it was heard before: what it wants may be done.
fn done_before(question: &ObjectQuestion, answer: ObjectAnswer) -> ObjectAnswer {
    let Object { owner, words, .. } = answer.object;
    let is_done = match (question.asked, answer.verdict) {
        (ObjectRequest::Name, Verdict::InUse) => {
            (owner, words) == (question.process, question.words)
        }
        (ObjectRequest::Close, verdict) => verdict == Verdict::Unknown,
        _ => false,
    };
    if is_done { ObjectAnswer { verdict: Verdict::Granted, ..answer } } else { answer }
}

/// The error that another object has a name already.
#[must_use]
pub fn taken_by(segment: &Segment, kind: ObjectKind, name: &Name, taken: &Object) -> ObjectError {
    let (name, pid) = (name.as_str().to_owned(), taken.pid);
    // The hosts of other jobs have no names in this one.
    let is_elsewhere = taken.owner.segment.0 != segment.plan().host;
    let unnamed = || is_elsewhere.then(|| "another host".to_owned());
    match host_name(segment, taken.owner).or_else(unnamed) {
        Some(host) => ObjectError::TakenElsewhere { kind, name, pid, host },
        None => ObjectError::Taken { kind, name, pid },
    }
}

/// The name of the host of a process that is elsewhere, or its number. `None` for a process of this host.
#[must_use]
pub fn host_name(segment: &Segment, process: ProcessId) -> Option<String> {
    if process.segment.0 == segment.plan().host {
        return None;
    }
    let far = (0..segment.plan().far).map(|far| segment.far_record(far));
    let record = far.into_iter().find(|record| record.process.host == process.segment.0)?;
    let HostNumber(number) = HostNumber(record.host_number);
    Some(match segment.host_name(number).to_string() {
        name if name.is_empty() => format!("host {number}"),
        name => name,
    })
}

/// Waits until this host knows of something, but no longer than this: a word of the arbiter may be on its way.
pub fn wait_for<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now() + within;
    loop {
        let seen = look();
        if seen.is_some() || Instant::now() >= until {
            return seen;
        }
        pause(END_LOOK);
    }
}

/// Waits until this host knows that a process has ended, but no longer than this.
pub(crate) fn wait_until_over(segment: &Segment, process: ProcessId, within: Duration) {
    let _ = wait_for(within, || is_over(segment, process).then_some(()));
}

/// Whether this host knows already that a process has ended.
fn is_over(segment: &Segment, process: ProcessId) -> bool {
    if process.segment.0 == segment.plan().host {
        let record = segment.slot_record(process.slot.0);
        return record.incarnation != process.incarnation.0 || record.state.is_gone();
    }
    let far = (0..segment.plan().far).map(|far| segment.far_record(far));
    far.into_iter().any(|record| {
        let it = record.process;
        (it.host, it.slot, it.incarnation)
            == (process.segment.0, process.slot.0, process.incarnation.0)
            && record.state.is_gone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::{FarProcess, FarRecord, SegmentPlan, SlotRecord, SlotState};
    use landeck_protocols::door::Reply;
    use landeck_wire::{ControlMessage, Incarnation, Slot};
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::net::accept;
    use std::os::fd::OwnedFd;

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
        ProcessId { segment: SegmentId(host), slot: Slot(slot), incarnation }
    }

    #[test]
    fn only_processes_of_a_segment_ask_its_daemon() {
        let segment = segment();
        let pid = |process| {
            let question = ObjectQuestion::new(process, ObjectKind::Mailbox, ObjectRequest::Find);
            pid_of_asker(&segment, &question)
        };
        assert_eq!(pid(process(1, 1, 3)), Some(411));
        for stranger in [process(1, 1, 2), process(1, 99, 3), process(2, 1, 3)] {
            assert_eq!(pid(stranger), None);
        }
    }

    #[test]
    fn a_question_is_asked_again_if_the_daemon_ends_before_it_answers() {
        let host = u64::from(std::process::id()) << 32 | 0xa9a1;
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(host, 2) };
        let segment = Segment::local(&plan);
        let state = SlotState::Alive;
        segment.set_slot_record(1, SlotRecord { incarnation: 3, state, ..SlotRecord::default() });
        let (own, other) = (process(host, 1, 3), process(2, 0, 1));
        let answers = [
            (Verdict::InUse, own, [4, 5]),
            (Verdict::InUse, own, [4, 6]),
            (Verdict::InUse, other, [4, 5]),
            (Verdict::Unknown, own, [0; 2]),
        ];
        let listener = Address::of_daemon(SegmentId(host)).listen().unwrap();
        let daemon = std::thread::spawn(move || {
            for (verdict, owner, words) in answers {
                drop(accepted(&listener));
                let object = Object { number: 8, bytes: 0, words, owner, pid: 77 };
                let answer = Reply::Object(ObjectAnswer { object, ..ObjectAnswer::bare(verdict) });
                socket::send_answer(&accepted(&listener), &answer.encode(), None).unwrap();
            }
        });
        let name = Name::new("inbox").unwrap();
        let publish = || publish(&segment, own, ObjectKind::Mailbox, &name, [4, 5]);
        assert_eq!(publish().unwrap().number, 8, "it was done, and the answer lost");
        assert!(matches!(publish(), Err(ObjectError::Taken { .. })), "by another of its mailboxes");
        assert!(publish().is_err(), "by another process");
        withdraw(&segment, own, ObjectKind::Mailbox, 8).unwrap();
        daemon.join().unwrap();
        let nobody = ObjectError::Exchange(ExchangeError::NobodyThere { address: String::new() });
        let asked = find(&segment, own, ObjectKind::Mailbox, &name).unwrap_err();
        assert_eq!(std::mem::discriminant(&asked), std::mem::discriminant(&nobody), "{asked}");
    }

    fn accepted(listener: &OwnedFd) -> OwnedFd {
        poll(&mut [PollFd::new(listener, PollFlags::IN)], None).unwrap();
        accept(listener).unwrap()
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
