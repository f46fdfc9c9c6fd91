//! Hosts with their slots, as a command line or a hostfile names them.

use std::collections::BTreeMap;
use std::fmt;

/// The largest number of hosts.
pub const HOSTS_MAX: usize = 65_535;
/// The largest number of slots of one host.
pub const SLOTS_EACH_MAX: u32 = 65_535;
/// The longest name of a host, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// The longest part of a user's word that an error repeats, in letters.
const EXCERPT_MAX: usize = 60;

/// A host that a job may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRequest {
    /// The name or address; an IPv6 address stands without its brackets.
    pub name: String,
    /// The number of processes for which the host has room.
    pub slots: u32,
    /// The number of processes that it never exceeds; `None` permits oversubscription.
    pub max_slots: Option<u32>,
    /// The user as whom a remote shell logs in there; `None` leaves that to it.
    pub login: Option<String>,
}

impl HostRequest {
    /// A host with this number of slots.
    #[must_use]
    pub fn new(name: impl Into<String>, slots: u32) -> HostRequest {
        HostRequest { name: name.into(), slots, max_slots: None, login: None }
    }

    /// The host as a remote shell is told of it: `NAME` or `USER@NAME`.
    #[must_use]
    pub fn target(&self) -> String {
        match &self.login {
            Some(login) => format!("{login}@{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// The position of a fault in a list of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostListPlace {
    /// A line of a file, counted from 1.
    Line(usize),
    /// An entry between commas, counted from 1.
    Entry(usize),
    /// The list as a whole.
    Whole,
}

/// A wrong list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}{fault}")]
pub struct HostListError {
    /// The position of the fault.
    pub place: HostListPlace,
    /// The fault.
    pub fault: HostFault,
}

/// A fault in a list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostFault {
    /// A name is missing.
    #[error("the name of a host is missing")]
    NoName,
    /// A word is not a possible name.
    #[error(
        "\"{0}\" cannot be the name of a host; names have letters, digits, dots, dashes and underscores, \
         and IPv6 addresses stand in brackets as in [fe80::1]"
    )]
    Name(String),
    /// An entry has more than one colon.
    #[error(
        "\"{0}\" has several colons; write NAME:SLOTS, or an IPv6 address in brackets as in [fe80::1]:2"
    )]
    Colons(String),
    /// A number is missing or wrong.
    #[error("\"{0}\": a number of slots is wanted, from 1 to 65,535, as in node1:4")]
    Slots(String),
    /// A word of a line is unknown.
    #[error("\"{0}\" is not known here; a line is NAME, NAME:SLOTS, or NAME slots=N max_slots=N")]
    Word(String),
    /// A line gives a number twice.
    #[error("{0} is given twice; leave one out")]
    Twice(&'static str),
    /// The limit is below the number of slots.
    #[error("max_slots={most} is less than the {slots} slots; give at least as many")]
    Most {
        /// The limit.
        most: u32,
        /// The number of slots.
        slots: u32,
    },
    /// There are too many hosts.
    #[error("the list has more than 65,535 hosts; name fewer")]
    Hosts,
    /// The word before the `@` is no possible name of a user.
    #[error("\"{0}\": the name of a user is wanted before the @, as in ada@node1")]
    Login(String),
    /// The entries of one host name several users.
    #[error("host {0} is reached as several users; name one")]
    Logins(String),
    /// The entries of one host add up to too many slots.
    #[error("host {0} has more than 65,535 slots; give fewer")]
    Sum(String),
    /// Brackets with ranges are not closed, empty or wrong.
    #[error("\"{0}\": ranges are wanted in the brackets, as in node[1-3,07-09]")]
    Ranges(String),
    /// The numbers for each host are wrong.
    #[error("\"{0}\": numbers of slots are wanted, as in 2(x3),1")]
    Counts(String),
    /// There are other numbers of slots than hosts.
    #[error("there are {counts} numbers of slots for {hosts} hosts; as many are needed")]
    CountsDiffer {
        /// The number of numbers.
        counts: usize,
        /// The number of hosts.
        hosts: usize,
    },
    /// The list names no host.
    #[error("the list names no host; name at least one")]
    Empty,
}

