//! A word that reaches every member that lives, whoever dies on the way: a revocation.
//!
//! Whoever hears it passes it on to the members at distances 1, 2, 4, ... behind it, counted around
//! the group, and to the next one that lives where one of these is gone. So in a group of `n` it
//! takes about `log n` steps, and `log n` messages of each member. Each that lives has told the one
//! behind it that lives, and looks again whenever somebody goes: if one member that lives has heard
//! it, then so has the next, and all.

/// Such a word in a group, as one member knows of it.
#[derive(Clone, Debug)]
pub struct Flood {
    own: u32,
    is_gone: Vec<bool>,
    /// Whom this member has told.
    told: Vec<bool>,
    has_heard: bool,
}

impl Flood {
    /// In a group of so many members, at one of them. Nobody has said the word yet.
    pub fn new(size: u32, own: u32) -> Self {
        let nobody = vec![false; size as usize];
        Self { own, is_gone: nobody.clone(), told: nobody, has_heard: false }
    }

    /// Whether this member has said the word or heard it.
    pub fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// Says the word, or hears it: the members that it is to be passed on to now.
    pub fn hear(&mut self) -> Vec<u32> {
        self.has_heard = true;
        self.pass_on()
    }

    /// A member is gone: the members that the word is to be passed on to now.
    pub fn note_gone(&mut self, member: u32) -> Vec<u32> {
        if let Some(is_gone) = self.is_gone.get_mut(member as usize) {
            *is_gone = true;
        }
        if self.has_heard { self.pass_on() } else { Vec::new() }
    }

    fn pass_on(&mut self) -> Vec<u32> {
        let size = self.told.len() as u32;
        let mut to = Vec::new();
        let distances = (0..u32::BITS).map(|bit| 1 << bit).take_while(|&distance| distance < size);
        for distance in distances {
            let from_there = (distance..size).map(|ahead| (self.own + ahead) % size);
            let living = from_there.filter(|&member| !self.is_gone[member as usize]);
            let Some(next) = living.take(1).next() else { continue };
            if !std::mem::replace(&mut self.told[next as usize], true) {
                to.push(next);
            }
        }
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_double() {
        let mut flood = Flood::new(11, 9);
        assert!(flood.note_gone(2).is_empty(), "nothing to pass on yet");
        assert_eq!(flood.hear(), [10, 0, 3, 6], "2 is gone: the next one in its place");
        assert!(flood.hear().is_empty() && flood.has_heard());
        assert_eq!(flood.note_gone(10), [], "0 knows");
        assert_eq!(flood.note_gone(6), [7]);
    }

    #[test]
    fn alone_there_is_nobody_to_tell() {
        assert!(Flood::new(1, 0).hear().is_empty());
        let mut last = Flood::new(2, 1);
        last.note_gone(0);
        assert!(last.hear().is_empty());
    }
}
