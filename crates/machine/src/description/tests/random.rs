//! Reading and placing end well for any text.

use proptest::prelude::*;

use super::*;

/// Parts of descriptions, which other orders make into other errors.
const PARTS: &[&str] = &[
    "[switch.edge]\n",
    "[switch.core]\n",
    "[network.a]\n",
    "[network.b]\n",
    "[host.n1]\n",
    "[host.n2]\n",
    "[[host]]\n",
    "ports = 2\n",
    "rate = \"1 Gb/s\"\n",
    "uplink = \"core\"\n",
    "uplink = \"edge\"\n",
    "uplink-rate = \"0 Gb/s\"\n",
    "addresses = \"10.77.1.0/24\"\n",
    "addresses = [\"10.77.0.0/16\", \"fd00::/8\"]\n",
    "site = \"a\"\n",
    "gateway = [\"n1\", \"n2\"]\n",
    "gateway = \"n2\"\n",
    "eth0 = \"a\"\n",
    "eth1 = \"b\"\n",
    "eth0 = { network = \"b\" }\n",
    "eth1 = { address = \"10.77.1.1\", switch = \"edge\", port = 1 }\n",
    "eth2 = { address = \"fd00::1\", port = 3 }\n",
    "a.b = 1\n",
    "host.n1.eth0 = \"a\"\n",
    "\u{feff}",
    "\"",
    "'''",
    "[",
    "]",
    "=",
    "\r\n",
    "#",
    "\\u0000",
    "é",
];

/// Reads a text, and places hosts by what it describes.
fn read_and_place(content: &[u8]) {
    let description = match Description::parse(content) {
        Ok(description) => description,
        Err(errors) => {
            assert!(!errors.is_empty() && errors.len() <= DESCRIPTION_ERRORS_MAX);
            let lines = content.iter().filter(|byte| **byte == b'\n').count() + 1;
            for error in errors {
                assert!((1..=lines).contains(&error.line) && error.what.len() < 4_000, "{error}");
            }
            return;
        }
    };
    place_all(&description);
}

fn place_all(description: &Description) {
    let addresses = ["10.77.1.1", "10.77.0.1", "fd00::1", "127.0.0.1"].map(ip);
    let names = description.hosts.iter().map(|host| host.name.as_str()).chain(["", "n1"]);
    for name in names {
        for count in 0..=addresses.len() {
            let place = description.place(name, &addresses[..count]);
            for attachment in place.networks {
                assert!(usize::from(attachment.network) < description.networks.len());
                assert!((1..=1 + description.switches.len()).contains(&attachment.links.len()));
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(content in prop::collection::vec(any::<u8>(), 0..200)) {
        read_and_place(&content);
    }

    #[test]
    fn any_text_is_read(text in ".{0,200}") {
        read_and_place(text.as_bytes());
    }

    #[test]
    fn any_order_of_parts_is_read(parts in prop::collection::vec(prop::sample::select(PARTS), 0..24)) {
        read_and_place(parts.concat().as_bytes());
    }

    #[test]
    fn a_changed_description_is_read(
        at in 0..LAB.len(),
        less in 0_usize..40,
        more in prop::sample::select(PARTS),
    ) {
        let mut content = LAB.as_bytes().to_vec();
        let end = (at + less).min(content.len());
        content.splice(at..end, more.bytes());
        read_and_place(&content);
    }

    /// A description that no file has made may have numbers that stand for nothing.
    #[test]
    fn any_description_places_hosts(numbers in prop::collection::vec(0_usize..6, 12)) {
        let mut lab = description(LAB);
        for (switch, above) in lab.switches.iter_mut().zip(&numbers) {
            switch.uplink = Some(Uplink { switch: *above, ns_per_kib: 1 });
        }
        let interfaces = lab.hosts.iter_mut().flat_map(|host| &mut host.interfaces);
        for (interface, numbers) in interfaces.zip(numbers[2..].windows(2)) {
            (interface.network, interface.switch) = (numbers[0], Some(numbers[1]));
        }
        place_all(&lab);
    }
}
