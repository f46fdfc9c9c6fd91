//! The calibration of a host for the simulator, beyond the [`CostParameters`] that choosing needs.
//!
//! `landeck tune` measures both and keeps them in one file. The calibration never reaches a segment.

use std::slice;

use crate::cost_parameters::CostParameters;

/// Sizes of messages that are measured, in bytes: a word more than its line has room for, some
/// lines, a page, all that a ring takes at once, and some pieces.
pub const MESSAGE_BYTES: [u64; 8] = [64, 512, 1024, 2048, 4096, 16_384, 32_768, 65_536];

/// After so many bytes a processor fetches the lines of a copy before they are asked for.
pub const FIRST_BYTES: u64 = 2048;

/// The sizes among them that travel in handoff buffers while their sender has one.
pub const CELL_MESSAGE_BYTES: [u64; 4] = [4096, 16_384, 32_768, 65_536];

/// The measured numbers of processes on each of two processors, or on the only one.
pub const CROWDS: [u64; 4] = [2, 4, 8, 16];

/// The bytes of its own that each process of a crowd touched in the measurements of a large footprint.
pub const FAR_BYTES: u64 = 4 << 20;

/// The bytes that passed repeatedly through each of two processors, or the only one, while copies were measured. On
/// every machine they include sizes for a second cache, a third one, and memory.
pub const ROTATION_BYTES: [u64; 10] = [
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
    8 << 20,
    16 << 20,
    32 << 20,
    64 << 20,
];

/// A step that copies a few bytes, or combines them at the board, takes about this long on every machine.
pub const LIGHT_STEP_PS: u64 = 80_000;

/// Times of a host that only the simulator needs, in picoseconds.
///
/// A *crowd* is a number of processes on one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// A call of a collective operation over messages, beside the messages.
    pub call_ps: u64,
    /// A step of its plan that combines a few bytes.
    pub step_ps: u64,
    /// A call at the board that is not inline, beside what an inline call takes.
    pub board_call_ps: u64,
    /// A step at the board that copies a few bytes.
    pub board_copy_ps: u64,
    /// Messages of [`MESSAGE_BYTES`] between two processes: half of a round trip.
    pub messages_ps: [u64; MESSAGE_BYTES.len()],
    /// Messages of [`CELL_MESSAGE_BYTES`] that all go one way, so that their sender has no cell for them.
    pub one_ways_ps: [u64; CELL_MESSAGE_BYTES.len()],
    /// The switch from one process of a crowd to the next at a board.
    pub turns_ps: [u64; CROWDS.len()],
    /// The switch from one process of a crowd to the next between exchanges of messages.
    pub switches_ps: [u64; CROWDS.len()],
    /// A call over messages of a member of a crowd that finds its message.
    pub crowd_calls_ps: [u64; CROWDS.len()],
    /// A call at the board of a member of a crowd that finds the deposit that it takes.
    pub crowd_takes_ps: [u64; CROWDS.len()],
    /// The sender's time for each of many messages of a call in a crowd.
    pub crowd_sends_ps: [u64; CROWDS.len()],
    /// The receiver's time for each of many messages of a call in a crowd, if the message is there already.
    pub crowd_receives_ps: [u64; CROWDS.len()],
    /// The sender's time for each of many messages of a call, where each member has sent to all others since.
    pub crowd_sends_far_ps: [u64; CROWDS.len()],
    /// The receiver's time for such a message.
    pub crowd_receives_far_ps: [u64; CROWDS.len()],
    /// A call in a crowd that follows an equal call directly.
    pub crowd_calls_again_ps: [u64; CROWDS.len()],
    /// The receiver's time for each of many messages of such a call.
    pub crowd_receives_again_ps: [u64; CROWDS.len()],
    /// Added to the receiver's time in a crowd for a message that came before its receive.
    pub crowd_keeps_ps: [u64; CROWDS.len()],
    /// A take of a member of a crowd, one of many of a call at the board.
    pub crowd_finds_ps: [u64; CROWDS.len()],
    /// Added to the first access to a page in a turn in a crowd: the processor has lost the page from its TLB.
    pub crowd_pages_ps: [u64; CROWDS.len()],
    /// 1 KiB that a member of a crowd copies from data untouched since [`FAR_BYTES`] of its own, to where it just was.
    pub crowd_reads_kib_ps: [u64; CROWDS.len()],
    /// 1 KiB copied to where another processor has read before, while little goes round.
    pub deposit_kib_ps: u64,
    /// 1 KiB copied on an otherwise idle processor, while [`ROTATION_BYTES`] go round.
    pub copies_kib_ps: [u64; ROTATION_BYTES.len()],
    /// 1 KiB copied from data untouched while [`ROTATION_BYTES`] went round, to where the copy before went.
    pub reads_kib_ps: [u64; ROTATION_BYTES.len()],
    /// 1 KiB copied from where the copy before came from, to data untouched while [`ROTATION_BYTES`] went round.
    pub writes_kib_ps: [u64; ROTATION_BYTES.len()],
}

