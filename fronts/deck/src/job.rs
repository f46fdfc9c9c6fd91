//! The job of this process, and where between deck_init and deck_done it is.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use landeck::unstable::JobInternals;
use landeck::unstable::joining::abort_word::AbortWord;
use landeck::unstable::joining::attach::AttachError;
use landeck::unstable::memory::abort::AbortClaim;
use landeck::unstable::memory::remark::{CallName, name_calls};
use landeck::unstable::memory::{Presence, fork};
use landeck::{Job, Options, Progress, ServedBy, ThreadMode};

use crate::errors;
use crate::mistake::Mistake;

const BEFORE: u8 = 0;
const STARTING: u8 = 1;
const RUNNING: u8 = 2;
const AFTER: u8 = 3;

/// Where between deck_init and deck_done the process is.
static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
/// There while the phase is running.
static JOB: RwLock<Option<Member>> = RwLock::new(None);

/// The membership in the job.
struct Member {
    job: Job,
    /// The number among the processes that the job began with; none for a process that came later.
    node: Option<c_int>,
    /// This is the second membership of a process, beside that of another library.
    is_second: bool,
}

/// deck_init.
pub(crate) fn start(progress: Progress) -> Result<(), Mistake> {
    let begun = PHASE.compare_exchange(BEFORE, STARTING, Ordering::AcqRel, Ordering::Acquire);
    if begun.is_err() {
        return Err(if begun == Err(AFTER) { too_late() } else { again() });
    }
    match join(progress) {
        Ok(member) => {
            *write() = Some(member);
            PHASE.store(RUNNING, Ordering::Release);
            Ok(())
        }
        Err(mistake) => {
            PHASE.store(BEFORE, Ordering::Release);
            Err(mistake)
        }
    }
}

/// deck_done.
pub(crate) fn finish() -> Result<(), Mistake> {
    check()?;
    let member = write().take().ok_or_else(too_late)?;
    PHASE.store(AFTER, Ordering::Release);
    Ok(member.job.leave()?)
}

/// Checks that the process is between deck_init and deck_done.
#[inline]
pub(crate) fn check() -> Result<(), Mistake> {
    match PHASE.load(Ordering::Acquire) {
        RUNNING => Ok(()),
        AFTER => Err(too_late()),
        _ => Err(too_early()),
    }
}

/// Uses the membership, while the process is in its job.
pub(crate) fn with<R>(work: impl FnOnce(&Job) -> Result<R, Mistake>) -> Result<R, Mistake> {
    check()?;
    read().as_ref().map_or_else(|| Err(too_late()), |member| work(&member.job))
}

/// The number of this process among those that the job began with.
pub(crate) fn node() -> Result<c_int, Mistake> {
    check()?;
    let node = read().as_ref().and_then(|member| member.node);
    node.ok_or_else(|| {
        let text = "this process joined a running job: it is none of those that the job began with";
        Mistake::known(errors::NOTMEMBER, text)
    })
}

/// Where a node serves a group.
pub(crate) fn place_of(node: c_int) -> Result<ServedBy, Mistake> {
    // A second membership has another slot than its node's number.
    if self::node().is_ok_and(|own| own == node) {
        return Ok(ServedBy::Creator);
    }
    let slot = with(|job| {
        let segment = job.segment();
        let peer = u32::try_from(node).map_or(u32::MAX, |node| segment.peer_of_rank(node));
        Ok((peer < segment.plan().slots()).then_some(peer))
    })?;
    let is_elsewhere = with(|job| Ok((0..job.segment().plan().ranks as c_int).contains(&node)))?;
    match slot {
        Some(slot) => Ok(ServedBy::Process(slot)),
        None if is_elsewhere => {
            let what = "that node is on another host, and a group is served on its own; give the number of a node here";
            Err(Mistake::value("server_node", node, what))
        }
        None => Err(Mistake::value("server_node", node, "give the number of a node")),
    }
}

/// Whether another library of this process is in the first world of the job for it.
pub(crate) fn is_second() -> bool {
    read().as_ref().is_some_and(|member| member.is_second)
}

/// Ends the whole job, and this process; says so and why, as far as the program does. A child made by fork
/// ends alone.
pub(crate) fn abort(code: c_int, why: Option<&str>) -> Result<(), Mistake> {
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    if fork::is_child() {
        let pid = std::process::id();
        fork::say(&format!(
            "deck_abort with code {code}{why}. pid {pid} was made by fork and ends alone, for it is no \
             member of the job, which goes on."
        ));
        fork::end_child(code)
    }
    check()?;
    let member = write().take().ok_or_else(too_late)?;
    let pid = std::process::id();
    let name = member.node.map_or_else(String::new, |node| format!("node {node} "));
    let call = format!("called deck_abort with code {code}{why}");
    let text = format!("{name}(pid {pid}) {call}");
    // Of the nodes that abort for one cause the first says so.
    let word = AbortWord::new(member.job.segment().clone(), member.job.process());
    if word.claim(&call) != AbortClaim::Said {
        fork::say(&text);
        word.said();
    }
    member.job.abort(code, &text)
}

/// Returns the function of DECK that this thread is in, for `landeck why`.
fn called() -> Option<CallName> {
    landeck_c_boundary::caller::innermost(&["deck_"]).map(|name| CallName::new(&name))
}

fn join(progress: Progress) -> Result<Member, Mistake> {
    let options = Options { threads: ThreadMode::Multiple, progress };
    name_calls(called);
    match Job::join_with(options) {
        Ok(job) => {
            let node = job.segment().rank_of(job.own_peer().0).map(|rank| rank as c_int);
            Ok(Member { job, node, is_second: false })
        }
        Err(landeck::Error { kind: landeck::ErrorKind::Attach(error), .. })
            if is_beside_another(&error) =>
        {
            beside(options)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether another library of this process is in the job already: the place is taken, and its
/// descriptor by somebody else than this library, which is in no job.
fn is_beside_another(error: &AttachError) -> bool {
    match error {
        AttachError::AlreadyJoined(_) => true,
        AttachError::SlotInUse { presence, .. } => *presence == Presence::Attached,
        _ => false,
    }
}

/// Joins as a guest with a place of its own: two libraries cannot share one.
fn beside(options: Options) -> Result<Member, Mistake> {
    let variable = |name: &str| std::env::var(name).ok();
    let Some(job) = variable("LANDECK_JOB") else {
        let text = "another library of this process has joined the job, and this launcher gives no \
                    second place: start the program with `landeck run`";
        return Err(Mistake::known(errors::JOB, text));
    };
    let node = variable("LANDECK_SLOT").and_then(|slot| slot.parse().ok());
    Ok(Member { job: Job::join_running(&job, options)?, node, is_second: true })
}

fn read() -> RwLockReadGuard<'static, Option<Member>> {
    JOB.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Option<Member>> {
    JOB.write().unwrap_or_else(PoisonError::into_inner)
}

#[cold]
fn too_early() -> Mistake {
    Mistake::known(errors::NOTINIT, "this process is not in its job: call deck_init first")
}

#[cold]
fn too_late() -> Mistake {
    let text = "deck_done was called: only messages can be used after it";
    Mistake::known(errors::DONE, text)
}

#[cold]
fn again() -> Mistake {
    Mistake::known(errors::AGAIN, "deck_init was called before: call it once")
}
