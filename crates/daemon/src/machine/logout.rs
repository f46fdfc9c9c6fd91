//! The end of a user's processes at logout: systemd-logind may kill daemons that have left their session's terminal.

use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

/// The folders with the configuration, those that count more behind.
const FOLDERS: [&str; 4] =
    ["/usr/lib/systemd", "/usr/local/lib/systemd", "/run/systemd", "/etc/systemd"];
/// The users who linger: their processes stay.
const LINGERERS: &str = "/var/lib/systemd/linger";

/// The warning about the end of the daemons of this user at logout, if the system is set so.
pub(crate) fn warning() -> Option<String> {
    // Without systemd the files mean nothing.
    let has_logind = Path::new("/run/systemd/seats").exists();
    let users = read_to_string("/etc/passwd").unwrap_or_default();
    let user = user_name(&users, own_uid()).or_else(|| std::env::var("USER").ok());
    let lingers = Path::new(LINGERERS).join(user.as_deref().unwrap_or("")).is_file();
    let ends = has_logind && !lingers && ends_at_logout(&configuration(&FOLDERS), user.as_deref());
    ends.then(|| {
        format!(
            "landeckd: this system ends all processes of a user at logout, and so this daemon \
             (KillUserProcesses=yes in logind.conf). Call once: loginctl enable-linger {}",
            user.unwrap_or_default()
        )
    })
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The texts of the configuration in the order in which they are read. Of `logind.conf`, and of additions with one name,
/// only the one in the last folder is read; additions follow in the order of their names.
fn configuration(folders: &[&str]) -> Vec<String> {
    let mut mains = folders.iter().map(|folder| Path::new(folder).join("logind.conf"));
    let mut paths: Vec<_> = mains.rfind(|path| path.is_file()).into_iter().collect();
    let mut additions = BTreeMap::new();
    for folder in folders {
        let Ok(entries) = read_dir(Path::new(folder).join("logind.conf.d")) else { continue };
        for entry in entries.flatten().filter(|entry| is_addition(&entry.path())) {
            additions.insert(entry.file_name(), entry.path());
        }
    }
    paths.extend(additions.into_values());
    paths.iter().filter_map(|path| read_to_string(path).ok()).collect()
}

fn is_addition(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "conf")
}

/// The name of a user in the text of `/etc/passwd`.
fn user_name(users: &str, uid: u32) -> Option<String> {
    let is_its = |line: &&str| line.split(':').nth(2) == Some(&uid.to_string());
    users.lines().find(is_its)?.split(':').next().map(str::to_owned)
}

/// Whether the processes of a user end at logout, by these texts of `logind.conf`: a later one counts more. A user without a
/// name is in no list.
fn ends_at_logout(texts: &[String], user: Option<&str>) -> bool {
    let (mut kills, mut only, mut excluded) = (false, Vec::new(), vec!["root".to_owned()]);
    let lines = texts.iter().flat_map(|text| text.lines());
    for (name, value) in lines.filter_map(|line| line.split_once('=')) {
        let users = || value.split_whitespace().map(str::to_owned).collect();
        match name.trim() {
            "KillUserProcesses" => {
                kills = matches!(
                    value.trim().to_ascii_lowercase().as_str(),
                    "yes" | "y" | "true" | "t" | "on" | "1"
                );
            }
            "KillOnlyUsers" => only = users(),
            "KillExcludeUsers" => excluded = users(),
            _ => {}
        }
    }
    let is_in = |list: &[String]| user.is_some_and(|user| list.iter().any(|name| name == user));
    kills && !is_in(&excluded) && (only.is_empty() || is_in(&only))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(texts: &[&str], user: &str) -> bool {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        ends_at_logout(&texts, Some(user))
    }

    #[test]
    fn the_last_word_about_processes_at_logout_counts() {
        const YES: &str = "# about logins\n[Login]\nKillUserProcesses = yes\n";
        assert!(!ends(&[], "ada"));
        assert!(!ends(&["[Login]\n#KillUserProcesses=yes\n"], "ada"), "a comment");
        assert!(ends(&[YES], "ada"));
        assert!(!ends(&[YES, "[Login]\nKillUserProcesses=no\n"], "ada"));
        assert!(ends(&["[Login]\nKillUserProcesses=no", YES, "[Login]\nNAutoVTs=6"], "ada"));
        assert!(!ends(&[YES], "root"), "root is excluded by default");
        assert!(ends(&[YES, "KillExcludeUsers=\n"], "root"));
        assert!(!ends(&[YES, "KillExcludeUsers=bob ada\n"], "ada"));
        assert!(!ends(&[YES, "KillOnlyUsers=bob\n"], "ada"));
        assert!(ends(&[YES, "KillOnlyUsers=bob ada\n"], "ada"));
    }

    #[test]
    fn a_file_of_a_later_folder_replaces_one_of_its_name() {
        let root = std::env::temp_dir().join(format!("landeck-logind-{}", std::process::id()));
        let folders = ["usr", "etc"].map(|name| root.join(name));
        let write = |at: usize, name: &str| {
            let path = folders[at].join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, format!("{at} {name}")).unwrap();
        };
        write(0, "logind.conf");
        write(0, "logind.conf.d/20-b.conf");
        write(0, "logind.conf.d/30-c.conf");
        write(1, "logind.conf.d/20-b.conf");
        write(1, "logind.conf.d/10-a.conf");
        write(1, "logind.conf.d/40-d.conf.old");
        let texts = configuration(&folders.each_ref().map(|path| path.to_str().unwrap()));
        std::fs::remove_dir_all(&root).unwrap();
        let expected = [
            "0 logind.conf",
            "1 logind.conf.d/10-a.conf",
            "1 logind.conf.d/20-b.conf",
            "0 logind.conf.d/30-c.conf",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_user_is_found_by_number() {
        let users = "root:x:0:0::/root:/bin/sh\nada:x:1000:1000:Ada,,,:/home/ada:/bin/sh\n";
        assert_eq!(user_name(users, 1000).as_deref(), Some("ada"));
        assert_eq!(user_name(users, 100), None);
    }
}
