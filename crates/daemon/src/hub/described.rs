//! The description of the machine, by which the arbiter places hosts in networks and sites.

use landeck_machine::description::{Description, DescriptionError};

use super::*;

/// A description, and the text that it was read from. Without a text it describes nothing.
#[derive(Debug, Default)]
pub(super) struct Described {
    text: String,
    description: Description,
}

impl Described {
    /// Reads a text.
    ///
    /// # Errors
    /// Those of its lines.
    pub(super) fn read(text: String) -> Result<Self, Vec<DescriptionError>> {
        match text.is_empty() {
            true => Ok(Self::default()),
            false => Ok(Self { description: Description::parse(text.as_bytes())?, text }),
        }
    }

    /// The text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl Hub {
    /// Uses this description from now on: hosts that are there get their places by it.
    ///
    /// # Errors
    /// The errors of its lines, in one text.
    pub(crate) fn describe(&mut self, text: String) -> Result<(), String> {
        self.described = Described::read(text).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            lines.join("\n")
        })?;
        let entries: Vec<HostEntry> = self.members.hosts().cloned().collect();
        for HostEntry { host, incarnation, addresses, .. } in entries {
            let place = HostPlace::default(); // it is filled in
            let moved = WordContent::HostMoved { host, incarnation, addresses, place };
            let moved = self.placed(moved);
            let events = self.members.asked(host, incarnation, moved);
            self.follow(events);
        }
        Ok(())
    }

    /// The content of the description that is in use; empty if there is none.
    pub(crate) fn description(&self) -> &str {
        self.described.text()
    }

    /// The place of a host with this name and these addresses.
    pub(super) fn place_of(&self, name: &str, addresses: &[SocketAddr]) -> HostPlace {
        let addresses: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
        self.described.description.place(name, &addresses)
    }

    /// Whether a way leads from this host to one of this name with these addresses, over gateways that are there.
    pub(crate) fn has_way_to(&self, name: &str, addresses: &[IpAddr]) -> bool {
        self.trunks.has_way_to(self.described.description.place(name, addresses), self.now())
    }

    /// Fills the place of a host into a word about it; on the arbiter.
    pub(super) fn placed(&mut self, content: WordContent) -> WordContent {
        match content {
            WordContent::HostMoved { host, incarnation, addresses, .. }
                if self.members.is_arbiter() =>
            {
                let name = self.members.host(host).map_or("", |entry| &entry.name);
                let place = self.place_of(name, &addresses);
                if host == self.own() {
                    self.station.own.place = place.clone();
                }
                WordContent::HostMoved { host, incarnation, addresses, place }
            }
            other => other,
        }
    }
}
