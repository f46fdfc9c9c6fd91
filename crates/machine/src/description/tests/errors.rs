//! Each error of a description has its line, and a cure.

use super::*;

fn errors(text: &str) -> Vec<String> {
    errors_of(text.as_bytes())
}

fn errors_of(content: &[u8]) -> Vec<String> {
    let errors = Description::parse(content).expect_err("it has errors");
    assert!(errors.is_sorted() && errors.len() <= DESCRIPTION_ERRORS_MAX);
    errors.iter().map(ToString::to_string).collect()
}

/// The one error of a text.
fn error(text: &str) -> String {
    let errors = errors(text);
    assert_eq!(errors.len(), 1, "{errors:?} in {text}");
    errors[0].clone()
}

/// Changes the lab, and compares the beginning of the one error.
fn assert_errors(cases: &[(&str, &str, &str)]) {
    for (from, to, wanted) in cases {
        let error = error(&lab_with(from, to));
        assert!(error.starts_with(wanted), "{to}: {error}");
    }
}

#[test]
fn a_word_that_is_none_is_named_with_the_nearest_one() {
    assert_errors(&[
        (
            "gateway = [\"n2\", \"n3\"]",
            "gatewy = [\"n2\", \"n3\"]",
            "line 13: `gatewy` is no word of [network]; `gateway` is",
        ),
        (
            "ports = 24",
            "speed = 24",
            "line 2: `speed` is no word of [switch]; its words are `ports`, `rate`, ",
        ),
        (
            "uplink-rate",
            "uplink_rate",
            "line 4: `uplink_rate` is no word of [switch]; `uplink-rate` is",
        ),
        ("port = 3", "prot = 3", "line 22: `prot` is no word of an interface; `port` is"),
        (
            "[host.n4]",
            "[host.n4.lab.org]",
            "line 26: `org` is no word of an interface; its words are",
        ),
        (
            "[host.n4]",
            "[hosts.n4]",
            "line 26: `hosts` is no table of this file; `host` is: write a table",
        ),
        ("[host.n4]", "[disk.n4]", "line 26: `disk` is no table of this file; its tables are"),
        (
            "eth1 = \"middle\"",
            "port = \"middle\"",
            "line 25: `port` is a word of an interface: a host's words",
        ),
        (
            "eth1 = \"middle\"",
            "site = \"middle\"",
            "line 25: `site` is a word of [network], not of a host",
        ),
        (
            "eth1 = \"middle\"",
            "ports = \"a\"",
            "line 25: `ports` is a word of [switch], not of a host",
        ),
    ]);
    let dotted = lab_with("[host.n4]", "[host.n4.lab.org]");
    assert!(
        error(&dotted).ends_with("A name with a dot stands in quotes, as in [host.\"n1.lab\"]")
    );
}

#[test]
fn a_value_of_another_type_is_named_with_an_example() {
    assert_errors(&[
        (
            "ports = 24",
            "ports = \"24\"",
            "line 2: `ports` of switch edge is a text: write it as in `ports = 24`",
        ),
        ("ports = 24", "ports = 0", "line 2: `ports` of switch edge is 0: give 1 to 65,536"),
        ("ports = 24", "ports = -1", "line 2: `ports` of switch edge is -1: give 1 to 65,536"),
        (
            "ports = 24",
            "ports = 99999999999",
            "line 2: `ports` of switch edge is 99999999999: give 1",
        ),
        (
            "site = \"a\"",
            "site = 3",
            "line 10: `site` of network a is a number: write it as in `site = \"a\"`",
        ),
        ("site = \"a\"", "site = true", "line 10: `site` of network a is true or false: write"),
        (
            "site = \"a\"",
            "site = \"a b\"",
            "line 10: \"a b\" is no name of a site: give it 1 to 255 letters",
        ),
        (
            "[\"10.77.0.0/24\"]",
            "[3]",
            "line 12: `addresses` of network middle has a number in its list: write texts",
        ),
        (
            "\"middle\"\n",
            "1979-05-27\n",
            "line 25: interface eth1 of host n3 is a date: name its network, as in eth1 = \"a\"",
        ),
        (
            "[host.n1]",
            "[[host.n1]]",
            "line 18: host n1 is a list: write a table with a name, as in [host.a], in one pair",
        ),
        (
            "[host.n1]\n",
            "[host.\"n 1\"]\n",
            "line 18: \"n 1\" is no name of a host: give it 1 to 255",
        ),
        (
            "\"10.77.0.2\"",
            "\"10.77.0.2/24\"",
            "line 22: 10.77.0.2/24 is no address: write 10.77.0.2 without",
        ),
        ("\"10.77.0.2\"", "\"10.77.0\"", "line 22: \"10.77.0\" is no address: write it as in"),
    ]);
    assert_eq!(
        errors("switch = 3\n[[host]]\n"),
        [
            "line 1: `switch` is a number: write a table with a name, as in [switch.a], in one pair of brackets",
            "line 2: `host` is a list: write a table with a name, as in [host.a], in one pair of brackets",
        ]
    );
}

