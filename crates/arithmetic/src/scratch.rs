//! Private memory for intermediate values.

/// The memory for intermediate values when many inputs are combined. It belongs to the caller, who keeps it: the first
/// use allocates, later ones of the same size do not. A user's function that never returns leaks nothing.
#[derive(Debug, Default)]
pub struct Scratch {
    lines: Vec<Line>,
}

/// A cache line: aligned for any element.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES]);

const LINE_BYTES: usize = 64;

/// Equal areas of a scratch, each aligned for any element. They do not overlap.
#[derive(Clone, Copy)]
pub(crate) struct Areas {
    start: *mut u8,
    area_bytes: usize,
}

impl Scratch {
    /// Creates a scratch without any memory yet.
    pub const fn new() -> Self {
        Self { lines: Vec::new() }
    }

    /// Provides so many areas of at least so many bytes. Their former content is lost; they are valid until the next
    /// call.
    pub(crate) fn areas(&mut self, count: usize, bytes: usize) -> Areas {
        let lines_each = bytes.div_ceil(LINE_BYTES);
        if self.lines.len() < count * lines_each {
            self.lines.resize(count * lines_each, Line([0; LINE_BYTES]));
        }
        Areas { start: self.lines.as_mut_ptr().cast(), area_bytes: lines_each * LINE_BYTES }
    }
}

impl Areas {
    /// The beginning of the area with this index, which must be smaller than their number.
    #[inline(always)]
    pub(crate) fn at(&self, index: usize) -> *mut u8 {
        self.start.wrapping_add(index * self.area_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_apart_aligned_and_kept() {
        let mut scratch = Scratch::new();
        let areas = scratch.areas(3, 65);
        for index in 0..3 {
            assert_eq!(areas.at(index).addr() % LINE_BYTES, 0);
            assert_eq!(areas.at(index).addr() - areas.at(0).addr(), index * 128);
        }
        assert_eq!(scratch.lines.len(), 6);
        assert_eq!(scratch.areas(1, 1).at(0), areas.at(0));
    }
}