/// Figures of one kind, one for each of some sizes.
struct Family {
    /// The name of each in a record, with `#` in place of its size.
    name: &'static str,
    about: &'static str,
    sizes: &'static [u64],
    /// Whether the least of some rounds counts, since disturbances only make it longer. Else the median counts: it
    /// differs with the order of processes on a processor and with what each finds in the caches.
    takes_least: bool,
    words: fn(&mut Calibration) -> &mut [u64],
}

macro_rules! family {
    ($field:ident, $name:literal, $about:literal, least) => {
        family!(@ $name, $about, &[0], true, |all| slice::from_mut(&mut all.$field))
    };
    ($field:ident, $name:literal, $about:literal) => {
        family!(@ $name, $about, &[0], false, |all| slice::from_mut(&mut all.$field))
    };
    ($field:ident, $name:literal, $about:literal, $sizes:ident, least) => {
        family!(@ $name, $about, &$sizes, true, |all| &mut all.$field)
    };
    ($field:ident, $name:literal, $about:literal, $sizes:ident) => {
        family!(@ $name, $about, &$sizes, false, |all| &mut all.$field)
    };
    (@ $name:literal, $about:literal, $sizes:expr, $takes_least:literal, $words:expr) => {
        Family { name: $name, about: $about, sizes: $sizes, takes_least: $takes_least, words: $words }
    };
}

/// All figures, in the order of a record.
static FAMILIES: &[Family] = &[
    family!(call_ps, "call_ps", "a call over messages, beside them", least),
    family!(step_ps, "step_ps", "a step that combines a few bytes", least),
    family!(board_call_ps, "board_call_ps", "a call at the board, beside an inline one", least),
    family!(board_copy_ps, "board_copy_ps", "a step there that copies a few bytes", least),
    family!(messages_ps, "message_#_ps", "a message of # bytes", MESSAGE_BYTES, least),
    family!(
        one_ways_ps,
        "one_way_#_ps",
        "a message of # bytes, of many one way",
        CELL_MESSAGE_BYTES,
        least
    ),
    family!(turns_ps, "turn_of_#_ps", "a switch among # on a processor, at a board", CROWDS),
    family!(switches_ps, "switch_of_#_ps", "a switch among # that exchange messages", CROWDS),
    family!(crowd_calls_ps, "call_of_#_ps", "a call of one of #, finding its message", CROWDS),
    family!(crowd_takes_ps, "take_of_#_ps", "a call of one of #, taking from the board", CROWDS),
    family!(crowd_sends_ps, "send_of_#_ps", "one of many sends of a call, of #", CROWDS),
    family!(crowd_receives_ps, "receive_of_#_ps", "one of many receives of a call, of #", CROWDS),
    family!(
        crowd_sends_far_ps,
        "send_far_of_#_ps",
        "a send after all have sent to all, of #",
        CROWDS
    ),
    family!(crowd_receives_far_ps, "receive_far_of_#_ps", "a receive after that, of #", CROWDS),
    family!(crowd_keeps_ps, "keep_of_#_ps", "added for a message before its receive, of #", CROWDS),
    family!(
        crowd_calls_again_ps,
        "call_again_of_#_ps",
        "a call of one of #, directly after another",
        CROWDS
    ),
    family!(crowd_receives_again_ps, "receive_again_of_#_ps", "one of many receives of it", CROWDS),
    family!(
        crowd_finds_ps,
        "find_of_#_ps",
        "one of many takes of a call at the board, of #",
        CROWDS
    ),
    family!(crowd_pages_ps, "page_of_#_ps", "the first touch of a page in a turn, of #", CROWDS),
    family!(crowd_reads_kib_ps, "read_kib_of_#_ps", "1 KiB of 4 MiB that each of # reads", CROWDS),
    family!(deposit_kib_ps, "deposit_kib_in_128k_ps", "1 KiB to where others read"),
    family!(copies_kib_ps, "copy_kib_in_#_ps", "1 KiB copied while # go round", ROTATION_BYTES),
    family!(reads_kib_ps, "read_kib_in_#_ps", "1 KiB read after # went round", ROTATION_BYTES),
    family!(
        writes_kib_ps,
        "write_kib_in_#_ps",
        "1 KiB overwritten after # went round",
        ROTATION_BYTES
    ),
];

