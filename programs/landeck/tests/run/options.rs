//! Environment, directories, several programs, placement, help.

use super::*;

#[test]
fn several_programs_make_one_job() {
    let script = "echo $RANK of $WORLD_SIZE: $0";
    let ended =
        run(&["-n", "1", "sh", "-c", script, "a", ":", "-np", "2", "sh", "-c", script, "b"]);
    assert_eq!(sorted(&ended.out), ["0 of 3: a", "1 of 3: b", "2 of 3: b"]);
}

#[test]
fn processes_know_who_they_are() {
    let script = "echo $RANK $LOCAL_RANK $OMPI_COMM_WORLD_RANK $PMI_RANK $MPI_LOCALRANKID $PMI_SIZE; \
                  env | grep -c -E '^(PMI_FD|PMIX_|MASTER_)'; true";
    let ended = run_shells(2, &[], script);
    assert_eq!(sorted(&ended.out), ["0", "0", "0 0 0 0 0 2", "1 1 1 1 1 2"]);
}

#[test]
fn the_environment_is_inherited_but_for_launchers() {
    let mut command = landeck_run(&["-n", "1", "-x", "B=new", "-x", "C", "env"]);
    command.env("A", "kept").env("B", "old").env("PMI_FD", "7").env("OMPI_UNIVERSE_SIZE", "9");
    command.env("OMPI_MCA_btl", "self").env("LANDECK_SLOT", "77").env_remove("C");
    let ended = run_command(&mut command);
    for line in ["A=kept", "B=new", "OMPI_MCA_btl=self", "LANDECK_SLOT=0"] {
        assert!(ended.out.lines().any(|other| other == line), "{line}: {}", ended.out);
    }
    assert!(!ended.out.contains("PMI_FD") && !ended.out.contains("OMPI_UNIVERSE_SIZE"));
    assert!(ended.err.starts_with("landeck: -x C: this variable is not set here"), "{}", ended.err);
}

#[test]
fn nothing_is_inherited_when_told_so() {
    let mut command = landeck_run(&["-n", "1", "--env-none", "-x", "B", "/usr/bin/env"]);
    let ended = run_command(command.env("A", "1").env("B", "2"));
    assert!(ended.out.contains("B=2\n") && ended.out.contains("RANK=0\n"), "{}", ended.out);
    assert!(!ended.out.contains("A=1\n") && !ended.out.contains("PATH="), "{}", ended.out);
}

#[test]
fn programs_start_in_their_directory() {
    for option in ["-C", "--wdir", "-wdir"] {
        assert_eq!(run(&["-n", "1", option, "/usr", "pwd"]).out, "/usr\n");
    }
    assert_eq!(run(&["-n", "1", "-C", "/usr/bin", "./true"]).code, Some(0));
    let ended = run(&["-n", "1", "-C", "/no/such", "true"]);
    assert_eq!(ended.code, Some(125));
    assert!(
        ended.err.starts_with("landeck: --wdir /no/such: there is no such folder; "),
        "{}",
        ended.err
    );
}

