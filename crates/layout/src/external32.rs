//! The portable format `external32`: big-endian, IEEE, no gaps, the same on every machine.
//!
//! The conversion works on packed bytes that are private to the caller; strips and cursors copy them out of a user's
//! buffer.

use thiserror::Error;

use crate::{Family, Kind, Layout, LayoutError, Run};

/// The reason why data cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConversionError {
    /// The narrower format does not have this number.
    #[error(
        "element {element} is {value}, which the {external_bytes} bytes that external32 has for \
         {kind} do not hold; send it as a type that is as wide there as here"
    )]
    DoesNotFit {
        /// The index of the element, counted from zero.
        element: u64,
        /// The kind of the element.
        kind: Kind,
        /// Its value.
        value: i128,
        /// The width in the portable format.
        external_bytes: u64,
    },
    /// The buffer is too short.
    #[error("{given} bytes were given, but the data have {needed} bytes in this format")]
    TooShort {
        /// The given number of bytes.
        given: usize,
        /// The needed number of bytes.
        needed: u64,
    },
}

impl Layout {
    /// The number of bytes of `count` items in the portable format.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] beyond 63 bits.
    pub fn external_bytes(&self, count: u64) -> Result<u64, LayoutError> {
        let mut one = 0u64;
        for run in self.signature(1).exact_runs() {
            let bytes = run.kind.external_bytes().checked_mul(run.count);
            one = bytes.and_then(|bytes| one.checked_add(bytes)).ok_or(TOO_LARGE)?;
        }
        crate::tree::multiply(one, count, "the size")
    }

    /// Converts the packed bytes of `count` items into the portable format.
    ///
    /// # Errors
    /// [`ConversionError`] names the fault; `external` then has the data that were converted before.
    pub fn to_external(
        &self,
        count: u64,
        native: &[u8],
        external: &mut [u8],
    ) -> Result<(), ConversionError> {
        self.check_lengths(count, native.len(), external.len())?;
        let (mut read, mut written, mut element) = (0, 0, 0);
        for run in self.signature(count).exact_runs() {
            let converter = Converter::new(run);
            let from = &native[read..read + converter.native_bytes()];
            let into = &mut external[written..written + converter.external_bytes()];
            converter.encode(from, into, element)?;
            (read, written) = (read + from.len(), written + into.len());
            element += run.count;
        }
        Ok(())
    }

    /// Converts the portable format into the packed bytes of `count` items.
    ///
    /// # Errors
    /// [`ConversionError::TooShort`].
    pub fn from_external(
        &self,
        count: u64,
        external: &[u8],
        native: &mut [u8],
    ) -> Result<(), ConversionError> {
        self.check_lengths(count, native.len(), external.len())?;
        let (mut read, mut written) = (0, 0);
        for run in self.signature(count).exact_runs() {
            let converter = Converter::new(run);
            let from = &external[read..read + converter.external_bytes()];
            let into = &mut native[written..written + converter.native_bytes()];
            converter.decode(from, into);
            (read, written) = (read + from.len(), written + into.len());
        }
        Ok(())
    }

    fn check_lengths(
        &self,
        count: u64,
        native: usize,
        external: usize,
    ) -> Result<(), ConversionError> {
        let check = |given: usize, needed: Result<u64, LayoutError>| match needed {
            Ok(needed) if given as u64 >= needed => Ok(()),
            Ok(needed) => Err(ConversionError::TooShort { given, needed }),
            Err(_) => Err(ConversionError::TooShort { given, needed: u64::MAX }),
        };
        check(native, self.packed_bytes(count))?;
        check(external, self.external_bytes(count))
    }
}

const TOO_LARGE: LayoutError = LayoutError::TooLarge { what: "the size" };

/// Converts a run of elements, number by number.
struct Converter {
    run: Run,
    /// The widths of one number.
    native: usize,
    external: usize,
}

impl Converter {
    fn new(run: Run) -> Self {
        let numbers = run.kind.family().components();
        let native = run.kind.size_bytes() as usize / numbers;
        Self { run, native, external: run.kind.external_bytes() as usize / numbers }
    }

    fn numbers(&self) -> usize {
        self.run.count as usize * self.run.kind.family().components()
    }

    fn native_bytes(&self) -> usize {
        self.numbers() * self.native
    }

    fn external_bytes(&self) -> usize {
        self.numbers() * self.external
    }

    fn is_extended(&self) -> bool {
        matches!(self.run.kind.family(), Family::Extended | Family::ExtendedComplex)
    }

    /// Whether a narrower number is extended by its sign bit.
    fn is_signed(&self) -> bool {
        self.run.kind.family() == Family::Signed
    }

