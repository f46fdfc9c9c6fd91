//! Decides which process runs where: a pure function of the request and the topology.

use std::fmt;
use std::str::FromStr;

use crate::cpu_set::CpuSet;
use crate::topology::{CpuLevel, Topology};

/// How processes are distributed: over which objects, and how many cores each gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MapBy {
    /// The objects over which neighbouring ranks are distributed.
    pub object: MapObject,
    /// Cores for each process; `None` means one, without having been asked for.
    pub cores: Option<u32>,
}

/// The objects over which neighbouring ranks are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum MapObject {
    /// One core after the other.
    Core,
    /// One third-level cache after the other.
    L3,
    /// One memory node after the other.
    Numa,
}

/// The set of processors that a process is restricted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum BindTo {
    /// It may run anywhere.
    None,
    /// One hardware thread.
    Hwthread,
    /// Its cores.
    Core,
    /// The third-level cache of its first core.
    L3,
    /// The memory node of its first core.
    Numa,
    /// The package of its first core.
    Package,
}

/// The input of a placement.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementRequest {
    /// The number of processes.
    pub processes: usize,
    /// How they are distributed.
    pub map_by: MapBy,
    /// The binding; `None` leaves it to [`place`].
    pub bind_to: Option<BindTo>,
    /// The number of processors that the job can keep busy: those it may run on, limited by a quota.
    pub processors: usize,
    /// The reason to bind no process where the user does not say; none if there is no such reason.
    pub free: Option<Reason>,
}

/// The processors of each process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuPlacement {
    /// The binding.
    pub bind_to: BindTo,
    /// The reason for the binding.
    pub reason: Reason,
    /// The processors that each process may use; `None` means all that the launcher may use.
    pub cpus: Vec<Option<CpuSet>>,
}

/// The reason for a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The user asked for it.
    Asked,
    /// The default: every process has a core of its own.
    CoreEach,
    /// There is a single process, so nothing must be kept apart.
    Single,
    /// The job is oversubscribed: more processes than cores.
    Crowded {
        /// The number of cores that the processes want.
        wanted: usize,
        /// The number of cores that exist.
        cores: usize,
    },
    /// The environment asks for threads: the variable by which it does, as `NAME=value`.
    Threads(String),
    /// Other hosts of the job use the same processors. Each of them would choose the same ones for its processes.
    Shared,
}

/// The reason why processes cannot be placed as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// A process wants more cores than its object has.
    #[error(
        "--map-by: pe={wanted} asks for {wanted} cores for each process, but {place} has {cores}; \
         ask for fewer, or map by slot"
    )]
    TooFewCores {
        /// Cores for each process.
        wanted: usize,
        /// The number of cores of the object.
        cores: usize,
        /// The object.
        place: &'static str,
    },
}

/// The error for a word that is not one of the choices.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{word}\" is not known here; choose {choices}")]
pub struct NotAChoice {
    word: String,
    choices: &'static str,
}

impl CpuPlacement {
    /// The placement of no process at all.
    pub fn nowhere() -> CpuPlacement {
        CpuPlacement { bind_to: BindTo::None, reason: Reason::Asked, cpus: Vec::new() }
    }
}

