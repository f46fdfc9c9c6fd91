//! The figures with which all processes of a job on several hosts compute.
//!
//! Of the figures of `landeck tune` those of the launcher hold for all, and where hosts have others, the slower ones. The
//! links of the hosts are measured when the job is made.

use std::collections::BTreeMap;

use landeck_collectives::cost_parameters::CostParameters;
use landeck_collectives::record::Record;
use landeck_collectives::settings::Settings;
use landeck_groups::hosts::LinkSight;
use landeck_host::figures;
use landeck_host::remote::spec::HostLink;
use landeck_wire::HostNumber;

/// The figures that are kept for this host's processor, as words; empty if there are none that can be used.
pub(crate) fn of_this_host() -> Vec<u64> {
    let text = figures::place().and_then(|path| figures::text_of(&path).ok()?);
    let machine = figures::machine();
    let record = text.and_then(|text| Record::of_machine(&text, &machine).ok());
    record
        .filter(|record| record.machine == machine)
        .map_or_else(Vec::new, |record| record.figures.to_words().to_vec())
}

/// The settings of a job whose hosts have these figures. A host without figures takes the launcher's.
pub(crate) fn settled(settings: &[u64], hosts: &[Vec<u64>]) -> Vec<u64> {
    let Ok(words) = <[u64; Settings::WORDS]>::try_from(settings) else { return settings.to_vec() };
    let launcher = Settings::from_words(&words);
    let known =
        hosts.iter().filter_map(|words| <&[u64; CostParameters::WORDS]>::try_from(&words[..]).ok());
    let known = known.filter_map(|words| CostParameters::from_words(words).ok());
    let figures = known.fold(launcher.figures, CostParameters::slower);
    Settings { figures, ..launcher }.to_words().to_vec()
}

/// The findings about links, of both hosts of each pair.
#[derive(Clone, Debug, Default)]
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

    /// The links whose latency was found. Of the others nothing is said, so that a common network is assumed.
    pub(crate) fn settled(&self) -> Vec<HostLink> {
        let found = self.0.iter().filter(|(_, sight)| sight.latency_ps.is_some());
        found.map(|(&hosts, sight)| HostLink { hosts, words: sight.to_words() }).collect()
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
        assert_eq!(found.settled(), [link], "no latency, no link");
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
        ];
        let of = |hosts: &[Vec<u64>]| {
            let settled = settled(&own.to_words(), hosts);
            Settings::from_words(&settled.try_into().expect("as many words"))
        };
        assert_eq!(of(&others[..3]), Settings { figures: with(70_000, 3_000), ..own.clone() });
        assert_eq!(of(&others[1..2]), own, "a host without figures");
        assert_eq!(settled(&[1, 2], &others), [1, 2]);
    }
}
