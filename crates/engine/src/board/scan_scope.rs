//! The members whose words a waiting member looks at before it sleeps.

/// In a group of at most so many members a look goes at the words of all.
const LOOKED_AT: u32 = 64;
/// Of the sleeps of one wait, one in so many begins with a look at all.
const SLEEPS_PER_LOOK_AT_ALL: u32 = 8;

/// The members whose words are looked at.
///
/// To look at those of all before each sleep is work, and memory of page tables, of the square of the
/// members' number. So most looks go at some only, and begin with the first member that is waited for,
/// or with the next one after this one: members that wait together look at all members between them, and
/// the one that finds something decides for them where all wait for all. A member that waits alone looks at all at
/// its later sleeps. Deaths, refusals after them and revocations are news, after which all are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanScope {
    /// At those of all members.
    All,
    /// At those of some.
    Some,
}

impl ScanScope {
    /// Before sleep number `sleep` of a wait, from one on.
    pub(crate) fn before_sleep(sleep: u32) -> Self {
        if sleep.is_multiple_of(SLEEPS_PER_LOOK_AT_ALL) { Self::All } else { Self::Some }
    }

    /// The members that are looked at, in a group of `size`; of some, `first` is the first.
    pub(crate) fn members(self, size: u32, first: u32) -> impl Iterator<Item = u32> + Clone {
        let (first, count) = match self {
            Self::Some if size > LOOKED_AT => (first, LOOKED_AT),
            _ => (0, size),
        };
        (first..first + count).map(move |member| member % size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_wait_together_look_at_all_and_who_waits_alone_does_so_later() {
        let seen = |scope: ScanScope, size, first| scope.members(size, first).collect::<Vec<_>>();
        assert_eq!(seen(ScanScope::Some, 3, 2), [0, 1, 2], "few are looked at in order");
        let mut looked_at = [0; 200];
        for own in 0..200 {
            let some = seen(ScanScope::Some, 200, own + 1);
            assert_eq!((some.len(), some[0]), (64, (own + 1) % 200));
            some.into_iter().for_each(|member| looked_at[member as usize] += 1);
        }
        assert_eq!(looked_at, [64; 200]);
        let sights: Vec<ScanScope> = (1..=8).map(ScanScope::before_sleep).collect();
        assert_eq!((&sights[..7], sights[7]), (&[ScanScope::Some; 7][..], ScanScope::All));
        assert_eq!(seen(sights[7], 200, 7), (0..200).collect::<Vec<_>>());
    }
}
