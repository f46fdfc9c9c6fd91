//! Long messages to another host, whose data go to the receiver or wait on a host until the receiver fetches them.
//!
//! Two sites of two hosts each meet in the second host. The process of the third host sends to that of the fourth, which it
//! reaches, and to that of the first, behind the gateway. Data that wait are on the sender's host, or on a third one: the
//! second host for a receiver that is reached, else the fourth.

use std::time::Instant;

use landeck::{Result, Store};

use crate::collective::{fill, holds};
use crate::words::{receive_word, send_word, tags};
use crate::{Bench, Measured, Trouble};

/// The hosts, in the order of their names.
const HOSTS: usize = 4;
/// The host of the sender.
const SENDER: usize = 2;
/// Data of more bytes may wait on a host; others travel with their header.
const WITH_HEADER_BYTES_MAX: usize = 64 << 10;

/// A way of a message and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    form: &'static str,
    /// The host of the receiver.
    to: usize,
    /// The host on which data wait; none if they go to the receiver.
    waits_on: Option<usize>,
}

/// Both receivers, with data that do not wait.
pub(crate) const TO_RECEIVER: [Delivery; 2] =
    [Delivery::of("direct", 3, None), Delivery::of("gateway", 0, None)];

/// All ways.
pub(crate) const ALL: [Delivery; 6] = [
    TO_RECEIVER[0],
    TO_RECEIVER[1],
    Delivery::of("direct, sender", 3, Some(SENDER)),
    Delivery::of("direct, third", 3, Some(1)),
    Delivery::of("gateway, sender", 0, Some(SENDER)),
    Delivery::of("gateway, third", 0, Some(3)),
];

impl Delivery {
    const fn of(form: &'static str, to: usize, waits_on: Option<usize>) -> Self {
        Self { form, to, waits_on }
    }
}

/// These ways in turns, batch by batch.
pub(crate) fn measure(bench: &Bench, deliveries: &[Delivery]) -> Measured {
    let lab = Lab::of(bench)?;
    let mut data = vec![0; bench.settings.largest()];
    let sizes = || bench.settings.bytes.iter().copied();
    let points: Vec<(Delivery, usize)> = sizes()
        .flat_map(|bytes| deliveries.iter().map(move |&delivery| (delivery, bytes)))
        .filter(|(delivery, bytes)| delivery.waits_on.is_none() || *bytes > WITH_HEADER_BYTES_MAX)
        .collect();
    for &(delivery, bytes) in &points {
        lab.check(delivery, &mut data[..bytes])?;
    }
    let begun = Instant::now();
    for batch in 0..bench.settings.batches {
        if batch > 0 && !bench.goes_on(begun)? {
            break;
        }
        for place in 0..points.len() {
            let (delivery, bytes) = points[(place + batch) % points.len()];
            lab.batch(delivery, &mut data[..bytes], |_| true)?;
        }
    }
    // Nobody leaves a host on which data of others wait.
    Ok(bench.world.barrier()?)
}

/// The processes and hosts of the job.
struct Lab<'a> {
    bench: &'a Bench,
    names: Vec<String>,
    /// The rank of the process on each host.
    ranks: Vec<usize>,
}

impl<'a> Lab<'a> {
    fn of(bench: &'a Bench) -> Measured<Self> {
        bench.needs(bench.world.size() == HOSTS, "4 processes, one on each of 4 hosts")?;
        let hosts = bench.job.hosts();
        let own = hosts.iter().find(|host| host.is_own()).map_or("", |host| host.name());
        let mut names: Vec<String> = hosts.iter().map(|host| host.name().to_owned()).collect();
        names.sort();
        let own = names.iter().position(|name| name == own).unwrap_or(0);
        let mut hosts_of_ranks = [0u64; HOSTS];
        bench.world.all_gather(&[own as u64], &mut hosts_of_ranks)?;
        let rank_on = |host| hosts_of_ranks.iter().position(|&its| its == host);
        let ranks: Option<Vec<usize>> = (0..HOSTS as u64).map(rank_on).collect();
        let ranks = ranks.ok_or_else(|| {
            Trouble::Usage("each of 4 hosts needs a process: add --map-by node".to_owned())
        })?;
        Ok(Self { bench, names, ranks })
    }

    /// Messages whose bytes the receiver looks at.
    fn check(&self, delivery: Delivery, data: &mut [u8]) -> Measured {
        let (from, to) = (self.ranks[SENDER], self.ranks[delivery.to]);
        if self.bench.world.rank() == from {
            fill(data, from, to);
        } else {
            data.fill(0);
        }
        let is_right = self.batch_ns(delivery, data, |data| holds(data, from, to))?.1;
        if is_right { Ok(()) } else { Err(self.bench.wrong("another message than was sent")) }
    }

    /// Measures a batch, and prints the time of a message.
    fn batch(
        &self,
        delivery: Delivery,
        data: &mut [u8],
        is_right: impl Fn(&[u8]) -> bool,
    ) -> Measured {
        let (ns, _) = self.batch_ns(delivery, data, is_right)?;
        if let Some(ns) = ns {
            self.bench.print(delivery.form, data.len(), "ns", ns);
        }
        Ok(())
    }

    /// Returns the time of a message in the sender, from the begin of the first send until all have been received, and whether
    /// all were right. The receiver of data that wait is late: it begins when all are stored.
    fn batch_ns(
        &self,
        delivery: Delivery,
        data: &mut [u8],
        is_right: impl Fn(&[u8]) -> bool,
    ) -> Result<(Option<f64>, bool)> {
        let (world, count) = (&self.bench.world, self.bench.settings.iterations);
        let (from, to) = (self.ranks[SENDER], self.ranks[delivery.to]);
        world.barrier()?;
        if world.rank() == from {
            let store = match delivery.waits_on {
                None => Store::Receiver,
                Some(SENDER) => Store::Sender,
                Some(host) => self.bench.job.store_named(&self.names[host])?,
            };
            world.set_store(store)?;
            let start = Instant::now();
            (0..count).try_for_each(|_| world.send(data, to, tags::DATA))?;
            send_word(world, 0, to, tags::CONTROL)?;
            receive_word(world, to, tags::REPORT)?;
            return Ok((Some(start.elapsed().as_nanos() as f64 / count as f64), true));
        }
        let mut all_right = true;
        if world.rank() == to {
            if delivery.waits_on.is_some() {
                receive_word(world, from, tags::CONTROL)?;
            }
            for _ in 0..count {
                world.receive_into(data, from, tags::DATA)?;
                all_right &= is_right(data);
            }
            if delivery.waits_on.is_none() {
                receive_word(world, from, tags::CONTROL)?;
            }
            send_word(world, 0, from, tags::REPORT)?;
        }
        Ok((None, all_right))
    }
}
