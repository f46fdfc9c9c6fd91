//! The types whose values the predefined operations combine.

use landeck_arithmetic as arithmetic;
use landeck_memory::Plain;

/// A number that [`Sum`](crate::Sum) and the other predefined operations can combine.
#[diagnostic::on_unimplemented(
    message = "the predefined operations do not combine values of `{Self}`",
    note = "they combine the integers of 8 to 64 bits, `f32` and `f64`; for others give a function: `User`",
    note = "instead of `bool` use `u8`: `u8::from(flag)` with `And`, `Or` or `Xor`, and `byte != 0` afterwards"
)]
pub trait Element: Plain + sealed::Sealed {
    /// The element type that the arithmetic uses for it.
    const ELEMENT: arithmetic::Element;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($number:ty: $element:expr,)*) => {
        $(
            impl sealed::Sealed for $number {}
            impl Element for $number {
                const ELEMENT: arithmetic::Element = $element;
            }
        )*
    };
}

elements! {
    i8: arithmetic::Element::I8,
    i16: arithmetic::Element::I16,
    i32: arithmetic::Element::I32,
    i64: arithmetic::Element::I64,
    u8: arithmetic::Element::U8,
    u16: arithmetic::Element::U16,
    u32: arithmetic::Element::U32,
    u64: arithmetic::Element::U64,
    usize: if size_of::<usize>() == 8 { arithmetic::Element::U64 } else { arithmetic::Element::U32 },
    isize: if size_of::<isize>() == 8 { arithmetic::Element::I64 } else { arithmetic::Element::I32 },
    f32: arithmetic::Element::F32,
    f64: arithmetic::Element::F64,
}
