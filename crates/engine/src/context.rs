//! The contexts of groups: those that every job has from its beginning, those of groups that are made, and those
//! beside each.

use landeck_wire::ContextId;

/// The context of the first world, the same in every job.
pub const WORLD_CONTEXT: u32 = ContextId::WORLD.0;
/// The context of groups that are made under a name: nothing is said there but that.
pub const NAMES_CONTEXT: u32 = ContextId::new((1 << (ContextId::INDEX_BITS - 1)) - 1, 1).0;

/// Contexts of groups that are made have this bit set in their generation, and the highest one
/// clear: no first world, no port and no context that a program chooses with a lower generation is
/// one of them.
const MADE_GENERATION: u32 = 1 << 10;
/// Contexts in which members of a group talk about new groups have this bit set besides.
const FOUNDING_GENERATION: u32 = ContextId::CREATION >> ContextId::INDEX_BITS;
/// Contexts in which members of a group agree and revoke have this bit set besides.
const COUNCIL_GENERATION: u32 = ContextId::AGREEMENT >> ContextId::INDEX_BITS;
/// Groups of a job that can be told apart.
pub const NUMBERS: u32 = COUNCIL_GENERATION << (ContextId::INDEX_BITS - 1);
const _: () = assert!(NUMBERS == landeck_memory::group_numbers::GROUP_NUMBERS);

/// The context of a group's collective operations.
pub fn collective_context(context: u32) -> u32 {
    context | ContextId::COLLECTIVE
}

/// The context beside a group's own in which its members talk about new groups.
pub fn founding_of(context: u32) -> u32 {
    context | FOUNDING_GENERATION << ContextId::INDEX_BITS
}

/// The context in which groups are made under a name: also by processes that have left the first world, and come for
/// that.
pub(crate) fn founding_of_names() -> u32 {
    founding_of(NAMES_CONTEXT)
}

/// The context beside a group's own in which its members agree, and tell of its revocation.
pub(crate) fn agreement_context(context: u32) -> u32 {
    context | COUNCIL_GENERATION << ContextId::INDEX_BITS
}

/// A group's own context, and those beside it in which its members talk to each other, but for the one in
/// which they agree.
pub(crate) fn contexts_beside(context: u32) -> [u32; 4] {
    let founding = founding_of(context);
    [context, collective_context(context), founding, collective_context(founding)]
}

/// The context beside a group's own for the messages of a library that builds upon the group.
pub fn inside_of(context: u32) -> u32 {
    collective_context(founding_of(context))
}

/// A group's own context, from that or from one of the contexts beside it.
pub fn plain_context(context: u32) -> u32 {
    let beside = (FOUNDING_GENERATION | COUNCIL_GENERATION) << ContextId::INDEX_BITS;
    context & !beside & !(1 << (ContextId::INDEX_BITS - 1))
}

/// The context of the group with this number; 0 when the numbers have run out.
pub fn context_of(number: u32) -> u32 {
    if number >= NUMBERS {
        return 0;
    }
    let index_bits = ContextId::INDEX_BITS - 1;
    let index = number & ((1 << index_bits) - 1);
    ContextId::new(index, MADE_GENERATION | number >> index_bits).0
}

/// The number of a group with this context, if it was made.
pub fn number_of(context: u32) -> Option<u32> {
    let (index, generation) = (ContextId(context).index(), ContextId(context).generation());
    let is_made = generation >> 8 == 4 && index >> (ContextId::INDEX_BITS - 1) == 0;
    is_made
        .then_some((generation & (COUNCIL_GENERATION - 1)) << (ContextId::INDEX_BITS - 1) | index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_of_groups_are_told_apart_from_others() {
        for number in [1, 2, (1 << 19) - 1, 1 << 19, NUMBERS - 1] {
            let context = context_of(number);
            assert_eq!(number_of(context), Some(number));
            assert_ne!(collective_context(context), context);
            assert!(context >> 30 == 1, "ports have the highest bit");
            assert_eq!(number_of(founding_of(context)), None);
            assert_eq!(number_of(agreement_context(context)), None);
            let (collective_context, founding) =
                (collective_context(context), founding_of(context));
            let others = [
                collective_context,
                founding,
                inside_of(context),
                agreement_context(context),
                context,
            ];
            assert!((1..5).all(|at| !others[..at].contains(&others[at])), "{others:x?}");
        }
        assert_eq!((context_of(NUMBERS), context_of(u32::MAX)), (0, 0));
        assert_eq!(number_of(WORLD_CONTEXT), None);
    }

    #[test]
    fn a_twin_is_another_context() {
        let context = ContextId::new(7, 3).0;
        assert_eq!(ContextId(collective_context(context)).generation(), 3);
        assert_ne!(collective_context(context), context);
    }
}
