//! An operation in steps, for entry points that call the user back.

use std::ptr::NonNull;

/// The next action of an entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<C, R> {
    /// Call the user back, then ask again.
    Call(C),
    /// Return this.
    Done(R),
}

/// An operation that calls the user back between its steps.
///
/// It is a plain pointer to what the operation owns and has no destructor, so a frame that holds it
/// owns nothing: if the callback jumps out, the operation leaks and nothing else happens. It is
/// freed at [`Next::Done`].
#[derive(Debug)]
pub struct Steps<C, R> {
    maker: Option<NonNull<Maker<C, R>>>,
}

/// The function that produces the steps.
type Maker<C, R> = Box<dyn FnMut() -> Next<C, R>>;

impl<C: Copy, R: Copy> Steps<C, R> {
    /// An operation whose steps this closure makes, one at each call.
    pub fn new(step: impl FnMut() -> Next<C, R> + 'static) -> Self {
        let maker: Maker<C, R> = Box::new(step);
        Self { maker: NonNull::new(Box::into_raw(Box::new(maker))) }
    }

    /// Makes the next step.
    ///
    /// # Panics
    /// When it is called again after [`Next::Done`].
    pub fn advance(&mut self) -> Next<C, R> {
        let Some(mut maker) = self.maker else {
            panic!("an operation was asked for a step after its end");
        };
        // SAFETY: `new` made the pointer from a box, only the end below frees it and takes it away,
        // and `&mut self` says that nobody else uses it.
        let next = unsafe { maker.as_mut()() };
        if matches!(next, Next::Done(_)) {
            self.maker = None;
            // SAFETY: the pointer came from `Box::into_raw` and has just been taken away.
            drop(unsafe { Box::from_raw(maker.as_ptr()) });
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn memory_that_an_operation_owns_is_freed_at_its_end() {
        let owned = Rc::new(());
        let inside = Rc::clone(&owned);
        let mut left = 2;
        let mut steps = Steps::new(move || {
            let _owned = &inside;
            left -= 1;
            if left > 0 { Next::Call(left) } else { Next::Done(7) }
        });
        assert_eq!(steps.advance(), Next::Call(1));
        assert_eq!(Rc::strong_count(&owned), 2);
        assert_eq!(steps.advance(), Next::Done(7));
        assert_eq!(Rc::strong_count(&owned), 1);
    }

    #[test]
    fn a_frame_that_holds_steps_owns_nothing() {
        assert!(!std::mem::needs_drop::<Steps<u32, i32>>());
    }
}
