//! An operator: a reduction or a user's function, which combines two contributions into one.

use crate::{Reduction, ReductionError, Scratch, UserFunction};

/// A predefined reduction or a user's function. It is cheap to clone, and any thread may use it.
#[derive(Clone, Debug)]
pub struct Operator(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Predefined(Reduction),
    User(UserFunction),
}

impl From<Reduction> for Operator {
    fn from(reduction: Reduction) -> Self {
        Self(Kind::Predefined(reduction))
    }
}

impl From<UserFunction> for Operator {
    fn from(function: UserFunction) -> Self {
        Self(Kind::User(function))
    }
}

impl Operator {
    /// Whether operands may be swapped. All predefined operations are commutative; which of two zeros or NaNs they
    /// return may depend on the order.
    pub fn is_commutative(&self) -> bool {
        match &self.0 {
            Kind::Predefined(_) => true,
            Kind::User(function) => function.is_commutative(),
        }
    }

    /// The width of one element in bytes; only whole elements are combined.
    pub fn element_bytes(&self) -> usize {
        match &self.0 {
            Kind::Predefined(reduction) => reduction.element().size_bytes(),
            Kind::User(function) => function.element_bytes(),
        }
    }

    /// The predefined reduction, if it is one: it combines without private copies, and may run anywhere, not only where
    /// its user called.
    pub fn reduction(&self) -> Option<Reduction> {
        match &self.0 {
            Kind::Predefined(reduction) => Some(*reduction),
            Kind::User(_) => None,
        }
    }

    /// Combines `into = left op right`, where `left` comes before `right` in rank order. Only a
    /// user's function needs the scratch.
    ///
    /// # Safety
    /// The requirements of [`Reduction::combine_raw`].
    ///
    /// # Errors
    /// [`ReductionError::CutElement`] or [`ReductionError::CutUserElement`]; nothing is written in these cases.
    #[inline]
    pub unsafe fn combine_raw(
        &self,
        left: *const u8,
        right: *const u8,
        into: *mut u8,
        length_bytes: usize,
        scratch: &mut Scratch,
    ) -> Result<(), ReductionError> {
        match &self.0 {
            Kind::Predefined(reduction) => {
                // SAFETY: the caller gives the guarantees that the reduction needs.
                unsafe { reduction.combine_raw(left, right, into, length_bytes) }
            }
            Kind::User(function) => {
                // SAFETY: the caller's guarantees suffice; the function copies before it combines.
                unsafe { function.combine_in_order(&[left, right], into, length_bytes, scratch) }
            }
        }
    }

    /// Combines all inputs, given in rank order, in the canonical association.
    ///
    /// # Safety
    /// The requirements of [`Reduction::combine_in_order`].
    ///
    /// # Errors
    /// The errors of [`Operator::combine_raw`], and [`ReductionError::NoInputs`].
    #[inline]
    pub unsafe fn combine_in_order(
        &self,
        inputs: &[*const u8],
        into: *mut u8,
        length_bytes: usize,
        scratch: &mut Scratch,
    ) -> Result<(), ReductionError> {
        match &self.0 {
            Kind::Predefined(reduction) => {
                // SAFETY: the caller gives the guarantees that the reduction needs.
                unsafe { reduction.combine_in_order(inputs, into, length_bytes, scratch) }
            }
            Kind::User(function) => {
                // SAFETY: the caller gives the guarantees that the function needs.
                unsafe { function.combine_in_order(inputs, into, length_bytes, scratch) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, Operation};

    fn assert_shared<T: Clone + Send + Sync>(value: T) -> T {
        value
    }

    #[test]
    fn an_operator_says_what_it_is() {
        let reduction = Reduction::new(Operation::Sum, Element::I16).unwrap();
        let sum = assert_shared(Operator::from(reduction));
        assert_eq!((sum.is_commutative(), sum.element_bytes()), (true, 2));
        assert_eq!(sum.reduction().map(|reduction| reduction.operation()), Some(Operation::Sum));
        let first = UserFunction::ordered(7, |left, right| right.copy_from_slice(left)).unwrap();
        let first = assert_shared(Operator::from(first));
        assert_eq!((first.is_commutative(), first.element_bytes()), (false, 7));
        assert!(first.reduction().is_none());
    }

    #[test]
    fn faults_are_named_and_nothing_is_written() {
        let reduction = Reduction::new(Operation::Sum, Element::I16).unwrap();
        let function = UserFunction::commutative(3, |_, right| right.fill(0)).unwrap();
        let expected = [
            ReductionError::CutElement { length_bytes: 5, element: Element::I16 },
            ReductionError::CutUserElement { length_bytes: 5, element_bytes: 3 },
        ];
        let operators = [Operator::from(reduction), Operator::from(function)];
        for (operator, expected) in operators.iter().zip(expected) {
            let (left, right, mut into, mut scratch) = ([1; 6], [2; 6], [9; 6], Scratch::new());
            let (left, right, result) = (left.as_ptr(), right.as_ptr(), into.as_mut_ptr());
            // SAFETY: all places are separate arrays of 6 bytes.
            let faults = unsafe {
                [
                    operator.combine_raw(left, right, result, 5, &mut scratch),
                    operator.combine_in_order(&[left, right, left], result, 5, &mut scratch),
                    operator.combine_in_order(&[], result, 6, &mut scratch),
                ]
            };
            assert_eq!(faults, [expected, expected, ReductionError::NoInputs].map(Err));
            assert_eq!(into, [9; 6]);
        }
        let empty = UserFunction::ordered(0, |_, _| {}).unwrap_err();
        assert_eq!(empty, ReductionError::EmptyElement);
    }
}
