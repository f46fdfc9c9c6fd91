//! The type of the values of a call, as a number that members compare.

use landeck_arithmetic::Element;

/// How many numbers there are.
pub(crate) const NUMBERS: u32 = 1 << 10;
/// Numbers of types with a name; those above are made of what else is known.
const NAMED_TYPES: u32 = 1 + Element::ALL.len() as u32;

/// The type of the values of a call, as far as the caller knows it; 0 when it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueType(u32);

impl ValueType {
    /// A type of the program's.
    pub fn of<T>() -> Self {
        Self::hashed(std::any::type_name::<T>().bytes().map(u64::from))
    }

    /// The items of a layout. Packed data are alike to packed data only.
    pub fn of_layout(layout: &landeck_layout::Layout, count: u64) -> Self {
        Self::hashed([layout.signature(count).fingerprint()])
    }

    fn hashed(numbers: impl IntoIterator<Item = u64>) -> Self {
        let rest = u64::from(NUMBERS - NAMED_TYPES);
        Self(NAMED_TYPES + (hash(numbers) % rest) as u32)
    }

    /// Its number, below [`NUMBERS`].
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// FNV-1a over numbers: the same in every process, whatever it was built with.
pub(crate) fn hash(numbers: impl IntoIterator<Item = u64>) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    numbers.into_iter().flat_map(u64::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_layouts_differ() {
        use landeck_layout::{Family, Kind, Layout};
        assert_ne!(ValueType::of::<u32>(), ValueType::of::<f32>());
        let float = Layout::element(Kind::new(Family::Float, 8).unwrap());
        let apart = Layout::vector(3, 2, 100, &float).unwrap();
        assert_eq!(ValueType::of_layout(&float, 6), ValueType::of_layout(&apart, 1));
        assert_ne!(ValueType::of_layout(&float, 6), ValueType::of_layout(&apart, 2));
    }
}
