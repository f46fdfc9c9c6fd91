//! In which order processes that share a processor have their turns on it.
//!
//! Who gives its processor away stands behind all others that want it, so they keep whatever order they began in.
//! Where it is known who will be waited for after whom, another order saves turns: the processor then comes to each
//! when it has something to do, and not to those before whom somebody else is waited for. With sixteen processes on
//! two processors that makes one turn of five.
//!
//! The kernel orders tasks by a time that grows by a *slice* with each turn that is given away (EEVDF; from
//! Linux 6.12 on a task may choose its own). So for some operations all processes take the shortest slice there is:
//! then their times are no more than that apart. Once afterwards each takes a longer one, by as much as its place in
//! the order wants, and then the one it had before. What is left of the old order is small beside that, and comes
//! back slowly, so all do it again after a while; by the numbers of operations, which all count alike, so nobody
//! tells anybody.

/// The shortest slice that the kernel gives, in nanoseconds.
const SHORTEST_NS: u64 = 100_000;
/// In so many operations the times come together, and in so many they are set apart.
const OPERATIONS: u32 = 64;
/// In one of so many times as many operations they come together.
const PERIODS: u32 = 32;

/// How far a process is in taking its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// It has the slice that it had before.
    #[default]
    Usual,
    /// It has the shortest one.
    Together,
    /// It has the one that takes it to its place.
    Apart,
    /// It cannot choose.
    Never,
}

/// The place of a process in the line of those that share its processor.
#[derive(Debug, Default)]
pub(crate) struct Line {
    stage: Stage,
    /// The slice that it had before.
    usual_ns: u64,
}

impl Line {
    /// Which slice it is to take now, if another one, before it gives its processor away. It waits in the operation
    /// with this number, if there is an order; `usual_ns` says which slice it has, where it can choose one, and
    /// `place` its place in the order and how many are in it.
    #[inline]
    pub(crate) fn slice_ns(
        &mut self,
        number: Option<u32>,
        usual_ns: impl FnOnce() -> Option<u64>,
        place: impl FnOnce() -> (u32, u32),
    ) -> Option<u64> {
        let period = number.map(|number| number / OPERATIONS % PERIODS);
        match (period, self.stage) {
            (Some(0), Stage::Usual) => {
                let Some(usual_ns) = usual_ns() else {
                    self.stage = Stage::Never;
                    return None;
                };
                (self.stage, self.usual_ns) = (Stage::Together, usual_ns);
                Some(SHORTEST_NS)
            }
            (Some(1), Stage::Together) => {
                self.stage = Stage::Apart;
                let (at, of) = place();
                Some(SHORTEST_NS + self.usual_ns * u64::from(at) / u64::from(of.max(1)))
            }
            (Some(0), Stage::Together) | (_, Stage::Usual | Stage::Never) => None,
            _ => {
                self.stage = Stage::Usual;
                Some(self.usual_ns)
            }
        }
    }

    /// The slice was not taken.
    #[cold]
    pub(crate) fn was_refused(&mut self) {
        self.stage = Stage::Never;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::WaitRecord;
    use crate::plan::SegmentPlan;
    use crate::segment::Segment;
    use crate::system;
    use crate::waiter::{End, Waiter, Waiting};

    const USUAL_NS: u64 = 1_400_000;

    fn next(line: &mut Line, number: Option<u32>) -> Option<u64> {
        line.slice_ns(number, || Some(USUAL_NS), || (3, 4))
    }

    #[test]
    fn slices_become_short_then_take_each_to_its_place_and_are_as_before() {
        let (mut line, period) = (Line::default(), OPERATIONS);
        for from in [0, PERIODS * period] {
            let at = |number| Some(from + number);
            assert_eq!(next(&mut line, at(5)), Some(SHORTEST_NS));
            assert_eq!(next(&mut line, at(period - 1)), None);
            assert_eq!(next(&mut line, at(period)), Some(SHORTEST_NS + USUAL_NS * 3 / 4));
            assert_eq!(next(&mut line, at(period)), Some(USUAL_NS), "once");
            let others = (period..PERIODS * period).step_by(7);
            assert!(others.into_iter().all(|number| next(&mut line, at(number)).is_none()));
        }
    }

    #[test]
    fn who_misses_its_place_or_leaves_the_order_has_its_slice_back() {
        for after in [Some(2 * OPERATIONS), Some((PERIODS - 1) * OPERATIONS), None] {
            let mut line = Line::default();
            next(&mut line, Some(0));
            assert_eq!(next(&mut line, after), Some(USUAL_NS));
            assert_eq!(next(&mut line, after), None);
        }
        assert_eq!(next(&mut Line::default(), None), None);
        assert_eq!(
            next(&mut Line::default(), Some(OPERATIONS)),
            None,
            "the others are not together with it"
        );
    }

    #[test]
    fn who_cannot_choose_does_not_ask_again() {
        let mut line = Line::default();
        assert_eq!(line.slice_ns(Some(0), || None, || unreachable!("it has no place")), None);
        let asks = || unreachable!("it has been told");
        assert_eq!(line.slice_ns(Some(1), asks, || unreachable!("nor then")), None);
        let mut line = Line::default();
        next(&mut line, Some(0));
        line.was_refused();
        assert_eq!(next(&mut line, Some(OPERATIONS)), None);
    }

    /// A wait in an operation with this number.
    struct InOrder(u32);

    impl Waiting for InOrder {
        fn poll(&mut self) -> bool {
            true
        }

        fn verdict(&mut self) -> Option<End> {
            None
        }

        fn rotation(&self) -> Option<u32> {
            Some(self.0)
        }

        fn place_in_rotation(&self, _processor: u32) -> (u32, u32) {
            (3, 4)
        }

        fn record(&self) -> WaitRecord {
            WaitRecord::default()
        }
    }

    #[test]
    fn a_thread_that_may_choose_its_slice_has_it_back_in_the_end() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 4) };
        let segment = Segment::local(&plan);
        let lines_up = move || {
            let (before, mut waiter) = (system::slice_ns(), Waiter::new(&segment, 0));
            let mut after = |number| {
                waiter.line_up(&InOrder(number), 0);
                system::slice_ns()
            };
            let (together, apart) = (after(1), after(OPERATIONS));
            assert_eq!(after(OPERATIONS + 1), before);
            // A kernel that says how long slices are may still not let anybody choose.
            if together != before {
                let further_ns = before.map(|usual_ns| SHORTEST_NS + usual_ns * 3 / 4);
                assert_eq!((together, apart), (Some(SHORTEST_NS), further_ns));
            }
        };
        std::thread::spawn(lines_up).join().unwrap();
    }
}
