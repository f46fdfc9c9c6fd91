//! More about a host than choosing needs: what the simulator wants to know beside [`CostParameters`].
//!
//! `landeck tune` measures it with them. It is kept in the same file, and never reaches a segment.

use std::array;

use crate::cost_parameters::CostParameters;

/// Sizes of messages that are measured, in bytes: a word more than its line has room for, some
/// lines, a page, all that a ring takes at once, and some pieces.
pub const MESSAGE_BYTES: [u64; 8] = [64, 512, 1024, 2048, 4096, 16_384, 32_768, 65_536];

/// After so many bytes a processor fetches the lines of a copy before they are asked for.
pub const FIRST_BYTES: u64 = 2048;

/// The sizes among them that travel in cells, which go from hand to hand, while their sender has one.
pub const CELL_MESSAGE_BYTES: [u64; 4] = [4096, 16_384, 32_768, 65_536];

/// So many processes on each of two processors were measured, or on the only one.
pub const CROWDS: [u64; 4] = [2, 4, 8, 16];

/// So many bytes of its own each of a crowd touched while it was measured what it is to touch much.
pub const FAR_BYTES: u64 = 4 << 20;

/// Of each of two processors, or of the only one: so many bytes went through it again and again while copies were
/// measured. Those of a second cache, of a third one, and of memory are among them on every machine.
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

/// What a host can do, in detail. Times are in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// What a call of a collective operation over messages takes beside them.
    pub call_ps: u64,
    /// What a step of its plan takes that combines a few bytes, and one that copies them.
    pub step_ps: u64,
    /// See above.
    pub copy_step_ps: u64,
    /// What a call at the board takes beside what the short way takes; and a step there that copies a few bytes,
    pub board_call_ps: u64,
    /// see above,
    pub board_copy_ps: u64,
    /// and one that combines them.
    pub board_step_ps: u64,
    /// How long a message keeps its sender busy, where others follow it.
    pub send_ps: u64,
    /// Messages of [`MESSAGE_BYTES`] between two processes: half of a round trip.
    pub messages_ps: [u64; MESSAGE_BYTES.len()],
    /// Messages of [`CELL_MESSAGE_BYTES`] that all go one way, so that their sender has no cell for them.
    pub one_ways_ps: [u64; CELL_MESSAGE_BYTES.len()],
    /// From one process to the next of [`CROWDS`] on the same processor, where they wait at a board.
    pub turns_ps: [u64; CROWDS.len()],
    /// The same where they exchange messages, each with another one there.
    pub switches_ps: [u64; CROWDS.len()],
    /// What a call over messages takes of one of them that finds its message: less is in the caches.
    pub crowd_calls_ps: [u64; CROWDS.len()],
    /// What a call at the board takes of one of them that finds what it takes.
    pub crowd_takes_ps: [u64; CROWDS.len()],
    /// What it takes one of them to lay down what it brings.
    pub crowd_deposits_ps: [u64; CROWDS.len()],
    /// What each of many messages of a call takes of one of them: who sends it,
    pub crowd_sends_ps: [u64; CROWDS.len()],
    /// and who receives it, when it is there already.
    pub crowd_receives_ps: [u64; CROWDS.len()],
    /// One of many messages of a call that follows calls in which each has sent to all others: who sends it,
    pub crowd_sends_far_ps: [u64; CROWDS.len()],
    /// and who receives it.
    pub crowd_receives_far_ps: [u64; CROWDS.len()],
    /// By so much longer if it came before anybody looked for it.
    pub crowd_keeps_ps: [u64; CROWDS.len()],
    /// The same of calls that follow each other at once, with nothing else between: a call,
    pub crowd_calls_again_ps: [u64; CROWDS.len()],
    /// a message of its sender,
    pub crowd_sends_again_ps: [u64; CROWDS.len()],
    /// and of its receiver.
    pub crowd_receives_again_ps: [u64; CROWDS.len()],
    /// What each of many takes of a call at the board takes, of what stands beside its word.
    pub crowd_finds_ps: [u64; CROWDS.len()],
    /// By so much longer one of them is busy with a message that has no room in a ring, so that it passes through
    /// a block, beside its bytes: who sends it,
    pub crowd_lends_ps: [u64; CROWDS.len()],
    /// and who takes it.
    pub crowd_drains_ps: [u64; CROWDS.len()],
    /// By so much longer one of them takes to touch a page for the first time in its turn: what a processor knows of
    /// where pages are is gone when others have had it.
    pub crowd_pages_ps: [u64; CROWDS.len()],
    /// 1 KiB that one of them copies from what it has not touched since [`FAR_BYTES`] of its own, to where it just was.
    pub crowd_reads_kib_ps: [u64; CROWDS.len()],
    /// The same of one that nobody else has had meanwhile, while pages of [`ROTATION_BYTES`] go round.
    pub pages_ps: [u64; ROTATION_BYTES.len()],
    /// 1 KiB copied to where another processor has read before, while [`ROTATION_BYTES`] go round.
    pub deposits_kib_ps: [u64; ROTATION_BYTES.len()],
    /// 1 KiB copied from where another processor has put it.
    pub takes_kib_ps: [u64; ROTATION_BYTES.len()],
    /// 1 KiB copied on a processor that nobody disturbs.
    pub copies_kib_ps: [u64; ROTATION_BYTES.len()],
    /// 1 KiB copied from where nobody was while [`ROTATION_BYTES`] went round, to where something just was; and the
    /// other way.
    pub reads_kib_ps: [u64; ROTATION_BYTES.len()],
    /// See above.
    pub writes_kib_ps: [u64; ROTATION_BYTES.len()],
    /// 1 KiB copied to where this processor itself has read what another one had put there.
    pub handed_kib_ps: u64,
    /// 1 KiB combined with what another processor has put somewhere.
    pub fetched_reduction_kib_ps: u64,
    /// 1 KiB copied past the caches, on all processors at once.
    pub past_caches_kib_ps: u64,
}