impl fmt::Display for HostListPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostListPlace::Line(number) => write!(out, "line {number}: "),
            HostListPlace::Entry(number) => write!(out, "entry {number}: "),
            HostListPlace::Whole => Ok(()),
        }
    }
}

impl HostFault {
    /// The error for this fault in a line, counted from 1.
    pub(crate) fn in_line(self, number: usize) -> HostListError {
        HostListError { place: HostListPlace::Line(number), fault: self }
    }

    /// The error for this fault in an entry, counted from 1.
    pub(crate) fn in_entry(self, number: usize) -> HostListError {
        HostListError { place: HostListPlace::Entry(number), fault: self }
    }

    /// The error for this fault of the whole list.
    pub(crate) fn of_list(self) -> HostListError {
        HostListError { place: HostListPlace::Whole, fault: self }
    }
}

/// Parses the value of `--host`: names with numbers of slots, as in `a:2,b,ada@c,[fe80::1]:4`. A name without a number
/// has one slot. Entries of one name add up.
///
/// # Errors
/// [`HostListError`] with the number of the entry.
pub fn from_words(text: &str) -> Result<Vec<HostRequest>, HostListError> {
    let mut sum = Sum::default();
    for (at, entry) in text.split(',').enumerate() {
        let number = at + 1;
        let (login, name, slots) =
            entry_of(entry.trim()).map_err(|fault| fault.in_entry(number))?;
        let host = HostRequest { login, ..HostRequest::new(name, slots.unwrap_or(1)) };
        sum.add(host).map_err(|fault| fault.in_entry(number))?;
    }
    Ok(sum.hosts)
}

/// Parses a hostfile: a host in each line as `h`, `h:n`, or `h slots=n max_slots=m` (also `max-slots`). Text behind
/// `#` is a comment, and so is a byte order mark at the beginning. Lines of one name add up.
///
/// # Errors
/// [`HostListError`] with the number of the line; a file without a host is one.
pub fn from_file(text: &str) -> Result<Vec<HostRequest>, HostListError> {
    let mut sum = Sum::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let line = line.split('#').next().unwrap_or_default();
        let Some(host) = line_of(line).map_err(|fault| fault.in_line(number))? else { continue };
        sum.add(host).map_err(|fault| fault.in_line(number))?;
    }
    sum.any()
}

/// Joins several lists. Entries of one name add up.
///
/// # Errors
/// [`HostListError`] if the sums are too large.
pub fn add_up(
    hosts: impl IntoIterator<Item = HostRequest>,
) -> Result<Vec<HostRequest>, HostListError> {
    let mut sum = Sum::default();
    for host in hosts {
        sum.add(host).map_err(HostFault::of_list)?;
    }
    Ok(sum.hosts)
}

/// A list in which several entries were found to be one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedHosts {
    /// The hosts, each under the name that came first.
    pub hosts: Vec<HostRequest>,
    /// The new index of each entry of the old list.
    pub index_of: Vec<usize>,
}

/// Merges entries of a list that mean one host; each pair in `same` has two indices of the list. Slots add up, up to
/// [`SLOTS_EACH_MAX`]. A pair with an index beyond the list means nothing.
pub fn merge(list: &[HostRequest], same: &[(usize, usize)]) -> MergedHosts {
    // Each entry leads to an earlier entry of the same host, or to itself.
    let mut leads: Vec<usize> = (0..list.len()).collect();
    for &(one, other) in same {
        if one.max(other) < list.len() {
            let (one, other) = (first_of(&mut leads, one), first_of(&mut leads, other));
            leads[one.max(other)] = one.min(other);
        }
    }
    let mut hosts: Vec<HostRequest> = Vec::new();
    let mut index_of = Vec::with_capacity(list.len());
    for (at, host) in list.iter().enumerate() {
        let first = first_of(&mut leads, at);
        if first == at {
            index_of.push(hosts.len());
            hosts.push(host.clone());
        } else {
            let index = index_of[first];
            index_of.push(index);
            let (slots, most) = together(&hosts[index], host);
            hosts[index].slots = slots.min(SLOTS_EACH_MAX);
            hosts[index].max_slots = most;
            if hosts[index].login.is_none() {
                hosts[index].login.clone_from(&host.login);
            }
        }
    }
    MergedHosts { hosts, index_of }
}

