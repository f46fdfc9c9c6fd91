//! `--host`, hostfiles, and entries that mean one host.

use super::{host, limited, text};
use landeck_hostfile::host_list::{add_up, from_file, from_words, is_this_host, merge, slots_of};
use landeck_hostfile::{HOSTS_MAX, HostRequest};
use proptest::prelude::*;

#[test]
fn words_name_hosts_and_slots() {
    for (words, wanted) in [
        ("a", "a:1"),
        ("a:2,b", "a:2,b:1"),
        ("a, b:3", "a:1,b:3"),
        ("a,b,a", "a:2,b:1"),
        ("n1.site.org:16,10.0.0.2", "n1.site.org:16,10.0.0.2:1"),
        ("[fe80::1]:2,[::1],[fe80::1%eth0]", "fe80::1:2,::1:1,fe80::1%eth0:1"),
        ("a:65535", "a:65535"),
    ] {
        assert_eq!(text(&from_words(words).unwrap()), wanted, "{words}");
    }
}

#[test]
fn wrong_words_are_refused_with_their_place() {
    for (words, wanted) in [
        ("a:2:", "entry 1: \"a:2:\" has several colons; write NAME:SLOTS"),
        ("b,a:2:3", "entry 2: \"a:2:3\" has several colons"),
        ("fe80::1", "entry 1: \"fe80::1\" has several colons"),
        ("a:", "entry 1: \"a:\": a number of slots is wanted, from 1 to 65,535"),
        ("a:0", "entry 1: \"a:0\": a number of slots is wanted"),
        ("a:65536", "entry 1: \"a:65536\": a number of slots is wanted"),
        ("a:+2", "entry 1: \"a:+2\": a number of slots is wanted"),
        ("a:x", "entry 1: \"a:x\": a number of slots is wanted"),
        ("", "entry 1: the name of a host is missing"),
        ("a,,b", "entry 2: the name of a host is missing"),
        (":2", "entry 1: the name of a host is missing"),
        ("-oProxyCommand=x", "entry 1: \"-oProxyCommand=x\" cannot be the name of a host"),
        ("-v:2", "entry 1: \"-v\" cannot be the name of a host"),
        ("a b", "entry 1: \"a b\" cannot be the name of a host"),
        ("user@", "entry 1: the name of a host is missing"),
        ("@a", "entry 1: \"@a\": the name of a user is wanted before the @, as in ada@node1"),
        ("-l@a", "entry 1: \"-l@a\": the name of a user is wanted before the @"),
        ("ada@bob@a", "entry 1: \"bob@a\" cannot be the name of a host"),
        ("ada@a,bob@a", "entry 2: host a is reached as several users; name one"),
        ("[fe80::1", "entry 1: \"[fe80::1\" cannot be the name of a host"),
        ("[fe80::1]2", "entry 1: \"[fe80::1]2\" cannot be the name of a host"),
        ("[a]", "entry 1: \"[a]\" cannot be the name of a host"),
        ("[::1]:", "entry 1: \"[::1]:\": a number of slots is wanted"),
        ("a:60000,a:6000", "entry 2: host a has more than 65,535 slots"),
    ] {
        let error = from_words(words).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{words}: {error}");
    }
}