/// The names of the details in a file, in the order of [`Calibration::words`], and what they are.
pub(crate) const NAMES: [(&str, &str); Calibration::WORDS] = [
    ("call_ps", "a call over messages, beside them"),
    ("step_ps", "a step that combines a few bytes"),
    ("copy_step_ps", "a step that copies them"),
    ("board_call_ps", "a call at the board, beside what lies there"),
    ("board_copy_ps", "a step there that copies a few bytes"),
    ("board_step_ps", "a step there that combines a few bytes"),
    ("send_ps", "a message of 8 bytes, of its sender's time"),
    ("message_64_ps", "a message of 64 bytes"),
    ("message_512_ps", "a message of 512 bytes"),
    ("message_1024_ps", "a message of 1,024 bytes"),
    ("message_2048_ps", "a message of 2,048 bytes"),
    ("message_4096_ps", "a message of 4,096 bytes"),
    ("message_16384_ps", "a message of 16,384 bytes"),
    ("message_32768_ps", "a message of 32,768 bytes"),
    ("message_65536_ps", "a message of 65,536 bytes"),
    ("one_way_4096_ps", "a message of 4,096 bytes, of many that go one way"),
    ("one_way_16384_ps", "the same of 16,384 bytes"),
    ("one_way_32768_ps", "the same of 32,768 bytes"),
    ("one_way_65536_ps", "the same of 65,536 bytes"),
    ("turn_of_2_ps", "to the next of two processes on a processor, at a board"),
    ("turn_of_4_ps", "the same of four"),
    ("turn_of_8_ps", "the same of eight"),
    ("turn_of_16_ps", "the same of sixteen"),
    ("switch_of_2_ps", "to the next of two processes on a processor that exchange messages"),
    ("switch_of_4_ps", "the same of four"),
    ("switch_of_8_ps", "the same of eight"),
    ("switch_of_16_ps", "the same of sixteen"),
    ("call_of_2_ps", "a call of one of two on a processor, which finds its message"),
    ("call_of_4_ps", "the same of four"),
    ("call_of_8_ps", "the same of eight"),
    ("call_of_16_ps", "the same of sixteen"),
    ("take_of_2_ps", "a call of one of two on a processor, which takes from the board"),
    ("take_of_4_ps", "the same of four"),
    ("take_of_8_ps", "the same of eight"),
    ("take_of_16_ps", "the same of sixteen"),
    ("deposit_of_2_ps", "a call of one of two on a processor, which lays down 8 bytes"),
    ("deposit_of_4_ps", "the same of four"),
    ("deposit_of_8_ps", "the same of eight"),
    ("deposit_of_16_ps", "the same of sixteen"),
    ("send_of_2_ps", "one of many messages of a call, of its sender's time, of two on a processor"),
    ("send_of_4_ps", "the same of four"),
    ("send_of_8_ps", "the same of eight"),
    ("send_of_16_ps", "the same of sixteen"),
    (
        "receive_of_2_ps",
        "one of many messages of a call, of its receiver's time, of two on a processor",
    ),
    ("receive_of_4_ps", "the same of four"),
    ("receive_of_8_ps", "the same of eight"),
    ("receive_of_16_ps", "the same of sixteen"),
    (
        "send_far_of_2_ps",
        "the same of its sender, where all have called the same for all since, of two on a processor",
    ),
    ("send_far_of_4_ps", "the same of four"),
    ("send_far_of_8_ps", "the same of eight"),
    ("send_far_of_16_ps", "the same of sixteen"),
    ("receive_far_of_2_ps", "the same of its receiver, of two on a processor"),
    ("receive_far_of_4_ps", "the same of four"),
    ("receive_far_of_8_ps", "the same of eight"),
    ("receive_far_of_16_ps", "the same of sixteen"),
    (
        "keep_of_2_ps",
        "one of many messages of a call, more if it came before it was looked for, of two on a processor",
    ),
    ("keep_of_4_ps", "the same of four"),
    ("keep_of_8_ps", "the same of eight"),
    ("keep_of_16_ps", "the same of sixteen"),
    (
        "call_again_of_2_ps",
        "a call that follows another, which finds its message, of two on a processor",
    ),
    ("call_again_of_4_ps", "the same of four"),
    ("call_again_of_8_ps", "the same of eight"),
    ("call_again_of_16_ps", "the same of sixteen"),
    (
        "send_again_of_2_ps",
        "one of many messages of such a call, of its sender's time, of two on a processor",
    ),
    ("send_again_of_4_ps", "the same of four"),
    ("send_again_of_8_ps", "the same of eight"),
    ("send_again_of_16_ps", "the same of sixteen"),
    ("receive_again_of_2_ps", "the same, of its receiver's time, of two on a processor"),
    ("receive_again_of_4_ps", "the same of four"),
    ("receive_again_of_8_ps", "the same of eight"),
    ("receive_again_of_16_ps", "the same of sixteen"),
    ("find_of_2_ps", "one of many takes of a call at the board, of two on a processor"),
    ("find_of_4_ps", "the same of four"),
    ("find_of_8_ps", "the same of eight"),
    ("find_of_16_ps", "the same of sixteen"),
    ("lend_of_2_ps", "a message through a block, more of its sender's time, of two on a processor"),
    ("lend_of_4_ps", "the same of four"),
    ("lend_of_8_ps", "the same of eight"),
    ("lend_of_16_ps", "the same of sixteen"),
    (
        "drain_of_2_ps",
        "a message through a block, more of its receiver's time, of two on a processor",
    ),
    ("drain_of_4_ps", "the same of four"),
    ("drain_of_8_ps", "the same of eight"),
    ("drain_of_16_ps", "the same of sixteen"),
    (
        "page_of_2_ps",
        "the first touch of a page in the turn of one of two on a processor, more than another touch",
    ),
    ("page_of_4_ps", "the same of four"),
    ("page_of_8_ps", "the same of eight"),
    ("page_of_16_ps", "the same of sixteen"),
    ("read_kib_of_2_ps", "1 KiB of 4 MiB that each of two on a processor reads"),
    ("read_kib_of_4_ps", "the same of four"),
    ("read_kib_of_8_ps", "the same of eight"),
    ("read_kib_of_16_ps", "the same of sixteen"),
    (
        "page_in_128k_ps",
        "the touch of a page, more than another touch, of pages of 128 KiB that go round",
    ),
    ("page_in_256k_ps", "the same of 256 KiB"),
    ("page_in_512k_ps", "the same of 512 KiB"),
    ("page_in_1m_ps", "the same of 1 MiB"),
    ("page_in_2m_ps", "the same of 2 MiB"),
    ("page_in_4m_ps", "the same of 4 MiB"),
    ("page_in_8m_ps", "the same of 8 MiB"),
    ("page_in_16m_ps", "the same of 16 MiB"),
    ("page_in_32m_ps", "the same of 32 MiB"),
    ("page_in_64m_ps", "the same of 64 MiB"),
    ("deposit_kib_in_128k_ps", "1 KiB to where others read, of 128 KiB that go round"),
    ("deposit_kib_in_256k_ps", "the same of 256 KiB"),
    ("deposit_kib_in_512k_ps", "the same of 512 KiB"),
    ("deposit_kib_in_1m_ps", "the same of 1 MiB"),
    ("deposit_kib_in_2m_ps", "the same of 2 MiB"),
    ("deposit_kib_in_4m_ps", "the same of 4 MiB"),
    ("deposit_kib_in_8m_ps", "the same of 8 MiB"),
    ("deposit_kib_in_16m_ps", "the same of 16 MiB"),
    ("deposit_kib_in_32m_ps", "the same of 32 MiB"),
    ("deposit_kib_in_64m_ps", "the same of 64 MiB"),
    ("take_kib_in_128k_ps", "1 KiB from where others write, of 128 KiB that go round"),
    ("take_kib_in_256k_ps", "the same of 256 KiB"),
    ("take_kib_in_512k_ps", "the same of 512 KiB"),
    ("take_kib_in_1m_ps", "the same of 1 MiB"),
    ("take_kib_in_2m_ps", "the same of 2 MiB"),
    ("take_kib_in_4m_ps", "the same of 4 MiB"),
    ("take_kib_in_8m_ps", "the same of 8 MiB"),
    ("take_kib_in_16m_ps", "the same of 16 MiB"),
    ("take_kib_in_32m_ps", "the same of 32 MiB"),
    ("take_kib_in_64m_ps", "the same of 64 MiB"),
    ("copy_kib_in_128k_ps", "1 KiB on a processor that nobody disturbs, of 128 KiB that go round"),
    ("copy_kib_in_256k_ps", "the same of 256 KiB"),
    ("copy_kib_in_512k_ps", "the same of 512 KiB"),
    ("copy_kib_in_1m_ps", "the same of 1 MiB"),
    ("copy_kib_in_2m_ps", "the same of 2 MiB"),
    ("copy_kib_in_4m_ps", "the same of 4 MiB"),
    ("copy_kib_in_8m_ps", "the same of 8 MiB"),
    ("copy_kib_in_16m_ps", "the same of 16 MiB"),
    ("copy_kib_in_32m_ps", "the same of 32 MiB"),
    ("copy_kib_in_64m_ps", "the same of 64 MiB"),
    (
        "read_kib_in_128k_ps",
        "1 KiB from where 128 KiB have gone round since, to where something just was",
    ),
    ("read_kib_in_256k_ps", "the same of 256 KiB"),
    ("read_kib_in_512k_ps", "the same of 512 KiB"),
    ("read_kib_in_1m_ps", "the same of 1 MiB"),
    ("read_kib_in_2m_ps", "the same of 2 MiB"),
    ("read_kib_in_4m_ps", "the same of 4 MiB"),
    ("read_kib_in_8m_ps", "the same of 8 MiB"),
    ("read_kib_in_16m_ps", "the same of 16 MiB"),
    ("read_kib_in_32m_ps", "the same of 32 MiB"),
    ("read_kib_in_64m_ps", "the same of 64 MiB"),
    (
        "write_kib_in_128k_ps",
        "1 KiB from where something just was, to where 128 KiB have gone round since",
    ),
    ("write_kib_in_256k_ps", "the same of 256 KiB"),
    ("write_kib_in_512k_ps", "the same of 512 KiB"),
    ("write_kib_in_1m_ps", "the same of 1 MiB"),
    ("write_kib_in_2m_ps", "the same of 2 MiB"),
    ("write_kib_in_4m_ps", "the same of 4 MiB"),
    ("write_kib_in_8m_ps", "the same of 8 MiB"),
    ("write_kib_in_16m_ps", "the same of 16 MiB"),
    ("write_kib_in_32m_ps", "the same of 32 MiB"),
    ("write_kib_in_64m_ps", "the same of 64 MiB"),
    ("handed_kib_ps", "1 KiB to where this processor has just read what another one had put there"),
    ("fetched_reduction_kib_ps", "1 KiB combined with what another processor has put somewhere"),
    ("past_caches_kib_ps", "1 KiB copied past the caches, on all processors at once"),
];

