//! Symbolic contents of blocks: their contributors, and how they were combined.

use std::collections::BTreeMap;
use std::ops::Range;

/// A content, by number: equal contents have equal numbers.
pub(super) type Value = u32;

/// No content.
pub(super) const NOTHING: Value = Value::MAX;

/// All contents that have been seen. The first numbers stand for the data that members bring.
pub(super) struct Values {
    size: u32,
    numbers: u32,
    /// Whether the order of combination does not matter: then a content is the set of its
    /// contributors, else an expression.
    is_free: bool,
    combined: Vec<Combined>,
    /// The members of each combined content: a bit each, in so many words.
    members: Vec<u64>,
    words: usize,
    index: BTreeMap<(u64, u64), Value>,
    /// Sets of more members than a word has bits.
    sets: BTreeMap<Vec<u64>, u64>,
}

struct Combined {
    block: u32,
    left: Value,
    right: Value,
}

impl Values {
    pub(super) fn new(size: u32, numbers: u32, is_free: bool) -> Self {
        Self {
            size,
            numbers,
            is_free,
            combined: Vec::new(),
            members: Vec::new(),
            words: size.div_ceil(64) as usize,
            index: BTreeMap::new(),
            sets: BTreeMap::new(),
        }
    }

    /// A block as a member brings it.
    pub(super) fn of(&self, member: u32, block: u32) -> Value {
        member * self.numbers + block
    }

    /// Whether it is a member's own data, not combined.
    pub(super) fn is_data(&self, value: Value) -> bool {
        value < self.size * self.numbers
    }

    /// Combines two contents of one block, or returns a member whose data are in both.
    pub(super) fn combine(&mut self, left: Value, right: Value) -> Result<Value, u32> {
        for word in 0..self.words {
            let both = self.word(left, word) & self.word(right, word);
            if both != 0 {
                return Err(word as u32 * 64 + both.trailing_zeros());
            }
        }
        let next = self.size * self.numbers + self.combined.len() as u32;
        let key = self.key(left, right);
        let value = *self.index.entry(key).or_insert(next);
        if value == next {
            let united = (0..self.words).map(|word| self.word(left, word) | self.word(right, word));
            let united: Vec<u64> = united.collect();
            self.members.extend(united);
            self.combined.push(Combined { block: self.block(left), left, right });
        }
        Ok(value)
    }

    /// The identity of a combination: its contributors, or its expression.
    fn key(&mut self, left: Value, right: Value) -> (u64, u64) {
        if !self.is_free {
            return (u64::from(left), u64::from(right));
        }
        let block = u64::from(self.block(left));
        if self.words == 1 {
            return (block, self.word(left, 0) | self.word(right, 0));
        }
        let united = (0..self.words).map(|word| self.word(left, word) | self.word(right, word));
        let united: Vec<u64> = united.collect();
        let next = self.sets.len() as u64;
        (block, *self.sets.entry(united).or_insert(next))
    }

    /// The data of these members, combined in the canonical order: split at the largest power of
    /// two that is smaller than their number, both halves alike. `value` says what each has.
    pub(super) fn canonical(
        &mut self,
        members: Range<u32>,
        value: &impl Fn(u32) -> Value,
    ) -> Result<Value, u32> {
        let count = members.len() as u32;
        if count <= 1 {
            return Ok(value(members.start));
        }
        let split = members.start + count.next_power_of_two() / 2;
        let left = self.canonical(members.start..split, value)?;
        let right = self.canonical(split..members.end, value)?;
        self.combine(left, right)
    }

    /// Describes a content in words.
    pub(super) fn text(&self, value: Value) -> String {
        if value == NOTHING {
            return "nothing".into();
        }
        let block = self.block(value);
        format!("block {block} of {}", self.expression(value))
    }

    fn expression(&self, value: Value) -> String {
        let data = self.size * self.numbers;
        match value.checked_sub(data) {
            None => (value / self.numbers).to_string(),
            Some(_) if self.is_free => {
                let is_in = |&member: &u32| {
                    self.word(value, member as usize / 64) >> (member % 64) & 1 == 1
                };
                let texts: Vec<String> =
                    (0..self.size).filter(is_in).map(|member| member.to_string()).collect();
                texts.join("+")
            }
            Some(at) => {
                let Combined { left, right, .. } = self.combined[at as usize];
                format!("({} {})", self.expression(left), self.expression(right))
            }
        }
    }

    fn block(&self, value: Value) -> u32 {
        match value.checked_sub(self.size * self.numbers) {
            None => value % self.numbers,
            Some(at) => self.combined[at as usize].block,
        }
    }

    /// The contributors of a content among 64 members, a bit each.
    fn word(&self, value: Value, word: usize) -> u64 {
        match value.checked_sub(self.size * self.numbers) {
            Some(at) => self.members[at as usize * self.words + word],
            None => {
                let member = value / self.numbers;
                if member as usize / 64 == word { 1 << (member % 64) } else { 0 }
            }
        }
    }
}

/// A set of contents.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Vec<u64>);

impl Seen {
    /// Adds a content. Whether it is new.
    pub(super) fn add(&mut self, value: Value) -> bool {
        let (word, bit) = (value as usize / 64, 1 << (value % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_order_splits_at_the_largest_smaller_power_of_two() {
        let mut values = Values::new(7, 1, false);
        let seven = values.canonical(0..7, &|member| member).unwrap();
        assert_eq!(values.text(seven), "block 0 of (((0 1) (2 3)) ((4 5) 6))");
        let two = values.canonical(0..2, &|member| member).unwrap();
        assert_eq!(values.text(two), "block 0 of (0 1)");
    }

    #[test]
    fn in_free_order_only_the_contributors_count() {
        let mut values = Values::new(3, 2, true);
        let [a, b, c] = [0, 1, 2].map(|member| values.of(member, 1));
        let left = values.combine(a, b).and_then(|both| values.combine(both, c)).unwrap();
        let right = values.combine(c, b).and_then(|both| values.combine(a, both)).unwrap();
        assert_eq!((left, values.text(left)), (right, "block 1 of 0+1+2".into()));
        assert_eq!(values.combine(left, b), Err(1));
        assert!(!values.is_data(left) && values.is_data(c));
    }

    #[test]
    fn a_content_is_seen_once() {
        let mut seen = Seen::default();
        assert_eq!((seen.add(70), seen.add(3), seen.add(70)), (true, true, false));
    }
}
