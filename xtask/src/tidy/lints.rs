//! Every package takes its lints from the one table at the root, and a lint that is let go says why.

use super::Fault;
use super::source::Source;
use super::tree::{Package, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let packages = tree.packages.iter().filter_map(check_package);
    packages.chain(tree.sources.iter().flat_map(check_source)).collect()
}

fn check_package(package: &Package) -> Option<Fault> {
    let mut lines = package.manifest.lines().skip_while(|line| line.trim() != "[lints]").skip(1);
    let inherited = lines
        .next()
        .is_some_and(|line| line.split_whitespace().collect::<String>() == "workspace=true");
    let manifest = format!("{}/Cargo.toml", package.room);
    (!inherited)
        .then(|| Fault::new(&manifest, 0, "does not inherit the lints: [lints] workspace = true"))
}

/// `#[allow(...)]` needs `reason = "..."`, or a comment on its line or the line above.
fn check_source(source: &Source) -> Vec<Fault> {
    let lines: Vec<&str> = source.lines().collect();
    let mut faults = Vec::new();
    for opening in ["#[allow(", "#![allow(", "#[expect(", "#![expect("] {
        for (at, _) in source.code.match_indices(opening) {
            let line = source.line_of(at);
            let end = source.code[at..].find(']').map_or(source.code.len(), |length| at + length);
            let above = line
                .checked_sub(2)
                .is_some_and(|above| lines[above].trim_start().starts_with("//"));
            let says_why =
                source.code[at..end].contains("reason") || lines[line - 1].contains("//") || above;
            if !says_why {
                faults.push(Fault::new(&source.path, line, "lets a lint go without saying why"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(manifest: &str) -> Option<Fault> {
        check_package(&Package {
            name: "landeck-wire".into(),
            room: "crates/wire".into(),
            manifest: manifest.into(),
            dependencies: Vec::new(),
        })
    }

    #[test]
    fn a_package_without_the_table_is_a_fault() {
        assert!(package("[package]\nname = \"a\"\n").is_some());
        assert!(package("[lints]\nrust = {}\n").is_some());
        assert!(package("[package]\n[lints]\nworkspace = true\n").is_none());
    }

    #[test]
    fn a_lint_let_go_without_a_reason_is_a_fault() {
        let faults = |text: &str| check_source(&Source::new("a.rs", text)).len();
        assert_eq!(faults("#[allow(dead_code)]\nfn f() {}"), 1);
        assert_eq!(faults("#[allow(dead_code)] // the C side calls it\nfn f() {}"), 0);
        assert_eq!(faults("#[allow(dead_code, reason = \"called from C\")]\nfn f() {}"), 0);
        assert_eq!(faults("// The C side calls it.\n#[expect(dead_code)]\nfn f() {}"), 0);
    }
}