#[test]
fn processes_are_bound_as_asked() {
    let own = status_field(std::process::id(), "Cpus_allowed_list").unwrap();
    let first = own.split([',', '-']).next().unwrap().to_owned();
    let program = ["grep", "Cpus_allowed_list", "/proc/self/status"];
    let lists = |options: &[&str]| -> Vec<String> {
        let ended = run(&[options, &program].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        ended.out.lines().map(|line| line.split('\t').nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(lists(&["-n", "1"]), vec![own.clone(); 1]);
    assert_eq!(lists(&["-n", "1", "--bind-to", "hwthread"]), [first]);
    assert_eq!(lists(&["-n", "40"]), vec![own.clone(); 40]);
    assert_eq!(lists(&["-n", "2", "--bind-to", "none"]), vec![own.clone(); 2]);
    assert_eq!(lists(&["-n", "1", "-x", "OMP_NUM_THREADS=2"]), [own]);
}

#[test]
fn bindings_are_reported() {
    let ended = run(&["-n", "2", "--bind-to", "core", "--report-bindings", "true"]);
    assert!(ended.err.starts_with("Each process is bound to cores: as asked."), "{}", ended.err);
    assert!(ended.err.contains("\nrank 1 is bound to processor"), "{}", ended.err);
    let ended = run(&["-n", "50", "--report-bindings", "true"]);
    assert!(ended.err.starts_with("No process is bound: 50 processes share "), "{}", ended.err);
}

#[test]
fn a_dry_run_starts_nothing() {
    let ended = run(&["-n", "1", "--dry-run", "touch", "/no/such/file", ":", "-n", "2", "false"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert!(ended.out.starts_with("3 processes on host "), "{}", ended.out);
    assert!(ended.out.contains("touch /no/such/file\n"), "{}", ended.out);
    assert_eq!(ended.out.lines().count(), 4);
}

#[test]
fn a_dry_run_over_hosts_connects_to_none() {
    let line = ["--dry-run", "--host", "landeck-a:2,landeck-b", "--map-by", "node", "true", "x y"];
    let ended = run(&line);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = ended.out.lines().collect();
    assert!(lines[0].starts_with("3 processes on 2 hosts. Nothing was connected"), "{lines:?}");
    for (line, begin) in lines[1..].iter().zip([
        "rank 0: host landeck-a, slot 0, in /",
        "rank 1: host landeck-b, slot 0, in /",
        "rank 2: host landeck-a, slot 1, in /",
    ]) {
        assert!(line.starts_with(begin) && line.ends_with("/true 'x y'"), "{line}");
    }
    assert_eq!(lines.len(), 4);
}

#[test]
fn this_host_needs_no_other() {
    let ended = run(&["--host", "localhost:2", "echo", "x"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "x\nx\n"));
    let mut command = landeck_run(&["--host", "localhost", "echo", "x"]);
    let ended = run_command(command.env("SLURM_JOB_NODELIST", "landeck-[1-2]"));
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "x\n"));
}

#[test]
fn the_hosts_of_an_allocation_are_used() {
    let mut command = landeck_run(&["--dry-run", "true"]);
    command.env("SLURM_JOB_NODELIST", "landeck-[1-2]").env("SLURM_TASKS_PER_NODE", "2,1");
    let ended = run_command(&mut command);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("\nrank 2: host landeck-2, slot 0, in /"), "{}", ended.out);
    let mut command = landeck_run(&["true"]);
    let ended = run_command(command.env("SLURM_JOB_NODELIST", "n[1-"));
    assert_eq!(ended.code, Some(125));
    assert!(
        ended.err.starts_with("landeck: SLURM_JOB_NODELIST, which Slurm sets: "),
        "{}",
        ended.err
    );
}

#[test]
fn long_words_are_not_repeated_whole() {
    let long = "x".repeat(50_000);
    let path = format!("./{long}");
    let cases: [(&[&str], &str); 6] = [
        (&["-n", "1", &long], "landeck: program \"xxx"),
        (&["-n", "1", &path], "landeck: program \"./xxx"),
        (&["-n", "1", "-C", &long, "true"], "landeck: --wdir xxx"),
        (&["-n", &long, "true"], "landeck: -n xxx"),
        (&["-n", "1", "--collectives", &long, "true"], "landeck: --collectives xxx"),
        (&["-n", "1", "-x", &long, "true"], "landeck: -x xxx"),
    ];
    for (arguments, words) in cases {
        let ended = run(arguments);
        assert!(ended.err.starts_with(words), "{words}: {}", ended.err);
        assert!(ended.err.contains(" bytes left out] xxx"), "{words}: {}", ended.err);
        assert!(ended.err.len() < 4_000, "{words}: {} bytes", ended.err.len());
    }
    let mut command = landeck_run(&["-n", "1", "true"]);
    let ended = run_command(command.env("LANDECK_COLLECTIVES", &long));
    assert_eq!(ended.code, Some(125));
    assert!(ended.err.len() < 2_000, "{} bytes", ended.err.len());
}

#[test]
fn the_default_is_a_process_for_each_core() {
    let ended = run(&["echo", "x"]);
    let processes = ended.out.lines().count();
    let processors = std::thread::available_parallelism().unwrap().get();
    assert!(processes >= 1 && processes <= processors, "{processes} for {processors}");
}

#[test]
fn a_job_can_run_inside_a_job() {
    let launcher = env!("CARGO_BIN_EXE_landeck");
    let script = format!("{launcher} run -n 2 sh -c 'echo $LANDECK_JOB $RANK'; echo $LANDECK_JOB");
    let ended = run_shells(1, &[], &script);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[..2].iter().all(|inner| !inner.starts_with(lines[2])), "{lines:?}");
}

#[test]
fn help_and_version_are_there() {
    let landeck = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
        run_command(command.args(arguments))
    };
    assert!(landeck(&["--version"]).out.starts_with("landeck 0."));
    for arguments in [&["help"][..], &["--help"], &["help", "run"], &["run", "--help"]] {
        let ended = landeck(arguments);
        assert_eq!(ended.code, Some(0));
        assert!(ended.out.contains("Usage: landeck"), "{}", ended.out);
    }
    assert_eq!(landeck(&["run", "--no-such-option", "x"]).code, Some(2));
    assert_eq!(landeck(&["run"]).code, Some(2));
}

#[test]
fn manuals_and_completions_are_generated() {
    let folder = std::env::temp_dir().join(format!("landeck-generated-{}", std::process::id()));
    for (kind, file, word) in [
        ("man", "landeck-run.1", "on\\-failure"),
        ("man", "landeck.1", "landeck"),
        ("completions", "landeck.bash", "--bind-to"),
        ("completions", "_landeck", "--bind-to"),
        ("completions", "landeck.fish", "bind-to"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
        let ended = run_command(command.args(["generate", kind]).arg(&folder));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        assert!(text.contains(word), "{file}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
