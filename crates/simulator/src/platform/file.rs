//! Parsing of platform files.

use landeck_collectives::{Calibration, CostParameters, Link, Links};
use landeck_machine::quantity::{Rate, Size, Span};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::count::Count;
use super::{Host, Level, Platform, SharedProcessors, SimulatedNetwork};

/// Errors of a platform file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlatformError {
    /// The text is not a platform file.
    #[error("platform {name}, line {line}: {what}")]
    Line {
        /// The platform.
        name: String,
        /// The line, counted from 1.
        line: usize,
        /// The error in that line, and its remedy.
        what: String,
    },
    /// There is no platform of this name.
    #[error(
        "there is no platform {name:?}{}; there are {}. Or give the path of a platform file, with a \
         slash or ending in .toml.",
        .near.map_or(String::new(), |near| format!(" (did you mean {near:?}?)")),
        .known.join(", ")
    )]
    Unknown {
        /// The unknown name.
        name: String,
        /// A similar name.
        near: Option<&'static str>,
        /// All names.
        known: Vec<&'static str>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    #[serde(default)]
    host: HostTable,
    network: Option<NetworkTable>,
    #[serde(default)]
    level: Vec<Spanned<LevelTable>>,
    #[serde(default)]
    link: Vec<Spanned<LinkTable>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table, [host]")]
struct HostTable {
    processors: Option<Spanned<Count>>,
    line: Option<Span>,
    message: Option<Span>,
    deposit: Option<Span>,
    switch: Option<Span>,
    call: Option<Span>,
    step: Option<Span>,
    one_copy: Option<Rate>,
    two_copy: Option<Rate>,
    local_copy: Option<Rate>,
    reduction: Option<Rate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, [network]")]
struct NetworkTable {
    hosts: Spanned<Count>,
    overhead: Span,
    latency: Span,
    gap: Span,
    rate: Rate,
    copy: Option<Rate>,
    eager: Option<Size>,
    part: Option<Size>,
    part_copy: Option<Rate>,
    shared_processors: Option<Spanned<Count>>,
    turn: Option<Span>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "tables, [[level]]")]
struct LevelTable {
    ports: Spanned<Count>,
    uplinks: Option<Spanned<Count>>,
    delay: Span,
    rate: Option<Rate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "tables, [[link]]")]
struct LinkTable {
    hosts: (i64, i64),
    latency: Span,
    rate: Rate,
}

/// The most hosts with links of their own: they are kept by pair.
const LINKED_MOST: i64 = 1_024;

/// The most hosts, processors and ports.
const MOST: i64 = 65_536;

/// Mandatory fields, and an example of each.
const NEEDED: [(&str, &str); 8] = [
    ("about", "\"64 hosts on one switch\""),
    ("hosts", "64"),
    ("overhead", "\"1 us\""),
    ("latency", "\"5 us\""),
    ("gap", "\"500 ns\""),
    ("rate", "\"10 Gb/s\""),
    ("ports", "16"),
    ("delay", "\"300 ns\""),
];

/// The end of messages about lines that are not TOML.
const SYNTAX: &str = ". A line says [host], [network], [[level]], or a name and its value, such as \
                      `hosts = 64` and `latency = \"5 us\"`, each name once.";

/// The cure for a missing or wrong field; empty if the message already says it.
fn cure(message: &str) -> String {
    let missing = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    let needed = NEEDED.iter().find(|(name, _)| Some(*name) == missing);
    match needed {
        Some(("about", value)) => {
            format!(": begin the file with a line such as `about = {value}`")
        }
        Some((name, value)) => format!(": write a line such as `{name} = {value}` below this one"),
        None => String::new(),
    }
}

/// The text of a file, to find the line of a fault.
struct Text<'a> {
    name: &'a str,
    text: &'a str,
}