#[test]
fn a_rate_that_is_none_is_named_with_its_form() {
    for rate in ["2 Gbit", "0 Gb/s", "-1 Gb/s", "1", "", "0.001 Mb/s"] {
        let error = error(&lab_with("rate = \"10 Gb/s\"", &format!("rate = \"{rate}\"")));
        let wanted = format!(
            "line 6: `rate` of switch core is \"{rate}\": write a number of at least 0.01 Mb/s and its unit, as in \
             \"10 Gb/s\" (Mb/s, Gb/s, Tb/s, MB/s, GB/s, TB/s)"
        );
        assert_eq!(error, wanted);
    }
    assert_eq!(description(&lab_with("10 Gb/s", "0.01 Mb/s")).switches[1].ns_per_kib, 819_200_000);
    let lone = lab_with("uplink = \"core\"\n", "");
    assert!(
        error(&lone).starts_with("line 3: switch edge has an `uplink-rate` and no `uplink`: name")
    );
}

#[test]
fn a_description_that_stands_twice_is_named_with_both_lines() {
    let twice =
        |from: &str, more: &str| errors(&lab_with(from, &format!("{from}{more}"))).remove(0);
    let cases = [
        (
            twice("[host.n4]\n", "[host.n1]\n"),
            "line 27: host n1 is described twice, first in line 18: keep one",
        ),
        (
            twice("[host.n4]\n", "[switch.core]\n"),
            "line 27: switch core is described twice, first in line 5: keep one",
        ),
        (
            twice("ports = 24\n", "ports = 25\n"),
            "line 3: `ports` of switch edge stands twice, first in line 2: keep one",
        ),
        (
            twice("eth1 = \"middle\"\n", "eth1 = \"a\"\n"),
            "line 26: interface eth1 of host n3 is described twice, first in line 25: keep one",
        ),
        (twice("port = 3", ", port = 4"), "line 22: `port` stands twice in its table: keep one"),
    ];
    for (error, wanted) in cases {
        assert_eq!(error, wanted);
    }
}

#[test]
fn a_name_that_is_described_nowhere_is_named_with_a_similar_one() {
    assert_errors(&[
        (
            "uplink = \"core\"",
            "uplink = \"cor\"",
            "line 3: switch cor is described nowhere; switch core is",
        ),
        (
            "switch = \"core\"",
            "switch = \"x\"",
            "line 22: switch x is described nowhere; write a table [switch.x]",
        ),
        (
            "eth1 = \"middle\"",
            "eth1 = \"midle\"",
            "line 25: network midle is described nowhere; network middle is",
        ),
        (
            "[\"n2\", \"n3\"]",
            "[\"n2\", \"n7.lab\"]",
            "line 13: host n7.lab is described nowhere; write a table [host.\"n7.lab\"]",
        ),
    ]);
    let many = errors(&lab_with("[\"n2\", \"n3\"]", "[\"ada\",\n\"bob\"]"));
    assert!(
        many[0].starts_with("line 13: host ada is") && many[1].starts_with("line 14: host bob is")
    );
}