/// Names of figures that earlier versions wrote, with `#` in place of a size. They moved no prediction by more than a
/// tenth, or are measured in another way now.
const RETIRED: [&str; 15] = [
    "past_caches_kib_ps",
    "turn_ps",
    "crowd_switch_ps",
    "copy_step_ps",
    "board_step_ps",
    "send_ps",
    "deposit_of_#_ps",
    "send_again_of_#_ps",
    "lend_of_#_ps",
    "drain_of_#_ps",
    "page_in_#_ps",
    "deposit_kib_in_#_ps",
    "take_kib_in_#_ps",
    "handed_kib_ps",
    "fetched_reduction_kib_ps",
];

/// The name of a figure of this size, given that of its family.
pub fn named(family: &str, size: u64) -> String {
    let size = match size {
        0..131_072 => size.to_string(),
        131_072..1_048_576 => format!("{}k", size >> 10),
        _ => format!("{}m", size >> 20),
    };
    family.replace('#', &size)
}

/// Whether an earlier version wrote a figure of this name.
pub(crate) fn is_retired(name: &str) -> bool {
    let is_size = |part: &&str| part.starts_with(|first: char| first.is_ascii_digit());
    let parts: Vec<&str> =
        name.split('_').map(|part| if is_size(&part) { "#" } else { part }).collect();
    RETIRED.contains(&parts.join("_").as_str())
}

impl Calibration {
    /// Estimates the calibration of an unmeasured host from its cost parameters. A message costs a copy into shared
    /// memory and one out of it, concurrent where data come in pieces. In a crowd each process finds less in the
    /// caches. Copies cost the same per KiB at any length.
    pub fn of(figures: &CostParameters) -> Self {
        const RING_KIB: u64 = 16;
        const CALL_PS: u64 = 300_000;
        let CostParameters { message_ps, deposit_ps, line_ps, switch_ps, .. } = *figures;
        let (both_ps, out_ps) = (figures.two_copy_kib_ps, figures.one_copy_kib_ps);
        let message = |bytes: u64| {
            let first_ps = line_ps * bytes.min(FIRST_BYTES) / FIRST_BYTES;
            let copies_ps = match bytes / 1024 {
                0..=RING_KIB => (both_ps + out_ps) * bytes / 1024,
                _ => both_ps * (bytes / 1024 + RING_KIB),
            };
            message_ps + deposit_ps + first_ps + copies_ps
        };
        // Of eight as much as of two and a third, or a half, more.
        let turns_ps = [6, 6, 8, 9].map(|sixths| switch_ps * sixths / 6);
        let crowd = |alone_ps: u64| [2, 2, 3, 3].map(|halves| alone_ps * halves / 2);
        Self {
            call_ps: CALL_PS,
            step_ps: LIGHT_STEP_PS,
            board_call_ps: CALL_PS / 4,
            board_copy_ps: 0,
            messages_ps: MESSAGE_BYTES.map(message),
            one_ways_ps: CELL_MESSAGE_BYTES.map(message),
            turns_ps,
            switches_ps: turns_ps.map(|turn_ps| turn_ps + message_ps),
            crowd_calls_ps: crowd(CALL_PS + message_ps / 2),
            crowd_takes_ps: crowd(CALL_PS / 4 + line_ps),
            crowd_sends_ps: [message_ps / 2; CROWDS.len()],
            crowd_receives_ps: [message_ps.saturating_sub(line_ps) / 2; CROWDS.len()],
            crowd_sends_far_ps: [message_ps / 2; CROWDS.len()],
            crowd_receives_far_ps: [message_ps.saturating_sub(line_ps) / 2; CROWDS.len()],
            crowd_keeps_ps: [0; CROWDS.len()],
            crowd_calls_again_ps: crowd(CALL_PS + message_ps / 2),
            crowd_receives_again_ps: [message_ps.saturating_sub(line_ps) / 2; CROWDS.len()],
            crowd_finds_ps: [0; CROWDS.len()],
            crowd_pages_ps: [0; CROWDS.len()],
            crowd_reads_kib_ps: [figures.local_copy_kib_ps; CROWDS.len()],
            deposit_kib_ps: figures.local_copy_kib_ps,
            copies_kib_ps: [figures.local_copy_kib_ps; ROTATION_BYTES.len()],
            reads_kib_ps: [figures.local_copy_kib_ps; ROTATION_BYTES.len()],
            writes_kib_ps: [figures.local_copy_kib_ps; ROTATION_BYTES.len()],
        }
    }

