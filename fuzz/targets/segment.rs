//! A peer that writes what it likes, where it likes, into the segment, between the calls of a
//! process that reads its mailbox, its rings, the membership and the pages of others. Every call
//! must return: a message with data of any content, or an error.

#![no_main]

use std::fs::File;
use std::os::unix::fs::FileExt;

use arbitrary::Arbitrary;
use landeck_memory::mailbox_queue::{MailboxMemory, MailboxReceiver, MailboxSender};
use landeck_memory::ring::{RingMemory, RingReceiver, RingSender};
use landeck_memory::{Bytes, Segment, SegmentPlan};
use libfuzzer_sys::fuzz_target;

/// The slot that reads, and the slot whose process writes into everything.
const READER: u32 = 0;
const SCRIBBLER: u32 = 1;

#[derive(Arbitrary, Debug)]
enum Step {
    /// The scribbler overwrites a part of an area.
    Scribble {
        area: Area,
        offset: u16,
        bytes: Vec<u8>,
    },
    /// The scribbler posts or sends as it should.
    Post {
        head: u64,
        label: u64,
        length: u8,
    },
    Send {
        head: u64,
        label: u64,
        length: u16,
    },
    /// The reader looks, and perhaps takes what it sees.
    Retrieve {
        everywhere: bool,
        held: Option<u32>,
        consume: bool,
    },
    Receive {
        sequence: u16,
        length: u32,
        in_bulk: bool,
        consume: bool,
    },
    /// The reader sends back, by the scribbled credit.
    Answer {
        length: u16,
    },
    /// A process attaches anew, or reads the published state of others.
    Attach,
    Look {
        slot: u32,
    },
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Area {
    Header,
    Membership,
    Page,
    SharedPage,
    Mailbox,
    Ring,
    Credit,
    Bulk,
    Heap,
}

/// Everything that the steps work on.
struct Table {
    segment: Segment,
    file: File,
    mailbox: MailboxReceiver,
    post: MailboxSender,
    incoming: RingReceiver,
    sender: RingSender,
    answers: RingSender,
}

fuzz_target!(|steps: Vec<Step>| {
    let mut table = Table::new();
    for step in &steps {
        table.take(step);
    }
});

impl Table {
    fn new() -> Self {
        let mut plan = SegmentPlan::new(1, 2);
        plan.guests = 1;
        plan.heap_bytes_per_process = 1 << 16;
        let segment = Segment::create(&plan).expect("a segment is made");
        let file =
            segment.descriptor().expect("it is a file").try_clone_to_owned().expect("copied");
        let mailbox = || MailboxMemory::of(&segment, READER).expect("the reader has a mailbox");
        let ring = |slot| RingMemory::of(&segment, slot, 0).expect("the slot has a ring");
        Self {
            file: file.into(),
            mailbox: MailboxReceiver::new(mailbox()),
            post: MailboxSender::new(mailbox(), SCRIBBLER),
            incoming: RingReceiver::new(ring(SCRIBBLER)),
            sender: RingSender::new(ring(SCRIBBLER)),
            answers: RingSender::new(ring(READER)),
            segment,
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Scribble { area, offset, bytes } => self.scribble(*area, *offset, bytes),
            Step::Post { head, label, length } => {
                let _ =
                    self.post.post(*head, *label, Bytes::from(&[7u8; 255][..usize::from(*length)]));
            }
            Step::Send { head, label, length } => {
                send(&mut self.sender, *head, *label, *length);
            }
            Step::Answer { length } => {
                send(&mut self.answers, 1, 2, *length);
                let _ = self.answers.is_drained();
            }
            Step::Retrieve { everywhere, held, consume } => {
                self.retrieve(*everywhere, *held, *consume);
            }
            Step::Receive { sequence, length, in_bulk, consume } => {
                self.receive(*sequence, *length as usize, *in_bulk, *consume);
            }
            Step::Attach => {
                let file = self.file.try_clone().expect("copied");
                if let Ok(segment) = Segment::attach(file.into()) {
                    assert!(segment.plan().is_valid(), "an invalid plan was attached");
                }
            }
            Step::Look { slot } => {
                let slot = slot % self.segment.plan().slots();
                let _ = self.segment.slot_record(slot);
                let _ = self.segment.presence(slot);
                let _ = self.segment.wait_record(slot).operation.as_str();
                let _ = self.segment.counters(slot);
                let _ = (self.segment.job_state(), self.segment.membership_generation());
            }
        }
    }

    fn scribble(&self, area: Area, offset: u16, bytes: &[u8]) {
        let plan = self.segment.plan();
        let start = match area {
            Area::Header => 0,
            Area::Membership => plan.membership(),
            Area::Page => plan.own_page(SCRIBBLER),
            Area::SharedPage => plan.shared_page(READER),
            Area::Mailbox => plan.mailbox(READER),
            Area::Ring => plan.ring(SCRIBBLER, 0),
            Area::Credit => plan.credit(READER, 0),
            Area::Bulk => plan.bulk(SCRIBBLER, 0),
            Area::Heap => plan.heap(SCRIBBLER),
        };
        let at = start + u64::from(offset);
        let room = plan.total_bytes().saturating_sub(at).min(bytes.len() as u64) as usize;
        self.file.write_all_at(&bytes[..room], at).expect("the file may be written");
    }

    fn retrieve(&mut self, everywhere: bool, held: Option<u32>, consume: bool) {
        let is_dead = |source| source == SCRIBBLER;
        let post = self.mailbox.peek(everywhere, is_dead, |source, _| Some(source) == held);
        let Some(post) = post else { return };
        assert!(post.data.to_vec().len() <= 128, "a post is longer than its slot");
        let position = post.position();
        if consume {
            self.mailbox.consume(position);
        }
    }

    fn receive(&mut self, sequence: u16, length: usize, in_bulk: bool, consume: bool) {
        let found = self.incoming.peek(sequence, |_| (length, in_bulk));
        let Ok(Some(message)) = found else { return };
        assert_eq!(message.data.to_vec().len(), length);
        if consume {
            self.incoming.consume(if in_bulk { length } else { 0 });
        }
    }
}

fn send(sender: &mut RingSender, head: u64, label: u64, length: u16) {
    let data = vec![5; usize::from(length).min(sender.data_bytes_max())];
    let _ = if data.len() > 48 {
        sender.push_bulk(head, label, Bytes::from(&data[..]))
    } else {
        sender.push_inline(head, label, Bytes::from(&data[..]))
    };
}