#[test]
fn addresses_that_do_not_fit_are_named() {
    assert_errors(&[
        (
            "\"10.77.1.0/24\"",
            "\"10.77.1.0/33\"",
            "line 9: \"10.77.1.0/33\" are no addresses: write them as in",
        ),
        (
            "\"10.77.1.0/24\"",
            "\"10.77.1.7/24\"",
            "line 9: 10.77.1.7/24 is one address in a network: write 10.77.1.0/24 for",
        ),
        (
            "\"10.77.1.0/24\"",
            "\"10.77.1.7\"",
            "line 9: 10.77.1.7 is one address: write 10.77.1.7/32",
        ),
        (
            "\"10.77.1.0/24\"",
            "[\"10.77.1.0/24\", \"10.77.2.128/25\"]",
            "line 15: 10.77.2.0/24 of network b overlaps with 10.77.2.128/25 of network a (line 9): an address",
        ),
        (
            "{ network = \"b\", address = \"10.77.2.3\" }",
            "{ network = \"b\", address = \"10.77.1.3\" }",
            "line 24: address 10.77.1.3 of interface eth0 of host n3 lies in network a, not in b: write `network = \"a\"`",
        ),
        (
            "address = \"10.77.2.3\"",
            "address = \"10.78.2.3\"",
            "line 24: address 10.78.2.3 of interface eth0 of host n3 lies not in network b: correct it",
        ),
        (
            "address = \"10.77.0.2\"",
            "address = \"10.78.0.2\"",
            "line 22: address 10.78.0.2 of interface eth1 of host n2 lies in no network: write its `network`",
        ),
        (
            ", address = \"10.77.0.2\"",
            "",
            "line 22: interface eth1 of host n2 is in no network: write its `network`, or an `address`",
        ),
        (
            "eth1 = \"middle\"",
            "eth1 = { address = \"10.77.0.2\" }",
            "line 25: address 10.77.0.2 of interface eth1 of host n3 is that of interface eth1 of host n2 (line 22)",
        ),
        (
            "[network.a]",
            "[network.x]\n[network.a]",
            "line 8: no host can be in network x: write its `addresses`",
        ),
    ]);
    let unclear = "[network.a]\n[network.b]\n[host.n]\neth0 = \"a\"\neth1 = \"b\"\n";
    assert!(
        error(unclear)
            .starts_with("line 5: interfaces eth0 and eth1 of host n have no `address`, and")
    );
}

#[test]
fn ports_and_uplinks_that_cannot_be_are_named() {
    assert_errors(&[
        (
            "port = 2",
            "port = 1",
            "line 21: interface eth0 of host n2 is at port 1 of switch edge, and so is line 19: give",
        ),
        (
            "port = 2",
            "port = 25",
            "line 21: interface eth0 of host n2 is at port 25 of switch edge, which has 24: correct",
        ),
        (
            "ports = 24",
            "ports = 1",
            "line 21: interface eth0 of host n2 is at port 2 of switch edge, which has 1: correct",
        ),
        (
            "switch = \"core\", ",
            "",
            "line 22: interface eth1 of host n2 has a `port` and no `switch`: name its switch",
        ),
        (
            "[switch.core]\n",
            "[switch.core]\nuplink = \"core\"\n",
            "line 6: the uplink of switch core leads to itself",
        ),
        (
            "[switch.core]\n",
            "[switch.core]\nuplink = \"edge\"\n",
            "line 6: the uplinks of switches edge and core lead in a circle: take the `uplink` of the highest one out",
        ),
    ]);
    let few = lab_with("port = 2, ", "").replace("port = 1 ", "").replace("edge\", }", "edge\" }");
    let few = few.replace("ports = 24", "ports = 1");
    assert!(error(&few).starts_with(
        "line 21: interface eth0 of host n2 is one too many at switch edge, which has 1"
    ));
}

