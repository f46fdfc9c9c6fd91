//! The cure where a computer makes no hosts.

use std::fs;

use rustix::process::geteuid;

/// A setting of the kernel, its value that forbids user namespaces, and the one that allows them.
const SETTINGS: [(&str, &str, &str); 3] = [
    ("user.max_user_namespaces", "0", "15000"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
];
/// The words of the kernel when it lacks a kind of interface.
const NO_INTERFACE: [&str; 2] = ["Operation not supported", "Unknown device type"];

/// Adds to what was said what helps.
pub(super) fn with(said: &str) -> String {
    let said = said.trim_end_matches('.');
    format!(
        "{said}. {} docs/hosts-on-a-laptop.md says what hosts need.",
        find(said, geteuid().is_root(), setting)
    )
}

fn find(said: &str, is_root: bool, setting: impl Fn(&str) -> Option<String>) -> String {
    if NO_INTERFACE.iter().any(|words| said.contains(words)) {
        return "The kernel lacks interfaces of these kinds; as root: modprobe -a veth bridge."
            .to_owned();
    }
    let mut settings = SETTINGS.iter();
    let forbids =
        |&&(name, wrong, _): &&(&str, &str, &str)| setting(name).as_deref() == Some(wrong);
    match settings.find(forbids) {
        Some((name, _, right)) if !is_root => format!("As root: sysctl {name}={right}."),
        _ if is_root => "In a container: start it with --privileged.".to_owned(),
        _ => "Run it as root; in a container, start that with --privileged.".to_owned(),
    }
}

/// The value of a setting of the kernel.
fn setting(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_forbids_is_named_with_its_cure() {
        let apparmor = |name: &str| name.contains("apparmor").then(|| "1".to_owned());
        let said = "unshare: unshare failed: Operation not permitted";
        let wanted = "As root: sysctl kernel.apparmor_restrict_unprivileged_userns=0.";
        assert_eq!(find(said, false, apparmor), wanted);
        assert!(find(said, true, apparmor).contains("--privileged"));
        assert!(find(said, false, |_| None).starts_with("Run it as root"));
        let said = "ip link add site1 type bridge: Error: Unknown device type.";
        assert!(find(said, false, apparmor).contains("modprobe -a veth bridge"));
    }
}
