//! Private memory that begins with a page, or so far behind one: copies and sums take a tenth more or less by where they
//! begin.

use std::ops::{Deref, DerefMut};

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// Values in memory of which is known where in a page they begin.
#[derive(Debug)]
pub struct Paged<T> {
    values: Vec<T>,
    start: usize,
    length: usize,
}

impl<T: Copy> Paged<T> {
    /// Makes so many values, which begin `offset` bytes behind the begin of a page.
    pub fn new(value: T, length: usize, offset: usize) -> Self {
        let (page, offset) = (PAGE_BYTES / size_of::<T>(), offset / size_of::<T>());
        let values = vec![value; page + offset + length];
        let start = values.as_ptr().align_offset(PAGE_BYTES).min(page) + offset;
        Self { values, start, length }
    }
}

impl<T> Deref for Paged<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values[self.start..self.start + self.length]
    }
}

impl<T> DerefMut for Paged<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_begin_where_they_should() {
        for (length, offset) in [(0, 0), (1, 16), (5000, 16), (300_000, 0), (300_000, 2048)] {
            let mut memory = Paged::new(7.0f64, length, offset);
            memory.iter_mut().for_each(|value| *value += 1.0);
            assert_eq!(memory.as_ptr().addr() % PAGE_BYTES, offset);
            assert_eq!((memory.len(), memory.iter().sum::<f64>()), (length, 8.0 * length as f64));
        }
    }
}