#[test]
fn gateways_join_two_networks() {
    assert_errors(&[
        (
            "eth1 = \"middle\"\n",
            "",
            "line 13: host n3 is a gateway of network middle, and no interface of it is in middle: describe",
        ),
        (
            "site = \"b\"",
            "gateway = \"n4\"",
            "line 16: host n4 is a gateway of network b, and is in no other network: describe that interface",
        ),
    ]);
    let unknown = "[network.a]\naddresses = \"10.0.0.0/8\"\ngateway = \"n2\"\n[host.n2]\n";
    assert!(place(&description(unknown), "n2", &[]).is_gateway);
}

#[test]
fn hosts_that_are_not_reached_are_named() {
    let alone = format!("{LAB}[network.c]\n[host.n5]\neth0 = \"c\"\n");
    assert_eq!(
        error(&alone),
        "line 29: host n5 is reached from nowhere: no gateway joins network c to the others; describe a host that is in \
         both, and name it as a `gateway`"
    );
    // A host whose networks are found when it joins may be the missing one.
    assert_eq!(description(&format!("{alone}[host.n6]\n")).hosts.len(), 6);
    // Pairs of networks join three hosts, though no network is common to all.
    let ring = "[network.a]\n[network.b]\n[network.c]\n\
                [host.n1]\neth0 = \"a\"\neth1 = { network = \"b\", address = \"1.1.1.1\" }\n\
                [host.n2]\neth0 = \"b\"\neth1 = { network = \"c\", address = \"1.1.1.2\" }\n\
                [host.n3]\neth0 = \"c\"\neth1 = { network = \"a\", address = \"1.1.1.3\" }\n";
    assert_eq!(description(ring).hosts.len(), 3);
}

#[test]
fn a_file_that_is_no_description_is_told_so() {
    let wanted = format!(
        "line 1: the file describes no host and no network; the smallest that helps is one line: {SMALLEST}"
    );
    for text in ["", "\n# nothing\n", "[switch.edge]\n"] {
        assert_eq!(error(text), wanted);
    }
    let long = format!("{LAB}{}", "#\n".repeat(DESCRIPTION_BYTES_MAX / 2));
    let line =
        1 + long.as_bytes()[..DESCRIPTION_BYTES_MAX].iter().filter(|it| **it == b'\n').count();
    assert!(
        error(&long)
            .starts_with(&format!("line {line}: the file is longer than 256 KiB: leave hosts out"))
    );
    let errors = errors_of(b"[network.a]\nsite = \"\xff\"\n");
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("line 2: this line is no UTF-8 text: save"), "{errors:?}");
}

#[test]
fn lines_that_are_no_toml_are_told_together() {
    let errors = errors(&lab_with("ports = 24", "ports 24").replace("site = \"b\"", "site b"));
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("line 2: ") && errors[1].starts_with("line 16: "), "{errors:?}");
    assert!(errors[0].ends_with("or a word and its value, such as `site = \"a\"`"), "{errors:?}");
}

#[test]
fn errors_are_in_the_order_of_lines_and_not_too_many() {
    let text = lab_with("ports = 24", "port = 24").replace("eth0 = \"b\"", "eth0 = 7");
    assert_eq!(errors(&text).len(), 2);
    let many: String = (0..100).map(|host| format!("[host.n{host}]\neth0 = \"x\"\n")).collect();
    let errors = errors(&many);
    assert_eq!(errors.len(), DESCRIPTION_ERRORS_MAX);
    assert!(errors[19].starts_with("line 40: network x is described nowhere"), "{}", errors[19]);
    let long = error(&format!("[network.a]\n{} = 3\n[host.n]\neth0 = \"a\"\n", "x".repeat(9_999)));
    assert!(long.len() < 300, "{long}");
}
