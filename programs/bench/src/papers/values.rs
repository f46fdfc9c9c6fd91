//! The measured values of the papers' studies, round by round.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::candidate::{self, Candidate};
use crate::disturbance::DISTURBED_SHARE;
use crate::machine::Machine;
use crate::papers::counts::Counts;
use crate::papers::grid::Study;
use crate::statistics::{Middle, mean, median};

/// A study, measured here.
#[derive(Debug, Serialize)]
pub(crate) struct Values {
    #[serde(skip)]
    pub(crate) study: Study,
    pub(crate) title: &'static str,
    pub(crate) machine: Machine,
    pub(crate) rounds: usize,
    pub(crate) values: Vec<Value>,
    /// Counted numbers.
    pub(crate) facts: Vec<Fact>,
    /// Launches that did not end well.
    pub(crate) troubles: Vec<String>,
}

/// A measured case: an architecture or operation with so many processes and bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct ValuePlace {
    pub(crate) operation: String,
    /// A preset, behind `@` its number of groups; or ours.
    pub(crate) way: String,
    /// The library that does it: the name of a candidate.
    pub(crate) who: &'static str,
    /// The job's hosts; 0 for a job that has no list of them.
    pub(crate) hosts: u32,
    pub(crate) n: u32,
    pub(crate) bytes: u64,
}

/// A number that is counted and not timed: the messages of an operation, the rounds of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Fact {
    #[serde(flatten)]
    pub(crate) place: ValuePlace,
    pub(crate) unit: String,
    pub(crate) value: f64,
}

impl ValuePlace {
    /// A case of a job on this host alone, measured over Landeck's own interface.
    pub(crate) fn here(operation: &str, way: &str, n: u32, bytes: u64) -> ValuePlace {
        let (operation, way) = (operation.to_owned(), way.to_owned());
        ValuePlace { operation, way, who: Candidate::Landeck.name(), hosts: 0, n, bytes }
    }
}

/// The median of one launch's batches.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Value {
    #[serde(flatten)]
    pub(crate) place: ValuePlace,
    pub(crate) round: usize,
    pub(crate) us: f64,
    pub(crate) batches: usize,
    pub(crate) batches_min_us: f64,
    pub(crate) batches_max_us: f64,
    /// The share of all processors that others used meanwhile.
    pub(crate) others_share: f64,
    /// Of the plans; none where there are no messages.
    pub(crate) counts: Option<Counts>,
}

impl Values {
    /// The median of the launches, and the ends of their medians. Disturbed launches count only
    /// where there are no others: then the less disturbed half of them.
    pub(crate) fn at(&self, place: &ValuePlace) -> Option<Middle> {
        let mut mine: Vec<&Value> =
            self.values.iter().filter(|value| value.place == *place).collect();
        let shares: Vec<f64> = mine.iter().map(|value| value.others_share).collect();
        let is_calm = mine.iter().any(|value| value.is_calm());
        let share_max = if is_calm { DISTURBED_SHARE } else { median(&shares)? };
        mine.retain(|value| value.others_share <= share_max);
        Middle::of(mine.iter().map(|value| value.us))
    }

    /// How many times as long one place takes as another one, in the rounds that have both. Rounds with a disturbed launch
    /// count only where there are no others.
    pub(crate) fn ratio(&self, place: &ValuePlace, to: &ValuePlace) -> Option<Middle> {
        let of = |place: &ValuePlace, round| {
            self.values.iter().find(|value| value.place == *place && value.round == round)
        };
        let pairs: Vec<(&Value, &Value)> = (0..self.rounds)
            .filter_map(|round| Some((of(place, round)?, of(to, round)?)))
            .collect();
        let is_calm = |(one, other): &(&Value, &Value)| one.is_calm() && other.is_calm();
        let has_calm = pairs.iter().any(is_calm);
        let counted = pairs.into_iter().filter(|pair| !has_calm || is_calm(pair));
        Middle::of(counted.map(|(one, other)| one.us / other.us))
    }

    pub(crate) fn median_us(&self, place: &ValuePlace) -> Option<f64> {
        self.at(place).map(|spread| spread.median)
    }

    /// The counted numbers of a place.
    pub(crate) fn facts_at(&self, place: &ValuePlace, unit: &str) -> Vec<f64> {
        self.facts_where(|fact| fact.place == *place && fact.unit == unit)
    }

    /// Counted numbers in order; equal ones stand there once.
    pub(crate) fn facts_where(&self, is_meant: impl Fn(&Fact) -> bool) -> Vec<f64> {
        let of = self.facts.iter().filter(|fact| is_meant(fact));
        let mut all: Vec<f64> = of.map(|fact| fact.value).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    /// The ways with the libraries that do them, ours first.
    pub(crate) fn series(&self) -> Vec<(&str, &'static str)> {
        let rank = |who| candidate::ALL.iter().position(|candidate| candidate.name() == who);
        let all: BTreeSet<_> = self
            .values
            .iter()
            .map(|value| (rank(value.place.who), order(&value.place.way), value.place.who))
            .collect();
        all.into_iter().map(|(_, (.., way), who)| (way, who)).collect()
    }

    pub(crate) fn counts(&self, place: &ValuePlace) -> Option<Counts> {
        self.values.iter().find(|value| value.place == *place)?.counts
    }

    /// Every place, sorted.
    pub(crate) fn places(&self) -> Vec<&ValuePlace> {
        let places: BTreeSet<&ValuePlace> = self.values.iter().map(|value| &value.place).collect();
        places.into_iter().collect()
    }

    /// The numbers of processes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let all: BTreeSet<u32> = self.places().iter().map(|place| place.n).collect();
        all.into_iter().collect()
    }

