//! Drawn runs of ordered groups: hosts, quality of links, and what happens when.

use std::time::Duration;

use crate::machines::draw::Draw;

/// Something that happens to a host or between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Nothing passes from the first host to the second.
    Cut(usize, usize),
    /// It passes again.
    Mend(usize, usize),
    /// The clock and the processes of a host stand still; what arrives is lost.
    Pause(usize),
    Resume(usize),
    /// The daemon of a host stands still; what arrives waits.
    Freeze(usize),
    Thaw(usize),
    /// All of a host ends, and it is there again after so many milliseconds.
    Crash(usize, u64),
    /// The home closes, and this host is to be the next one.
    Move(usize),
    /// The last process of a host leaves the group, and another one comes after so many milliseconds.
    Leave(usize, u64),
    /// A party of a host dies, and another one comes.
    Die(usize),
    /// Another party comes to a host.
    Join(usize),
}

/// A step of the protocol at which a host may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Accept,
    View,
    Holder,
    Feed,
    Stored,
    Ask,
    Report,
    Fetch,
    Begin,
    Requests,
}

pub(crate) const STEPS: [Step; 10] = [
    Step::Accept,
    Step::View,
    Step::Holder,
    Step::Feed,
    Step::Stored,
    Step::Ask,
    Step::Report,
    Step::Fetch,
    Step::Begin,
    Step::Requests,
];

/// An end of the host that takes a step for the given time, counted over all hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) step: Step,
    pub(crate) after: Duration,
    pub(crate) count: u32,
    /// Whether the step's own output is lost with the host.
    pub(crate) is_before: bool,
    pub(crate) back_ms: u64,
}

/// The hosts and groups of a run, and everything that happens to them.
#[derive(Clone, Debug)]
pub(crate) struct OrderSetting {
    pub(crate) seed: u64,
    /// The hosts; that of the arbiter is the first.
    pub(crate) hosts: usize,
    pub(crate) groups: usize,
    /// The hosts that take part from the beginning; the others come within this time.
    pub(crate) late_hosts: (usize, Duration),
    pub(crate) timeout: Duration,
    pub(crate) loss_permille: u32,
    pub(crate) twice_permille: u32,
    pub(crate) delay_max: Duration,
    /// The mean time between two requests of a host.
    pub(crate) pause: Duration,
    /// Whether the arbiter's host holds the groups too.
    pub(crate) does_arbiter_hold: bool,
    /// The first host is there so long before the others, and is the first home.
    pub(crate) first_alone: Duration,
    /// A host that holds no other group than this.
    pub(crate) only: Option<(usize, u32)>,
    pub(crate) acts: Vec<(Duration, Act)>,
    pub(crate) stops: Vec<Stop>,
    /// When all faults end.
    pub(crate) length: Duration,
    pub(crate) rest: Duration,
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl OrderSetting {
    /// Hosts without faults.
    pub(crate) fn calm(seed: u64, hosts: usize) -> Self {
        Self {
            seed,
            hosts,
            groups: 1,
            late_hosts: (0, Duration::ZERO),
            timeout: ms(500),
            loss_permille: 0,
            twice_permille: 0,
            delay_max: ms(5),
            pause: ms(60),
            does_arbiter_hold: false,
            first_alone: ms(150),
            only: None,
            acts: Vec::new(),
            stops: Vec::new(),
            length: ms(4_000),
            rest: ms(4_000),
        }
    }

    /// A run of this seed: each has other faults.
    pub(crate) fn drawn(seed: u64) -> Self {
        let mut draw = Draw::new(seed ^ 0x6f72_6465);
        let hosts = 3 + draw.below(4) as usize;
        let mut setting = Self {
            groups: 1 + draw.below(2) as usize,
            late_hosts: (draw.below(3) as usize, ms(2_500)),
            loss_permille: draw.pick(&[0, 0, 20, 100]),
            twice_permille: draw.pick(&[0, 20, 200]),
            delay_max: ms(draw.pick(&[1, 5, 40])),
            pause: ms(draw.pick(&[25, 60, 150])),
            does_arbiter_hold: draw.permille(300),
            first_alone: ms(draw.pick(&[0, 150])),
            ..Self::calm(seed, hosts)
        };
        for _ in 0..draw.below(12) {
            setting.draw_fault(&mut draw);
        }
        for _ in 0..draw.below(3) {
            let stop = Stop {
                step: draw.pick(&STEPS),
                after: draw.time(Duration::ZERO, ms(2_000)),
                count: 1 + draw.below(draw.clone().pick(&[4, 20, 60])) as u32,
                is_before: draw.permille(500),
                back_ms: draw.pick(&[50, 300, 1_500]),
            };
            setting.stops.push(stop);
        }
        setting
    }

    fn draw_fault(&mut self, draw: &mut Draw) {
        let at = draw.time(ms(200), self.length);
        let until = at + draw.time(ms(20), ms(draw.clone().pick(&[300, 1_800])));
        let host = 1 + draw.below(self.hosts as u64 - 1) as usize;
        let other = draw.below(self.hosts as u64) as usize;
        let back_ms = draw.time(ms(20), ms(1_200)).as_millis() as u64;
        let mut pair = |begins, ends| self.acts.extend([(at, begins), (until, ends)]);
        match draw.below(9) {
            0 => pair(Act::Cut(host, other), Act::Mend(host, other)),
            1 => {
                pair(Act::Cut(host, other), Act::Mend(host, other));
                pair(Act::Cut(other, host), Act::Mend(other, host));
            }
            2 => (0..self.hosts).for_each(|other| {
                pair(Act::Cut(host, other), Act::Mend(host, other));
                pair(Act::Cut(other, host), Act::Mend(other, host));
            }),
            3 => pair(Act::Pause(host), Act::Resume(host)),
            4 => pair(Act::Freeze(host), Act::Thaw(host)),
            5 => self.acts.push((at, Act::Crash(host, back_ms))),
            6 => self.acts.push((at, Act::Move(host))),
            7 => self.acts.push((at, Act::Leave(host, back_ms))),
            _ => self.acts.push((at, Act::Die(host))),
        }
    }

    /// Cuts two hosts off from each other for a time.
    pub(crate) fn cut(mut self, one: usize, other: usize, from_ms: u64, to_ms: u64) -> Self {
        for (from, to) in [(one, other), (other, one)] {
            self.acts.push((ms(from_ms), Act::Cut(from, to)));
            self.acts.push((ms(to_ms), Act::Mend(from, to)));
        }
        self
    }

    /// A host ends with the next such step after a time.
    pub(crate) fn stop(mut self, after_ms: u64, step: Step, count: u32, is_before: bool) -> Self {
        self.stops.push(Stop { step, after: ms(after_ms), count, is_before, back_ms: 300 });
        self
    }

    /// Something happens.
    pub(crate) fn at(mut self, at_ms: u64, act: Act) -> Self {
        self.acts.push((ms(at_ms), act));
        self
    }
}
