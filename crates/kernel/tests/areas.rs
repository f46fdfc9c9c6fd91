//! Areas: what a message sees of a user's memory.
#![allow(clippy::unwrap_used)] // tests may

use std::ptr::NonNull;

use landeck_kernel::Area;
use landeck_layout::{Kind, Layout};
use landeck_memory::Buffer;

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
    area.read(0, |bytes| {
        packed.extend(bytes.to_vec());
        bytes.len()
    });
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
fn what_is_copied_into_a_shorter_area_is_cut() {
    let source = [5, 6, 7, 8, 9, 10];
    let mut target = [0u8; 4];
    // SAFETY: nobody else uses the target meanwhile.
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
