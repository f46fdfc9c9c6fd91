//! The figures with which all processes of a job on several hosts compute.
//!
//! Of the figures of `landeck tune` those of the launcher hold for all, and where hosts have others, the slower ones. The
//! links of the hosts are measured when the job is made. Hosts of one kernel may share processors; which ones is known, and
//! not measured: a kernel's numbers of processors are facts, and a test of speed would take the time of many turns.

use std::collections::BTreeMap;

use landeck_collectives::cost_parameters::CostParameters;
use landeck_collectives::record::Record;
use landeck_collectives::settings::{Settings, Sharing};
use landeck_host::cpu_set::CpuSet;
use landeck_host::figures;
use landeck_launch::spec::HostLink;
use landeck_protocols::hosts::LinkSight;
use landeck_wire::HostNumber;
use serde::{Deserialize, Serialize};

/// The facts that a host tells the arbiter about itself, for the choice of ways.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnFigures {
    /// The figures that are kept for its processor, as words; empty if there are none that can be used.
    kept: Vec<u64>,
    /// The identity of its kernel; zero if it has none.
    boot: u128,
    /// The processors that its processes may use, by the kernel's numbers: bit `n % 64` of word `n / 64`. Empty if they are
    /// not known.
    processors: Vec<u64>,
}

impl OwnFigures {
    /// Those of this host.
    pub(crate) fn here() -> Self {
        let processors =
            CpuSet::of_this_thread().map_or_else(|_| Vec::new(), |set| set.words().to_vec());
        Self { kept: kept_here(), boot: boot_identity(), processors }
    }
}

fn kept_here() -> Vec<u64> {
    let text = figures::place().and_then(|path| figures::text_of(&path).ok()?);
    let machine = figures::machine();
    let record = text.and_then(|text| Record::of_machine(&text, &machine).ok());
    record
        .filter(|record| record.machine == machine)
        .map_or_else(Vec::new, |record| record.figures.to_words().to_vec())
}

/// The identity that the kernel got when it was booted; zero if it has none.
pub(crate) fn boot_identity() -> u128 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).unwrap_or(0)
}

/// The settings of a job whose hosts have these figures. A host without figures takes the launcher's.
pub(crate) fn settled(settings: &[u64], hosts: &[OwnFigures]) -> Vec<u64> {
    let Ok(words) = <[u64; Settings::WORDS]>::try_from(settings) else { return settings.to_vec() };
    let launcher = Settings::from_words(&words);
    let known = hosts
        .iter()
        .filter_map(|host| <&[u64; CostParameters::WORDS]>::try_from(&host.kept[..]).ok());
    let known = known.filter_map(|words| CostParameters::from_words(words).ok());
    let figures = known.fold(launcher.figures, CostParameters::slower);
    Settings { figures, sharing: sharing(hosts), ..launcher }.to_words().to_vec()
}

/// Whether hosts of a job share processors.
pub(crate) fn share_processors(hosts: &[OwnFigures]) -> bool {
    sharing(hosts).is_some()
}

/// The hosts that share processors: one kernel runs them, so its numbers of processors mean the same for all of them, and
/// their sets have some in common. Of several such parts of the job, the one with the fewest processors for each host counts.
fn sharing(hosts: &[OwnFigures]) -> Option<Sharing> {
    let mut parts: Vec<(u32, u128, Vec<u64>)> = Vec::new();
    for host in hosts.iter().filter(|host| host.boot != 0) {
        // Parts that have nothing in common but this host become one.
        let shares = |part: &mut (u32, u128, Vec<u64>)| {
            part.1 == host.boot
                && part.2.iter().zip(&host.processors).any(|(one, other)| one & other != 0)
        };
        let joined: Vec<_> = parts.extract_if(.., shares).collect();
        let mut whole = (1, host.boot, host.processors.clone());
        for (count, _, processors) in joined {
            whole.0 += count;
            whole.2.resize(whole.2.len().max(processors.len()), 0);
            whole.2.iter_mut().zip(processors).for_each(|(word, other)| *word |= other);
        }
        parts.push(whole);
    }
    let of_part = |(count, _, processors): (u32, u128, Vec<u64>)| {
        Sharing::new(
            count.min(Sharing::HOSTS_MAX),
            processors.iter().map(|word| word.count_ones()).sum(),
        )
    };
    // The quotients are compared without a division.
    parts.into_iter().filter_map(of_part).min_by(|one, other| {
        let times =
            |one: &Sharing, other: &Sharing| u64::from(one.processors) * u64::from(other.hosts);
        times(one, other).cmp(&times(other, one))
    })
}

/// The findings about links, of both hosts of each pair.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LinkFindings(BTreeMap<(HostNumber, HostNumber), LinkSight>);

impl LinkFindings {
    /// Adds the findings of a host. Of what both hosts have found the slower counts.
    pub(crate) fn add(&mut self, host: HostNumber, found: &[(HostNumber, LinkSight)]) {
        for &(other, sight) in found {
            let pair = (host.min(other), host.max(other));
            let known = self.0.entry(pair).or_default();
            *known = known.with(sight);
        }
    }

    /// Whether each pair of these hosts was measured.
    pub(crate) fn has_all(&self, hosts: &[HostNumber]) -> bool {
        let is_known = |one, other| one >= other || self.0.contains_key(&(one, other));
        hosts.iter().all(|&one| hosts.iter().all(|&other| is_known(one, other)))
    }

