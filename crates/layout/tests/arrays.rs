//! Checks parts of arrays against a naive model: every index, one after the other.

#![allow(clippy::unwrap_used)] // tests may

use landeck_layout::{ArrayOrder, Axis, Bounds, Distribution, Family, Kind, Layout, Section};
use proptest::prelude::*;

fn item() -> Layout {
    Layout::element(Kind::new(Family::Float, 8).unwrap())
}

/// The places of all selected indices, in packing order; each dimension has its selected ones.
fn places(sizes: &[u64], taken: &[Vec<u64>], order: ArrayOrder) -> Vec<i64> {
    let mut fastest_first: Vec<usize> = (0..sizes.len()).collect();
    if order == ArrayOrder::LastFastest {
        fastest_first.reverse();
    }
    let (mut places, mut stride) = (vec![0], 8);
    for dimension in fastest_first {
        places = taken[dimension]
            .iter()
            .flat_map(|index| places.iter().map(move |place| place + *index as i64 * stride))
            .collect();
        stride *= sizes[dimension] as i64;
    }
    places
}

fn walked(layout: &Layout) -> Vec<i64> {
    let pieces = layout.cursor(1).unwrap();
    pieces.flat_map(|piece| (piece.offset..piece.offset + piece.length as i64).step_by(8)).collect()
}

fn orders() -> impl Strategy<Value = ArrayOrder> {
    prop::sample::select(vec![ArrayOrder::FirstFastest, ArrayOrder::LastFastest])
}

fn sections() -> impl Strategy<Value = Section> {
    (1u64..7, any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(
        |(size, start, length)| {
            let start = start.index(size as usize) as u64;
            let length = length.index((size - start) as usize) as u64 + 1;
            Section { size, length, start }
        },
    )
}

fn axes() -> impl Strategy<Value = Axis> {
    (1u64..12, 1u64..4, 0..5, 1u64..4).prop_map(|(size, processes, which, block)| {
        let (distribution, processes) = match which {
            0 => (Distribution::Whole, 1),
            1 => (Distribution::Block(None), processes),
            2 => (Distribution::Block(Some(block.max(size.div_ceil(processes)))), processes),
            3 => (Distribution::Cyclic(None), processes),
            _ => (Distribution::Cyclic(Some(block)), processes),
        };
        Axis { size, distribution, processes }
    })
}

/// The process that owns an index.
fn owner(axis: &Axis, index: u64) -> u64 {
    match axis.distribution {
        Distribution::Whole => 0,
        Distribution::Block(block) => index / block.unwrap_or(axis.size.div_ceil(axis.processes)),
        Distribution::Cyclic(block) => index / block.unwrap_or(1) % axis.processes,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_section_is_its_model(
        sections in prop::collection::vec(sections(), 1..5),
        order in orders(),
    ) {
        let layout = Layout::subarray(&sections, order, &item()).unwrap();
        let sizes: Vec<u64> = sections.iter().map(|section| section.size).collect();
        let taken: Vec<Vec<u64>> = sections
            .iter()
            .map(|section| (section.start..section.start + section.length).collect())
            .collect();
        prop_assert_eq!(walked(&layout), places(&sizes, &taken, order));
        let upper = 8 * sizes.iter().product::<u64>() as i64;
        prop_assert_eq!(layout.bounds(), Bounds { lower: 0, upper });
    }

    #[test]
    fn every_process_has_its_part(
        axes in prop::collection::vec(axes(), 1..4),
        order in orders(),
    ) {
        let sizes: Vec<u64> = axes.iter().map(|axis| axis.size).collect();
        let processes: u64 = axes.iter().map(|axis| axis.processes).product();
        let mut elements = 0;
        for rank in 0..processes {
            let mut left = rank;
            let mut taken = Vec::new();
            for axis in axes.iter().rev() {
                let place = left % axis.processes;
                left /= axis.processes;
                taken.push((0..axis.size).filter(|index| owner(axis, *index) == place).collect());
            }
            taken.reverse();
            let layout = Layout::distributed(&axes, order, (processes, rank), &item()).unwrap();
            prop_assert_eq!(walked(&layout), places(&sizes, &taken, order));
            let upper = 8 * sizes.iter().product::<u64>() as i64;
            prop_assert_eq!(layout.bounds(), Bounds { lower: 0, upper });
            elements += layout.element_count();
        }
        prop_assert_eq!(elements, sizes.iter().product::<u64>());
    }
}
