//! The order in which the tasks that share a core have their turns on it.
//!
//! A task that yields its core goes behind all others that want it, so the tasks keep whatever order they
//! began in. If the order in which they will be waited for is known, another order saves turns: each then gets
//! the core when it has something to do. With sixteen processes on two cores that saves one turn of five.
//!
//! The kernel orders tasks by a time that grows by a *slice* with each turn that is given away (EEVDF; from Linux
//! 6.12 on a task may choose its slice). So for some operations all tasks take the shortest slice there is, and
//! their times come within that of each other. Once afterwards each task takes a longer slice, by as much as its
//! position wants, and then the slice that it had before. The old order comes back slowly, so all tasks repeat this
//! after a while. The operation numbers are equal in all tasks and tell them when, so no message is needed.

use crate::system;

/// The shortest slice that the kernel gives, in nanoseconds.
const SHORTEST_NS: u64 = 100_000;
/// Operations of a period: in one period the times come together, in the next they are set apart.
const OPERATIONS: u32 = 64;
/// Periods after which the times are brought together again.
const PERIODS: u32 = 32;

/// A task's progress in taking its position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// The task has the slice that it had before.
    #[default]
    Usual,
    /// The task has the shortest slice.
    Together,
    /// The task has the slice that takes it to its position.
    Apart,
    /// The task cannot choose its slice.
    Never,
}

/// The position of a task among those that share its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnPosition {
    /// How many have their turn before it.
    pub at: u32,
    /// How many there are.
    pub of: u32,
}

/// A thread's progress in taking its position in the scheduler's order.
#[derive(Debug, Default)]
pub struct SchedulerOrder {
    stage: Stage,
    /// The scheduler slice that the thread had before.
    usual_ns: u64,
}

impl SchedulerOrder {
    /// Takes the calling thread's position; called before it gives its core away in the operation with this number.
    #[inline]
    pub fn arrange(&mut self, number: u32, position: impl FnOnce() -> TurnPosition) {
        let slice_ns = self.slice_ns(Some(number), system::slice_ns, position);
        self.take(slice_ns);
    }

    /// Restores the slice that the calling thread had before.
    #[inline]
    pub fn restore(&mut self) {
        if self.stage != Stage::Usual {
            let slice_ns = self.slice_ns(None, || None, || TurnPosition { at: 0, of: 1 });
            self.take(slice_ns);
        }
    }

    #[inline]
    fn take(&mut self, slice_ns: Option<u64>) {
        if slice_ns.is_some_and(|slice_ns| !system::set_slice_ns(slice_ns)) {
            self.stage = Stage::Never;
        }
    }

    /// The slice to take now, if it is another one. `number` is that of the operation, if there is an order;
    /// `usual_ns` returns the slice that the thread has, if it may choose one.
    #[inline]
    fn slice_ns(
        &mut self,
        number: Option<u32>,
        usual_ns: impl FnOnce() -> Option<u64>,
        position: impl FnOnce() -> TurnPosition,
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
                let TurnPosition { at, of } = position();
                Some(SHORTEST_NS + self.usual_ns * u64::from(at) / u64::from(of.max(1)))
            }
            (Some(0), Stage::Together) | (_, Stage::Usual | Stage::Never) => None,
            _ => {
                self.stage = Stage::Usual;
                Some(self.usual_ns)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL_NS: u64 = 1_400_000;
    const POSITION: TurnPosition = TurnPosition { at: 3, of: 4 };

    fn next(order: &mut SchedulerOrder, number: Option<u32>) -> Option<u64> {
        order.slice_ns(number, || Some(USUAL_NS), || POSITION)
    }

    #[test]
    fn slices_become_short_then_take_each_to_its_position_and_are_as_before() {
        let (mut order, period) = (SchedulerOrder::default(), OPERATIONS);
        for from in [0, PERIODS * period] {
            let at = |number| Some(from + number);
            assert_eq!(next(&mut order, at(5)), Some(SHORTEST_NS));
            assert_eq!(next(&mut order, at(period - 1)), None);
            assert_eq!(next(&mut order, at(period)), Some(SHORTEST_NS + USUAL_NS * 3 / 4));
            assert_eq!(next(&mut order, at(period)), Some(USUAL_NS), "once");
            let others = (period..PERIODS * period).step_by(7);
            assert!(others.into_iter().all(|number| next(&mut order, at(number)).is_none()));
        }
    }

    #[test]
    fn a_thread_that_misses_its_position_or_leaves_the_order_has_its_slice_back() {
        for after in [Some(2 * OPERATIONS), Some((PERIODS - 1) * OPERATIONS), None] {
            let mut order = SchedulerOrder::default();
            next(&mut order, Some(0));
            assert_eq!(next(&mut order, after), Some(USUAL_NS));
            assert_eq!(next(&mut order, after), None);
        }
        assert_eq!(next(&mut SchedulerOrder::default(), None), None);
        let late = next(&mut SchedulerOrder::default(), Some(OPERATIONS));
        assert_eq!(late, None, "the others are not together with it");
    }

    #[test]
    fn a_thread_that_cannot_choose_does_not_ask_again() {
        let mut order = SchedulerOrder::default();
        assert_eq!(order.slice_ns(Some(0), || None, || unreachable!("it has no position")), None);
        let asks = || unreachable!("it has been told");
        assert_eq!(order.slice_ns(Some(1), asks, || unreachable!("nor then")), None);
    }

    #[test]
    fn a_thread_that_may_choose_its_slice_has_it_back_in_the_end() {
        let takes_its_position = || {
            let (before, mut order) = (system::slice_ns(), SchedulerOrder::default());
            order.arrange(1, || POSITION);
            let together = system::slice_ns();
            order.arrange(OPERATIONS, || POSITION);
            let apart = system::slice_ns();
            order.restore();
            assert_eq!(system::slice_ns(), before);
            // A kernel that says how long slices are may still not let anybody choose.
            if together != before {
                let further_ns = before.map(|usual_ns| SHORTEST_NS + usual_ns * 3 / 4);
                assert_eq!((together, apart), (Some(SHORTEST_NS), further_ns));
            }
        };
        std::thread::spawn(takes_its_position).join().unwrap();
    }
}