/// The levels of the topology that [`place`] needs; none if nothing will be bound.
pub fn levels_needed(request: &PlacementRequest) -> Vec<CpuLevel> {
    if let Some((BindTo::None, _)) = decide(request, None) {
        return Vec::new();
    }
    let mapping = match request.map_by.object {
        MapObject::Core => None,
        MapObject::L3 => Some(CpuLevel::L3),
        MapObject::Numa => Some(CpuLevel::Numa),
    };
    let binding = request.bind_to.and_then(BindTo::level);
    let mut levels = vec![CpuLevel::Core];
    for level in [mapping, binding].into_iter().flatten() {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    levels
}

/// Places the processes. The topology must contain the [`levels_needed`].
///
/// # Errors
/// If a process wants more cores than there are.
pub fn place(
    request: &PlacementRequest,
    topology: &Topology,
) -> Result<CpuPlacement, PlacementError> {
    // The cores are unknown if they make no difference.
    let known = (!topology.cores.is_empty()).then_some(topology.cores.len());
    let cores = known.map(|cores| cores.min(request.processors));
    let (bind_to, reason) = decide(request, cores).unwrap_or((BindTo::Core, Reason::CoreEach));
    let cpus = match bind_to {
        BindTo::None => vec![None; request.processes],
        _ => bind(request, topology, bind_to)?,
    };
    Ok(CpuPlacement { bind_to, reason, cpus })
}

/// The variable that asks a program for more than one thread, if there is one.
pub fn threads_asked(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    const NAMES: [&str; 8] = [
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "RAYON_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "JULIA_NUM_THREADS",
        "GOMAXPROCS",
    ];
    NAMES.iter().find_map(|name| {
        let value = variable(name)?;
        let first: u32 = value.split(',').next()?.trim().parse().ok()?;
        (first > 1).then(|| format!("{name}={value}"))
    })
}

/// The binding and its reason; `None` if they depend on the number of cores, which is not known yet.
fn decide(request: &PlacementRequest, cores: Option<usize>) -> Option<(BindTo, Reason)> {
    if let Some(bind_to) = request.bind_to {
        return Some((bind_to, Reason::Asked));
    }
    if request.map_by.cores.is_some_and(|cores| cores > 1) {
        return Some((BindTo::Core, Reason::Asked));
    }
    if let Some(reason) = &request.free {
        return Some((BindTo::None, reason.clone()));
    }
    if request.processes == 1 {
        return Some((BindTo::None, Reason::Single));
    }
    // A machine never has more cores than processors.
    let most = cores.unwrap_or(request.processors);
    if request.processes > most {
        let crowded = Reason::Crowded { wanted: request.processes, cores: most };
        return Some((BindTo::None, crowded));
    }
    cores.map(|_| (BindTo::Core, Reason::CoreEach))
}

fn bind(
    request: &PlacementRequest,
    topology: &Topology,
    bind_to: BindTo,
) -> Result<Vec<Option<CpuSet>>, PlacementError> {
    let units = match bind_to {
        BindTo::Hwthread => threads_of(&topology.cores),
        _ => topology.cores.clone(),
    };
    let (groups, place) = match request.map_by.object {
        MapObject::Core => (vec![units], "this job"),
        MapObject::L3 => (split(&units, &topology.caches), "an L3 cache"),
        MapObject::Numa => (split(&units, &topology.nodes), "a memory node"),
    };
    let each = request.map_by.cores.unwrap_or(1) as usize;
    if let Some(small) = groups.iter().map(Vec::len).min().filter(|&cores| cores < each) {
        return Err(PlacementError::TooFewCores { wanted: each, cores: small, place });
    }
    let home = |rank: usize| {
        let group = &groups[rank % groups.len()];
        let first = rank / groups.len() * each;
        let own = (first..first + each).map(|at| &group[at % group.len()]);
        widen(own.flat_map(CpuSet::iter).collect(), topology, bind_to)
    };
    Ok((0..request.processes).map(|rank| Some(home(rank))).collect())
}

/// The hardware threads, the first of every core before the second of any.
fn threads_of(cores: &[CpuSet]) -> Vec<CpuSet> {
    let most = cores.iter().map(CpuSet::count).max().unwrap_or(0);
    let turns =
        (0..most).flat_map(|turn| cores.iter().filter_map(move |core| core.iter().nth(turn)));
    turns.map(|cpu| [cpu].into_iter().collect()).collect()
}

/// Assigns the units to the groups that they belong to; groups without any are omitted.
fn split(units: &[CpuSet], groups: &[CpuSet]) -> Vec<Vec<CpuSet>> {
    let belongs = |unit: &CpuSet, group: &CpuSet| !unit.intersection(group).is_empty();
    let members = groups
        .iter()
        .map(|group| units.iter().filter(|unit| belongs(unit, group)).cloned().collect::<Vec<_>>());
    members.filter(|members| !members.is_empty()).collect()
}

/// Widens a process's own cores to everything that it may use.
fn widen(own: CpuSet, topology: &Topology, bind_to: BindTo) -> CpuSet {
    let groups = bind_to.level().map(|level| topology.groups(level)).unwrap_or_default();
    let first = own.iter().next();
    let around = groups.iter().find(|group| first.is_some_and(|cpu| group.contains(cpu)));
    around.cloned().unwrap_or(own)
}

impl BindTo {
    /// The level to whose groups a process is widened.
    fn level(self) -> Option<CpuLevel> {
        match self {
            BindTo::None | BindTo::Hwthread | BindTo::Core => None,
            BindTo::L3 => Some(CpuLevel::L3),
            BindTo::Numa => Some(CpuLevel::Numa),
            BindTo::Package => Some(CpuLevel::Package),
        }
    }
}

impl Default for MapBy {
    fn default() -> MapBy {
        MapBy { object: MapObject::Core, cores: None }
    }
}

impl FromStr for MapBy {
    type Err = NotAChoice;

    /// Parses `slot`, `core`, `l3`, `numa`, `pe=N`, or an object and a number as `numa:pe=N`.
    fn from_str(text: &str) -> Result<MapBy, NotAChoice> {
        let refuse = || NotAChoice {
            word: text.to_owned(),
            choices: "slot, core, l3, numa, pe=N, or one of them with a number as in numa:pe=2",
        };
        let mut map_by = MapBy::default();
        for word in text.split(':') {
            match word.to_ascii_lowercase().as_str() {
                "slot" | "core" => map_by.object = MapObject::Core,
                "l3" | "l3cache" => map_by.object = MapObject::L3,
                "numa" => map_by.object = MapObject::Numa,
                other => {
                    let number = other.strip_prefix("pe=").and_then(|digits| digits.parse().ok());
                    map_by.cores = Some(number.filter(|&cores| cores > 0).ok_or_else(refuse)?);
                }
            }
        }
        Ok(map_by)
    }
}

impl FromStr for BindTo {
    type Err = NotAChoice;

    fn from_str(text: &str) -> Result<BindTo, NotAChoice> {
        match text.to_ascii_lowercase().as_str() {
            "none" => Ok(BindTo::None),
            "hwthread" => Ok(BindTo::Hwthread),
            "core" => Ok(BindTo::Core),
            "l3" | "l3cache" => Ok(BindTo::L3),
            "numa" => Ok(BindTo::Numa),
            "package" | "socket" => Ok(BindTo::Package),
            _ => Err(NotAChoice {
                word: text.to_owned(),
                choices: "none, hwthread, core, l3, numa or package",
            }),
        }
    }
}

impl fmt::Display for BindTo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            BindTo::None => "nothing",
            BindTo::Hwthread => "a hardware thread",
            BindTo::Core => "cores",
            BindTo::L3 => "an L3 cache",
            BindTo::Numa => "a memory node",
            BindTo::Package => "a package",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Asked => out.write_str("as asked"),
            Reason::CoreEach => out.write_str("there is a core for each"),
            Reason::Single => out.write_str("a single process needs no core of its own"),
            Reason::Crowded { wanted, cores } => {
                let plural = if *cores == 1 { "" } else { "s" };
                write!(out, "{wanted} processes share {cores} core{plural}")
            }
            Reason::Threads(variable) => write!(out, "{variable} asks for threads"),
            Reason::Shared => out.write_str("hosts of the job share processors"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(lists: &[&str]) -> Vec<CpuSet> {
        lists.iter().map(|list| list.parse().unwrap()).collect()
    }

    /// Two packages, each a memory node with one cache, of two cores with two threads each.
    fn machine() -> Topology {
        let halves = sets(&["0-1,4-5", "2-3,6-7"]);
        Topology {
            cores: sets(&["0,4", "1,5", "2,6", "3,7"]),
            caches: halves.clone(),
            nodes: halves.clone(),
            packages: halves,
        }
    }

    fn request(processes: usize, map_by: &str, bind_to: Option<&str>) -> PlacementRequest {
        PlacementRequest {
            processes,
            map_by: map_by.parse().unwrap(),
            bind_to: bind_to.map(|word| word.parse().unwrap()),
            processors: 8,
            free: None,
        }
    }

    fn placed(processes: usize, map_by: &str, bind_to: &str) -> Vec<String> {
        let placement = place(&request(processes, map_by, Some(bind_to)), &machine()).unwrap();
        placement
            .cpus
            .iter()
            .map(|cpus| cpus.as_ref().map_or("any".into(), CpuSet::to_string))
            .collect()
    }

    #[test]
    fn processes_are_dealt_out() {
        assert_eq!(placed(4, "slot", "core"), ["0,4", "1,5", "2,6", "3,7"]);
        assert_eq!(placed(4, "core", "hwthread"), ["0", "1", "2", "3"]);
        assert_eq!(placed(4, "numa", "core"), ["0,4", "2,6", "1,5", "3,7"]);
        assert_eq!(placed(3, "l3", "l3"), ["0-1,4-5", "2-3,6-7", "0-1,4-5"]);
        assert_eq!(placed(3, "slot", "package"), ["0-1,4-5", "0-1,4-5", "2-3,6-7"]);
        assert_eq!(placed(2, "slot:pe=2", "core"), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!(placed(2, "pe=2", "numa"), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!(placed(2, "numa", "none"), ["any", "any"]);
    }

    #[test]
    fn an_asked_binding_wraps_around() {
        assert_eq!(placed(5, "slot", "core"), ["0,4", "1,5", "2,6", "3,7", "0,4"]);
        assert_eq!(placed(6, "slot", "hwthread"), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(placed(9, "slot", "hwthread")[8], "0");
    }

    #[test]
    fn the_default_looks_at_the_job() {
        let decided = |request: &PlacementRequest| {
            let placement = place(request, &machine()).unwrap();
            (placement.bind_to, placement.reason)
        };
        assert_eq!(decided(&request(4, "slot", None)), (BindTo::Core, Reason::CoreEach));
        let crowded = Reason::Crowded { wanted: 5, cores: 4 };
        assert_eq!(decided(&request(5, "slot", None)), (BindTo::None, crowded));
        assert_eq!(decided(&request(1, "slot", None)), (BindTo::None, Reason::Single));
        assert_eq!(decided(&request(2, "pe=2", None)), (BindTo::Core, Reason::Asked));
        for reason in [Reason::Threads("OMP_NUM_THREADS=4".to_owned()), Reason::Shared] {
            let free = |bind_to| PlacementRequest {
                free: Some(reason.clone()),
                ..request(2, "slot", bind_to)
            };
            assert_eq!(decided(&free(None)), (BindTo::None, reason.clone()));
            assert_eq!(decided(&free(Some("core"))), (BindTo::Core, Reason::Asked));
        }
        let quota = PlacementRequest { processors: 1, ..request(2, "slot", None) };
        assert_eq!(decided(&quota).0, BindTo::None);
        let unread = place(&request(9, "slot", None), &Topology::default()).unwrap();
        assert_eq!(unread.reason, Reason::Crowded { wanted: 9, cores: 8 });
    }

    #[test]
    fn only_what_is_needed_is_read() {
        let needed =
            |processes, map_by, bind_to| levels_needed(&request(processes, map_by, bind_to));
        assert_eq!(needed(9, "slot", None), []);
        assert_eq!(needed(1, "slot", None), []);
        assert_eq!(needed(2, "numa", Some("none")), []);
        assert_eq!(needed(2, "slot", None), [CpuLevel::Core]);
        assert_eq!(needed(2, "l3", None), [CpuLevel::Core, CpuLevel::L3]);
        assert_eq!(needed(2, "numa", Some("numa")), [CpuLevel::Core, CpuLevel::Numa]);
        assert_eq!(
            needed(2, "numa", Some("package")),
            [CpuLevel::Core, CpuLevel::Numa, CpuLevel::Package]
        );
    }

    #[test]
    fn too_many_cores_for_a_process_are_refused() {
        let refused =
            |map_by| place(&request(1, map_by, None), &machine()).unwrap_err().to_string();
        assert!(refused("pe=5").contains("this job has 4"), "{}", refused("pe=5"));
        assert!(refused("numa:pe=3").contains("a memory node has 2"));
    }

    #[test]
    fn choices_are_read() {
        let numa = MapBy { object: MapObject::Numa, cores: Some(2) };
        assert_eq!("numa:PE=2".parse(), Ok(numa));
        for word in ["pe=0", "pe=x", "socket", "", "numa:"] {
            assert!(word.parse::<MapBy>().is_err(), "{word}");
        }
        assert_eq!("socket".parse(), Ok(BindTo::Package));
        assert!("board".parse::<BindTo>().is_err());
    }

    #[test]
    fn threads_are_seen_in_the_environment() {
        let asked = |name: &'static str, value: &'static str| {
            threads_asked(move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(asked("OMP_NUM_THREADS", "4,2").as_deref(), Some("OMP_NUM_THREADS=4,2"));
        assert_eq!(asked("RAYON_NUM_THREADS", "1"), None);
        assert_eq!(asked("HOME", "4"), None);
        assert_eq!(asked("OMP_NUM_THREADS", "many"), None);
    }
}
