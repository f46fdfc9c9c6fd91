//! The operators of reductions: predefined operations, and functions of the user.

use std::marker::PhantomData;

use landeck_arithmetic::{self as arithmetic, Reduction, UserFunction};
use landeck_collectives::Way;
use landeck_memory::plain::{Plain, bytes_of, bytes_of_mut, zero};

use crate::collectives::element::Element;
use crate::error::Result;
pub use landeck_engine::Combination;

/// An operator that combines two values of type `T` into one, and the way the reduction is done.
pub trait Combine<T: Plain> {
    /// Returns the combination for this type.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Reduction`] when the operator is not defined for the type.
    fn combination(self) -> Result<Combination>;
}

/// An operator with a chosen architecture or with reproducible results, as returned by `via` and
/// `reproducible`.
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

    /// Uses the given architecture instead of the one that the tuning table selects.
    #[must_use]
    pub fn via(self, way: impl Into<Way>) -> Self {
        Self { way: Some(way.into()), ..self }
    }

    /// Combines in the one order whose results are bit-identical, whatever the architecture and the
    /// placement.
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
                /// Uses the given architecture instead of the one that the tuning table selects.
                #[must_use]
                pub fn via(self, way: impl Into<Way>) -> Chosen<Self> {
                    Chosen::new(self).via(way)
                }

                /// Combines in the one order whose results are bit-identical, whatever the architecture and
                /// the placement.
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
    /// Logical and: 1 when both values are not 0, else 0.
    And: LogicalAnd,
    /// Logical or: 1 when at least one value is not 0, else 0.
    Or: LogicalOr,
    /// Logical exclusive or: 1 when exactly one value is not 0, else 0.
    Xor: LogicalXor,
    /// Bitwise and.
    BitAnd: BitAnd,
    /// Bitwise or.
    BitOr: BitOr,
    /// Bitwise exclusive or.
    BitXor: BitXor,
}

/// A function of the user that combines two values, the value of the lower rank first. It must be
/// associative. It runs inside calls of the library, so it must not call the library itself.
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
    /// Creates an operator from a commutative function, whose two arguments may be exchanged.
    pub fn commutative(function: impl Fn(T, T) -> T + Send + Sync + 'static) -> Self {
        let function = UserFunction::commutative(size_of::<T>(), each(function));
        Self { function, values: PhantomData }
    }

    /// Creates an operator from a function that is not commutative: its arguments stay in the order
    /// of ranks.
    pub fn ordered(function: impl Fn(T, T) -> T + Send + Sync + 'static) -> Self {
        let function = UserFunction::ordered(size_of::<T>(), each(function));
        Self { function, values: PhantomData }
    }

    /// Uses the given architecture instead of the one that the tuning table selects.
    #[must_use]
    pub fn via(self, way: impl Into<Way>) -> Chosen<Self> {
        Chosen::new(self).via(way)
    }

    /// Combines in the one order whose results are bit-identical, whatever the architecture and
    /// the placement.
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

/// The function applied to the bytes of many values.
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
