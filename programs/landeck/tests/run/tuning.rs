//! The figures of a host: measured, kept, read by the launcher; and ways that are asked for.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::*;

/// A cache directory of its own, gone at the end.
struct Cache(PathBuf);

impl Cache {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("landeck-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("landeck")).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("landeck/figures")
    }

    /// Runs `landeck` with these arguments and this cache.
    fn landeck(&self, arguments: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
        command.args(arguments).env("XDG_CACHE_HOME", &self.0).env_remove("LANDECK_COLLECTIVES");
        run_command(&mut command)
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The figures of this host as they are kept when they are asked for whatever else runs, and what that said: measured once
/// for all tests, since it takes seconds of all processors.
fn measured() -> &'static (String, Ended) {
    static MEASURED: OnceLock<(String, Ended)> = OnceLock::new();
    MEASURED.get_or_init(|| {
        let cache = Cache::new("forced");
        let ended = cache.landeck(&["tune", "--force"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        (fs::read_to_string(cache.file()).unwrap(), ended)
    })
}

#[test]
fn a_host_is_measured_and_its_figures_are_shown() {
    let cache = Cache::new("measured");
    let usual = cache.landeck(&["tune", "--show"]);
    assert!(usual.out.starts_with("The usual figures; `landeck tune`"), "{usual:?}");
    let ended = cache.landeck(&["tune"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let is_free = ended.err.is_empty();
    assert!(is_free || ended.err.contains("These figures are not kept"), "{ended:?}");
    assert_eq!(cache.file().exists(), is_free);
    let (file, ended) = measured();
    assert!(ended.err.is_empty() || ended.err.contains("These figures are kept"), "{ended:?}");
    assert!(ended.out.contains("a process switch") || ended.out.contains("same processor"));
    for figure in ["machine", "switch_ps", "told_alltoall_from_kib"] {
        assert!(file.contains(&format!("\n{figure} = ")), "{figure}: {file}");
    }
    fs::write(cache.file(), file).unwrap();
    let shown = cache.landeck(&["tune", "--show", "-n", "5", "--collectives", "scan=flat"]);
    assert!(
        shown
            .out
            .starts_with(&format!("CostParameters of this host, from {}", cache.file().display()))
    );
    assert!(shown.out.contains("\n5 processes on "), "{}", shown.out);
    assert!(shown.out.contains("scan              any size             flat\n"), "{}", shown.out);
}

#[test]
fn blocks_are_read_where_they_lie_where_that_was_measured_to_be_faster() {
    let cache = Cache::new("blocks");
    let (kept, _) = measured();
    let with = |operation: &str, kib: &str| -> String {
        let name = format!("told_{operation}_from_kib");
        let line = kept.lines().find(|line| line.starts_with(&name)).unwrap();
        kept.replace(line, &format!("{name} = {kib}"))
    };
    // With one process there is a processor for each, wherever this runs.
    let told = |file: String, more: &[&str]| -> Vec<String> {
        fs::write(cache.file(), file).unwrap();
        let shown = cache.landeck(&[&["tune", "--show", "-n", "1"], more].concat()).out;
        let lines = shown.lines().filter(|line| line.ends_with("board (told)"));
        lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    assert!(told(with("alltoall", "64"), &[]).contains(&"alltoall".to_owned()));
    assert!(!told(with("alltoall", "1073741824"), &[]).contains(&"alltoall".to_owned()));
    assert!(told(with("reduce_scatter", "16"), &[]).contains(&"reduce-scatter".to_owned()));
    let asked = ["--collectives", "alltoall=board"];
    assert!(!told(with("alltoall", "64"), &asked).contains(&"alltoall".to_owned()));
}

#[test]
fn the_first_job_of_a_boot_probes_unless_something_is_known() {
    let cache = Cache::new("probed");
    let file = cache.0.join("landeck/one-copy");
    for words in [
        "run -n 1 true",
        "run -n 2 --dry-run true",
        "run -n 2 --one-copy never true",
        "run -n 2 --one-copy 64K true",
    ] {
        assert_eq!(cache.landeck(&words.split(' ').collect::<Vec<_>>()).code, Some(0), "{words}");
        assert!(!file.exists(), "{words}: nothing is left to be found out");
    }
    let shown = cache.landeck(&["tune", "--show"]).out;
    assert!(shown.contains("in one copy: never (nothing was measured"), "{shown}");
    let job = ["run", "-n", "2", "true"];
    let ended = cache.landeck(&job);
    assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{ended:?}");
    let kept = fs::read_to_string(&file).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let finding = kept.trim_end().rsplit_once(&format!("{} = ", boot.trim())).unwrap().1;
    let is_known = ["never", "from", "disturbed"].iter().any(|word| finding.starts_with(word));
    assert!(is_known && kept.lines().count() == 1, "{kept}");
    // Later jobs read it.
    let known = kept.replace(finding, "from 64");
    fs::write(&file, &known).unwrap();
    cache.landeck(&job);
    assert_eq!(fs::read_to_string(&file).unwrap(), known);
    let shown = cache.landeck(&["tune", "--show"]).out;
    assert!(shown.contains("in one copy: from 64 KiB on (the probe of this boot)"), "{shown}");
    // Another boot has its own, and a machine that is never free is not probed for ever.
    fs::write(&file, kept.replace(finding, "disturbed 3")).unwrap();
    cache.landeck(&job);
    assert!(fs::read_to_string(&file).unwrap().ends_with("= disturbed 3\n"));
    fs::write(&file, known.replace(boot.trim(), "another")).unwrap();
    cache.landeck(&job);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2);
}

#[test]
fn a_process_has_its_guardian_as_its_parent() {
    let ended = run(&["-n", "1", "sh", "-c", "[ $LANDECK_GUARDIAN = $PPID ] && echo its parent"]);
    assert_eq!((ended.code, ended.out.trim()), (Some(0), "its parent"), "{ended:?}");
}

#[test]
fn a_damaged_file_is_named_and_the_job_runs() {
    let cache = Cache::new("damaged");
    fs::write(cache.file(), "line_ps = 0\n").unwrap();
    let ended = cache.landeck(&["run", "-n", "2", "true"]);
    assert_eq!(ended.code, Some(0));
    let start = format!("landeck: {}: ", cache.file().display());
    assert!(ended.err.starts_with(&start) && ended.err.contains("is missing"), "{}", ended.err);
    assert!(ended.err.contains("`landeck tune` measures anew"), "{}", ended.err);
}

#[test]
fn a_way_that_there_is_not_is_named() {
    let mut command = landeck_run(&["-n", "1", "true"]);
    let ended = run_command(command.env("LANDECK_COLLECTIVES", "allreduce=butterlfy"));
    assert_eq!(ended.code, Some(125));
    let said = "landeck: LANDECK_COLLECTIVES: it is \"allreduce=butterlfy\"; there is no architecture \"butterlfy\" (did you mean";
    assert!(ended.err.starts_with(said), "{}", ended.err);
    let ended = run(&["--collectives", "sum=flat", "true"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("there is no operation \"sum\""), "{}", ended.err);
}

#[test]
fn a_reader_that_is_gone_has_seen_enough() {
    let cache = Cache::new("seen-enough");
    for words in
        ["tune --show", "doctor", "ps", "plan barrier -a flat -n 4", "simulate barrier -n 4"]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
        command.args(words.split(' ')).env("XDG_CACHE_HOME", &cache.0);
        let ended = command.stdin(Stdio::null()).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(matches!(ended.status.code(), Some(0 | 1)), "{words}: {:?} {said}", ended.status);
        assert!(!said.contains("panicked"), "{words}: {said}");
    }
}
