//! Reads the tables of a file, each word by itself.

use core::net::IpAddr;

use ipnet::IpNet;
use toml::de::{DeTable, DeValue};

use super::draft::{At, Draft, HostDraft, InterfaceDraft, LineStarts, NetworkDraft, SwitchDraft};
use super::words::{self, Word, near, shown, unknown_word};
use super::{Errors, SMALLEST, duplicates};
use crate::quantity::Rate;

/// The tables of a file.
const TABLES: [&str; 3] = ["switch", "network", "host"];

/// The most ports of a switch.
const PORTS_MAX: u32 = 65_536;

/// The most bytes of a name.
const NAME_BYTES_MAX: usize = 255;

/// Reads a text. `None` if it is no TOML, or describes nothing.
pub(super) fn read(text: &str, errors: &mut Errors) -> Option<Draft> {
    let lines = LineStarts::of(text);
    let (table, faults) = DeTable::parse_recoverable(text);
    if !faults.is_empty() {
        duplicates::tell(text, &lines, &faults, errors);
        return None;
    }
    let mut reader = Reader { lines: &lines, errors, draft: Draft::default() };
    reader.file(table.get_ref());
    let draft = reader.draft;
    if draft.networks.is_empty() && draft.hosts.is_empty() && errors.is_empty() {
        let what = format!(
            "the file describes no host and no network; the smallest that helps is one line: {SMALLEST}"
        );
        errors.add(1, what);
    }
    errors.is_empty().then_some(draft)
}

/// The value of a word.
type Value<'t> = At<&'t DeValue<'t>>;

/// A word of a table with its value.
struct Entry<'t> {
    /// The line of the word.
    line: usize,
    word: &'t str,
    value: Value<'t>,
}

/// The words of a table that it may have.
struct Fields<'t> {
    /// The words with examples.
    words: &'static [Word],
    /// The table, as errors call it: `switch edge`.
    owner: String,
    entries: Vec<Entry<'t>>,
}

struct Reader<'a> {
    lines: &'a LineStarts,
    errors: &'a mut Errors,
    draft: Draft,
}

