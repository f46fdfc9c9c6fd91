//! The units of systemd that the documents show: systemd understands every word of them.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may

use landeck_testing::Watchdog;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// No test may take longer.
const TEST_MAX: Duration = Duration::from_secs(120);

/// The units of a page, with their names: the first line of each says where it lies.
fn units(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("```ini\n").skip(1).filter_map(|rest| rest.split("```").next());
    let named = blocks.map(|block| {
        let path = block.lines().next().and_then(|line| line.split([' ', ',']).nth(1)).unwrap();
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        (name.replace('@', "@lab"), block.to_owned())
    });
    named.collect()
}

#[test]
fn systemd_understands_the_units_of_the_documents() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/virtual-machine.md");
    let units = units(&fs::read_to_string(page).unwrap());
    let names: Vec<&str> = units.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["landeck-return@lab.service", "landeck-machine@lab.service"]);
    let folder = std::env::temp_dir().join(format!("landeck-units-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    for (name, unit) in units {
        // The programs need not be installed.
        let unit = ["landeckd", "landeck"].into_iter().fold(unit, |unit, program| {
            unit.replace(&format!("/usr/local/bin/{program} "), "/bin/true ")
        });
        let file = folder.join(name);
        fs::write(&file, unit).unwrap();
        let mut verify = Command::new("systemd-analyze");
        verify.args(["--user", "--man=no", "verify"]).arg(&file);
        let Ok(seen) = verify.env("XDG_RUNTIME_DIR", &folder).output() else {
            println!(
                "SKIPPED systemd_understands_the_units_of_the_documents: there is no systemd-analyze here"
            );
            break;
        };
        let said = String::from_utf8(seen.stderr).unwrap();
        assert!(seen.status.success() && said.is_empty(), "{}: {said}", file.display());
    }
    fs::remove_dir_all(folder).unwrap();
}