/// The first entry that an entry leads to. The path is halved on the way, so long chains stay cheap.
fn first_of(leads: &mut [usize], mut at: usize) -> usize {
    while leads[at] != at {
        leads[at] = leads[leads[at]];
        at = leads[at];
    }
    at
}

/// Whether a name means the host that calls itself `own`: a name of the loopback, or its own name, whole or without
/// its domain.
pub fn is_this_host(name: &str, own: &str) -> bool {
    let short = own.split('.').next().unwrap_or_default();
    let is = |other: &str| !other.is_empty() && name.eq_ignore_ascii_case(other);
    ["localhost", "127.0.0.1", "::1", own, short].into_iter().any(is)
}

/// The number of slots of all hosts.
pub fn slots_of(hosts: &[HostRequest]) -> u64 {
    hosts.iter().map(|host| u64::from(host.slots)).sum()
}

/// Adds entries of one name up, and keeps the order of first naming.
#[derive(Default)]
pub(crate) struct Sum {
    hosts: Vec<HostRequest>,
    places: BTreeMap<String, usize>,
}

impl Sum {
    pub(crate) fn add(&mut self, host: HostRequest) -> Result<(), HostFault> {
        if let Some(&at) = self.places.get(&host.name) {
            let (slots, most) = together(&self.hosts[at], &host);
            if slots > SLOTS_EACH_MAX {
                return Err(HostFault::Sum(excerpt(&host.name)));
            }
            match (&self.hosts[at].login, &host.login) {
                (Some(one), Some(other)) if one != other => {
                    return Err(HostFault::Logins(excerpt(&host.name)));
                }
                (None, Some(_)) => self.hosts[at].login = host.login,
                _ => {}
            }
            self.hosts[at].slots = slots;
            self.hosts[at].max_slots = most;
            return Ok(());
        }
        if self.hosts.len() == HOSTS_MAX {
            return Err(HostFault::Hosts);
        }
        self.places.insert(host.name.clone(), self.hosts.len());
        self.hosts.push(host);
        Ok(())
    }

    /// The hosts, of which there must be one at least.
    pub(crate) fn any(self) -> Result<Vec<HostRequest>, HostListError> {
        match self.hosts.is_empty() {
            true => Err(HostFault::Empty.of_list()),
            false => Ok(self.hosts),
        }
    }
}

/// The slots of two entries of one host together, and their limit. An entry without a limit adds its slots to the
/// limit of the other.
fn together(one: &HostRequest, other: &HostRequest) -> (u32, Option<u32>) {
    let most = |host: &HostRequest| host.max_slots.unwrap_or(host.slots);
    let is_limited = one.max_slots.is_some() || other.max_slots.is_some();
    let limit = is_limited.then(|| most(one).saturating_add(most(other)));
    (one.slots.saturating_add(other.slots), limit)
}

/// The host in a line of a hostfile without its comment; `None` if the line is blank.
fn line_of(line: &str) -> Result<Option<HostRequest>, HostFault> {
    let mut words = line.split_whitespace();
    let Some(first) = words.next() else { return Ok(None) };
    let (login, name, mut slots) = entry_of(first)?;
    let mut most = None;
    for word in words {
        let (place, what, digits) = match word.split_once('=') {
            Some(("slots", digits)) => (&mut slots, "slots", digits),
            Some(("max_slots" | "max-slots", digits)) => (&mut most, "max_slots", digits),
            _ => return Err(HostFault::Word(excerpt(word))),
        };
        if place.is_some() {
            return Err(HostFault::Twice(what));
        }
        *place = Some(number(digits).ok_or_else(|| HostFault::Slots(excerpt(word)))?);
    }
    let slots = slots.unwrap_or(1);
    match most {
        Some(most) if most < slots => Err(HostFault::Most { most, slots }),
        max_slots => Ok(Some(HostRequest { name, slots, max_slots, login })),
    }
}