pub(super) fn parse(name: &str, text: &str) -> Result<Platform, PlatformError> {
    let place = Text { name, text };
    let table = DeTable::parse(text).map_err(|error| {
        let what = format!("{}{SYNTAX}", error.message().trim_end());
        place.wrong(error.span().map_or(0, |span| span.start), what)
    })?;
    place.brackets(table.get_ref())?;
    let file = File::deserialize(Deserializer::from(table)).map_err(|error| {
        let message = error.message().trim_end();
        let what = format!("{message}{}", cure(message));
        place.wrong(error.span().map_or(0, |span| span.start), what)
    })?;
    let host = place.host(&file.host)?;
    let (levels, links) = (&file.level, &file.link);
    let network = match file.network {
        Some(table) => Some(place.network(&table, levels, links)?),
        None if !links.is_empty() => {
            let what = "links without a [network] join nothing: write a [network], or leave \
                        [[link]] out";
            return Err(place.wrong(links[0].span().start, what.into()));
        }
        None if levels.is_empty() => None,
        None => {
            let what = "switches without a [network] join nothing: write a [network], or leave \
                        [[level]] out";
            return Err(place.wrong(levels[0].span().start, what.into()));
        }
    };
    Ok(Platform { name: name.into(), about: file.about, host, network })
}

