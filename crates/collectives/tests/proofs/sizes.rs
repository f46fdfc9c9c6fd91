//! Every size up to 64, but in a test some of those above 32; every root, but in a test every fourth above 16 members, and
//! every eighth above 32.

use std::sync::Arc;

use landeck_collectives::{Architecture, Group, Operation, Task, Way};

use crate::cases::{
    ORDERS, SEGMENTS, SIZE_MAX, STYLES, clustered, is_soak, operations, prove_one, proven,
    unclustered, watchdog,
};

/// The sizes above 32 that a test proves: around powers of two, primes, and with every number of clusters.
const LARGE: [u32; 8] = [33, 37, 43, 48, 53, 59, 63, 64];

/// The sizes, which cost the more the larger they are: a soak proves all.
fn sizes() -> impl Iterator<Item = u32> {
    (1..=SIZE_MAX).filter(|size| is_soak() || *size <= 32 || LARGE.contains(size))
}

/// Operations with a root from every root, and all others.
pub(crate) fn prove_all(architecture: &Arc<dyn Architecture>, group: &Group, number: u32) {
    let step = match group.size() {
        0..=16 => 1,
        _ if is_soak() => 1,
        17..=32 => 4,
        _ => 8,
    };
    for root in (number % step..group.size()).step_by(step as usize) {
        for operation in operations(true) {
            prove_one(architecture, group, operation, root, number + root);
        }
    }
    for operation in operations(false) {
        prove_one(architecture, group, operation, 0, number);
    }
}

fn every_size(architectures: &[Arc<dyn Architecture>]) {
    let _watchdog = watchdog();
    for (number, architecture) in (0..).zip(architectures) {
        for size in sizes() {
            let group = Group::divided(size, 1 + size % 7).unwrap();
            prove_all(architecture, &group, number + size);
        }
    }
}

#[test]
fn every_size_and_root_by_architectures_of_clusters() {
    every_size(&clustered());
}

#[test]
fn every_size_and_root_by_the_others() {
    every_size(&unclustered());
}

#[test]
fn every_size_and_root_on_the_board() {
    let _watchdog = watchdog();
    for size in sizes() {
        let group = Group::whole(size).unwrap();
        for operation in Operation::ALL {
            let roots = if operation.has_root() { size } else { 6 };
            for number in 0..roots {
                let root = if operation.has_root() { number } else { 0 };
                let order = ORDERS[number as usize % 2]; // it is late in any case
                let segments = SEGMENTS[(number + size) as usize % 3];
                let task = Task {
                    operation,
                    root,
                    segments,
                    order,
                    in_place: (number / 2).is_multiple_of(2),
                };
                proven(&task, &Way::Board(STYLES[number as usize % STYLES.len()]), &group);
            }
        }
    }
}
