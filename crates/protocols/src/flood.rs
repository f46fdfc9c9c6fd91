//! A flood: a word, such as a revocation, that reaches every living member, whichever members die on the way.
//!
//! A member that hears the word passes it on to the members at distances 1, 2, 4, ... behind it, counted around the
//! group. If one of these is gone, the next living member gets it instead. So in a group of `n` the word takes about
//! `log n` steps, and `log n` messages of each member. Each living member has told the next living one behind it, and
//! checks again whenever a member goes. So if one living member has heard the word, then the next has too, and thus
//! all.

/// The state of a flood at one member.
#[derive(Clone, Debug)]
pub struct Flood {
    own: u32,
    is_gone: Vec<bool>,
    /// The members that this member has told.
    told: Vec<bool>,
    has_heard: bool,
}

impl Flood {
    /// Creates the flood in a group of `size` members at member `own`, before anybody has said the word.
    pub fn new(size: u32, own: u32) -> Self {
        let nobody = vec![false; size as usize];
        Self { own, is_gone: nobody.clone(), told: nobody, has_heard: false }
    }

    /// Whether this member has said the word or heard it.
    pub fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// Says or hears the word; returns the members to pass it on to now.
    pub fn hear(&mut self) -> Vec<u32> {
        self.has_heard = true;
        self.pass_on()
    }

    /// Records that a member is gone; returns the members to pass the word on to now.
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
