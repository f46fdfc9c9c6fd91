//! The messages between members that agree, and their encoding as words.
//!
//! | word | content |
//! |---|---|
//! | 0 | kind (low half), number of the agreement (high half) |
//! | 1 | round |
//! | then | fields of the kind: a part, the accepted outcome, the members gone, an outcome |
//!
//! A list is its length and its items. The words come from others and may have any value: reading them always ends, and
//! takes no more memory than they do.

use super::{MemberStanding, Outcome, Part};

/// A message from one member to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// To the leader of a round: the member's part, the outcome that it accepted, and the members gone.
    State {
        /// The number of the agreement.
        number: u32,
        /// The leader that it is meant for.
        round: u32,
        /// The part of the member.
        part: Part,
        /// The outcome that it accepted last, with the round.
        accepted: Option<(u32, Outcome)>,
        /// The standing of all members, as far as it knows.
        standing: Vec<MemberStanding>,
    },
    /// From a leader that took over: state your case.
    Ask {
        /// The number of the agreement.
        number: u32,
        /// The leader.
        round: u32,
        /// The standing of all members, as far as it knows.
        standing: Vec<MemberStanding>,
    },
    /// From the leader: accept this outcome.
    Propose {
        /// The number of the agreement.
        number: u32,
        /// The leader.
        round: u32,
        /// The proposed outcome.
        outcome: Outcome,
    },
    /// To the leader: the proposal is accepted.
    Accept {
        /// The number of the agreement.
        number: u32,
        /// The leader.
        round: u32,
    },
    /// To everybody: this is the outcome.
    Decide {
        /// The number of the agreement.
        number: u32,
        /// The outcome.
        outcome: Outcome,
    },
}

/// The error for words that no member of a group of this version writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a message about an agreement is not valid from word {at} on: its sender's memory was overwritten, or it is of another version"
)]
pub struct NotAMessage {
    /// The index of the word at fault.
    pub at: usize,
}

const STATE: u64 = 1;
const ASK: u64 = 2;
const PROPOSE: u64 = 3;
const ACCEPT: u64 = 4;
const DECIDE: u64 = 5;

impl Message {
    /// The number of the agreement.
    pub const fn number(&self) -> u32 {
        match self {
            Self::State { number, .. }
            | Self::Ask { number, .. }
            | Self::Propose { number, .. }
            | Self::Accept { number, .. }
            | Self::Decide { number, .. } => *number,
        }
    }

    /// Whether the message is about a group of this size.
    pub(super) fn fits(&self, size: usize) -> bool {
        let has = |outcome: &Outcome| outcome.parts.len() == size && outcome.standing.len() == size;
        match self {
            Self::State { accepted, standing, .. } => {
                standing.len() == size && accepted.as_ref().is_none_or(|(_, outcome)| has(outcome))
            }
            Self::Ask { standing, .. } => standing.len() == size,
            Self::Propose { outcome, .. } | Self::Decide { outcome, .. } => has(outcome),
            Self::Accept { .. } => true,
        }
    }

    /// Encodes the message as words.
    pub fn to_words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        let mut head = |kind, number: u32, round: u32| {
            words.extend([kind | u64::from(number) << 32, u64::from(round)]);
        };
        match self {
            Self::State { number, round, part, accepted, standing } => {
                head(STATE, *number, *round);
                write_part(&mut words, part);
                match accepted {
                    None => words.push(0),
                    Some((round, outcome)) => {
                        words.extend([1, u64::from(*round)]);
                        write_outcome(&mut words, outcome);
                    }
                }
                write_standing(&mut words, standing);
            }
            Self::Ask { number, round, standing } => {
                head(ASK, *number, *round);
                write_standing(&mut words, standing);
            }
            Self::Propose { number, round, outcome } => {
                head(PROPOSE, *number, *round);
                write_outcome(&mut words, outcome);
            }
            Self::Accept { number, round } => head(ACCEPT, *number, *round),
            Self::Decide { number, outcome } => {
                head(DECIDE, *number, 0);
                write_outcome(&mut words, outcome);
            }
        }
        words
    }

    /// Decodes words, which may have any value.
    ///
    /// # Errors
    /// [`NotAMessage`].
    pub fn from_words(words: &[u64]) -> Result<Self, NotAMessage> {
        let mut reader = Reader { words, at: 0 };
        let first = reader.word()?;
        let number = (first >> 32) as u32;
        let round = reader.half()?;
        let message = match first & u64::from(u32::MAX) {
            STATE => Self::State {
                number,
                round,
                part: reader.part()?,
                accepted: match reader.word()? {
                    0 => None,
                    _ => Some((reader.half()?, reader.outcome()?)),
                },
                standing: reader.standing()?,
            },
            ASK => Self::Ask { number, round, standing: reader.standing()? },
            PROPOSE => Self::Propose { number, round, outcome: reader.outcome()? },
            ACCEPT => Self::Accept { number, round },
            DECIDE => Self::Decide { number, outcome: reader.outcome()? },
            _ => return Err(NotAMessage { at: 0 }),
        };
        match reader.at == words.len() {
            true => Ok(message),
            false => Err(reader.wrong()),
        }
    }
}