impl Text<'_> {
    fn wrong(&self, at: usize, what: String) -> PlatformError {
        let before = self.text.as_bytes().iter().take(at);
        let line = 1 + before.filter(|&&byte| byte == b'\n').count();
        PlatformError::Line { name: self.name.into(), line, what }
    }

    /// Only layers of switches and links may be arrays of tables.
    fn brackets(&self, table: &DeTable<'_>) -> Result<(), PlatformError> {
        for (name, value) in table {
            let (name, at) = (name.get_ref(), value.span().start);
            match (name.as_ref(), value.get_ref()) {
                ("host" | "network", DeValue::Array(_)) => {
                    return Err(self.wrong(
                        at,
                        format!("there is one [{name}]: write it once, in one bracket"),
                    ));
                }
                ("level", DeValue::Table(_)) => {
                    let what = "each layer of switches begins with [[level]], in two brackets";
                    return Err(self.wrong(at, what.into()));
                }
                ("link", DeValue::Table(_)) => {
                    let what = "each link begins with [[link]], in two brackets";
                    return Err(self.wrong(at, what.into()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A number that is at least 1.
    fn count(&self, what: &str, number: &Spanned<Count>) -> Result<u32, PlatformError> {
        match number.get_ref().0 {
            count @ 1..=MOST => Ok(count as u32),
            other => {
                let what = format!("{other} {what} cannot be; give 1 to 65536");
                Err(self.wrong(number.span().start, what))
            }
        }
    }

    fn host(&self, table: &HostTable) -> Result<Host, PlatformError> {
        let usual = CostParameters::default();
        let processors = match &table.processors {
            Some(number) => self.count("processors", number)?,
            None => usual.processors as u32,
        };
        let time = |given: Option<Span>, usual: u64| given.map_or(usual, |span| span.ps);
        let rate = |given: Option<Rate>, usual: u64| given.map_or(usual, |rate| rate.kib_ps);
        let figures = CostParameters {
            processors: processors.into(),
            line_ps: time(table.line, usual.line_ps),
            message_ps: time(table.message, usual.message_ps),
            deposit_ps: time(table.deposit, usual.deposit_ps),
            switch_ps: time(table.switch, usual.switch_ps),
            one_copy_kib_ps: rate(table.one_copy, usual.one_copy_kib_ps),
            two_copy_kib_ps: rate(table.two_copy, usual.two_copy_kib_ps),
            local_copy_kib_ps: rate(table.local_copy, usual.local_copy_kib_ps),
            reduction_kib_ps: rate(table.reduction, usual.reduction_kib_ps),
            ..usual
        };
        let (call_ps, step_ps) = (time(table.call, 0), time(table.step, 0));
        let details = Calibration::of(&figures).with_calls(call_ps, step_ps);
        Ok(Host { processors, figures, details })
    }

    fn network(
        &self,
        table: &NetworkTable,
        levels: &[Spanned<LevelTable>],
        links: &[Spanned<LinkTable>],
    ) -> Result<SimulatedNetwork, PlatformError> {
        let hosts = self.count("hosts", &table.hosts)?;
        let links = self.links(hosts, table, links)?;
        let levels: Vec<Level> = levels
            .iter()
            .enumerate()
            .map(|(number, level)| self.level(level, number + 1 == levels.len(), table.rate))
            .collect::<Result<_, _>>()?;
        let room: u64 = levels.iter().fold(1, |room, level| room * u64::from(level.ports));
        if !levels.is_empty() && room < u64::from(hosts) {
            let what = format!(
                "the switches have ports for {room} hosts, not for {hosts}: give them more ports, \
                 or add a [[level]] above them"
            );
            return Err(self.wrong(table.hosts.span().start, what));
        }
        let shared = match &table.shared_processors {
            Some(number) => Some(SharedProcessors {
                processors: self.count("processors", number)?,
                turn_ps: table.turn.map_or(CostParameters::default().switch_ps, |turn| turn.ps),
            }),
            None => None,
        };
        Ok(SimulatedNetwork {
            hosts,
            overhead_ps: table.overhead.ps,
            latency_ps: table.latency.ps,
            gap_ps: table.gap.ps,
            kib_ps: table.rate.kib_ps,
            copy_kib_ps: table.copy.map_or(0, |rate| rate.kib_ps),
            part_copy_kib_ps: table.part_copy.map(|rate| rate.kib_ps),
            eager_bytes: table.eager.map(|size| size.bytes),
            part_bytes: table.part.map(|size| size.bytes.max(1)),
            shared,
            levels,
            links,
        })
    }

    fn links(
        &self,
        hosts: u32,
        network: &NetworkTable,
        tables: &[Spanned<LinkTable>],
    ) -> Result<Links, PlatformError> {
        let mut links = Links::default();
        for table in tables {
            let LinkTable { hosts: (one, other), latency, rate } = table.get_ref();
            let is_there = |host: i64| (0..i64::from(hosts).min(LINKED_MOST)).contains(&host);
            if !is_there(*one) || !is_there(*other) || one == other {
                let what = format!(
                    "hosts {one} and {other} have no link; give two hosts of 0 to {}",
                    i64::from(hosts).min(LINKED_MOST) - 1
                );
                return Err(self.wrong(table.span().start, what));
            }
            let gap_ps = network.gap.ps;
            let link = Link { latency_ps: latency.ps, gap_ps, kib_ps: rate.kib_ps };
            links.set(*one as usize, *other as usize, link);
        }
        Ok(links)
    }

    fn level(
        &self,
        table: &Spanned<LevelTable>,
        is_top: bool,
        rate: Rate,
    ) -> Result<Level, PlatformError> {
        let level = table.get_ref();
        let ports = self.count("ports", &level.ports)?;
        let uplinks = match &level.uplinks {
            Some(number) => self.count("uplinks", number)?,
            None if is_top => 1,
            None => {
                let what = "there is a level above this one, so say how many `uplinks` lead there";
                return Err(self.wrong(table.span().start, what.into()));
            }
        };
        let kib_ps = level.rate.unwrap_or(rate).kib_ps;
        Ok(Level { ports, uplinks, delay_ps: level.delay.ps, kib_ps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "about = \"two\"\n[network]\nhosts = 8\noverhead = \"1 us\"\n\
        latency = \"2 us\"\ngap = \"0 s\"\nrate = \"8 Gb/s\"\n\
        [[level]]\nports = 4\nuplinks = 2\ndelay = \"1 us\"\n[[level]]\nports = 2\ndelay = \"1 ms\"\n";

    #[test]
    fn whatever_is_left_out_and_needed_is_said_with_an_example() {
        let mut needed = Vec::new();
        for line in GOOD.lines().filter(|line| line.contains(" = ")) {
            let (name, _) = line.split_once(" = ").unwrap();
            let Err(error) = Platform::parse("mine", &GOOD.replacen(&format!("{line}\n"), "", 1))
            else {
                continue;
            };
            let error = error.to_string();
            if name != "uplinks" {
                let what = format!("missing field `{name}`: ");
                assert!(error.contains(&what) && error.contains(&format!("`{name} = ")), "{error}");
                needed.push(name);
            }
        }
        let example = |name: &&str| NEEDED.iter().any(|(other, _)| other == name);
        assert!(needed.iter().all(example) && needed.len() == NEEDED.len() + 2, "{needed:?}");
    }

    #[test]
    fn a_file_is_read() {
        let platform = Platform::parse("mine", GOOD).unwrap();
        let network = platform.network.unwrap();
        assert_eq!((network.hosts, network.overhead_ps, network.kib_ps), (8, 1_000_000, 1_024_000));
        assert_eq!((network.levels[0].uplinks, network.levels[1].delay_ps), (2, 1_000_000_000));
        assert_eq!(platform.host.figures, CostParameters::default());
        let link = "[[link]]\nhosts = [5, 2]\nlatency = \"3 us\"\nrate = \"1 Gb/s\"\n";
        let network = Platform::parse("mine", &format!("{GOOD}{link}")).unwrap().network.unwrap();
        let link = Link { latency_ps: 3_000_000, gap_ps: 0, kib_ps: 8_192_000 };
        assert_eq!(network.links.between(2, 5), Some(link));
        assert_eq!((network.part_bytes, network.part_copy_kib_ps), (None, None));
        assert_eq!(network.shared, None);
        let more = "hosts = 8\neager = \"64 KiB\"\npart = \"16 KiB\"\npart_copy = \"1 GB/s\"\nshared_processors = 2\nturn = \"5 us\"";
        let text = GOOD.replacen("hosts = 8", more, 1);
        let network = Platform::parse("mine", &text).unwrap().network.unwrap();
        assert_eq!((network.eager_bytes, network.part_bytes), (Some(64 << 10), Some(16 << 10)));
        assert_eq!((network.copy_kib_ps, network.part_copy_kib_ps), (0, Some(1_024_000)));
        let shared = SharedProcessors { processors: 2, turn_ps: 5_000_000 };
        assert_eq!(network.shared, Some(shared));
    }

    #[test]
    fn a_fault_in_a_platform_file_is_named_with_its_line_and_a_cure() {
        let change = |from: &str, to: &str| {
            assert!(GOOD.contains(from));
            Platform::parse("mine", &GOOD.replacen(from, to, 1)).unwrap_err().to_string()
        };
        for (from, to, words) in [
            ("hosts = 8", "hosts = 0", "mine, line 3: 0 hosts cannot be; give 1 to 65536"),
            ("hosts = 8", "hosts = 9", "line 3: the switches have ports for 8 hosts, not for 9"),
            ("\"1 us\"", "\"1 hour\"", "line 4: invalid value: string \"1 hour\", expected a time"),
            ("rate", "speed", "line 7: unknown field `speed`, expected one of"),
            ("uplinks = 2\n", "", "line 8: there is a level above this one"),
            ("\"8 Gb/s\"", "8", "line 7: invalid type: integer `8`, expected a rate"),
            (
                "hosts = 8",
                "hosts = \"8\"",
                "line 3: invalid type: string \"8\", expected a whole number",
            ),
            ("hosts = 8\n", "", "line 2: missing field `hosts`: write a line such as `hosts = 64`"),
            (
                "hosts = 8",
                "hosts = = 8",
                "line 3: extra `=`, expected nothing. A line says [host], ",
            ),
            ("\"1 ms\"", "[1", "unclosed array, expected `]`. A line says [host], "),
            ("hosts = 8", "hosts = 8\nhosts = 8", "line 4: duplicate key. A line says"),
            ("[network]", "[[network]]", "line 2: there is one [network]: write it once"),
        ] {
            let error = change(from, to);
            assert!(error.contains(words), "{from} -> {to}: {error}");
        }
        let alone = "[level]\nports = 2\ndelay = \"0 s\"\n";
        let error = Platform::parse("mine", &format!("about = \"\"\n{alone}")).unwrap_err();
        assert!(error.to_string().contains("line 2: each layer of switches begins with [[level]]"));
        for (link, words) in [
            ("[link]\nhosts = [0, 1]", "line 15: each link begins with [[link]]"),
            (
                "[[link]]\nhosts = [0, 8]",
                "line 15: hosts 0 and 8 have no link; give two hosts of 0 to 7",
            ),
            ("[[link]]\nhosts = [3, 3]", "line 15: hosts 3 and 3 have no link"),
        ] {
            let text = format!("{GOOD}{link}\nlatency = \"1 us\"\nrate = \"1 Gb/s\"\n");
            let error = Platform::parse("mine", &text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let alone = "about = \"\"\n[[level]]\nports = 2\ndelay = \"0 s\"\n";
        let error = Platform::parse("mine", alone).unwrap_err().to_string();
        assert!(error.contains("line 2: switches without a [network]"), "{error}");
    }
}
