//! The types whose values a message carries with their kind: values are unpacked as the kind that
//! was packed, or not at all.

use landeck_layout::{Family, Kind};
use landeck_memory::Plain;

/// A type of values that [`Message::pack`](crate::Message::pack) accepts.
#[diagnostic::on_unimplemented(
    message = "a message does not carry values of `{Self}`",
    note = "it carries numbers; text is packed with `pack_text`",
    note = "instead of `bool` pack `u8`: `u8::from(flag)`, and `byte != 0` where it is unpacked"
)]
pub trait Typed: Plain + sealed::Sealed {
    /// The kind of its values: the meaning of their bits.
    const KIND: Kind;
}

mod sealed {
    pub trait Sealed {}
}

const fn kind(family: Family, bytes: usize) -> Kind {
    match Kind::new(family, bytes) {
        Ok(kind) => kind,
        Err(_) => Kind::BYTE,
    }
}

macro_rules! typed {
    ($($number:ty: $family:ident,)*) => {
        $(
            impl sealed::Sealed for $number {}
            impl Typed for $number {
                const KIND: Kind = kind(Family::$family, size_of::<$number>());
            }
        )*
    };
}

typed! {
    u8: Unsigned,
    u16: Unsigned,
    u32: Unsigned,
    u64: Unsigned,
    u128: Unsigned,
    usize: Unsigned,
    i8: Signed,
    i16: Signed,
    i32: Signed,
    i64: Signed,
    i128: Signed,
    isize: Signed,
    f32: Float,
    f64: Float,
}

/// In the order of their codes in messages, which is that of their declaration.
const FAMILIES: [Family; 10] = [
    Family::Byte,
    Family::Character,
    Family::Signed,
    Family::Unsigned,
    Family::Float,
    Family::Complex,
    Family::Logical,
    Family::Packed,
    Family::Extended,
    Family::ExtendedComplex,
];

/// A kind as two bytes.
pub(crate) const fn code_of(kind: Kind) -> u16 {
    (kind.family() as u16) << 8 | kind.size_bytes() as u16
}

/// The kind with this code; none when there is no such kind.
pub(crate) fn kind_of(code: u16) -> Option<Kind> {
    let family = *FAMILIES.get(usize::from(code >> 8))?;
    Kind::new(family, usize::from(code & 0xff)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_survive_their_codes() {
        for family in FAMILIES {
            for bytes in [1, 2, 8, 16, 64] {
                let kind = Kind::new(family, bytes).unwrap();
                assert_eq!(kind_of(code_of(kind)), Some(kind));
            }
            assert_eq!(FAMILIES[family as usize], family);
        }
        assert_eq!(code_of(f64::KIND), 4 << 8 | 8);
        for code in [0, 0xff08, 10 << 8 | 8, 65] {
            assert_eq!(kind_of(code), None, "{code:#x}");
        }
    }

    #[test]
    fn each_type_has_its_own_kind() {
        let kinds = [u8::KIND, i8::KIND, u32::KIND, i32::KIND, f32::KIND, f64::KIND];
        for (at, kind) in kinds.iter().enumerate() {
            assert!(!kinds[..at].contains(kind), "{kind}");
        }
        assert_eq!(usize::KIND.size_bytes() as usize, size_of::<usize>());
    }
}
