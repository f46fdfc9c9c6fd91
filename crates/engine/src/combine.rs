//! Combining data that lie in shared memory or in a user's: the one place of this crate that hands
//! their addresses to the loops of `arithmetic`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use landeck_arithmetic::{Operator, ReductionError, Scratch};
use landeck_kernel::Area;
use landeck_memory::{Buffer, Bytes, NoMemory, room};

/// Why data were not combined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CombineError {
    /// They cannot be.
    Reduction(ReductionError),
    /// The user's function panicked.
    Panicked,
    /// There is no memory for the result, which belongs where it does not lie in one piece.
    NoMemory(NoMemory),
}

impl From<NoMemory> for CombineError {
    fn from(no_memory: NoMemory) -> Self {
        Self::NoMemory(no_memory)
    }
}

/// The memory that combining needs besides the data, kept from call to call.
#[derive(Default)]
pub(crate) struct Combiner {
    scratch: Scratch,
    places: Vec<*const u8>,
    packed: Vec<u8>,
}

// SAFETY: places are filled and used within one call; between calls they are only numbers.
unsafe impl Send for Combiner {}

impl Combiner {
    /// Combines `length` bytes of each of `count` members, in the canonical order, into the bytes
    /// from `position` of an area. Sources may lie exactly where the result goes.
    #[inline]
    pub(crate) fn combine_to_area<'a, E: From<CombineError>>(
        &mut self,
        operator: &Operator,
        count: u32,
        source: impl FnMut(u32) -> Result<Bytes<'a>, E>,
        (area, position): (&Area, usize),
        length: usize,
    ) -> Result<(), E> {
        if let Some(plain) = area.one_piece() {
            let plain = plain.part(position, length);
            self.collect(count, plain.len(), source)?;
            return self.combine(operator, plain.start().as_ptr(), plain.len()).map_err(E::from);
        }
        let mut packed = std::mem::take(&mut self.packed);
        room::resize(&mut packed, length).map_err(CombineError::from)?;
        let result = self.combine_to_slice(operator, count, source, &mut packed);
        if result.is_ok() {
            area.write(position as u64, Bytes::from(&packed[..]));
        }
        self.packed = packed;
        result
    }

    /// Combines the data of `count` members, in the canonical order, into all of a buffer.
    #[inline]
    pub(crate) fn combine_to_buffer<'a, E: From<CombineError>>(
        &mut self,
        operator: &Operator,
        count: u32,
        source: impl FnMut(u32) -> Result<Bytes<'a>, E>,
        into: &Buffer,
    ) -> Result<(), E> {
        let into = into.bytes();
        self.collect(count, into.len(), source)?;
        self.combine(operator, into.start().as_ptr(), into.len()).map_err(E::from)
    }

    /// Combines the data of `count` members, in the canonical order, into private memory or a block of this process.
    pub(crate) fn combine_to_slice<'a, E: From<CombineError>>(
        &mut self,
        operator: &Operator,
        count: u32,
        source: impl FnMut(u32) -> Result<Bytes<'a>, E>,
        into: &mut [u8],
    ) -> Result<(), E> {
        self.collect(count, into.len(), source)?;
        self.combine(operator, into.as_mut_ptr(), into.len()).map_err(E::from)
    }

    /// Notes where the data of each member lie: at least `length` bytes, or an error.
    fn collect<'a, E: From<CombineError>>(
        &mut self,
        count: u32,
        length: usize,
        mut source: impl FnMut(u32) -> Result<Bytes<'a>, E>,
    ) -> Result<(), E> {
        self.places.clear();
        for member in 0..count {
            let bytes = source(member)?;
            let (place, there) = (bytes.start().as_ptr().cast_const(), bytes.len());
            if there < length {
                let (accumulator_bytes, input_bytes) = (length, there);
                let error = ReductionError::LengthsDiffer { accumulator_bytes, input_bytes };
                return Err(CombineError::Reduction(error).into());
            }
            self.places.push(place);
        }
        Ok(())
    }

    #[inline]
    fn combine(
        &mut self,
        operator: &Operator,
        into: *mut u8,
        length: usize,
    ) -> Result<(), CombineError> {
        if operator.reduction().is_none() {
            return self.guarded(operator, into, length);
        }
        self.combine_now(operator, into, length)
    }

    /// Combines with a user's function, which may panic.
    #[cold]
    fn guarded(
        &mut self,
        operator: &Operator,
        into: *mut u8,
        length: usize,
    ) -> Result<(), CombineError> {
        let combine = AssertUnwindSafe(|| self.combine_now(operator, into, length));
        catch_unwind(combine).unwrap_or(Err(CombineError::Panicked))
    }

    #[inline]
    fn combine_now(
        &mut self,
        operator: &Operator,
        into: *mut u8,
        length: usize,
    ) -> Result<(), CombineError> {
        // SAFETY: `collect` has just found `length` readable bytes at every place: `Bytes` whose
        // lifetime the caller still holds.
        // `into` is as long: the output of a request, which its maker promised to be writable and
        // nobody else's, or a `&mut` slice.
        let combined =
            unsafe { operator.combine_in_order(&self.places, into, length, &mut self.scratch) };
        combined.map_err(CombineError::Reduction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_arithmetic::{Element, Operation, Reduction};

    fn sum() -> Operator {
        Reduction::new(Operation::Sum, Element::U64).unwrap().into()
    }

    #[test]
    fn values_are_combined_from_where_they_lie() {
        let (mut combiner, mut result) = (Combiner::default(), [0; 16]);
        let memory: Vec<u8> = [3u64, 4].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let source = |_| -> Result<Bytes<'_>, CombineError> { Ok(Bytes::from(&memory[..])) };
        combiner.combine_to_slice(&sum(), 3, source, &mut result).unwrap();
        assert_eq!(result[..8], 9u64.to_ne_bytes());
        assert_eq!(result[8..], 12u64.to_ne_bytes());
    }

    #[test]
    fn an_input_that_is_too_short_is_not_read() {
        let (mut combiner, mut result) = (Combiner::default(), [0; 16]);
        let source = |_| -> Result<Bytes<'_>, CombineError> { Ok(Bytes::from(&[0u8; 8][..])) };
        let error = combiner.combine_to_slice(&sum(), 2, source, &mut result).unwrap_err();
        let expected = ReductionError::LengthsDiffer { accumulator_bytes: 16, input_bytes: 8 };
        assert_eq!(error, CombineError::Reduction(expected));
    }
}
