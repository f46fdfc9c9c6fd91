//! The places of this computer that hosts see although they lie where each host has a folder of its own: the checkout,
//! what was built, the working directory, programs. A checkout below `/tmp` is as good as any other.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::wish::Wish;

/// The folders that each host has for itself: `host.bash` mounts them.
const OWN: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/dev/shm"];
/// The checkout.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The file by which cargo marks a build folder.
const MARK: &str = "CACHEDIR.TAG";
/// As many links as the kernel follows in a path.
const LINKS_MAX: usize = 40;

/// Places of this computer that are made visible again, and the links that lead to them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    own: Vec<PathBuf>,
    /// Folders and files, by their real paths.
    places: BTreeSet<PathBuf>,
    /// Links, and what they contain.
    links: BTreeMap<PathBuf, PathBuf>,
}

impl Kept {
    /// Finds what hosts of a wish have to see.
    pub(super) fn find(wish: &Wish) -> Kept {
        let own = OWN.map(|folder| fs::canonicalize(folder).unwrap_or_else(|_| folder.into()));
        let mut kept = Kept { own: own.into(), ..Kept::default() };
        let build = env::current_exe().ok().map(|file| build_folder(&file));
        let others = ["CARGO_TARGET_DIR"].map(env::var_os).into_iter().flatten().map(PathBuf::from);
        let folders = [Some(CHECKOUT.into()), build, env::current_dir().ok()].into_iter().flatten();
        for path in folders.chain(others) {
            kept.add(&path);
        }
        for variable in ["PATH", "LD_LIBRARY_PATH"] {
            let folders = env::var_os(variable).unwrap_or_default();
            for folder in env::split_paths(&folders).filter(|folder| folder.is_absolute()) {
                kept.add_program_folder(&folder);
            }
        }
        for path in wish.visible.iter().filter(|path| path.exists()) {
            match path.parent() {
                Some(folder) if path.is_file() => kept.add_file(path, folder),
                _ => kept.add(path),
            }
        }
        kept
    }

    /// The texts for the first process: each place, an empty one, then each link and what it contains, and an empty one.
    pub(super) fn texts(&self) -> impl Iterator<Item = &OsStr> {
        let has_room =
            |place: &&PathBuf| !place.ancestors().skip(1).any(|path| self.places.contains(path));
        let places = self.places.iter().filter(has_room).map(|place| place.as_os_str());
        let links =
            self.links.iter().flat_map(|(link, target)| [link.as_os_str(), target.as_os_str()]);
        let end = || std::iter::once(OsStr::new(""));
        places.chain(end()).chain(links).chain(end())
    }

    /// A program comes with its folder, where its libraries may be; one that lies in `/tmp` itself comes alone.
    fn add_file(&mut self, file: &Path, folder: &Path) {
        self.add(file);
        if let Ok(real) = fs::canonicalize(file)
            && let Some(folder) = real.parent()
        {
            self.add_program_folder(folder);
        }
        self.add_program_folder(folder);
    }

    /// An installation below a prefix has its libraries beside its folder of programs.
    fn add_program_folder(&mut self, folder: &Path) {
        self.add(folder);
        if folder.ends_with("bin")
            && let Some(prefix) = folder.parent()
        {
            self.add(prefix);
        }
    }

    /// Notes where a path leads, and each link on its way, if hosts would not see it.
    fn add(&mut self, path: &Path) {
        let Ok(path) = std::path::absolute(path) else { return };
        let mut done = PathBuf::from("/");
        let mut rest: Vec<OsString> = reversed(&path);
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match part.as_bytes() {
                b"." | b"/" => continue,
                b".." => {
                    done.pop();
                    continue;
                }
                _ => {}
            }
            let next = done.join(part);
            let Ok(target) = fs::read_link(&next) else {
                done = next;
                continue;
            };
            links += 1;
            if links > LINKS_MAX {
                return;
            }
            if target.is_absolute() {
                done = PathBuf::from("/");
            }
            rest.extend(reversed(&target));
            if self.hides(&next) {
                self.links.insert(next, target);
            }
        }
        if self.hides(&done) && done.exists() {
            self.places.insert(done);
        }
    }

    /// Whether a path lies below a folder that each host has for itself.
    fn hides(&self, path: &Path) -> bool {
        self.own.iter().any(|folder| path.starts_with(folder) && path != folder)
    }
}

/// The parts of a path, the last one first.
fn reversed(path: &Path) -> Vec<OsString> {
    path.components().rev().map(Component::as_os_str).map(OsStr::to_owned).collect()
}

/// The build folder that a program lies in, else the program's own folder.
fn build_folder(program: &Path) -> PathBuf {
    let folders = || program.ancestors().skip(1);
    let marked = folders().find(|folder| folder.join(MARK).is_file());
    marked.or_else(|| folders().next()).unwrap_or(program).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A folder in the system's temporary folder, which counts as one that each host has for itself.
    fn scene(name: &str) -> (PathBuf, Kept) {
        let folder = fs::canonicalize(env::temp_dir()).unwrap();
        let scene = folder.join(format!("landeck-kept-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&scene);
        fs::create_dir_all(&scene).unwrap();
        (scene.clone(), Kept { own: vec![scene], ..Kept::default() })
    }

    fn texts(kept: &Kept) -> Vec<String> {
        kept.texts().map(|text| text.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_place_is_kept_with_the_links_that_lead_to_it() {
        let (scene, mut kept) = scene("links");
        fs::create_dir_all(scene.join("real place/inner")).unwrap();
        symlink("real place", scene.join("near")).unwrap();
        symlink(scene.join("near"), scene.join("far")).unwrap();
        kept.add(&scene.join("far/inner/../inner"));
        kept.add(&scene.join("absent"));
        kept.add(&scene);
        kept.add(Path::new("/usr"));
        let at = |name: &str| scene.join(name).display().to_string();
        let links = [at("far"), at("near"), at("near"), "real place".to_owned()];
        let wanted = [&[at("real place/inner"), String::new()], &links[..], &[String::new()]];
        assert_eq!(texts(&kept), wanted.concat());
        // What lies in a place needs no place of its own.
        kept.add(&scene.join("real place"));
        assert_eq!(texts(&kept)[..2], [at("real place"), String::new()]);
        fs::remove_dir_all(&scene).unwrap();
    }

    #[test]
    fn a_program_comes_with_its_folder_and_its_prefix() {
        let (scene, mut kept) = scene("programs");
        for folder in ["prefix/bin", "other"] {
            fs::create_dir_all(scene.join(folder)).unwrap();
        }
        for file in ["alone", "prefix/bin/program", "other/program"] {
            fs::write(scene.join(file), "").unwrap();
            kept.add_file(&scene.join(file), scene.join(file).parent().unwrap());
        }
        let at = |name: &str| scene.join(name).display().to_string();
        assert_eq!(texts(&kept)[..3], [at("alone"), at("other"), at("prefix")]);
        fs::remove_dir_all(&scene).unwrap();
    }

    #[test]
    fn a_link_to_itself_ends() {
        let (scene, mut kept) = scene("circle");
        symlink("circle", scene.join("circle")).unwrap();
        kept.add(&scene.join("circle"));
        assert!(kept.places.is_empty());
        fs::remove_dir_all(&scene).unwrap();
    }
}