    fn encode(&self, from: &[u8], into: &mut [u8], first: u64) -> Result<(), ConversionError> {
        let numbers = from.chunks_exact(self.native).zip(into.chunks_exact_mut(self.external));
        for (index, (number, target)) in numbers.enumerate() {
            if self.is_extended() {
                target.copy_from_slice(&binary128_of(number).to_be_bytes());
            } else if self.native == self.external {
                target.copy_from_slice(number);
                swap(target);
            } else {
                let value = self.value(number);
                let bytes = value.to_be_bytes();
                let (dropped, kept) = bytes.split_at(bytes.len() - self.external);
                let negative = self.is_signed() && kept[0] & 0x80 != 0;
                if dropped.iter().any(|byte| *byte != if negative { 0xff } else { 0 }) {
                    return Err(ConversionError::DoesNotFit {
                        element: first + index as u64,
                        kind: self.run.kind,
                        value,
                        external_bytes: self.external as u64,
                    });
                }
                target.copy_from_slice(kept);
            }
        }
        Ok(())
    }

    fn decode(&self, from: &[u8], into: &mut [u8]) {
        let numbers = from.chunks_exact(self.external).zip(into.chunks_exact_mut(self.native));
        for (number, target) in numbers {
            if self.is_extended() {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(number);
                extended_of(u128::from_be_bytes(bytes), target);
            } else {
                // The wider number has the narrower one at its end.
                let negative = self.is_signed() && number[0] & 0x80 != 0;
                let kept = self.native.min(self.external);
                target.fill(if negative { 0xff } else { 0 });
                target[self.native - kept..].copy_from_slice(&number[self.external - kept..]);
                swap(target);
            }
        }
    }

    /// The value of an integer of at most 16 bytes.
    fn value(&self, number: &[u8]) -> i128 {
        let mut bytes = [0; 16];
        let mut number = number.to_vec();
        swap(&mut number);
        let negative = self.is_signed() && number[0] & 0x80 != 0;
        bytes.fill(if negative { 0xff } else { 0 });
        bytes[16 - number.len()..].copy_from_slice(&number);
        i128::from_be_bytes(bytes)
    }
}

/// Converts this machine's byte order into big-endian, or back.
fn swap(number: &mut [u8]) {
    if cfg!(target_endian = "little") {
        number.reverse();
    }
}

/// The number of fraction bits that binary128 has in addition to the x87 format.
const FRACTION_LEFT: u32 = 112 - 63;
const EXPONENT_MASK: u16 = 0x7fff;

/// Converts a number of the x87 into IEEE binary128: the same exponent, and the fraction without its leading one.
fn binary128_of(number: &[u8]) -> u128 {
    let mut significand = [0; 8];
    significand.copy_from_slice(&number[..8]);
    let significand = u64::from_le_bytes(significand);
    let head = u16::from_le_bytes([number[8], number[9]]);
    let (sign, exponent) = (head & !EXPONENT_MASK, head & EXPONENT_MASK);
    let leading = significand >> 63 != 0;
    let fraction = u128::from(significand << 1 >> 1) << FRACTION_LEFT;
    let (exponent, fraction) = match (exponent, leading) {
        // A number that lacks its leading one is not a number.
        (1.., false) => (EXPONENT_MASK, 1 << 111),
        (0, true) => (1, fraction),
        (exponent, _) => (exponent, fraction),
    };
    u128::from(sign | exponent) << 112 | fraction
}

