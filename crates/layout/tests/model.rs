//! Checks layouts against a naive model: the list of all elements with their places.

use landeck_layout::{Bounds, Family, Kind, Layout, LayoutBlock, LayoutError, Member, Run};
use proptest::prelude::*;

/// A layout in the test's own form.
#[derive(Clone, Debug)]
enum Description {
    Elements(Kind, u64),
    Contiguous(u64, Box<Description>),
    Vector(u64, u64, i64, Box<Description>),
    Indexed(Vec<(i64, u64)>, Box<Description>),
    Structure(Vec<(i64, u64, Description)>),
    Resized(i64, i64, Box<Description>),
}

/// The meaning of a description: every element in packing order, and the given bounds.
#[derive(Clone, Debug)]
struct Model {
    elements: Vec<(Kind, i64)>,
    marks: Option<(i64, i64)>,
}

impl Model {
    fn empty() -> Self {
        Self { elements: Vec::new(), marks: None }
    }

    /// The given bounds, otherwise the elements' own, with room for the alignment of the next item.
    fn bounds(&self) -> (i64, i64) {
        let first = self.elements.iter().map(|(_, place)| *place).min();
        let end = self.elements.iter().map(|(kind, place)| place + kind.size_bytes() as i64).max();
        let alignment = self.elements.iter().map(|(kind, _)| kind.alignment_bytes() as i64).max();
        let (Some(first), Some(end), Some(alignment)) = (first, end, alignment) else {
            return self.marks.unwrap_or((0, 0));
        };
        let extent = (end - first + alignment - 1) / alignment * alignment;
        self.marks.unwrap_or((first, first + extent))
    }

    fn extent(&self) -> i64 {
        let (lower, upper) = self.bounds();
        upper - lower
    }

    fn add(&mut self, other: &Self, offset: i64) {
        self.elements.extend(other.elements.iter().map(|(kind, place)| (*kind, place + offset)));
        if let Some((lower, upper)) = other.marks {
            let (lower, upper) = (lower + offset, upper + offset);
            self.marks = Some(match self.marks {
                None => (lower, upper),
                Some((low, high)) => (low.min(lower), high.max(upper)),
            });
        }
    }

    fn add_block(&mut self, offset: i64, count: u64, item: &Self) {
        for index in 0..count as i64 {
            self.add(item, offset + index * item.extent());
        }
    }

    fn bytes(&self) -> Vec<i64> {
        let width = |kind: Kind| kind.size_bytes() as i64;
        self.elements.iter().flat_map(|(kind, place)| *place..place + width(*kind)).collect()
    }

    fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (kind, _) in &self.elements {
            match runs.last_mut() {
                Some(run) if run.kind == *kind => run.count += 1,
                _ => runs.push(Run { kind: *kind, count: 1 }),
            }
        }
        runs
    }
}

fn model(description: &Description) -> Model {
    let mut model_of = Model::empty();
    match description {
        Description::Elements(kind, count) => {
            for index in 0..*count as i64 {
                let place = index * kind.size_bytes() as i64;
                model_of.elements.push((*kind, place));
            }
        }
        Description::Contiguous(count, item) => model_of.add_block(0, *count, &model(item)),
        Description::Vector(count, block, stride, item) => {
            let item = model(item);
            for index in 0..*count as i64 {
                model_of.add_block(index * stride, *block, &item);
            }
        }
        Description::Indexed(blocks, item) => {
            let item = model(item);
            for (offset, count) in blocks {
                model_of.add_block(*offset, *count, &item);
            }
        }
        Description::Structure(members) => {
            for (offset, count, item) in members {
                model_of.add_block(*offset, *count, &model(item));
            }
        }
        Description::Resized(lower, upper, item) => {
            model_of = model(item);
            model_of.marks = Some((*lower, *upper));
        }
    }
    model_of
}

fn layout(description: &Description) -> Result<Layout, LayoutError> {
    match description {
        Description::Elements(kind, count) => Layout::elements(*kind, *count),
        Description::Contiguous(count, item) => Layout::contiguous(*count, &layout(item)?),
        Description::Vector(count, block, stride, item) => {
            Layout::vector(*count, *block, *stride, &layout(item)?)
        }
        Description::Indexed(blocks, item) => {
            let blocks: Vec<_> =
                blocks.iter().map(|&(offset, count)| LayoutBlock { offset, count }).collect();
            Layout::indexed(&blocks, &layout(item)?)
        }
        Description::Structure(members) => {
            let members: Result<Vec<_>, LayoutError> = members
                .iter()
                .map(|(offset, count, item)| {
                    Ok(Member { offset: *offset, count: *count, layout: layout(item)? })
                })
                .collect();
            Layout::structure(&members?)
        }
        Description::Resized(lower, upper, item) => {
            Ok(layout(item)?.resized(Bounds { lower: *lower, upper: *upper }))
        }
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    let families = vec![Family::Byte, Family::Signed, Family::Float];
    (prop::sample::select(families), prop::sample::select(vec![1usize, 2, 4, 8]))
        .prop_map(|(family, bytes)| Kind::new(family, bytes).expect("a width between 1 and 64"))
}

fn descriptions() -> impl Strategy<Value = Description> {
    let leaf = (kinds(), 0u64..4).prop_map(|(kind, count)| Description::Elements(kind, count));
    leaf.prop_recursive(4, 24, 3, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let offset = -40i64..40;
        prop_oneof![
            (0u64..4, boxed.clone()).prop_map(|(count, item)| Description::Contiguous(count, item)),
            (0u64..4, 0u64..3, offset.clone(), boxed.clone()).prop_map(
                |(count, block, stride, item)| Description::Vector(count, block, stride, item)
            ),
            (prop::collection::vec((offset.clone(), 0u64..3), 0..4), boxed.clone())
                .prop_map(|(blocks, item)| Description::Indexed(blocks, item)),
            prop::collection::vec((offset.clone(), 0u64..3, inner), 0..4)
                .prop_map(Description::Structure),
            (offset.clone(), offset, boxed)
                .prop_map(|(lower, upper, item)| Description::Resized(lower, upper, item)),
        ]
    })
}