#[test]
fn a_host_may_be_reached_as_a_user() {
    let targets = |list: Vec<HostRequest>| -> Vec<String> {
        list.iter().map(|host| format!("{}:{}", host.target(), host.slots)).collect()
    };
    let list = from_words("ada@a:2,b,a,bob@[fe80::1]:3").unwrap();
    assert_eq!(targets(list), ["ada@a:3", "b:1", "bob@fe80::1:3"]);
    let list = from_file("a\nada@a slots=2\n").unwrap();
    assert_eq!(targets(list.clone()), ["ada@a:3"]);
    assert_eq!(list[0].name, "a");
    let list = from_words("a,ada@b").unwrap();
    assert_eq!(targets(merge(&list, &[(0, 1)]).hosts), ["ada@a:2"]);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_name() {
    assert_eq!(text(&from_file("\u{feff}a:2\nb\n").unwrap()), "a:2,b:1");
    assert!(from_file("a\n\u{feff}b\n").is_err());
}

#[test]
fn names_and_lists_have_bounds() {
    assert!(from_words(&"a".repeat(255)).is_ok());
    let error = from_words(&"a".repeat(256)).unwrap_err().to_string();
    assert!(error.contains("aaa...\" cannot be the name") && error.len() < 300, "{error}");
    let many = |number: usize| (0..number).map(|at| format!("n{at}\n")).collect::<String>();
    assert_eq!(from_file(&many(HOSTS_MAX)).unwrap().len(), HOSTS_MAX);
    let error = from_file(&many(HOSTS_MAX + 1)).unwrap_err().to_string();
    assert_eq!(error, "line 65536: the list has more than 65,535 hosts; name fewer");
}

/// The example of the manual page of Open MPI's `mpirun`, section "Specifying Host Nodes".
#[test]
fn a_hostfile_of_open_mpi() {
    let file = "\
# This is an example hostfile.  Comments begin with #
#
# The following node is a single processor machine:
foo.example.com

# The following node is a dual-processor machine:
bar.example.com slots=2

# The following node is a quad-processor machine, and we absolutely
# want to disallow over-subscribing it:
yow.example.com slots=4 max-slots=4
";
    let wanted =
        [host("foo.example.com", 1), host("bar.example.com", 2), limited("yow.example.com", 4, 4)];
    assert_eq!(from_file(file).unwrap(), wanted);
}

/// The example of MPICH's page "Using the Hydra Process Manager".
#[test]
fn a_hostfile_of_hydra() {
    let file = "donner\nfoo:4 # four\nshakey\nterra:2\r\n";
    assert_eq!(text(&from_file(file).unwrap()), "donner:1,foo:4,shakey:1,terra:2");
}

#[test]
fn lines_of_one_host_add_up() {
    let added = |file: &str| text(&from_file(file).unwrap());
    assert_eq!(added("a\nb\na\n"), "a:2,b:1");
    assert_eq!(added("a slots=2 max_slots=3\na:2 max-slots=2"), "a:4/5");
    assert_eq!(added("a slots=2 max_slots=3\na:2"), "a:4/5");
    assert_eq!(added("a\na max_slots=3"), "a:2/4");
    assert_eq!(added("[fe80::1] slots=2\n[fe80::1]:1"), "fe80::1:3");
}

#[test]
fn wrong_lines_are_refused_with_their_number() {
    for (file, wanted) in [
        ("a\n\nb cpus=2", "line 3: \"cpus=2\" is not known here; a line is NAME, NAME:SLOTS, or"),
        ("a slots", "line 1: \"slots\" is not known here"),
        ("a slots = 2", "line 1: \"slots\" is not known here"),
        ("a slots=2 slots=3", "line 1: slots is given twice"),
        ("a:2 slots=3", "line 1: slots is given twice"),
        ("a max_slots=2 max-slots=2", "line 1: max_slots is given twice"),
        ("a slots=0", "line 1: \"slots=0\": a number of slots is wanted"),
        ("a slots=3 max_slots=2", "line 1: max_slots=2 is less than the 3 slots"),
        ("slots=3", "line 1: \"slots=3\" cannot be the name of a host"),
        ("# none\n", "the list names no host"),
    ] {
        let error = from_file(file).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{file}: {error}");
    }
}

#[test]
fn entries_that_mean_one_host_are_merged() {
    let list = [host("a", 2), host("b", 1), limited("c", 1, 2), host("d", 4), host("e", 1)];
    let merged = merge(&list, &[(3, 0), (2, 4), (9, 0)]);
    assert_eq!(text(&merged.hosts), "a:6,b:1,c:2/3");
    assert_eq!(merged.index_of, [0, 1, 2, 0, 2]);
    assert_eq!(merge(&list, &[]).hosts, list);
    assert_eq!(text(&merge(&list, &[(4, 3), (3, 2), (2, 1), (1, 0)]).hosts), "a:9/10");
}

#[test]
fn this_host_has_several_names() {
    for name in ["localhost", "127.0.0.1", "::1", "node1.site.org", "NODE1"] {
        assert!(is_this_host(name, "node1.site.org"), "{name}");
    }
    for name in ["node1.other.org", "node", "", "10.0.0.1"] {
        assert!(!is_this_host(name, "node1.site.org"), "{name}");
    }
    assert!(!is_this_host("", ""));
}

proptest! {
    /// The parser agrees with a map that is filled entry by entry.
    #[test]
    fn repeated_entries_add_up(entries in prop::collection::vec(("[a-d]", 1_u32..50), 1..20)) {
        let words: Vec<String> = entries.iter().map(|(name, slots)| format!("{name}:{slots}")).collect();
        let lines: Vec<String> =
            entries.iter().map(|(name, slots)| format!("{name}  slots={slots} # x\n")).collect();
        let mut wanted: Vec<HostRequest> = Vec::new();
        for (name, slots) in &entries {
            match wanted.iter_mut().find(|host| host.name == *name) {
                Some(host) => host.slots += slots,
                None => wanted.push(host(name, *slots)),
            }
        }
        prop_assert_eq!(&from_words(&words.join(",")).unwrap(), &wanted);
        prop_assert_eq!(&from_file(&lines.concat()).unwrap(), &wanted);
        let each = entries.iter().map(|(name, slots)| host(name, *slots));
        prop_assert_eq!(&add_up(each).unwrap(), &wanted);
    }

    /// Merging agrees with colours that are repainted for each pair.
    #[test]
    fn merging_agrees_with_colours(
        slots in prop::collection::vec(1_u32..9, 1..12),
        pairs in prop::collection::vec((0_usize..12, 0_usize..12), 0..12),
    ) {
        let list: Vec<HostRequest> =
            slots.iter().enumerate().map(|(at, slots)| host(&format!("n{at}"), *slots)).collect();
        let mut colours: Vec<usize> = (0..list.len()).collect();
        for &(one, other) in pairs.iter().filter(|(one, other)| *one.max(other) < list.len()) {
            let (old, new) = (colours[one].max(colours[other]), colours[one].min(colours[other]));
            colours.iter_mut().filter(|colour| **colour == old).for_each(|colour| *colour = new);
        }
        let merged = merge(&list, &pairs);
        prop_assert_eq!(slots_of(&merged.hosts), slots_of(&list));
        for (at, colour) in colours.iter().enumerate() {
            prop_assert_eq!(&merged.hosts[merged.index_of[at]].name, &list[*colour].name);
        }
    }

    /// No text makes the parsers fail otherwise than with a short error.
    #[test]
    fn any_text_is_answered(text in ".{0,200}") {
        for result in [from_words(&text), from_file(&text)] {
            if let Err(error) = result {
                prop_assert!(error.to_string().len() < 500);
            }
        }
    }
}