/// Converts IEEE binary128 into the nearest number of the x87; the bytes behind its ten are zero.
fn extended_of(number: u128, target: &mut [u8]) {
    let head = (number >> 112) as u16;
    let (sign, mut exponent) = (head & !EXPONENT_MASK, head & EXPONENT_MASK);
    let fraction = number << 16 >> 16;
    let mut significand = (fraction >> FRACTION_LEFT) as u64 | u64::from(exponent != 0) << 63;
    if exponent == EXPONENT_MASK {
        // A NaN stays a NaN, even if all bits that said so were cut off.
        significand |= u64::from(fraction != 0) << 62;
    } else {
        let (rest, half) = (fraction & ((1 << FRACTION_LEFT) - 1), 1 << (FRACTION_LEFT - 1));
        if rest > half || rest == half && significand & 1 == 1 {
            let (rounded, carried) = significand.overflowing_add(1);
            significand = if carried { 1 << 63 } else { rounded };
            let became_normal = exponent == 0 && significand >> 63 == 1;
            exponent += u16::from(carried || became_normal);
        }
    }
    target.fill(0);
    target[..8].copy_from_slice(&significand.to_le_bytes());
    target[8..10].copy_from_slice(&(sign | exponent).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(family: Family, bytes: usize) -> Kind {
        Kind::new(family, bytes).unwrap()
    }

    fn there_and_back(kind: Kind, native: &[u8]) -> Vec<u8> {
        let layout = Layout::element(kind);
        let count = native.len() as u64 / kind.size_bytes();
        let mut external = vec![0; layout.external_bytes(count).unwrap() as usize];
        layout.to_external(count, native, &mut external).unwrap();
        let mut back = vec![0xaa; native.len()];
        layout.from_external(count, &external, &mut back).unwrap();
        assert_eq!(back, native);
        external
    }

    #[test]
    fn numbers_are_big_endian() {
        let integer = there_and_back(kind(Family::Signed, 4), &0x0102_0304i32.to_ne_bytes());
        assert_eq!(integer, [1, 2, 3, 4]);
        let float = there_and_back(kind(Family::Float, 8), &(-2.5f64).to_ne_bytes());
        assert_eq!(float, (-2.5f64).to_be_bytes());
        let complex = [1.5f32.to_ne_bytes(), (-2f32).to_ne_bytes()].concat();
        let complex = there_and_back(kind(Family::Complex, 8), &complex);
        assert_eq!(complex, [1.5f32.to_be_bytes(), (-2f32).to_be_bytes()].concat());
    }

    #[test]
    fn narrower_numbers_are_extended_again() {
        let long = kind(Family::Signed, 8).with_external_bytes(4).unwrap();
        assert_eq!(there_and_back(long, &(-2i64).to_ne_bytes()), (-2i32).to_be_bytes());
        let wide = kind(Family::Character, 4);
        assert_eq!(there_and_back(wide, &0xfee5u32.to_ne_bytes()), [0xfe, 0xe5]);
        let unsigned = kind(Family::Unsigned, 8).with_external_bytes(4).unwrap();
        assert_eq!(there_and_back(unsigned, &0xffff_fffeu64.to_ne_bytes()), [255, 255, 255, 254]);
        let error = Layout::element(long)
            .to_external(1, &(1i64 << 40).to_ne_bytes(), &mut [0; 4])
            .unwrap_err();
        assert!(error.to_string().contains("element 0 is 1099511627776"), "{error}");
        assert!(Layout::element(long).to_external(1, &[0; 8], &mut [0; 3]).is_err());
    }

    #[test]
    fn a_record_has_no_gaps() {
        let member =
            |offset, kind| crate::Member { offset, count: 1, layout: Layout::element(kind) };
        let long = kind(Family::Signed, 8).with_external_bytes(4).unwrap();
        let record = Layout::structure(&[
            member(0, long),
            member(8, kind(Family::Signed, 8)),
            member(16, Kind::BYTE),
        ])
        .unwrap();
        assert_eq!(record.external_bytes(3), Ok(39));
        assert_eq!(record.signature(1).to_string(), "2 x signed64, 1 x byte");
    }

    #[cfg(target_endian = "little")]
    fn extended(head: u16, significand: u64) -> Vec<u8> {
        let mut bytes = significand.to_le_bytes().to_vec();
        bytes.extend(head.to_le_bytes());
        bytes.extend([0; 6]);
        bytes
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn extended_numbers_are_binary128() {
        let kind = kind(Family::Extended, 16);
        let external = |head, significand| {
            let bytes = there_and_back(kind, &extended(head, significand));
            u128::from_be_bytes(bytes.try_into().unwrap())
        };
        assert_eq!(external(0x3fff, 1 << 63), 0x3fff << 112);
        assert_eq!(external(0xc000, 3 << 62), 0xc000_8000 << 96);
        assert_eq!(external(0, 0), 0);
        assert_eq!(external(0, 1), 1 << 49);
        assert_eq!(external(0x7fff, 1 << 63), 0x7fff << 112);
        assert_eq!(external(0x7fff, 3 << 62) >> 111 & 1, 1);
    }

    #[test]
    fn bits_that_the_narrower_format_does_not_have_are_rounded() {
        let decoded = |number: u128| {
            let mut target = [0u8; 16];
            extended_of(number, &mut target);
            let mut significand = [0; 8];
            significand.copy_from_slice(&target[..8]);
            (u16::from_le_bytes([target[8], target[9]]), u64::from_le_bytes(significand))
        };
        let one = 0x3fff << 112;
        assert_eq!(decoded(one | 1 << 48), (0x3fff, 1 << 63));
        assert_eq!(decoded(one | 3 << 48), (0x3fff, 1 << 63 | 2));
        assert_eq!(decoded(one | ((1 << 112) - 1)), (0x4000, 1 << 63));
        assert_eq!(decoded((1 << 112) - 1), (1, 1 << 63));
        assert_eq!(decoded(0x7fff << 112 | 1), (0x7fff, 3 << 62));
    }
}
