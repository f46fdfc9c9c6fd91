//! What reductions combine with: predefined operations, and functions of the user's.

use std::marker::PhantomData;

use landeck_arithmetic::{self as arithmetic, Reduction, UserFunction};
use landeck_collectives::Way;
use landeck_memory::plain::{Plain, bytes_of, bytes_of_mut, zero};

use crate::element::Element;
use crate::error::Result;
pub use landeck_engine::Combination;

/// A way to combine two values of type `T` into one, and how the reduction is to be done.
pub trait Combine<T: Plain> {
    /// What it comes to for this type.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Reduction`] when it means nothing for the type.
    fn combination(self) -> Result<Combination>;
}

/// The same combination in another manner: made by `via` and `reproducible`.
#[derive(Clone, Debug)]
pub struct Chosen<C> {
    combine: C,
    way: Option<Way>,
    is_reproducible: bool,
}

impl<C> Chosen<C> {
    fn new(combine: C) -> Self {
        Self { combine, way: None, is_reproducible: false }
    }

    /// By this architecture, whatever the table says.
    #[must_use]
    pub fn via(self, way: impl Into<Way>) -> Self {
        Self { way: Some(way.into()), ..self }
    }

    /// In the one order that gives the same bits whatever the architecture and the placement.
    #[must_use]
    pub fn reproducible(self) -> Self {
        Self { is_reproducible: true, ..self }
    }
}

impl<T: Plain, C: Combine<T>> Combine<T> for Chosen<C> {
    fn combination(self) -> Result<Combination> {
        let inner = self.combine.combination()?;
        Ok(Combination {
            operator: inner.operator,
            way: self.way.or(inner.way),
            is_reproducible: self.is_reproducible || inner.is_reproducible,
        })
    }
}

macro_rules! predefined {
    ($($(#[$doc:meta])* $name:ident: $operation:ident,)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

            impl $name {
                /// By this architecture, whatever the table says.
                #[must_use]
                pub fn via(self, way: impl Into<Way>) -> Chosen<Self> {
                    Chosen::new(self).via(way)
                }

                /// In the one order that gives the same bits whatever the architecture and the
                /// placement.
                #[must_use]
                pub fn reproducible(self) -> Chosen<Self> {
                    Chosen::new(self).reproducible()
                }
            }

            impl<T: Element> Combine<T> for $name {
                fn combination(self) -> Result<Combination> {
                    let reduction = Reduction::new(arithmetic::Operation::$operation, T::ELEMENT)?;
                    Ok(Combination::of(reduction.into()))
                }
            }
        )*
    };
}

predefined! {
    /// Addition; integers wrap.
    Sum: Sum,
    /// Multiplication; integers wrap.
    Product: Product,
    /// The smaller value.
    Minimum: Minimum,
    /// The larger value.
    Maximum: Maximum,
    /// 1 when both are not 0, else 0.
    And: LogicalAnd,
    /// 1 when one is not 0, else 0.
    Or: LogicalOr,
    /// 1 when exactly one is not 0, else 0.
    Xor: LogicalXor,
    /// Bit by bit: both.
    BitAnd: BitAnd,
    /// Bit by bit: one or both.
    BitOr: BitOr,
    /// Bit by bit: exactly one.
    BitXor: BitXor,
}

/// A function of the user's that combines two values, the one of the lower rank first. It must be
/// associative. It runs inside calls of the library, so it may not call the library itself.
///
/// ```no_run
/// # fn main() -> landeck::Result<()> {
/// # let world = landeck::Job::join()?.world();
/// use landeck::User;
/// let longest = User::commutative(|one: f64, other: f64| if one > other { one } else { other });
/// let worst = world.all_reduce(0.5, longest)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct User<T> {
    function: std::result::Result<UserFunction, arithmetic::ReductionError>,
    values: PhantomData<T>,
}

impl<T: Plain> User<T> {
    /// A function whose two values may change places.
    pub fn commutative(function: impl Fn(T, T) -> T + Send + Sync + 'static) -> Self {
        let function = UserFunction::commutative(size_of::<T>(), each(function));
        Self { function, values: PhantomData }
    }

    /// A function whose values stay in the order of ranks.
    pub fn ordered(function: impl Fn(T, T) -> T + Send + Sync + 'static) -> Self {
        let function = UserFunction::ordered(size_of::<T>(), each(function));
        Self { function, values: PhantomData }
    }

    /// By this architecture, whatever the table says.
    #[must_use]
    pub fn via(self, way: impl Into<Way>) -> Chosen<Self> {
        Chosen::new(self).via(way)
    }

    /// In the one order that gives the same bits whatever the architecture and the placement.
    #[must_use]
    pub fn reproducible(self) -> Chosen<Self> {
        Chosen::new(self).reproducible()
    }
}

impl<T: Plain> Combine<T> for User<T> {
    fn combination(self) -> Result<Combination> {
        Ok(Combination::of(self.function?.into()))
    }
}

impl<T: Plain> Combine<T> for &User<T> {
    fn combination(self) -> Result<Combination> {
        self.clone().combination()
    }
}

/// The function for the bytes of many values.
fn each<T: Plain>(function: impl Fn(T, T) -> T) -> impl Fn(&[u8], &mut [u8]) {
    move |left, right| {
        let values = left.chunks_exact(size_of::<T>());
        for (left, right) in values.zip(right.chunks_exact_mut(size_of::<T>())) {
            let result = function(value_of(left), value_of(right));
            right.copy_from_slice(bytes_of(&[result]));
        }
    }
}

fn value_of<T: Plain>(bytes: &[u8]) -> T {
    let mut value = [zero()];
    bytes_of_mut(&mut value).copy_from_slice(bytes);
    value[0]
}