/// The words before those of crowds and of caches.
const FIRST_OF_CROWDS: usize = 7 + MESSAGE_BYTES.len() + CELL_MESSAGE_BYTES.len();

/// Names that earlier versions wrote: what they said is measured in another way now.
pub(crate) const RETIRED: [&str; 2] = ["turn_ps", "crowd_switch_ps"];

impl Calibration {
    /// How many words they are.
    pub(crate) const WORDS: usize =
        FIRST_OF_CROWDS + 18 * CROWDS.len() + 6 * ROTATION_BYTES.len() + 3;

    /// What is to be expected of a host with these figures, where nobody has measured it: a copy into
    /// shared memory and one out of it, both at once where data come in pieces; and of many on a processor
    /// each finds less in the caches. Nothing is too much for these where nobody has looked how much is.
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
            step_ps: 80_000,
            copy_step_ps: 80_000,
            board_call_ps: CALL_PS / 4,
            board_copy_ps: 0,
            board_step_ps: 80_000,
            send_ps: message_ps / 2,
            messages_ps: MESSAGE_BYTES.map(message),
            one_ways_ps: CELL_MESSAGE_BYTES.map(message),
            turns_ps,
            switches_ps: turns_ps.map(|turn_ps| turn_ps + message_ps),
            crowd_calls_ps: crowd(CALL_PS + message_ps / 2),
            crowd_takes_ps: crowd(CALL_PS / 4 + line_ps),
            crowd_deposits_ps: crowd(2 * deposit_ps),
            crowd_sends_ps: [message_ps / 2; CROWDS.len()],
            crowd_receives_ps: [message_ps.saturating_sub(line_ps) / 2; CROWDS.len()],
            crowd_sends_far_ps: [message_ps / 2; CROWDS.len()],
            crowd_receives_far_ps: [message_ps.saturating_sub(line_ps) / 2; CROWDS.len()],
            crowd_keeps_ps: [0; CROWDS.len()],
            crowd_calls_again_ps: crowd(CALL_PS + message_ps / 2),
            crowd_sends_again_ps: [message_ps / 2; CROWDS.len()],
            crowd_receives_again_ps: [message_ps.saturating_sub(line_ps) / 2; CROWDS.len()],
            crowd_finds_ps: [0; CROWDS.len()],
            crowd_lends_ps: [0; CROWDS.len()],
            crowd_drains_ps: [0; CROWDS.len()],
            crowd_pages_ps: [0; CROWDS.len()],
            crowd_reads_kib_ps: [figures.local_copy_kib_ps; CROWDS.len()],
            pages_ps: [0; ROTATION_BYTES.len()],
            deposits_kib_ps: [figures.local_copy_kib_ps; ROTATION_BYTES.len()],
            takes_kib_ps: [out_ps; ROTATION_BYTES.len()],
            copies_kib_ps: [figures.local_copy_kib_ps; ROTATION_BYTES.len()],
            reads_kib_ps: [figures.local_copy_kib_ps; ROTATION_BYTES.len()],
            writes_kib_ps: [figures.local_copy_kib_ps; ROTATION_BYTES.len()],
            handed_kib_ps: figures.local_copy_kib_ps,
            fetched_reduction_kib_ps: figures.reduction_kib_ps
                + out_ps.saturating_sub(figures.local_copy_kib_ps),
            past_caches_kib_ps: figures.local_copy_kib_ps,
        }
    }

    /// The same where a call over messages takes so long, and each step of it that copies or combines.
    pub const fn with_calls(self, call_ps: u64, step_ps: u64) -> Self {
        Self {
            call_ps,
            step_ps,
            copy_step_ps: step_ps,
            board_call_ps: call_ps / 4,
            board_copy_ps: step_ps,
            board_step_ps: step_ps,
            ..self
        }
    }

    /// Of one of so many on a processor, given what was measured of [`CROWDS`]: from one of them to the next
    /// in proportion. Of more than the most nothing is known; there it is as of those.
    pub fn of_crowd(measured_ps: &[u64; CROWDS.len()], sharing: u64) -> u64 {
        between(&CROWDS, measured_ps, sharing)
    }

    /// Where so many bytes go through a processor again and again, given what was measured of
    /// [`ROTATION_BYTES`]: in the same way.
    pub fn of_rotation(measured_ps: &[u64; ROTATION_BYTES.len()], bytes: u64) -> u64 {
        between(&ROTATION_BYTES, measured_ps, bytes)
    }

    /// As words.
    pub(crate) fn words(&self) -> [u64; Self::WORDS] {
        let crowds = [
            self.turns_ps,
            self.switches_ps,
            self.crowd_calls_ps,
            self.crowd_takes_ps,
            self.crowd_deposits_ps,
            self.crowd_sends_ps,
            self.crowd_receives_ps,
            self.crowd_sends_far_ps,
            self.crowd_receives_far_ps,
            self.crowd_keeps_ps,
            self.crowd_calls_again_ps,
            self.crowd_sends_again_ps,
            self.crowd_receives_again_ps,
            self.crowd_finds_ps,
            self.crowd_lends_ps,
            self.crowd_drains_ps,
            self.crowd_pages_ps,
            self.crowd_reads_kib_ps,
        ];
        let first = [
            self.call_ps,
            self.step_ps,
            self.copy_step_ps,
            self.board_call_ps,
            self.board_copy_ps,
            self.board_step_ps,
            self.send_ps,
        ];
        let caches = [
            self.pages_ps,
            self.deposits_kib_ps,
            self.takes_kib_ps,
            self.copies_kib_ps,
            self.reads_kib_ps,
            self.writes_kib_ps,
        ];
        let crowds = crowds.into_iter().flatten().chain(caches.into_iter().flatten());
        let last = [self.handed_kib_ps, self.fetched_reduction_kib_ps, self.past_caches_kib_ps];
        let mut all = first
            .into_iter()
            .chain(self.messages_ps)
            .chain(self.one_ways_ps)
            .chain(crowds)
            .chain(last);
        array::from_fn(|_| all.next().unwrap_or(0))
    }

    /// From words.
    pub(crate) fn from_words(words: [u64; Self::WORDS]) -> Self {
        let mut words = words.into_iter();
        let mut next = || words.next().unwrap_or(0);
        Self {
            call_ps: next(),
            step_ps: next(),
            copy_step_ps: next(),
            board_call_ps: next(),
            board_copy_ps: next(),
            board_step_ps: next(),
            send_ps: next(),
            messages_ps: array::from_fn(|_| next()),
            one_ways_ps: array::from_fn(|_| next()),
            turns_ps: array::from_fn(|_| next()),
            switches_ps: array::from_fn(|_| next()),
            crowd_calls_ps: array::from_fn(|_| next()),
            crowd_takes_ps: array::from_fn(|_| next()),
            crowd_deposits_ps: array::from_fn(|_| next()),
            crowd_sends_ps: array::from_fn(|_| next()),
            crowd_receives_ps: array::from_fn(|_| next()),
            crowd_sends_far_ps: array::from_fn(|_| next()),
            crowd_receives_far_ps: array::from_fn(|_| next()),
            crowd_keeps_ps: array::from_fn(|_| next()),
            crowd_calls_again_ps: array::from_fn(|_| next()),
            crowd_sends_again_ps: array::from_fn(|_| next()),
            crowd_receives_again_ps: array::from_fn(|_| next()),
            crowd_finds_ps: array::from_fn(|_| next()),
            crowd_lends_ps: array::from_fn(|_| next()),
            crowd_drains_ps: array::from_fn(|_| next()),
            crowd_pages_ps: array::from_fn(|_| next()),
            crowd_reads_kib_ps: array::from_fn(|_| next()),
            pages_ps: array::from_fn(|_| next()),
            deposits_kib_ps: array::from_fn(|_| next()),
            takes_kib_ps: array::from_fn(|_| next()),
            copies_kib_ps: array::from_fn(|_| next()),
            reads_kib_ps: array::from_fn(|_| next()),
            writes_kib_ps: array::from_fn(|_| next()),
            handed_kib_ps: next(),
            fetched_reduction_kib_ps: next(),
            past_caches_kib_ps: next(),
        }
    }

    /// What several rounds of a measurement say together: the least of each, since what disturbs makes it longer;
    /// but of crowds and caches the middle, since there it is another time in each round, by who stands behind whom
    /// and what each finds in the caches. None of no rounds.
    pub fn typical(rounds: &[Self]) -> Option<Self> {
        if rounds.is_empty() {
            return None;
        }
        let word = |number: usize| {
            let mut values: Vec<u64> = rounds.iter().map(|round| round.words()[number]).collect();
            values.sort_unstable();
            values[if number < FIRST_OF_CROWDS { 0 } else { values.len() / 2 }]
        };
        Some(Self::from_words(array::from_fn(word)))
    }

    /// Their names, what they are, and their values, in order.
    pub fn lines(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        NAMES.into_iter().zip(self.words()).map(|((name, about), value)| (name, about, value))
    }

    /// How long a message of more bytes than its line has room for takes, given the figures they
    /// were measured with: between two that were measured, in proportion.
    pub fn message_ps(&self, figures: &CostParameters, bytes: u64) -> u64 {
        of_length(&MESSAGE_BYTES, &self.messages_ps, figures, bytes)
    }

    /// The same of one that travels in no cell: because its sender has none, or none is as long.
    pub fn one_way_ps(&self, figures: &CostParameters, bytes: u64) -> u64 {
        let ([.., longest_bytes], [.., longest_ps]) = (CELL_MESSAGE_BYTES, self.one_ways_ps);
        if bytes > longest_bytes {
            // All of such a message goes as long ones do: there is nothing of it that takes longer.
            return figures.message_ps.saturating_add(long_ps(figures, bytes)).max(longest_ps);
        }
        of_length(&CELL_MESSAGE_BYTES, &self.one_ways_ps, figures, bytes)
    }
}

