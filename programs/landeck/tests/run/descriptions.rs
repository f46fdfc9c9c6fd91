//! `landeck vm check` and `landeck vm map`: descriptions of machines.

use super::*;

use std::fs;
use std::path::{Path, PathBuf};

/// A folder with a file `lab.toml`, until it is dropped.
struct Lab {
    folder: PathBuf,
}

impl Lab {
    fn new(test: &str, content: &[u8]) -> Self {
        let folder = std::env::temp_dir().join(format!("landeck-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("lab.toml"), content).unwrap();
        Self { folder }
    }

    fn check(&self) -> Ended {
        check(&self.folder, "lab.toml")
    }

    fn map(&self, arguments: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
        run_command(command.args(["vm", "map"]).args(arguments).current_dir(&self.folder))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn check(folder: &Path, file: &str) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
    run_command(command.args(["vm", "check", file]).current_dir(folder))
}

/// A file in the folder of the documents.
fn document(name: &str) -> String {
    fs::read_to_string(format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The description of the documents, and what they show that a command prints for it.
fn of_the_documents(command: &str) -> (String, String) {
    let page = document("virtual-machine.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (file, rest) = rest.split_once("```\n").unwrap();
    let (_, rest) = rest.split_once(&format!("$ {command}\n")).unwrap();
    (file.to_owned(), rest.split_once("```\n").unwrap().0.to_owned())
}

#[test]
fn the_description_of_the_documents_has_the_summary_that_they_show() {
    let (file, summary) = of_the_documents("landeck vm check lab.toml");
    let ended = Lab::new("documents", file.as_bytes()).check();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert_eq!(ended.out, summary);
}

#[test]
fn a_summary_says_what_is_open() {
    let text = "network.a = { addresses = \"10.0.0.0/8\", site = \"x\" }\nswitch.s = { uplink = \"t\" }\nswitch.t = {}\n";
    let ended = Lab::new("open", text.as_bytes()).check();
    assert_eq!(
        ended.out,
        "lab: 0 hosts, 1 site (x: no host yet), no gateways\n\
         Hosts that join are placed by their addresses.\n\
         switch s: no described host uses the uplink to t, 1 Gb/s\n\
         switch t: no hosts; ports of 1 Gb/s, no uplink\n"
    );
    let text = "[network.a]\nsite = \"x\"\n[network.b]\ngateway = \"n1\"\n[host.n1]\n[host.n2]\n[host.n3]\neth0 = \"b\"\n\
                [host.n4]\neth0 = \"a\"\n";
    let ended = Lab::new("joining", text.as_bytes()).check();
    assert_eq!(
        ended.out,
        "lab: 4 hosts, 1 site (x: n4; without a site: n3), gateway n1\n\
         n1 n2: their interfaces are found when they join\n"
    );
}

#[test]
fn each_error_of_a_description_is_printed_with_file_and_line() {
    let text = "[network.a]\ngatewy = \"n1\"\n[host.n1]\neth0 = 3\n";
    let ended = Lab::new("errors", text.as_bytes()).check();
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
    assert_eq!(
        ended.err,
        "lab.toml:2: `gatewy` is no word of [network]; `gateway` is\n\
         lab.toml:4: interface eth0 of host n1 is a number: name its network, as in eth0 = \"a\"\n"
    );
    let empty = Lab::new("empty", b"").check();
    assert_eq!(empty.code, Some(1));
    assert!(
        empty.err.starts_with("lab.toml:1: the file describes no host and no network"),
        "{}",
        empty.err
    );
    let long = Lab::new("long", &[b'#'; 300_000]).check();
    assert!(long.err.starts_with("lab.toml:1: the file is longer than 256 KiB"), "{}", long.err);
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_reason() {
    let lab = Lab::new("unreadable", b"");
    for (file, reason) in [("none.toml", "there is no such file"), (".", "Is a directory")] {
        let ended = check(&lab.folder, file);
        assert_eq!((ended.code, ended.out.as_str()), (Some(125), ""));
        let wanted = format!("landeck: {file} cannot be read: {reason}");
        assert!(ended.err.starts_with(&wanted), "{}", ended.err);
    }
}

#[test]
fn the_description_of_the_documents_has_the_maps_that_they_show() {
    let (file, text) = of_the_documents("landeck vm map lab.toml");
    let lab = Lab::new("maps", file.as_bytes());
    let printed = lab.map(&["lab.toml"]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    assert_eq!(printed.out, text);
    let drawn = lab.map(&["lab.toml", "--svg", "lab.svg"]);
    assert_eq!((drawn.code, drawn.err.as_str()), (Some(0), ""));
    assert_eq!(drawn.out, "lab.svg: 4 hosts, 2 sites, 3 networks, 2 gateways, 2 switches\n");
    let svg = fs::read_to_string(lab.folder.join("lab.svg")).unwrap();
    assert_eq!(
        svg,
        document("virtual-machine/map.svg"),
        "draw it anew: landeck vm map lab.toml --svg docs/virtual-machine/map.svg"
    );
}

#[test]
fn a_wrong_description_has_no_map() {
    let lab = Lab::new("wrong", b"[network.a]\ngatewy = \"n1\"\n");
    let ended = lab.map(&["lab.toml", "--svg", "lab.svg"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
    assert_eq!(ended.err, "lab.toml:2: `gatewy` is no word of [network]; `gateway` is\n");
    assert!(!lab.folder.join("lab.svg").exists());
    let none = lab.map(&["none.toml"]);
    assert_eq!(none.code, Some(125));
    assert!(none.err.starts_with("landeck: none.toml cannot be read: there is no such file"));
}

#[test]
fn a_picture_that_cannot_be_written_is_named_with_the_reason() {
    let lab = Lab::new("unwritable", b"network.a = { addresses = \"10.0.0.0/8\" }\n");
    let ended = lab.map(&["lab.toml", "--svg", "none/lab.svg"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(125), ""));
    assert_eq!(
        ended.err,
        "landeck: none/lab.svg cannot be written: No such file or directory (os error 2); choose another file for --svg\n"
    );
    let both = lab.map(&["lab.toml", "--machine", "lab"]);
    assert_eq!(both.code, Some(2), "{}", both.err);
}