/// A user, a host and a number of slots.
type Entry = (Option<String>, String, Option<u32>);

/// The parts of `NAME`, `NAME:SLOTS`, `[ADDRESS]` or `[ADDRESS]:SLOTS`, each perhaps behind `USER@`.
fn entry_of(whole: &str) -> Result<Entry, HostFault> {
    let Some((login, entry)) = whole.split_once('@') else {
        let (name, slots) = host_of(whole)?;
        return Ok((None, name, slots));
    };
    check_name(login).map_err(|_| HostFault::Login(excerpt(whole)))?;
    let (name, slots) = host_of(entry)?;
    Ok((Some(login.to_owned()), name, slots))
}

/// The name and the number of a host.
fn host_of(entry: &str) -> Result<(String, Option<u32>), HostFault> {
    let (name, rest) = match entry.strip_prefix('[') {
        Some(bracketed) => {
            let (address, rest) =
                bracketed.split_once(']').ok_or_else(|| HostFault::Name(excerpt(entry)))?;
            if !is_ipv6(address) {
                return Err(HostFault::Name(excerpt(entry)));
            }
            (address, rest)
        }
        None => {
            let end = entry.find(':').unwrap_or(entry.len());
            let (name, rest) = entry.split_at(end);
            if rest.len() > 1 && rest[1..].contains(':') {
                return Err(HostFault::Colons(excerpt(entry)));
            }
            check_name(name)?;
            (name, rest)
        }
    };
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Ok((name.to_owned(), None)),
        None => Err(HostFault::Name(excerpt(entry))),
        Some(digits) => {
            let slots = number(digits).ok_or_else(|| HostFault::Slots(excerpt(entry)))?;
            Ok((name.to_owned(), Some(slots)))
        }
    }
}

/// Fails unless a word can be the name of a host. A leading dash is none: commands such as ssh would take the name for
/// an option.
pub(crate) fn check_name(name: &str) -> Result<(), HostFault> {
    if name.is_empty() {
        return Err(HostFault::NoName);
    }
    let is_possible = |letter: u8| letter.is_ascii_alphanumeric() || b".-_".contains(&letter);
    match !name.starts_with('-') && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_possible) {
        true => Ok(()),
        false => Err(HostFault::Name(excerpt(name))),
    }
}

/// Whether a text looks like an IPv6 address, perhaps with a zone as in `fe80::1%eth0`. Connecting tells whether it
/// is one.
fn is_ipv6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').unwrap_or((text, "0"));
    let is_digit = |letter: u8| letter.is_ascii_hexdigit() || b":.".contains(&letter);
    let is_colon = |letter: &u8| *letter == b':';
    (2..=45).contains(&address.len())
        && address.bytes().all(is_digit)
        && address.bytes().filter(is_colon).count() >= 2
        && check_name(zone).is_ok()
}

/// A number of slots.
pub(crate) fn number(digits: &str) -> Option<u32> {
    let is_plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number = is_plain.then(|| digits.parse().ok())??;
    (1..=SLOTS_EACH_MAX).contains(&number).then_some(number)
}

/// The beginning of a word, without control characters.
pub(crate) fn excerpt(word: &str) -> String {
    let shown = |letter: char| if letter.is_control() { '?' } else { letter };
    let mut text: String = word.chars().take(EXCERPT_MAX).map(shown).collect();
    if text.len() < word.len() && word.chars().nth(EXCERPT_MAX).is_some() {
        text += "...";
    }
    text
}