/// Between two lengths that were measured in proportion, and beyond them as a long message.
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

/// So many bytes of a long message.
fn long_ps(figures: &CostParameters, bytes: u64) -> u64 {
    let ps = u128::from(bytes) * u128::from(figures.two_copy_kib_ps) / 1024;
    u64::try_from(ps).unwrap_or(u64::MAX)
}

/// What stands at a place, given what was measured at some: between two of them in proportion, before the first
/// as there, and behind the last as there.
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
        let figures = CostParameters {
            local_copy_kib_ps: 7,
            one_copy_kib_ps: 9,
            ..CostParameters::default()
        };
        let Calibration { deposits_kib_ps, takes_kib_ps, .. } = Calibration::of(&figures);
        assert_eq!(
            (deposits_kib_ps, takes_kib_ps),
            ([7; 10], [9; 10]),
            "where nobody has measured"
        );
    }

    #[test]
    fn every_word_has_a_place_of_its_own() {
        let words = array::from_fn(|number| number as u64 + 1);
        assert_eq!(Calibration::from_words(words).words(), words);
    }

    #[test]
    fn of_some_rounds_the_least_counts_and_of_crowds_the_middle() {
        let rounds = [5, 1, 3].map(|value| Calibration::from_words([value; Calibration::WORDS]));
        let Calibration { call_ps, messages_ps, turns_ps, crowd_deposits_ps, takes_kib_ps, .. } =
            Calibration::typical(&rounds).unwrap();
        assert_eq!((call_ps, messages_ps), (1, [1; MESSAGE_BYTES.len()]));
        assert_eq!((turns_ps, crowd_deposits_ps), ([3; CROWDS.len()], [3; CROWDS.len()]));
        assert_eq!(takes_kib_ps, [3; ROTATION_BYTES.len()]);
        assert_eq!(Calibration::typical(&[]), None);
    }
}
