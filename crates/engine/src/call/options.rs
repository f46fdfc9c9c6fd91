//! How an operation is to be done: the options of a call, and the way to combine its data.

use std::borrow::Cow;

use landeck_arithmetic::Operator;
use landeck_collectives::{Making, Way};

/// How an operation is to be done.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// This way, whatever the table says.
    pub way: Option<Way>,
    /// The result has the same bits whatever the way.
    pub is_reproducible: bool,
    /// Members compare their calls before the operation.
    pub is_checked: bool,
    /// A combining member does so when all values are there, in one pass.
    pub is_late: bool,
    /// The members make a group with it: a call of its own, which matches no other.
    pub making: Option<Making>,
}

/// A way to combine values of one type, ready to be used.
#[derive(Clone, Debug)]
pub struct Combination {
    /// Combines two values.
    pub operator: Operator,
    /// The way that the reduction takes; none: as the world says.
    pub way: Option<Way>,
    /// The result has the same bits whatever the way.
    pub is_reproducible: bool,
}

impl CallOptions {
    /// Whether the call asks for nothing that the inline route cannot do.
    #[inline]
    pub(crate) fn is_usual(&self) -> bool {
        self.way.is_none() && !self.is_checked && !self.is_late && self.making.is_none()
    }
}

impl Combination {
    /// This operator, in no special way.
    pub fn of(operator: Operator) -> Self {
        Self { operator, way: None, is_reproducible: false }
    }

    /// How the operation is to be done in a world that wants it done like this.
    #[inline]
    pub(crate) fn options<'a>(&self, of_world: &'a CallOptions) -> Cow<'a, CallOptions> {
        if self.way.is_none() && !self.is_reproducible {
            return Cow::Borrowed(of_world);
        }
        Cow::Owned(CallOptions {
            way: self.way.clone().or_else(|| of_world.way.clone()),
            is_reproducible: self.is_reproducible || of_world.is_reproducible,
            ..of_world.clone()
        })
    }
}
