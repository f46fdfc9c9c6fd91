//! DECK: library, header, `pkg-config` file, compilers, manual pages.

use std::path::Path;

use super::{COMPILER, Destination, Package, package_config};
use crate::{Problem, deck};

const PACKAGE: Package = Package {
    name: "DECK",
    description: "Threads, messages, mailboxes and groups of the processes of a job",
    library: "deck",
};

/// Puts everything in its place.
pub(super) fn install(root: &Path, built: &Path, destination: &Destination) -> Result<(), Problem> {
    let front = root.join("fronts/deck");
    destination.file(&built.join("libdeck.so"), "lib/libdeck.so.1", 0o755)?;
    destination.link("libdeck.so.1", "lib/libdeck.so")?;
    destination.file(&front.join("include/deck.h"), "include/deck.h", 0o644)?;
    destination.text(&package_config(&PACKAGE), "lib/pkgconfig/deck.pc")?;
    destination.file(&root.join(COMPILER), "bin/deckcc", 0o755)?;
    destination.link("deckcc", "bin/deckcxx")?;
    destination.file(&front.join("scripts/deckcc.1"), "share/man/man1/deckcc.1", 0o644)?;
    destination.link("deckcc.1", "share/man/man1/deckcxx.1")?;
    for page in deck::manual_pages(root)? {
        destination.text(&page.text, &format!("share/man/man{}/{}", page.section, page.name))?;
    }
    Ok(())
}
