//! Loans of iceoryx2: what Landeck's loans are measured beside.
//!
//! ```text
//! loans -n 2 loan [bytes=8,1024] [batches=20] [batch_ms=5] [limit_s=20]
//! ```
//!
//! Two processes, each bound to a processor of its own if there are two, pass memory to and fro: each
//! piece is loaned, marked at its ends, sent, looked at and given back. Half of the round trip is
//! printed as a line of bench/points.c. Who waits asks again and again, as Landeck does at first.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use rustix::thread::CpuSet;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What the command line asks for; the names and values are those of bench/points.c.
struct Settings {
    bytes: Vec<usize>,
    batches: usize,
    batch_ms: f64,
    limit_s: f64,
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["second", name, bytes, processor] => second(name, bytes.parse()?, processor.parse().ok()),
        ["-n", "2", "loan", ..] => first(&Settings::parse(&words[3..])?),
        _ => Err("usage: loans -n 2 loan [setting=value ...]".into()),
    }
}

impl Settings {
    fn parse(words: &[String]) -> Outcome<Settings> {
        let mut settings = Settings { bytes: vec![8], batches: 20, batch_ms: 5.0, limit_s: 20.0 };
        for word in words {
            match word.split_once('=').ok_or("settings are written NAME=VALUE")? {
                ("bytes", list) => {
                    settings.bytes = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                ("batches", value) => settings.batches = value.parse()?,
                ("batch_ms", value) => settings.batch_ms = value.parse()?,
                ("limit_s", value) => settings.limit_s = value.parse()?,
                (name, _) => return Err(format!("there is no setting '{name}'").into()),
            }
        }
        Ok(settings)
    }
}

/// Measures every size, each with a second process of its own.
fn first(settings: &Settings) -> Outcome<()> {
    // Before this one is bound: who is started by it has its processor.
    let processors = processors();
    bind(processors.first().copied());
    for &bytes in &settings.bytes {
        let name = format!("landeck-bench/{}/{bytes}", std::process::id());
        let way = Way::open(&name, bytes, ["there", "back"])?;
        let mut other = Other::start(&name, bytes, processors.get(1).copied())?;
        let stop = Instant::now() + Duration::from_secs_f64(settings.limit_s);
        let iterations = calibrate(settings, |iterations| other.lead(&way, iterations))?;
        for _ in 0..settings.batches {
            let time = other.lead(&way, iterations)?;
            let value = time.as_nanos() as f64 / iterations as f64 / 2.0;
            println!(
                "{{\"figure\":\"loan\",\"form\":\"\",\"n\":2,\"bytes\":{bytes},\"pending\":0,\
                 \"unit\":\"ns\",\"value\":{value}}}"
            );
            if Instant::now() > stop {
                break;
            }
        }
        other.end()?;
    }
    Ok(())
}

/// A batch must be long twice in a row, as in bench/measure.h.
fn calibrate(settings: &Settings, mut batch: impl FnMut(u64) -> Outcome<Duration>) -> Outcome<u64> {
    let stop = Instant::now() + Duration::from_secs_f64(settings.limit_s / 2.0);
    let (mut iterations, mut long_enough) = (1u64, 0);
    while long_enough < 2 && Instant::now() < stop {
        let elapsed_ms = batch(iterations)?.as_secs_f64() * 1e3;
        if elapsed_ms >= settings.batch_ms {
            long_enough += 1;
            continue;
        }
        let factor = (1.2 * settings.batch_ms / elapsed_ms.max(1e-9)).min(10.0);
        iterations = (iterations as f64 * factor) as u64 + 1;
        long_enough = 0;
    }
    Ok(iterations)
}

/// The second process, which answers as many loans as it reads a number for.
fn second(name: &str, bytes: usize, processor: Option<usize>) -> Outcome<()> {
    bind(processor);
    let way = Way::open(name, bytes, ["back", "there"])?;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        for _ in 0..line?.trim().parse::<u64>()? {
            let mark = way.take()?;
            way.give(mark)?;
        }
    }
    Ok(())
}

/// The second process, as the first one sees it.
struct Other {
    child: Child,
    input: ChildStdin,
}

impl Other {
    fn start(name: &str, bytes: usize, processor: Option<usize>) -> Outcome<Other> {
        let processor = processor.map_or("none".to_owned(), |number| number.to_string());
        let mut child = Command::new(std::env::current_exe()?)
            .args(["second", name, &bytes.to_string(), &processor])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no way to the second process")?;
        let output = child.stdout.take().ok_or("no way from the second process")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        if line.trim() == "ready" {
            Ok(Other { child, input })
        } else {
            Err("the second process could not open its services".into())
        }
    }

    fn lead(&mut self, way: &Way, iterations: u64) -> Outcome<Duration> {
        writeln!(self.input, "{iterations}")?;
        let start = Instant::now();
        for turn in 0..iterations {
            way.give(turn as u8)?;
            if way.take()? != turn as u8 {
                return Err("another loan came than the one that was sent".into());
            }
        }
        Ok(start.elapsed())
    }

    fn end(mut self) -> Outcome<()> {
        drop(self.input);
        match self.child.wait()?.success() {
            true => Ok(()),
            false => Err("the second process failed".into()),
        }
    }
}

/// A service in each direction.
struct Way {
    bytes: usize,
    publisher: Publisher<ipc::Service, [u8], ()>,
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    _node: Node<ipc::Service>,
}

impl Way {
    /// Opens the services `name/directions`: the first for what goes out.
    fn open(name: &str, bytes: usize, directions: [&str; 2]) -> Outcome<Way> {
        set_log_level(LogLevel::Error);
        let node = NodeBuilder::new().create::<ipc::Service>()?;
        let open = |direction: &str| -> Outcome<_> {
            let name = format!("{name}/{direction}");
            let service = node.service_builder(&name.as_str().try_into()?);
            let service = service.publish_subscribe::<[u8]>().max_publishers(1).max_subscribers(1);
            Ok(service.open_or_create()?)
        };
        let (outward, inward) = (open(directions[0])?, open(directions[1])?);
        let publisher = outward.publisher_builder().initial_max_slice_len(bytes).create()?;
        let subscriber = inward.subscriber_builder().create()?;
        Ok(Way { bytes, publisher, subscriber, _node: node })
    }

    fn give(&self, mark: u8) -> Outcome<()> {
        let mut loan = self.publisher.loan_slice_uninit(self.bytes)?;
        let payload = loan.payload_mut();
        payload[0].write(mark);
        payload[self.bytes - 1].write(mark);
        // SAFETY: bytes of shared memory, which whoever gave it has zeroed; any value is a byte.
        unsafe { loan.assume_init() }.send()?;
        Ok(())
    }

    fn take(&self) -> Outcome<u8> {
        loop {
            if let Some(sample) = self.subscriber.receive()? {
                return Ok(sample.payload()[self.bytes - 1]);
            }
            std::hint::spin_loop();
        }
    }
}

/// The processors that this process may use, if there are two.
fn processors() -> Vec<usize> {
    let Ok(usable) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&at| usable.is_set(at)).collect();
    if all.len() > 1 { all } else { Vec::new() }
}

/// Lets this process run there only.
fn bind(processor: Option<usize>) {
    let Some(processor) = processor else { return };
    let mut own = CpuSet::new();
    own.set(processor);
    // Without it the figure is only less steady.
    let _ = rustix::thread::sched_setaffinity(None, &own);
}
