//! Admitting hosts whose daemons were started by a remote shell.

use std::io;
use std::net::IpAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_hostfile::host_list::is_this_host;
use landeck_launch::gathering::{Admission, AdmissionRefusal, Admitted};
use landeck_wire::{HostIncarnation, HostNumber};
use rustix::event::epoll::EventFlags;

use crate::bootstrap::{Announcement, Assignment};
use crate::context::Context;
use crate::random;

/// Admits the daemon that has introduced itself by this line, and is on one of these hosts; for the arbiter.
///
/// # Errors
/// [`AdmissionRefusal`].
pub(crate) fn admit(
    context: &mut Context<'_>,
    names: &[&str],
    line: &str,
) -> Result<Admitted, AdmissionRefusal> {
    let announcement: Announcement = line.parse().map_err(|error| AdmissionRefusal {
        place: None,
        why: format!("host {}: {error}", names.join(", ")),
        is_early: false,
    })?;
    let place = match names {
        [_] => Some(0),
        _ => names.iter().position(|name| is_this_host(name, &announcement.name)),
    };
    let Some(place) = place else {
        let name = &announcement.name;
        let why = format!("host {name}: a daemon was started there, and it is no host of this job");
        return Err(AdmissionRefusal { place: None, why, is_early: false });
    };
    let name = names[place];
    let refuse = |why| AdmissionRefusal { place: Some(place), why, is_early: false };
    let facts = &announcement.facts;
    context.facts().admits(name, facts).map_err(|error| refuse(error.to_string()))?;
    if let Some(host) = known_host(context, &announcement) {
        return Ok(Admitted { place, host, answer: None });
    }
    if !context.has_way_to(name, &announcement.addresses) {
        let why = format!(
            "host {name}: no network and no gateway joins it to this host, as the machine's description says"
        );
        return Err(AdmissionRefusal { is_early: true, ..refuse(why) });
    }
    context.open_port().map_err(|error| refuse(format!("host {name}: {error}")))?;
    let number = random::number().map_err(|error| refuse(format!("host {name}: {error}")))?;
    let (key, incarnation) = (announcement.key, HostIncarnation(number));
    let addresses = announcement.socket_addresses();
    let host = context.admit(name.to_owned(), key, incarnation, addresses, facts.cores);
    context.note_facts(host, facts.clone());
    let enrolment = context.enrolment(host).ok_or_else(|| {
        refuse(format!("host {name}: it was admitted, and is no member any more"))
    })?;
    let assignment = Assignment { key, enrolment };
    Ok(Admitted { place, host, answer: Some(assignment.to_string()) })
}

/// The host that takes part already, under this name or another one.
fn known_host(context: &Context<'_>, announcement: &Announcement) -> Option<HostNumber> {
    let is_it = |host: HostNumber| {
        context.facts_of(host).is_some_and(|known| known.is_same_host(&announcement.facts))
    };
    context.hosts().map(|entry| entry.host).find(|host| is_it(*host))
}

/// The machine of a launcher's job, whose hosts its own daemon gathers.
impl Admission for Context<'_> {
    fn watch(&mut self, what: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        Context::watch(self, what, token, EventFlags::IN)
    }

    fn unwatch(&mut self, what: BorrowedFd<'_>) {
        // It was watched, so this can fail only if it is closed already.
        let _ = Context::unwatch(self, what);
    }

    fn wake_in(&mut self, time: Duration) {
        self.wake_at(self.now() + time);
    }

    fn is_here(&self, name: &str) -> Option<HostNumber> {
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let has = |address: IpAddr| self.own_entry().addresses.iter().any(|at| at.ip() == address);
        let is_here = is_this_host(name, &own) || name.parse().is_ok_and(has);
        is_here.then(|| self.own_host())
    }

    fn admit(&mut self, names: &[&str], line: &str) -> Result<Admitted, AdmissionRefusal> {
        admit(self, names, line)
    }

    fn keep_streams(&mut self, host: HostNumber, output: OwnedFd, input: OwnedFd) {
        self.add_stdio_trunk(host, output, input);
    }

    fn token(&mut self) -> Result<String, String> {
        self.issue_token().map(|token| token.text()).map_err(|error| error.to_string())
    }

    fn complaint(&self, host: HostNumber) -> String {
        Context::complaint(self, host)
    }

    fn name_of(&self, host: HostNumber) -> String {
        self.host(host).map(|entry| entry.name.clone()).unwrap_or_default()
    }
}