    /// Returns the calibration with these times of a call over messages and of each of its steps that copies or
    /// combines. The times of calls and copies at the board follow from them.
    pub const fn with_calls(self, call_ps: u64, step_ps: u64) -> Self {
        Self { call_ps, step_ps, board_call_ps: call_ps / 4, board_copy_ps: step_ps, ..self }
    }

    /// Interpolates a time measured for each of [`CROWDS`] to a crowd of `sharing` processes. The value of the largest
    /// crowd holds for larger ones.
    pub fn of_crowd(measured_ps: &[u64; CROWDS.len()], sharing: u64) -> u64 {
        between(&CROWDS, measured_ps, sharing)
    }

    /// Interpolates a time measured for each of [`ROTATION_BYTES`] to a rotation of so many bytes. The value of the
    /// largest rotation holds for larger ones.
    pub fn of_rotation(measured_ps: &[u64; ROTATION_BYTES.len()], bytes: u64) -> u64 {
        between(&ROTATION_BYTES, measured_ps, bytes)
    }

    /// Sets the figure of this name; false where there is none.
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        let place = FAMILIES.iter().find_map(|family| {
            let number = family.sizes.iter().position(|&size| named(family.name, size) == name)?;
            Some((family, number))
        });
        place.map(|(family, number)| (family.words)(self)[number] = value).is_some()
    }

    /// The typical figures of several rounds of a measurement; none of no rounds.
    pub fn typical(rounds: &[Self]) -> Option<Self> {
        let mut typical = *rounds.first()?;
        for family in FAMILIES {
            for (number, word) in (family.words)(&mut typical).iter_mut().enumerate() {
                let values = rounds.iter().map(|&(mut round)| (family.words)(&mut round)[number]);
                let mut values: Vec<u64> = values.collect();
                values.sort_unstable();
                *word = values[if family.takes_least { 0 } else { values.len() / 2 }];
            }
        }
        Some(typical)
    }

    /// The name, the meaning and the value of each figure, in the order of a record.
    pub fn lines(mut self) -> impl Iterator<Item = (String, String, u64)> {
        FAMILIES.iter().flat_map(move |family| {
            let words = (family.words)(&mut self).to_vec();
            family.sizes.iter().zip(words).map(|(&size, value)| {
                let shown = match size {
                    0..131_072 => size.to_string(),
                    131_072..1_048_576 => format!("{} KiB", size >> 10),
                    _ => format!("{} MiB", size >> 20),
                };
                (named(family.name, size), family.about.replace('#', &shown), value)
            })
        })
    }

    /// A step that copies a few bytes, or combines them at the board. Where steps take no time, these do not either.
    pub fn light_step_ps(&self) -> u64 {
        self.step_ps.min(LIGHT_STEP_PS)
    }

    /// The time of a message that is longer than a line, interpolated between those that were measured with these
    /// figures.
    pub fn message_ps(&self, figures: &CostParameters, bytes: u64) -> u64 {
        of_length(&MESSAGE_BYTES, &self.messages_ps, figures, bytes)
    }

    /// Returns the time of a message that travels in no handoff buffer, since its sender has none or none is as long.
    pub fn one_way_ps(&self, figures: &CostParameters, bytes: u64) -> u64 {
        let ([.., longest_bytes], [.., longest_ps]) = (CELL_MESSAGE_BYTES, self.one_ways_ps);
        if bytes > longest_bytes {
            // All of such a message goes as long ones do: there is nothing of it that takes longer.
            return figures.message_ps.saturating_add(long_ps(figures, bytes)).max(longest_ps);
        }
        of_length(&CELL_MESSAGE_BYTES, &self.one_ways_ps, figures, bytes)
    }
}

/// Interpolates between measured lengths. Beyond them the rest counts as part of a long message.
fn of_length(lengths: &[u64], measured: &[u64], figures: &CostParameters, bytes: u64) -> u64 {
    let (mut before_bytes, mut before_ps) = (0, measured[0]);
    for (&at_bytes, &at_ps) in lengths.iter().zip(measured) {
        if bytes <= at_bytes {
            let more_ps = at_ps.saturating_sub(before_ps);
            let part = (bytes - before_bytes) * more_ps / (at_bytes - before_bytes);
            return before_ps + part;
        }
        (before_bytes, before_ps) = (at_bytes, at_ps);
    }
    before_ps.saturating_add(long_ps(figures, bytes - before_bytes))
}

/// Returns the time of so many bytes of a long message.
fn long_ps(figures: &CostParameters, bytes: u64) -> u64 {
    let ps = u128::from(bytes) * u128::from(figures.two_copy_kib_ps) / 1024;
    u64::try_from(ps).unwrap_or(u64::MAX)
}

