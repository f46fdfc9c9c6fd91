//! How many tests passed, failed and could not run, read from what their runners print.

use std::collections::BTreeSet;
use std::fmt;

/// The count of one suite, or of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
    /// The name of each test that could not run, and why.
    pub(super) skipped: Vec<String>,
    /// The name of each test, or program of a test, that stayed on one host where others ran over several, and why.
    pub(super) on_one_host: BTreeSet<String>,
    /// Each command that was ended at its limit.
    pub(super) late: Vec<String>,
}

/// The mark that a test prints, past the test harness's capture, when this machine cannot run it.
const SKIPPED: &str = "SKIPPED ";

/// The mark that `landeck_testing::jobs` prints, past the test harness's capture, before what stays on one host.
const ON_ONE_HOST: &str = "ON ONE HOST ";

/// The mark before the name of a command that was ended at its limit.
pub(super) const LATE: &str = "TOO LATE: ";

impl Tally {
    pub(super) fn one(passed: bool) -> Self {
        Self { passed: passed.into(), failed: (!passed).into(), ..Self::default() }
    }

    pub(super) fn skipped_one(why: &str) -> Self {
        Self { skipped: vec![why.to_owned()], ..Self::default() }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped.iter().cloned());
        self.on_one_host.extend(other.on_one_host.iter().cloned());
        self.late.extend(other.late.iter().cloned());
    }

    /// Takes in one printed line, if it says that a command was ended at its limit.
    pub(super) fn note_late(&mut self, line: &str) {
        self.late.extend(line.strip_prefix(LATE).map(str::to_owned));
    }

    /// Takes in one printed line: cargo's result line, `N passed, N failed`, or `SKIPPED name: why`.
    pub(super) fn read(&mut self, line: &str) {
        self.note_late(line);
        // A harness that prints "test name ... " first does so on the same line.
        if let Some((_, why)) = line.split_once(SKIPPED) {
            self.skipped.push(why.trim().to_owned());
        }
        if let Some((_, why)) = line.split_once(ON_ONE_HOST) {
            self.on_one_host.insert(why.trim().to_owned());
        }
        let words = line
            .strip_prefix("test result: ")
            .or_else(|| line.contains(" passed, ").then_some(line));
        if let Some(words) = words {
            self.passed += number_before(words, " passed").unwrap_or(0);
            self.failed += number_before(words, " failed").unwrap_or(0);
        }
    }

    /// The names of tests that could not run, those of one reason together before it.
    pub(super) fn skipped_by_reason(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for skipped in &self.skipped {
            let (name, why) = skipped.split_once(": ").unwrap_or((skipped, ""));
            match reasons.iter_mut().find(|(other, _)| *other == why) {
                Some((_, names)) => names.push(name),
                None => reasons.push((why, vec![name])),
            }
        }
        reasons.iter().map(|(why, names)| format!("{}: {why}", names.join(", "))).collect()
    }

    /// The count once the runner has ended: a skipped test is not a passed one, and a runner that
    /// fails without a failed test failed itself.
    pub(super) fn close(mut self, succeeded: bool) -> Self {
        self.passed = self.passed.saturating_sub(self.skipped.len());
        if !succeeded && self.failed == 0 {
            self.failed = 1;
        }
        self
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)?;
        match self.skipped.len() {
            0 => Ok(()),
            skipped => write!(formatter, ", {skipped} skipped"),
        }
    }
}

/// The number that stands right before a word.
fn number_before(line: &str, word: &str) -> Option<usize> {
    let before = &line[..line.find(word)?];
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str], succeeded: bool) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.read(line);
        }
        tally.close(succeeded)
    }

    #[test]
    fn lines_of_cargo_and_plain_lines_are_summed() {
        let lines = [
            "running 3 tests",
            "test result: FAILED. 12 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out",
            "tidy: 30 files, 10 passed, 1 failed",
        ];
        assert_eq!(tally(&lines, false).to_string(), "22 passed, 3 failed");
    }

    #[test]
    fn a_skipped_test_is_named_and_not_counted_as_passed() {
        let lines = [
            "SKIPPED two_namespaces: needs root",
            "test result: ok. 2 passed; 0 failed; 0 ignored",
        ];
        let tally = tally(&lines, true);
        assert_eq!(tally.to_string(), "1 passed, 0 failed, 1 skipped");
        assert_eq!(tally.skipped, ["two_namespaces: needs root"]);
    }

    #[test]
    fn one_reason_is_given_once() {
        let lines = ["SKIPPED a: no hosts: why", "SKIPPED b: no nft", "SKIPPED c: no hosts: why"];
        assert_eq!(tally(&lines, true).skipped_by_reason(), ["a, c: no hosts: why", "b: no nft"]);
    }

    #[test]
    fn a_test_that_stays_on_one_host_is_named_once_and_passes() {
        let line = "test a::b ... ON ONE HOST a::b: it is about one";
        let tally = tally(&[line, line, "test result: ok. 2 passed; 0 failed; 0 ignored"], true);
        assert_eq!(tally.to_string(), "2 passed, 0 failed");
        assert_eq!(tally.on_one_host.iter().collect::<Vec<_>>(), ["a::b: it is about one"]);
    }

    #[test]
    fn a_runner_that_breaks_counts_as_one_failure() {
        assert_eq!(tally(&["error: could not compile"], false).failed, 1);
        assert_eq!(tally(&["test result: FAILED. 0 passed; 2 failed; 0 ignored"], false).failed, 2);
    }
}