fn write_part(words: &mut Vec<u64>, part: &Part) {
    words.push(u64::from(part.flags));
    words.extend(part.offer);
    words.push(part.acknowledged.len() as u64);
    words.extend(part.acknowledged.iter().map(|&member| u64::from(member)));
}

/// Writes the standing of the members that do not live; living ones take no words.
fn write_standing(words: &mut Vec<u64>, standing: &[MemberStanding]) {
    words.push(standing.len() as u64);
    let gone = (0u64..).zip(standing).filter(|(_, standing)| **standing != MemberStanding::Lives);
    let gone: Vec<u64> = gone
        .map(|(member, standing)| member << 1 | u64::from(*standing == MemberStanding::Died))
        .collect();
    words.push(gone.len() as u64);
    words.extend(gone);
}

fn write_outcome(words: &mut Vec<u64>, outcome: &Outcome) {
    write_standing(words, &outcome.standing);
    words.push(outcome.parts.len() as u64);
    for part in &outcome.parts {
        words.push(part.is_some().into());
        part.iter().for_each(|part| write_part(words, part));
    }
}

struct Reader<'a> {
    words: &'a [u64],
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self) -> NotAMessage {
        NotAMessage { at: self.at }
    }

    fn word(&mut self) -> Result<u64, NotAMessage> {
        let word = self.words.get(self.at).copied().ok_or(self.wrong())?;
        self.at += 1;
        Ok(word)
    }

    fn half(&mut self) -> Result<u32, NotAMessage> {
        let wrong = self.wrong();
        u32::try_from(self.word()?).map_err(|_| wrong)
    }

    /// Reads the number of items that follow, each of them at least a word.
    fn length(&mut self) -> Result<usize, NotAMessage> {
        let wrong = self.wrong();
        let length = usize::try_from(self.word()?).map_err(|_| wrong)?;
        if length <= self.words.len() - self.at { Ok(length) } else { Err(wrong) }
    }

    fn part(&mut self) -> Result<Part, NotAMessage> {
        let flags = self.half()?;
        let offer = [self.word()?, self.word()?, self.word()?];
        let acknowledged = (0..self.length()?).map(|_| self.half()).collect::<Result<_, _>>()?;
        Ok(Part { flags, acknowledged, offer })
    }

    fn standing(&mut self) -> Result<Vec<MemberStanding>, NotAMessage> {
        let wrong = self.wrong();
        let size = usize::try_from(self.word()?).map_err(|_| wrong)?;
        if size > MEMBERS_MAX {
            return Err(wrong);
        }
        let mut standing = vec![MemberStanding::Lives; size];
        for _ in 0..self.length()? {
            let wrong = self.wrong();
            let word = self.word()?;
            let member = usize::try_from(word >> 1).map_err(|_| wrong)?;
            let died = word & 1 != 0;
            *standing.get_mut(member).ok_or(wrong)? =
                if died { MemberStanding::Died } else { MemberStanding::Left };
        }
        Ok(standing)
    }

    fn outcome(&mut self) -> Result<Outcome, NotAMessage> {
        let standing = self.standing()?;
        let parts = (0..self.length()?)
            .map(|_| match self.word()? {
                0 => Ok(None),
                _ => self.part().map(Some),
            })
            .collect::<Result<_, _>>()?;
        Ok(Outcome { parts, standing })
    }
}

/// The largest size of a group. So a word that claims more requires no memory.
const MEMBERS_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        let part = Part { flags: 7, acknowledged: vec![2, 9], offer: [1, u64::MAX, 3] };
        let standing = vec![MemberStanding::Lives, MemberStanding::Left, MemberStanding::Died];
        Outcome { parts: vec![Some(part), None, Some(Part::default())], standing }
    }

    fn all() -> Vec<Message> {
        let (number, round) = (u32::MAX, 2);
        let (outcome, standing) = (outcome(), outcome().standing);
        let part = outcome.parts[0].clone().unwrap();
        let accepted = Some((1, outcome.clone()));
        vec![
            Message::State { number, round, part, accepted, standing: standing.clone() },
            Message::State {
                number,
                round,
                part: Part::default(),
                accepted: None,
                standing: vec![],
            },
            Message::Ask { number, round, standing },
            Message::Propose { number, round, outcome: outcome.clone() },
            Message::Accept { number, round },
            Message::Decide { number, outcome },
        ]
    }

    #[test]
    fn words_lead_back() {
        for message in all() {
            assert_eq!(Message::from_words(&message.to_words()), Ok(message));
        }
    }

    #[test]
    fn whatever_words_say_reading_them_ends() {
        for message in all() {
            let words = message.to_words();
            for length in 0..words.len() {
                assert!(Message::from_words(&words[..length]).is_err(), "cut short");
            }
            for at in 0..words.len() {
                for lie in [0, 1, 6, u64::MAX, 1 << 32, 1 << 19] {
                    let mut lying = words.clone();
                    lying[at] = lie;
                    let _ = Message::from_words(&lying);
                }
            }
            let longer: Vec<u64> = words.iter().copied().chain([0]).collect();
            assert_eq!(Message::from_words(&longer), Err(NotAMessage { at: words.len() }));
        }
    }
}
