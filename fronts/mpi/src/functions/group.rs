//! Groups made of groups, and what they are.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;

use landeck::Peer;
use landeck_c_boundary::{pointer, room};

use crate::abi::{
    CONGRUENT, ERR_ARG, ERR_RANK, GROUP_NULL, Handle, IDENT, PROC_NULL, SIMILAR, UNDEFINED, UNEQUAL,
};
use crate::arguments::{give, length_of};
use crate::job;
use crate::mistake::Mistake;
use crate::objects::group::{self, Group};

/// How many processes it has.
pub(crate) unsafe fn group_size(group: Handle, size: *mut c_int) -> Result<(), Mistake> {
    let group = group::get("group", group)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("size", size, group.size() as c_int) }
}

/// This process's rank there, if it has one.
pub(crate) unsafe fn group_rank(group: Handle, rank: *mut c_int) -> Result<(), Mistake> {
    let group = group::get("group", group)?;
    let own = group.rank.map_or(UNDEFINED, |rank| rank as c_int);
    // SAFETY: the program says that it is writable.
    unsafe { give("rank", rank, own) }
}

/// The ranks that processes of one group have in another.
pub(crate) unsafe fn group_translate_ranks(
    group1: Handle,
    n: c_int,
    ranks1: *const c_int,
    group2: Handle,
    ranks2: *mut c_int,
) -> Result<(), Mistake> {
    let (one, other) = (group::get("group1", group1)?, group::get("group2", group2)?);
    let count = length_of("n", n)?;
    pointer::check("ranks2", ranks2, count)?;
    // SAFETY: the program gives an array of so many ranks.
    let ranks = unsafe { pointer::slice("ranks1", ranks1, count)? };
    let places = places_in(&other);
    let translate = |&rank: &c_int| match rank {
        PROC_NULL => Ok(PROC_NULL),
        rank => {
            let member = one.members[place_of("ranks1", rank, &one)?];
            Ok(places.get(&member).map_or(UNDEFINED, |place| *place as c_int))
        }
    };
    room::for_many(count, size_of::<c_int>())?;
    let translated: Vec<c_int> = ranks.iter().map(translate).collect::<Result<_, Mistake>>()?;
    if count > 0 {
        // SAFETY: checked above; the program says that so many are writable. They may be the same
        // places as the ranks, which are not looked at any more.
        unsafe { ranks2.copy_from_nonoverlapping(translated.as_ptr(), count) };
    }
    Ok(())
}

/// How far two are alike.
pub(crate) unsafe fn group_compare(
    group1: Handle,
    group2: Handle,
    result: *mut c_int,
) -> Result<(), Mistake> {
    let (one, other) = (group::get("group1", group1)?, group::get("group2", group2)?);
    let compared = match alike(&one, &other) {
        CONGRUENT => IDENT,
        others => others,
    };
    // SAFETY: the program says that it is writable.
    unsafe { give("result", result, compared) }
}

/// Those of the first, then those of the second that are not in the first.
pub(crate) unsafe fn group_union(
    group1: Handle,
    group2: Handle,
    newgroup: *mut Handle,
) -> Result<(), Mistake> {
    let (one, other) = (group::get("group1", group1)?, group::get("group2", group2)?);
    let places = places_in(&one);
    let added = other.members.iter().filter(|member| !places.contains_key(member));
    // SAFETY: the program says that the place is writable.
    unsafe { keep(one.members.iter().chain(added), [&one, &other], newgroup) }
}

/// Those of the first that are in the second too.
pub(crate) unsafe fn group_intersection(
    group1: Handle,
    group2: Handle,
    newgroup: *mut Handle,
) -> Result<(), Mistake> {
    let (one, other) = (group::get("group1", group1)?, group::get("group2", group2)?);
    let places = places_in(&other);
    // SAFETY: the program says that the place is writable.
    unsafe {
        let members = one.members.iter().filter(|member| places.contains_key(member));
        keep(members, [&one], newgroup)
    }
}

/// Those of the first that are not in the second.
pub(crate) unsafe fn group_difference(
    group1: Handle,
    group2: Handle,
    newgroup: *mut Handle,
) -> Result<(), Mistake> {
    let (one, other) = (group::get("group1", group1)?, group::get("group2", group2)?);
    let places = places_in(&other);
    // SAFETY: the program says that the place is writable.
    unsafe {
        let members = one.members.iter().filter(|member| !places.contains_key(member));
        keep(members, [&one], newgroup)
    }
}

/// Those of these ranks, in the order in which they are named.
pub(crate) unsafe fn group_incl(
    group: Handle,
    n: c_int,
    ranks: *const c_int,
    newgroup: *mut Handle,
) -> Result<(), Mistake> {
    let group = group::get("group", group)?;
    // SAFETY: the program gives an array of so many ranks.
    let places = unsafe { named(&group, n, ranks)? };
    // SAFETY: the program says that the place is writable.
    unsafe { keep(places.iter().map(|place| &group.members[*place]), [&group], newgroup) }
}

/// Those that do not have these ranks.
pub(crate) unsafe fn group_excl(
    group: Handle,
    n: c_int,
    ranks: *const c_int,
    newgroup: *mut Handle,
) -> Result<(), Mistake> {
    let group = group::get("group", group)?;
    // SAFETY: the program gives an array of so many ranks.
    let places = unsafe { named(&group, n, ranks)? };
    // SAFETY: the program says that the place is writable.
    unsafe { keep(others(&group, &places), [&group], newgroup) }
}