impl Reader<'_> {
    fn file(&mut self, table: &DeTable<'_>) {
        for entry in self.entries(table) {
            if !TABLES.contains(&entry.word) {
                self.errors.add(entry.line, unknown_table(entry.word));
                continue;
            }
            let kind = entry.word;
            let DeValue::Table(tables) = entry.value.value else {
                let what = format!("`{kind}` is {}: {}", type_of(entry.value.value), heading(kind));
                self.errors.add(entry.line, what);
                continue;
            };
            for entry in self.entries(tables) {
                self.table(kind, &entry);
            }
        }
    }

    fn table(&mut self, kind: &str, entry: &Entry<'_>) {
        let Some(name) = self.name(kind, entry.line, entry.word) else { return };
        let DeValue::Table(table) = entry.value.value else {
            let is = type_of(entry.value.value);
            let name = shown(entry.word);
            self.errors.add(entry.line, format!("{kind} {name} is {is}: {}", heading(kind)));
            return;
        };
        match kind {
            "switch" => self.switch(name, table),
            "network" => self.network(name, table),
            _ => self.host(name, table),
        }
    }

    fn switch(&mut self, name: At<String>, table: &DeTable<'_>) {
        let owner = format!("switch {}", name.value);
        let fields = self.fields(table, "[switch]", owner, words::SWITCH);
        let switch = SwitchDraft {
            ports: self.number(&fields, "ports"),
            rate: self.rate(&fields, "rate"),
            uplink: self.text(&fields, "uplink"),
            uplink_rate: self.rate(&fields, "uplink-rate"),
            name,
        };
        self.draft.switches.push(switch);
    }

    fn network(&mut self, name: At<String>, table: &DeTable<'_>) {
        let owner = format!("network {}", name.value);
        let fields = self.fields(table, "[network]", owner, words::NETWORK);
        let addresses = self.texts(&fields, "addresses");
        let site = self.text(&fields, "site");
        let network = NetworkDraft {
            addresses: addresses.iter().filter_map(|text| self.addresses(text)).collect(),
            site: site.and_then(|site| self.name("site", site.line, &site.value)),
            gateways: self.texts(&fields, "gateway"),
            name,
        };
        self.draft.networks.push(network);
    }

    fn host(&mut self, name: At<String>, table: &DeTable<'_>) {
        let entries = self.entries(table);
        let interfaces =
            entries.iter().filter_map(|entry| self.interface(&name.value, entry)).collect();
        self.draft.hosts.push(HostDraft { name, interfaces });
    }

    fn interface(&mut self, host: &str, entry: &Entry<'_>) -> Option<InterfaceDraft> {
        let name = self.name("interface", entry.line, entry.word)?;
        if let Some(what) = misplaced(entry.word) {
            self.errors.add(entry.line, what);
            return None;
        }
        let owner = format!("interface {} of host {host}", name.value);
        match entry.value.value {
            DeValue::String(network) => {
                let network = At { line: entry.value.line, value: network.clone().into_owned() };
                let (address, switch, port, rate) = (None, None, None, None);
                Some(InterfaceDraft { name, network: Some(network), address, switch, port, rate })
            }
            DeValue::Table(table) => {
                let fields = self.fields(table, "an interface", owner, words::INTERFACE);
                let address = self.text(&fields, "address");
                Some(InterfaceDraft {
                    network: self.text(&fields, "network"),
                    address: address.and_then(|text| self.address(&text)),
                    switch: self.text(&fields, "switch"),
                    port: self.number(&fields, "port"),
                    rate: self.rate(&fields, "rate"),
                    name,
                })
            }
            other => {
                let (name, is) = (&name.value, type_of(other));
                let cure = format!("name its network, as in {name} = \"a\"");
                self.errors.add(entry.line, format!("{owner} is {is}: {cure}"));
                None
            }
        }
    }

    /// The words of a table in the order of the file.
    fn entries<'t>(&self, table: &'t DeTable<'_>) -> Vec<Entry<'t>> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(word, _)| word.span().start);
        let line = |at: usize| self.lines.line(at);
        let entries = entries.into_iter().map(|(word, value)| Entry {
            line: line(word.span().start),
            word: word.get_ref(),
            value: At { line: line(value.span().start), value: value.get_ref() },
        });
        entries.collect()
    }

    /// The words of a table, which may have these only.
    fn fields<'t>(
        &mut self,
        table: &'t DeTable<'_>,
        kind: &str,
        owner: String,
        words: &'static [Word],
    ) -> Fields<'t> {
        let mut entries = self.entries(table);
        entries.retain(|entry| {
            let is_known = words.iter().any(|(name, _)| *name == entry.word);
            if !is_known {
                let mut what = unknown_word(entry.word, kind, words);
                if matches!(entry.value.value, DeValue::Table(_)) {
                    what += ". A name with a dot stands in quotes, as in [host.\"n1.lab\"]";
                }
                self.errors.add(entry.line, what);
            }
            is_known
        });
        Fields { words, owner, entries }
    }

    fn text(&mut self, fields: &Fields<'_>, word: &str) -> Option<At<String>> {
        let value = fields.get(word)?;
        let DeValue::String(text) = value.value else {
            self.errors.add(value.line, fields.wrong(word, value.value));
            return None;
        };
        Some(At { line: value.line, value: text.clone().into_owned() })
    }

    /// One text, or a list of texts.
    fn texts(&mut self, fields: &Fields<'_>, word: &str) -> Vec<At<String>> {
        let Some(DeValue::Array(list)) = fields.get(word).map(|value| value.value) else {
            return self.text(fields, word).into_iter().collect();
        };
        let mut texts = Vec::new();
        for value in list.iter() {
            let line = self.lines.line(value.span().start);
            match value.get_ref() {
                DeValue::String(text) => texts.push(At { line, value: text.clone().into_owned() }),
                other => {
                    let is = type_of(other);
                    let what = format!("`{word}` of {} has {is} in its list", fields.owner);
                    self.errors.add(line, format!("{what}: write texts only, in quotes"));
                }
            }
        }
        texts
    }

    fn number(&mut self, fields: &Fields<'_>, word: &str) -> Option<At<u32>> {
        let value = fields.get(word)?;
        let DeValue::Integer(number) = value.value else {
            self.errors.add(value.line, fields.wrong(word, value.value));
            return None;
        };
        let read = u32::from_str_radix(number.as_str(), number.radix()).ok();
        let Some(read) = read.filter(|read| (1..=PORTS_MAX).contains(read)) else {
            let what = format!("`{word}` of {} is {}", fields.owner, shown(number.as_str()));
            self.errors.add(value.line, format!("{what}: give 1 to 65,536; ports count from 1"));
            return None;
        };
        Some(At { line: value.line, value: read })
    }

    /// A rate as nanoseconds for 1 KiB.
    fn rate(&mut self, fields: &Fields<'_>, word: &str) -> Option<At<u32>> {
        let At { line, value } = self.text(fields, word)?;
        let Some(ns) = Rate::read(&value).and_then(Rate::ns_per_kib) else {
            let what = format!(
                "`{word}` of {} is \"{}\": write a number of at least 0.01 Mb/s and its unit, as in \"10 Gb/s\" \
                 (Mb/s, Gb/s, Tb/s, MB/s, GB/s, TB/s)",
                fields.owner,
                shown(&value)
            );
            self.errors.add(line, what);
            return None;
        };
        Some(At { line, value: ns })
    }

    /// The addresses of a network.
    fn addresses(&mut self, text: &At<String>) -> Option<At<IpNet>> {
        let At { line, value } = text;
        let said = shown(value);
        let what = match (value.parse::<IpNet>(), value.parse::<IpAddr>()) {
            (Ok(net), _) if net.trunc() == net => return Some(At { line: *line, value: net }),
            (Ok(net), _) => {
                format!("{said} is one address in a network: write {} for the network", net.trunc())
            }
            (_, Ok(address)) => {
                let most = if address.is_ipv4() { 32 } else { 128 };
                format!("{said} is one address: write {said}/{most}, or fewer bits for a network")
            }
            _ => format!("\"{said}\" are no addresses: write them as in \"10.77.1.0/24\""),
        };
        self.errors.add(*line, what);
        None
    }

    /// The address of an interface.
    fn address(&mut self, text: &At<String>) -> Option<At<IpAddr>> {
        let At { line, value } = text;
        let said = shown(value);
        let what = match (value.parse::<IpAddr>(), value.parse::<IpNet>()) {
            (Ok(address), _) => return Some(At { line: *line, value: address.to_canonical() }),
            (_, Ok(net)) => format!("{said} is no address: write {} without the bits", net.addr()),
            _ => format!("\"{said}\" is no address: write it as in \"10.77.1.2\""),
        };
        self.errors.add(*line, what);
        None
    }

    fn name(&mut self, kind: &str, line: usize, name: &str) -> Option<At<String>> {
        let is_plain = |letter: char| !letter.is_whitespace() && !letter.is_control();
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain) {
            let what = format!("\"{}\" is no name of a {kind}", shown(name));
            let cure =
                format!("give it 1 to {NAME_BYTES_MAX} letters, digits or signs without spaces");
            self.errors.add(line, format!("{what}: {cure}").replace("a interface", "an interface"));
            return None;
        }
        Some(At { line, value: name.to_owned() })
    }
}