/// Interpolates linearly between measured places. Before the first and after the last place the nearest value holds.
fn between<const COUNT: usize>(places: &[u64; COUNT], measured: &[u64; COUNT], place: u64) -> u64 {
    let (mut before, mut of_before) = (0, measured[0]);
    for (&at, &of_at) in places.iter().zip(measured) {
        if place <= at {
            let (from, to) = (place - before, at - place);
            let sum = u128::from(of_before) * u128::from(to) + u128::from(of_at) * u128::from(from);
            return (sum / u128::from((from + to).max(1))) as u64;
        }
        (before, of_before) = (at, of_at);
    }
    of_before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_between_two_that_were_measured_are_in_proportion() {
        let figures =
            CostParameters { two_copy_kib_ps: 1024, message_ps: 100, ..CostParameters::default() };
        let messages_ps = [100, 200, 400, 800, 1_000, 5_000, 6_000, 9_000];
        let details = Calibration { messages_ps, ..Calibration::of(&figures) };
        let of = |bytes| details.message_ps(&figures, bytes);
        assert_eq!([of(49), of(64), of(288), of(16_384)], [100, 100, 150, 5_000]);
        assert_eq!([of(65_536), of(65_536 + 1024)], [9_000, 9_000 + 1024]);
        let details = Calibration { one_ways_ps: [100, 200, 400, 800], ..details };
        let of = |bytes| details.one_way_ps(&figures, bytes);
        assert_eq!([of(5), of(24 << 10)], [100, 300]);
        let (twice, many) = (2 << 16, 1 << 20);
        assert_eq!([of(twice), of(many)], [100 + twice, 100 + many], "all of it at one rate");
        let details = Calibration { one_ways_ps: [100, 200, 400, 1 << 20], ..details };
        assert_eq!(details.one_way_ps(&figures, twice), 1 << 20, "no shorter than a shorter one");
    }

    #[test]
    fn of_crowds_that_were_not_measured_what_lies_between_is_known() {
        let measured = [100, 200, 400, 1_200];
        let of = |sharing| Calibration::of_crowd(&measured, sharing);
        assert_eq!([1, 2, 3, 4, 6, 8, 10].map(of), [100, 100, 150, 200, 300, 400, 600]);
        assert_eq!([16, 17, 1000].map(of), [1_200; 3], "of more nothing is known");
        assert_eq!(Calibration::of_crowd(&[400, 200, 200, 100], 3), 300, "measured with errors");
    }

    #[test]
    fn of_rotations_that_were_not_measured_what_lies_between_is_known() {
        let measured = [8, 8, 8, 8, 16, 16, 16, 32, 64, 88];
        let of = |bytes| Calibration::of_rotation(&measured, bytes);
        assert_eq!(
            [0, 1 << 10, 512 << 10, 5 << 18, 2 << 20, 20 << 20].map(of),
            [8, 8, 8, 10, 16, 40]
        );
        assert_eq!(
            [48 << 20, 64 << 20, u64::MAX].map(of),
            [76, 88, 88],
            "of more nothing is known"
        );
    }

    #[test]
    fn every_figure_has_a_name_and_a_word_of_its_own() {
        let mut all = Calibration::of(&CostParameters::default());
        let names: Vec<String> = all.lines().map(|(name, ..)| name).collect();
        for (value, name) in (1..).zip(&names) {
            assert!(all.set(name, value), "{name}");
        }
        let values: Vec<u64> = all.lines().map(|(.., value)| value).collect();
        assert_eq!(values, (1..=names.len() as u64).collect::<Vec<_>>());
        assert!(!all.set("turn_ps", 1) && is_retired("turn_ps"));
        assert!(is_retired("take_kib_in_64m_ps") && !is_retired("take_of_16_ps"));
    }

    #[test]
    fn of_some_rounds_the_least_counts_and_of_crowds_the_median() {
        let usual = Calibration::of(&CostParameters::default());
        let rounds = [5, 1, 3].map(|value| {
            let mut round = usual;
            usual.lines().for_each(|(name, ..)| assert!(round.set(&name, value)));
            round
        });
        let Calibration { call_ps, messages_ps, turns_ps, crowd_takes_ps, copies_kib_ps, .. } =
            Calibration::typical(&rounds).unwrap();
        assert_eq!((call_ps, messages_ps), (1, [1; MESSAGE_BYTES.len()]));
        assert_eq!((turns_ps, crowd_takes_ps), ([3; CROWDS.len()], [3; CROWDS.len()]));
        assert_eq!(copies_kib_ps, [3; ROTATION_BYTES.len()]);
        assert_eq!(Calibration::typical(&[]), None);
    }
}