/// A number of items: small, but sometimes large enough to be walked across.
fn counts() -> impl Strategy<Value = u64> {
    prop_oneof![9 => 0u64..4, 1 => 20u64..60]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_layout_is_its_model(
        description in descriptions(),
        count in counts(),
    ) {
        let item = model(&description);
        let built = layout(&description).unwrap();
        let mut items = Model::empty();
        items.add_block(0, count, &item);
        let bytes = items.bytes();

        prop_assert_eq!(built.size_bytes(), item.bytes().len() as u64);
        prop_assert_eq!(built.element_count(), item.elements.len() as u64);
        let (lower, upper) = item.bounds();
        prop_assert_eq!(built.bounds(), Bounds { lower, upper });
        let places = item.bytes();
        let lower = places.iter().min().copied().unwrap_or(0);
        let upper = places.iter().max().map_or(0, |place| place + 1);
        prop_assert_eq!(built.true_bounds(), Bounds { lower, upper });
        let span = built.span(count).unwrap();
        prop_assert_eq!(span.lower, bytes.iter().min().copied().unwrap_or(0));
        prop_assert_eq!(span.upper, bytes.iter().max().map_or(0, |place| place + 1));

        let is_run = bytes.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        match built.single_piece(count) {
            // Elements that are adjacent by chance may be missed, but never the other way round.
            None => prop_assert!(!is_run || !bytes.is_empty()),
            Some(piece) => {
                prop_assert!(is_run);
                prop_assert_eq!(piece.length, bytes.len());
                if let Some(first) = bytes.first() {
                    prop_assert_eq!(piece.offset, *first);
                }
            }
        }
        if built.is_contiguous() {
            prop_assert!(is_run && bytes.first().is_none_or(|first| *first == 0));
        }
    }

    #[test]
    fn every_range_is_walked(
        description in descriptions(),
        count in counts(),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
        limits in prop::collection::vec(1usize..20, 1..8),
    ) {
        let built = layout(&description).unwrap();
        let mut items = Model::empty();
        items.add_block(0, count, &model(&description));
        let bytes = items.bytes();
        let (from, to) = (from.index(bytes.len() + 1), to.index(bytes.len() + 1));
        let (from, to) = (from.min(to), from.max(to));
        let mut cursor = built.cursor(count).unwrap();
        cursor.restrict(from as u64..to as u64).unwrap();
        let mut walked = Vec::new();
        for limit in limits.iter().cycle() {
            let Some(piece) = cursor.next_piece(*limit) else { break };
            prop_assert!(piece.length > 0 && piece.length <= *limit);
            walked.extend(piece.offset..piece.offset + piece.length as i64);
            prop_assert_eq!(cursor.position(), (from + walked.len()) as u64);
        }
        prop_assert_eq!(walked, &bytes[from..to]);
        prop_assert_eq!(cursor.remaining(), 0);

        let mut places = vec![None; to - from];
        built.strips(count, from as u64..to as u64, |strip| {
            for index in 0..strip.count {
                let place = strip.offset + index as i64 * strip.stride;
                let packed = (strip.packed + index * strip.packed_stride) as usize;
                let beside = strip.beside.map(|beside| {
                    (place + beside.offset, packed + beside.packed as usize, beside.length)
                });
                for (place, packed, length) in beside.into_iter().chain([(place, packed, strip.length)]) {
                    for byte in 0..length {
                        assert_eq!(places[packed + byte], None, "a byte is copied twice");
                        places[packed + byte] = Some(place + byte as i64);
                    }
                }
            }
        }).unwrap();
        let places: Option<Vec<_>> = places.into_iter().collect();
        prop_assert_eq!(places.as_deref(), Some(&bytes[from..to]));
    }

    #[test]
    fn elements_are_counted(description in descriptions()) {
        let (built, item) = (layout(&description).unwrap(), model(&description));
        let widths = item.elements.iter().cycle().map(|(kind, _)| kind.size_bytes());
        let mut bytes_before = 0;
        for (elements, width) in widths.take(2 * item.elements.len()).enumerate() {
            prop_assert_eq!(built.elements_in(bytes_before), Some(elements as u64));
            prop_assert_eq!(built.bytes_of_elements(elements as u64), Some(bytes_before));
            if width > 1 {
                prop_assert_eq!(built.elements_in(bytes_before + 1), None);
            }
            bytes_before += width;
        }
    }

    #[test]
    fn signatures_are_sequences_of_kinds(description in descriptions(), count in counts()) {
        let built = layout(&description).unwrap();
        let mut items = Model::empty();
        items.add_block(0, count, &model(&description));
        let signature = built.signature(count);
        prop_assert_eq!(signature.runs().collect::<Vec<_>>(), items.runs());
        let flat: Vec<_> = items.runs().iter().map(|run| Member {
            offset: 1000,
            count: run.count,
            layout: Layout::element(run.kind),
        }).collect();
        let flat = Layout::structure(&flat).unwrap().signature(1);
        prop_assert_eq!(signature.fingerprint(), flat.fingerprint());
        prop_assert!(signature == flat);
    }
}