    /// The sizes of messages.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        let all: BTreeSet<u64> = self.places().iter().map(|place| place.bytes).collect();
        all.into_iter().collect()
    }

    /// The ways, in the order of the papers; ours is the last.
    pub(crate) fn ways(&self) -> Vec<&str> {
        let all: BTreeSet<_> = self.values.iter().map(|value| order(&value.place.way)).collect();
        all.into_iter().map(|(.., way)| way).collect()
    }

    /// The mean of a way's medians at all of its places, as the paper of 2005 gives it.
    pub(crate) fn mean_us(&self, way: &str) -> Option<f64> {
        let places = self.places();
        let mine = places.iter().filter(|place| place.way == way);
        mean(&mine.filter_map(|place| self.median_us(place)).collect::<Vec<_>>())
    }

    /// Launches that others disturbed, of all.
    pub(crate) fn disturbed_share(&self) -> f64 {
        let disturbed = self.values.iter().filter(|value| !value.is_calm()).count();
        disturbed as f64 / self.values.len().max(1) as f64
    }
}

/// The sort key of the ways.
fn order(way: &str) -> (usize, u32, &str) {
    const PAPERS: [&str; 7] =
        ["pipeline", "daisy", "hierarchy", "hypercube", "deck2000", "deck2003", "mpi2003"];
    let (preset, groups) = way.split_once('@').unwrap_or((way, ""));
    let place = PAPERS.iter().position(|&name| name == preset).unwrap_or(PAPERS.len());
    (place, groups.parse().unwrap_or(0), way)
}

impl Value {
    fn is_calm(&self) -> bool {
        self.others_share <= DISTURBED_SHARE
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn values(study: Study, entries: &[(&str, u32, u64, f64, f64)]) -> Values {
        let value = |&(way, n, bytes, us, others_share): &(&str, u32, u64, f64, f64)| Value {
            others_share,
            ..value(ValuePlace::here("broadcast", way, n, bytes), 0, us)
        };
        of_values(study, entries.iter().map(value).collect())
    }

    /// Values of places in several rounds.
    pub(crate) fn values_at(
        study: Study,
        entries: impl IntoIterator<Item = (ValuePlace, usize, f64)>,
    ) -> Values {
        let all = entries.into_iter().map(|(place, round, us)| value(place, round, us));
        of_values(study, all.collect())
    }

    fn value(place: ValuePlace, round: usize, us: f64) -> Value {
        Value {
            place,
            round,
            us,
            batches: 1,
            batches_min_us: us,
            batches_max_us: us,
            others_share: 0.0,
            counts: None,
        }
    }

    fn of_values(study: Study, values: Vec<Value>) -> Values {
        Values {
            study,
            title: study.title(),
            machine: Machine::here(),
            rounds: values.iter().map(|value| value.round + 1).max().unwrap_or(0),
            values,
            facts: Vec::new(),
            troubles: Vec::new(),
        }
    }

    #[test]
    fn disturbed_launches_count_only_where_there_are_no_others() {
        let all = values(
            Study::Sizes,
            &[
                ("daisy@2", 24, 4, 10.0, 0.0),
                ("daisy@2", 24, 4, 90.0, 0.5),
                ("daisy@3", 24, 4, 7.0, 0.5),
                ("daisy@3", 24, 4, 6.0, 0.4),
                ("daisy@3", 24, 4, 50.0, 0.9),
            ],
        );
        let at = |way: &str| all.median_us(&ValuePlace::here("broadcast", way, 24, 4));
        assert_eq!((at("daisy@2"), at("daisy@3")), (Some(10.0), Some(6.5)));
    }

    #[test]
    fn ratios_are_those_of_calm_rounds() {
        let place = |way: &str| ValuePlace::here("broadcast", way, 24, 4);
        let (one, other) = (place("daisy@2"), place("daisy@3"));
        let entries = [(0, 10.0, 4.0), (1, 90.0, 3.0), (2, 9.0, 3.0)];
        let both = entries.into_iter().flat_map(|(round, us, base_us)| {
            [(one.clone(), round, us), (other.clone(), round, base_us)]
        });
        let mut all = values_at(Study::Sizes, both);
        assert_eq!(all.ratio(&one, &other).map(|it| it.max), Some(30.0));
        all.values[2].others_share = 0.5;
        let found = all.ratio(&one, &other).unwrap();
        assert_eq!((found.min, found.max), (2.5, 3.0));
    }

    #[test]
    fn ways_stand_in_the_order_of_the_papers() {
        let entries = ["landeck", "hypercube@16", "hypercube@8", "daisy@2", "pipeline@3"];
        let all = values(Study::Sizes, &entries.map(|way| (way, 24, 4, 1.0, 0.0)));
        assert_eq!(all.ways(), ["pipeline@3", "daisy@2", "hypercube@8", "hypercube@16", "landeck"]);
    }

    #[test]
    fn a_mean_is_over_all_places_of_a_way() {
        let all =
            values(Study::Sizes, &[("daisy@2", 24, 4, 10.0, 0.0), ("daisy@2", 24, 40, 30.0, 0.0)]);
        assert_eq!(all.mean_us("daisy@2"), Some(20.0));
        assert_eq!(all.mean_us("daisy@4"), None);
    }
}
