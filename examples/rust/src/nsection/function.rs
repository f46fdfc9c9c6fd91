//! The functions whose roots can be looked for.

use clap::ValueEnum;

use super::interval::Interval;

/// A function with a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Function {
    /// x^4 - 3 x^3 + x - 2, a polynomial of the fourth degree
    Quartic,
    /// cos x - x, the number that the key "cos" of a calculator leads to
    Cosine,
    /// x - 0.7 sin x - 1.2, Kepler's equation: where a planet is
    Kepler,
    /// The area below the bell curve from 0 to x, less 0.5, by adding up a million strips
    Bell,
}

/// Strips of the area below the bell curve: enough to keep a process busy for a while.
const STRIPS: u32 = 1_000_000;

impl Function {
    /// The value at a point.
    pub fn at(self, x: f64) -> f64 {
        match self {
            Self::Quartic => ((x - 3.0) * x * x + 1.0) * x - 2.0,
            Self::Cosine => x.cos() - x,
            Self::Kepler => x - 0.7 * x.sin() - 1.2,
            Self::Bell => bell_area(x) - 0.5,
        }
    }

    /// An interval with a root in it.
    pub fn interval(self) -> Interval {
        match self {
            Self::Quartic => Interval { from: 2.0, to: 4.0 },
            Self::Cosine => Interval { from: 0.0, to: 1.0 },
            Self::Kepler => Interval { from: 0.0, to: 3.0 },
            Self::Bell => Interval { from: 0.0, to: 2.0 },
        }
    }
}

/// The area below `exp(-t * t)` from 0 to `x`, by the middle of each strip.
fn bell_area(x: f64) -> f64 {
    let width = x / f64::from(STRIPS);
    let height = |strip: u32| {
        let middle = (f64::from(strip) + 0.5) * width;
        (-middle * middle).exp()
    };
    (0..STRIPS).map(height).sum::<f64>() * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_changes_its_sign_in_its_interval() {
        for &function in Function::value_variants() {
            let Interval { from, to } = function.interval();
            assert!(function.at(from) * function.at(to) < 0.0, "{function:?}");
        }
    }

    #[test]
    fn values_are_those_of_the_formulas() {
        assert_eq!(Function::Quartic.at(2.0), 16.0 - 24.0 + 2.0 - 2.0);
        assert_eq!(Function::Cosine.at(0.0), 1.0);
        assert_eq!(Function::Kepler.at(0.0), -1.2);
        // The area from 0 to infinity is half the square root of pi.
        let half = std::f64::consts::PI.sqrt() / 2.0;
        assert!((Function::Bell.at(8.0) - (half - 0.5)).abs() < 1e-9);
    }
}