    /// Takes the link between the first and the last of these hosts, if it was not found, for that of the links in between: all
    /// latencies, and the slowest rate.
    pub(crate) fn compose(&mut self, hosts: &[HostNumber]) {
        let (Some(first), Some(last)) = (hosts.first(), hosts.last()) else { return };
        let pair = |one: HostNumber, other: HostNumber| (one.min(other), one.max(other));
        if self.0.get(&pair(*first, *last)).is_some_and(|sight| sight.latency_ps.is_some()) {
            return;
        }
        let link = |step: &[HostNumber]| self.0.get(&pair(step[0], step[1])).copied();
        let Some(links) = hosts.windows(2).map(link).collect::<Option<Vec<LinkSight>>>() else {
            return;
        };
        let latency_ps = links.iter().map(|sight| sight.latency_ps).sum();
        let slowest = links.into_iter().fold(LinkSight::default(), LinkSight::with);
        self.0.insert(pair(*first, *last), LinkSight { latency_ps, ..slowest });
    }

    /// The links of these hosts whose latency was found.
    pub(crate) fn between(
        &self,
        hosts: &[HostNumber],
    ) -> impl Iterator<Item = ((HostNumber, HostNumber), LinkSight)> {
        let is_between =
            |(one, other): &(HostNumber, HostNumber)| hosts.contains(one) && hosts.contains(other);
        let all = self.0.iter().map(|(pair, sight)| (*pair, *sight));
        all.filter(move |(pair, sight)| sight.latency_ps.is_some() && is_between(pair))
    }

    /// The links of these hosts for their segments. Of others nothing is said, so that a common network is assumed.
    pub(crate) fn settled(&self, hosts: &[HostNumber]) -> Vec<HostLink> {
        let found = self.between(hosts);
        found.map(|(hosts, sight)| HostLink { hosts, words: sight.to_words() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_hosts_say_what_a_link_is() {
        let sight = |latency_ps, kib_ps| LinkSight { latency_ps, gap_ps: None, kib_ps };
        let mut found = LinkFindings::default();
        let (zero, two, three) = (HostNumber(0), HostNumber(2), HostNumber(3));
        found.add(two, &[(zero, sight(None, Some(8))), (three, sight(None, Some(2)))]);
        found.add(zero, &[(two, sight(Some(5), Some(7)))]);
        let link = HostLink { hosts: (zero, two), words: [5, 0, 8] };
        assert_eq!(found.settled(&[zero, two, three]), [link], "no latency, no link");
        assert_eq!(found.settled(&[zero, three]), []);
        assert!(found.has_all(&[two, zero]) && !found.has_all(&[zero, two, three]));
        found.add(three, &[(two, sight(Some(9), None))]);
        found.compose(&[three, two, zero]);
        let over_two = HostLink { hosts: (zero, three), words: [14, 0, 8] };
        assert_eq!(found.settled(&[zero, three]), [over_two], "as the links in between");
        found.compose(&[three, HostNumber(7), zero]);
        assert_eq!(found.settled(&[zero, three]), [over_two], "it is known");
    }

    #[test]
    fn the_slowest_host_counts() {
        let usual = CostParameters::default();
        let with = |line_ps, cache_kib| CostParameters { line_ps, cache_kib, ..usual };
        let own =
            Settings { figures: with(50_000, 4_000), is_checked: true, ..Settings::default() };
        let words = |figures: CostParameters| figures.to_words().to_vec();
        let others = [
            words(with(70_000, 9_000)),
            Vec::new(),
            words(with(60_000, 3_000)),
            vec![7; CostParameters::WORDS],
        ]
        .map(|kept| OwnFigures { kept, ..OwnFigures::default() });
        let of = |hosts: &[OwnFigures]| {
            let settled = settled(&own.to_words(), hosts);
            Settings::from_words(&settled.try_into().expect("as many words"))
        };
        assert_eq!(of(&others[..3]), Settings { figures: with(70_000, 3_000), ..own.clone() });
        assert_eq!(of(&others[1..2]), own, "a host without figures");
        assert_eq!(settled(&[1, 2], &others), [1, 2]);
    }

    #[test]
    fn hosts_of_one_kernel_share_the_processors_that_they_have_in_common() {
        let host = |boot, processors: &[u64]| OwnFigures {
            boot,
            processors: processors.to_vec(),
            ..OwnFigures::default()
        };
        let of = |hosts: &[OwnFigures]| {
            sharing(hosts).map(|sharing| (sharing.hosts, sharing.processors))
        };
        assert_eq!(of(&[host(1, &[0b11]), host(1, &[0b11])]), Some((2, 2)));
        assert_eq!(of(&[host(1, &[0b11]), host(2, &[0b11])]), None, "two kernels");
        assert_eq!(of(&[host(0, &[0b11]), host(0, &[0b11])]), None, "unknown kernels");
        assert_eq!(of(&[host(1, &[0b0011]), host(1, &[0b1100])]), None, "each has its own");
        assert_eq!(of(&[host(1, &[]), host(1, &[]), host(1, &[0b11])]), None, "unknown sets");
        let chain = [host(1, &[0b0011]), host(1, &[0, 0b11]), host(1, &[0b0001, 0b10])];
        assert_eq!(of(&chain), Some((3, 4)), "the last one joins the others");
        let two = [host(1, &[0xff]), host(2, &[0b111]), host(1, &[0xff]), host(2, &[0b111])];
        assert_eq!(of(&two), Some((2, 3)), "those with the fewest");
    }
}
