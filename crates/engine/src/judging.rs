//! Judging an operation that waits: after members are gone, and before sleep.

/// Returns why an operation can never end, if that is so. What the gone have brought still counts, and behind it is
/// another step, which may need others. So the operation goes on as far as it can, and a verdict is of the step at which
/// it stops. `advance` says whether anything moved.
#[cold]
pub(crate) fn judged<T, E>(
    operation: &mut T,
    verdict: impl Fn(&T) -> Option<E>,
    mut advance: impl FnMut(&mut T) -> bool,
) -> Option<E> {
    loop {
        let error = verdict(operation)?;
        if !advance(operation) {
            return Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_of_the_step_at_which_the_operation_stops() {
        // Steps 0 and 2 need the dead, who have brought what step 0 needs.
        let verdict = |step: &u32| (*step != 1).then_some(*step);
        let up_to = |last: u32| {
            move |step: &mut u32| {
                let moves = *step < last;
                *step += u32::from(moves);
                moves
            }
        };
        assert_eq!(judged(&mut 0, verdict, up_to(0)), Some(0));
        assert_eq!(judged(&mut 0, verdict, up_to(1)), None);
        assert_eq!(judged(&mut 0, verdict, up_to(9)), None, "step 1 waits for the living");
        assert_eq!(judged(&mut 2, verdict, up_to(3)), Some(3));
    }
}
