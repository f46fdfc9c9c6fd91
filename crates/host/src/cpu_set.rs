//! A set of processors, of any size.

use std::fmt;
use std::io;
use std::str::FromStr;

/// Processors by the kernel's numbers, as affinity masks and sysfs lists name them.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct CpuSet {
    /// Bit `n % 64` of word `n / 64` is processor `n`: the layout of the kernel's own mask.
    words: Vec<u64>,
}

/// The error for a text that is no list of processors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no list of processors; write numbers and ranges, as in 0-3,8")]
pub struct CpuListError {
    text: String,
}

impl CpuSet {
    /// One more than the largest number that a text may name: far above any machine, and low enough that a typing error
    /// does not fill the memory.
    const NUMBERS: usize = 1 << 16;

    /// The empty set.
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// The processors on which this thread may run.
    ///
    /// # Errors
    /// The kernel's error; a sandbox may refuse the question.
    pub fn of_this_thread() -> io::Result<Self> {
        let mut words = vec![0_u64; 16];
        loop {
            let bytes = words.len() * size_of::<u64>();
            // SAFETY: the kernel writes at most `bytes` bytes, which `words` has.
            let answer = unsafe { libc::sched_getaffinity(0, bytes, words.as_mut_ptr().cast()) };
            if answer == 0 {
                return Ok(Self { words });
            }
            let error = io::Error::last_os_error();
            // EINVAL: the kernel's mask is larger than ours.
            if error.raw_os_error() != Some(libc::EINVAL) || words.len() * 64 >= Self::NUMBERS {
                return Err(error);
            }
            words = vec![0; words.len() * 2];
        }
    }

    /// Inserts a processor and returns whether it was new.
    pub fn insert(&mut self, cpu: usize) -> bool {
        let word = cpu / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = !self.contains(cpu);
        self.words[word] |= 1 << (cpu % 64);
        new
    }

    /// Removes a processor and returns whether it was there.
    pub fn remove(&mut self, cpu: usize) -> bool {
        let there = self.contains(cpu);
        if there {
            self.words[cpu / 64] &= !(1 << (cpu % 64));
        }
        there
    }

    /// Whether the processor is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        self.words.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// The number of processors in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no processor is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The processors that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self { words: self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect() }
    }

    /// The processors, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let bits = |(at, &word): (usize, &u64)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
        };
        self.words.iter().enumerate().flat_map(bits)
    }

    /// The processors in words: `processor 3`, `processors 0-1`.
    pub fn in_words(&self) -> String {
        let plural = if self.count() == 1 { "" } else { "s" };
        format!("processor{plural} {self}")
    }

    /// The kernel's mask: bit `n % 64` of word `n / 64` is processor `n`.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

impl PartialEq for CpuSet {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for CpuSet {}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut set = Self::new();
        set.extend(cpus);
        set
    }
}

impl Extend<usize> for CpuSet {
    fn extend<I: IntoIterator<Item = usize>>(&mut self, cpus: I) {
        for cpu in cpus {
            self.insert(cpu);
        }
    }
}

/// Writes the kernel's list form: `0-3,8`.
impl fmt::Display for CpuSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.peek() == Some(&(last + 1)) {
                last += 1;
                cpus.next();
            }
            match last - first {
                0 => write!(out, "{separator}{first}")?,
                _ => write!(out, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

/// Reads the kernel's list form; an empty text is the empty set.
impl FromStr for CpuSet {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let refused = || CpuListError { text: text.trim().to_owned() };
        let number =
            |digits: &str| digits.trim().parse::<usize>().ok().filter(|&cpu| cpu < Self::NUMBERS);
        let mut set = Self::new();
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Some(first), Some(last)) = (number(first), number(last)) else {
                return Err(refused());
            };
            if first > last {
                return Err(refused());
            }
            set.extend(first..=last);
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_back_in_order() {
        let mut set: CpuSet = [1500, 3, 0, 64].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 3, 64, 1500]);
        assert_eq!(set.count(), 4);
        assert!(set.contains(1500) && !set.contains(1501));
        assert!(!set.insert(3) && set.remove(3) && !set.remove(3));
        assert_eq!(set.count(), 3);
    }

    #[test]
    fn sets_are_equal_by_their_members() {
        let mut grown: CpuSet = [1, 900].into_iter().collect();
        grown.remove(900);
        assert_eq!(grown, [1].into_iter().collect());
        assert_eq!(grown.intersection(&CpuSet::new()), CpuSet::new());
    }

    #[test]
    fn lists_survive_writing_and_reading() {
        for list in ["", "0", "0-3", "0-3,8", "1,3,5-1030"] {
            let set: CpuSet = list.parse().unwrap();
            assert_eq!(set.to_string(), list);
        }
        assert_eq!("0-1\n".parse::<CpuSet>().unwrap().count(), 2, "as sysfs writes it");
    }

    #[test]
    fn bad_lists_are_refused_by_name() {
        for list in ["x", "3-1", "1,,2", "-1", "99999999"] {
            let error = list.parse::<CpuSet>().unwrap_err();
            assert!(error.to_string().contains(list), "{error}");
        }
    }

    #[test]
    fn this_thread_may_run_somewhere() {
        assert!(!CpuSet::of_this_thread().unwrap().is_empty());
    }
}