/// Those of these ranges of ranks, in their order.
pub(crate) unsafe fn group_range_incl(
    group: Handle,
    n: c_int,
    ranges: *mut [c_int; 3],
    newgroup: *mut Handle,
) -> Result<(), Mistake> {
    let group = group::get("group", group)?;
    // SAFETY: the program gives an array of so many ranges.
    let places = unsafe { ranged(&group, n, ranges)? };
    // SAFETY: the program says that the place is writable.
    unsafe { keep(places.iter().map(|place| &group.members[*place]), [&group], newgroup) }
}

/// Those that are in none of these ranges of ranks.
pub(crate) unsafe fn group_range_excl(
    group: Handle,
    n: c_int,
    ranges: *mut [c_int; 3],
    newgroup: *mut Handle,
) -> Result<(), Mistake> {
    let group = group::get("group", group)?;
    // SAFETY: the program gives an array of so many ranges.
    let places = unsafe { ranged(&group, n, ranges)? };
    // SAFETY: the program says that the place is writable.
    unsafe { keep(others(&group, &places), [&group], newgroup) }
}

/// Frees one.
pub(crate) unsafe fn group_free(group: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gives the address of a handle, or it is refused.
    group::free("group", unsafe { pointer::read("group", group)? })?;
    // SAFETY: read above; the program says that it is writable too.
    unsafe { give("group", group, GROUP_NULL) }
}

/// How far two groups are alike: MPI_CONGRUENT is the most.
pub(super) fn alike(one: &Group, other: &Group) -> c_int {
    if one.members == other.members {
        return CONGRUENT;
    }
    let places = places_in(one);
    let are_similar = one.size() == other.size()
        && other.members.iter().all(|member| places.contains_key(member));
    if are_similar { SIMILAR } else { UNEQUAL }
}

/// The rank of each member.
pub(super) fn places_in(group: &Group) -> HashMap<Peer, usize> {
    group.members.iter().enumerate().map(|(place, member)| (*member, place)).collect()
}

/// Gives out a group of these members, in the session of the groups that it was made of.
unsafe fn keep<'a, const N: usize>(
    members: impl Iterator<Item = &'a Peer>,
    parents: [&Group; N],
    newgroup: *mut Handle,
) -> Result<(), Mistake> {
    pointer::check("newgroup", newgroup, 1)?;
    let session = parents.into_iter().find_map(|parent| parent.session.clone());
    let made = Arc::new(Group::new(members.copied().collect(), job::own_peer()?, session));
    // SAFETY: checked above; the caller says that it is writable.
    unsafe { give("newgroup", newgroup, group::keep(made)?) }
}

/// The members that do not have these ranks.
fn others<'a>(group: &'a Group, places: &[usize]) -> impl Iterator<Item = &'a Peer> {
    let mut is_named = vec![false; group.members.len()];
    places.iter().for_each(|place| is_named[*place] = true);
    group.members.iter().zip(is_named).filter(|(_, is_named)| !is_named).map(|(member, _)| member)
}

/// Ranks that the program names, each once.
unsafe fn named(group: &Group, n: c_int, ranks: *const c_int) -> Result<Vec<usize>, Mistake> {
    let count = length_of("n", n)?;
    // SAFETY: as the caller says.
    let ranks = unsafe { pointer::slice("ranks", ranks, count)? };
    let mut is_named = vec![false; group.members.len()];
    let once = |rank: &c_int| named_once("ranks", *rank, group, &mut is_named);
    ranks.iter().map(once).collect()
}

/// Ranks that the program names by ranges: first, last, stride. Each is named once.
unsafe fn ranged(
    group: &Group,
    n: c_int,
    ranges: *const [c_int; 3],
) -> Result<Vec<usize>, Mistake> {
    let count = length_of("n", n)?;
    // SAFETY: as the caller says.
    let ranges = unsafe { pointer::slice("ranges", ranges, count)? };
    let mut is_named = vec![false; group.members.len()];
    let mut places = Vec::new();
    for &[first, last, stride] in ranges {
        if stride == 0 {
            let text = format!("ranges has {first} to {last} with stride 0; a stride is not 0");
            return Err(Mistake::new(ERR_ARG, text));
        }
        // The last one counts as far as there is one: it need not be hit.
        let (first, last, stride) = (i64::from(first), i64::from(last), i64::from(stride));
        if (last - first) * stride < 0 {
            let text = format!(
                "ranges has {first} to {last} with stride {stride}, which leads away from {last}"
            );
            return Err(Mistake::new(ERR_ARG, text));
        }
        let steps = (last - first) / stride;
        for rank in (0..=steps).map(|step| first + step * stride) {
            let rank = c_int::try_from(rank).unwrap_or(c_int::MAX);
            places.push(named_once("ranges", rank, group, &mut is_named)?);
        }
    }
    Ok(places)
}

fn named_once(
    argument: &str,
    rank: c_int,
    group: &Group,
    is_named: &mut [bool],
) -> Result<usize, Mistake> {
    let place = place_of(argument, rank, group)?;
    if std::mem::replace(&mut is_named[place], true) {
        let text = format!("{argument} names rank {rank} twice; a process is in a group once");
        return Err(Mistake::new(ERR_RANK, text));
    }
    Ok(place)
}

fn place_of(argument: &str, rank: c_int, group: &Group) -> Result<usize, Mistake> {
    let place = usize::try_from(rank).ok().filter(|place| *place < group.members.len());
    place.ok_or_else(|| {
        let last = i64::from(group.size()) - 1;
        let what = match last {
            -1 => "is empty".to_owned(),
            last => format!("has the ranks 0 to {last}"),
        };
        Mistake::new(ERR_RANK, format_args!("{argument} names rank {rank}, but the group {what}"))
    })
}
