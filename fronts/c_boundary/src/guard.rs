//! The guard that no panic passes.

use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of an entry point. A panic in it is a fault of this library: it is reported with
/// the name of the function, and the caller gets `on_panic`.
pub fn guarded<R>(function: &'static str, on_panic: R, body: impl FnOnce() -> R) -> R {
    // What the body has touched may be half done after a panic. The library's own state sits behind
    // locks that note it; the caller's memory holds plain data.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(panic) => {
            report(function, &panic);
            forget(panic);
            on_panic
        }
    }
}

/// Says what happened; nothing more can be done if standard error is closed.
fn report(function: &str, panic: &Box<dyn Any + Send>) {
    let what = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let _ = writeln!(
        std::io::stderr(),
        "{function} failed by a fault of the Landeck library, not of the program: {what}. \
         Please report it."
    );
}

/// A panic's value may panic when it is dropped; then it is kept instead.
fn forget(panic: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_passes_and_a_panic_does_not() {
        assert_eq!(guarded("a_function", 1, || 2), 2);
        assert_eq!(guarded("a_function", 1, || panic!("on purpose")), 1);
    }

    #[test]
    fn a_panic_in_a_panic_does_not_pass_either() {
        struct Angry;
        impl Drop for Angry {
            fn drop(&mut self) {
                panic!("on purpose, again");
            }
        }
        let code = guarded("a_function", 1, || std::panic::panic_any(Angry));
        assert_eq!(code, 1);
    }
}