impl<'t> Fields<'t> {
    fn get(&self, word: &str) -> Option<&Value<'t>> {
        self.entries.iter().find(|entry| entry.word == word).map(|entry| &entry.value)
    }

    /// The error that a value is of the wrong type.
    fn wrong(&self, word: &str, value: &DeValue<'_>) -> String {
        let example = self.words.iter().find(|(name, _)| *name == word).map_or("", |(_, it)| it);
        let is = type_of(value);
        format!("`{word}` of {} is {is}: write it as in `{word} = {example}`", self.owner)
    }
}

fn type_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn heading(kind: &str) -> String {
    format!("write a table with a name, as in [{kind}.a], in one pair of brackets")
}

fn unknown_table(word: &str) -> String {
    let said = shown(word);
    match near(word, TABLES.into_iter()) {
        Some(near) => format!("`{said}` is no table of this file; `{near}` is: {}", heading(near)),
        None => format!(
            "`{said}` is no table of this file; its tables are [switch.NAME], [network.NAME] and [host.NAME]"
        ),
    }
}

/// The error that a word of another table stands where a host has the names of its interfaces.
fn misplaced(word: &str) -> Option<String> {
    let is_among = |words: &[Word]| words.iter().any(|(name, _)| *name == word);
    if is_among(words::INTERFACE) {
        let cure = "a host's words are the names of its interfaces, as in eth0 = { address = \"10.77.1.2\" }";
        return Some(format!("`{word}` is a word of an interface: {cure}"));
    }
    let table = if is_among(words::NETWORK) {
        "network"
    } else if is_among(words::SWITCH) {
        "switch"
    } else {
        return None;
    };
    Some(format!("`{word}` is a word of [{table}], not of a host: write it there"))
}
