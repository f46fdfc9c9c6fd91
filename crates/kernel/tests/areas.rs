//! Areas: the packed view of a user's memory.
#![allow(clippy::unwrap_used)] // tests may

use std::ptr::NonNull;

use landeck_kernel::Area;
use landeck_layout::{Bounds, Kind, Layout, Member};
use landeck_memory::{Buffer, Bytes};

fn buffer(bytes: &[u8]) -> Buffer {
    // SAFETY: the tests keep the bytes as long as the areas, and write only where they may.
    unsafe { Buffer::new(NonNull::from(bytes).cast(), bytes.len()) }
}

fn contiguous(bytes: &[u8]) -> Area {
    Area::contiguous(buffer(bytes))
}

/// An area of every other byte of these.
fn every_other(bytes: &[u8]) -> Area {
    let element = Layout::element(Kind::BYTE);
    let layout = Layout::vector(bytes.len() as u64 / 2, 1, 2, &element).unwrap();
    Area::with_layout(buffer(bytes), 0, &layout, 1).unwrap()
}

fn packed(area: &Area) -> Vec<u8> {
    let mut packed = Vec::new();
    area.append_to(0, usize::MAX, &mut packed);
    packed
}

#[test]
fn joined_areas_are_one_message() {
    let (one, two) = ([1, 2, 3, 4], [5, 6, 7, 8, 9, 10]);
    let joined = Area::joined([contiguous(&one), every_other(&two), contiguous(&one[1..3])]);
    let all = [1, 2, 3, 4, 5, 7, 9, 2, 3];
    assert_eq!((joined.packed_bytes(), packed(&joined)), (9, all.to_vec()));
    for first in 0..=10 {
        for length in 0..=10 {
            let (from, until) = (first.min(9), (first + length).min(9));
            let part = joined.part(first as u64, length as u64);
            assert_eq!(packed(&part), all[from..until], "{first} {length}");
            let part_of_part = part.part(1, 2);
            assert_eq!(packed(&part_of_part), all[(from + 1).min(until)..(from + 3).min(until)]);
        }
    }
}

#[test]
fn a_copy_into_a_shorter_area_is_cut() {
    let source = [5, 6, 7, 8, 9, 10];
    let mut target = [0u8; 4];
    // SAFETY: nothing else uses the target meanwhile.
    let into = unsafe { Buffer::new(NonNull::from(&mut target).cast(), 2) };
    every_other(&source).copy_to(&Area::contiguous(into));
    assert_eq!(target, [5, 7, 0, 0]);
}

#[test]
fn nothing_joined_is_nothing_and_one_is_itself() {
    assert_eq!(Area::joined([Area::EMPTY]).packed_bytes(), 0);
    let one = [1, 2];
    let joined = Area::joined([Area::EMPTY, contiguous(&one)]);
    assert_eq!(joined.one_piece().unwrap().to_vec(), one);
}

/// An area of records of 4, 8 and 1 bytes with gaps, 16 bytes and more each.
fn records(bytes: &[u8]) -> Area {
    let run = |length| Layout::elements(Kind::BYTE, length).unwrap();
    let member = |offset, length| Member { offset, count: 1, layout: run(length) };
    let record = Layout::structure(&[member(0, 4), member(6, 8), member(15, 1)]).unwrap();
    let spaced = record.resized(Bounds { lower: 0, upper: 17 });
    Area::with_layout(buffer(bytes), 0, &spaced, bytes.len() as u64 / 17).unwrap()
}

#[test]
fn parts_are_packed_and_unpacked_as_the_whole_is() {
    let source: Vec<u8> = (0..17 * 40).map(|index| index as u8).collect();
    let expected: Vec<u8> = source
        .chunks(17)
        .flat_map(|record| [&record[..4], &record[6..14], &record[15..16]].concat())
        .collect();
    let area = records(&source);
    assert_eq!(packed(&area), expected);
    for step in [1, 3, 13, 50, 1000] {
        let mut target = vec![0u8; source.len()];
        // SAFETY: nothing else uses the target meanwhile.
        let into = unsafe { Buffer::new(NonNull::from(&mut target[..]).cast(), target.len()) };
        let unpacked = records(&target);
        for position in (0..expected.len()).step_by(step) {
            let mut part = vec![0; step.min(expected.len() - position)];
            area.pack_slice(position as u64, &mut part);
            assert_eq!(part, expected[position..position + part.len()], "{step} {position}");
            unpacked.write(position as u64, Bytes::from(&part[..]));
        }
        assert_eq!(packed(&unpacked), expected, "{step}");
        assert_eq!(into.bytes().part(4, 2).to_vec(), [0, 0], "the gaps stay");
    }
}

#[test]
fn layouts_are_copied_into_layouts() {
    let source: Vec<u8> = (0..17 * 900).map(|index| index as u8).collect();
    let target = vec![0u8; 2 * 13 * 900 - 7];
    let into = every_other(&target);
    records(&source).copy_to(&into);
    let length = into.packed_bytes() as usize;
    assert!(packed(&into) == packed(&records(&source))[..length]);
}
