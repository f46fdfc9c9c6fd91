//! C programs of the standard ABI, with our library and launcher and with MPICH's.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::{
    self, Launcher, Library, mpich_or_skip, program, program_in_cpp_or_skip, run, run_by,
    run_command, run_with_files_of, skip,
};
use landeck_testing::program::assert_wrote;
use landeck_testing::{Trail, Watchdog};

/// How long one test may take, with compiling.
const LIMIT: Duration = Duration::from_secs(1_000);

/// The programs that check themselves.
const PROGRAMS: [&str; 7] =
    ["hello", "ring", "pingpong", "isend_waitall", "threads", "contention", "allreduce"];

#[test]
fn programs_run_under_our_launcher() {
    let _watchdog = Watchdog::start(LIMIT);
    for name in PROGRAMS {
        let program = program(name);
        for processes in [1, 2, 3, 4] {
            let output = run(Launcher::Landeck, Library::Ours, processes, &program, &[]);
            assert_wrote(&output, &format!("{name}: {processes} processes agree"));
        }
    }
}

#[test]
fn programs_run_alone() {
    let _watchdog = Watchdog::start(LIMIT);
    for name in PROGRAMS {
        let output = run(Launcher::None, Library::Ours, 1, &program(name), &[]);
        assert_wrote(&output, &format!("{name}: 1 processes agree"));
    }
}

#[test]
fn programs_run_under_mpiexec() {
    let _watchdog = Watchdog::start(LIMIT);
    if !mpich_or_skip("programs_run_under_mpiexec") {
        return;
    }
    for name in PROGRAMS {
        let program = program(name);
        for processes in [1, 2, 4] {
            let output = run(Launcher::Mpiexec, Library::Ours, processes, &program, &[]);
            assert_wrote(&output, &format!("{name}: {processes} processes agree"));
        }
    }
}

#[test]
fn the_same_programs_run_with_another_library_of_the_abi() {
    let _watchdog = Watchdog::start(LIMIT);
    if !mpich_or_skip("the_same_programs_run_with_another_library_of_the_abi") {
        return;
    }
    for name in PROGRAMS {
        let output = run(Launcher::Mpiexec, Library::Mpich, 2, &program(name), &[]);
        assert_wrote(&output, &format!("{name}: 2 processes agree"));
    }
}

#[test]
fn a_killed_program_loses_no_whole_line() {
    let _watchdog = Watchdog::start(LIMIT);
    let lines = program("lines");
    let written = |buffer: &str| {
        let output = run(Launcher::Landeck, Library::Ours, 1, &lines, &[buffer]);
        assert_eq!(output.status.code(), Some(137), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(written("early"), "early\n1\nsecond\n");
    // A program that chooses a buffer itself keeps it.
    for buffer in ["own", "usual", "later"] {
        assert_eq!(written(buffer), "", "{buffer}");
    }
    assert_eq!(written("none"), "1\nsecond\nthird");
}

#[test]
fn output_that_goes_elsewhere_keeps_its_buffer() {
    let _watchdog = Watchdog::start(LIMIT);
    let lines = program("lines");
    let mut command = support::command(Launcher::Landeck, Library::Ours, 1, "sh".as_ref());
    command.args(["-c", "\"$0\" | cat"]).arg(lines);
    let output = Trail::new().run(&mut command, LIMIT);
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[test]
fn an_operation_of_the_program_may_jump_out() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("jump");
    for processes in [1, 2, 3, 5] {
        let output = run(Launcher::Landeck, Library::Ours, processes, &program, &[]);
        assert_wrote(&output, &format!("jump: {processes} processes agree"));
    }
}

#[test]
fn an_operation_of_the_program_may_throw() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "an_operation_of_the_program_may_throw";
    let Some(program) = program_in_cpp_or_skip("throw", test) else { return };
    for processes in [1, 2, 3] {
        let output = run(Launcher::Landeck, Library::Ours, processes, &program, &[]);
        assert_wrote(&output, &format!("throw: {processes} processes agree"));
    }
}

#[test]
fn every_function_of_the_program_may_jump_out() {
    let _watchdog = Watchdog::start(LIMIT);
    jump_or_throw("escapes", &program("escapes"));
}

#[test]
fn every_function_of_the_program_may_throw() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "every_function_of_the_program_may_throw";
    let Some(program) = program_in_cpp_or_skip("escapes_cpp", test) else { return };
    jump_or_throw("escapes_cpp", &program);
}

/// Runs a program whose functions leave, by the usual ways of collective operations and by ways in which members pass
/// blocks on, whose lengths they tell first.
fn jump_or_throw(name: &str, program: &Path) {
    let usual = [1, 2, 3, 5].map(|processes| ("", processes));
    for (way, processes) in usual.into_iter().chain([("ring", 3), ("butterfly", 5)]) {
        let output = run_by(way, processes, program);
        assert_wrote(&output, &format!("{name}: {processes} processes agree"));
    }
}

#[test]
fn handles_that_lead_to_nothing_are_told_to_the_right_handler() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("handles");
    for processes in [1, 2] {
        let output = run(Launcher::Landeck, Library::Ours, processes, &program, &[]);
        assert_wrote(&output, &format!("handles: {processes} processes agree"));
    }
    // Each kind: the function and the argument, a handle of another kind and what is wanted.
    let kinds = [
        ("comm", "MPI_Bcast", "comm", "0x209, which is a datatype, not a communicator"),
        ("type", "MPI_Send", "datatype", "0x21, which is an operation, not a datatype"),
        ("op", "MPI_Allreduce", "op", "0x209, which is a datatype, not an operation"),
        ("group", "MPI_Comm_create", "group", "0x101, which is a communicator, not a group"),
        ("request", "MPI_Cancel", "request", "0x129, which is a message, not a request"),
        (
            "errhandler",
            "MPI_Comm_set_errhandler",
            "errhandler",
            "which is an info object, not an error handler",
        ),
        ("info", "MPI_Info_set", "info", "0x102, which is a communicator, not an info object"),
        ("message", "MPI_Mrecv", "message", "0x180, which is a request, not a message"),
        ("session", "MPI_Session_get_num_psets", "session", "which is a group, not a session"),
        ("keyval", "MPI_Comm_set_attr", "comm_keyval", "MPI_ERR_KEYVAL"),
    ];
    for (kind, function, argument, other) in kinds {
        let hows = [
            (
                "null",
                if kind == "request" { "which is no such request" } else { "the null handle" },
            ),
            ("freed", "used after it was freed"),
            ("other", other),
            ("garbage", "0x123456789, which is no"),
        ];
        // A key is a number, and a small one.
        let hows = if kind == "keyval" { hows.map(|(how, _)| (how, other)) } else { hows };
        for (how, words) in hows {
            let output = run(Launcher::Landeck, Library::Ours, 1, &program, &[kind, how]);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{kind} {how}: {output:?}");
            for word in [function, &format!("{argument} is "), words] {
                assert!(errors.contains(word), "{kind} {how}: no {word:?} in:\n{errors}");
            }
        }
    }
}

#[test]
fn more_data_than_a_heap_has_room_for_goes_its_way() {
    let _watchdog = Watchdog::start(LIMIT);
    let output = run(Launcher::Landeck, Library::Ours, 3, &program("room"), &[]);
    assert_wrote(&output, "room: 3 processes agree");
}

/// A limit of the file size makes the heaps small: the program's long blocks have no room in them.
#[test]
fn blocks_longer_than_a_heap_has_room_for_go_their_way() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("chapters/long_blocks");
    for processes in [1, 2, 3, 5] {
        let output = run_with_files_of(256 << 20, processes, &program);
        assert_wrote(&output, &format!("long_blocks: {processes} processes agree"));
    }
}

#[test]
fn lengths_that_differ_are_told_of_however_long_the_blocks_are() {
    let _watchdog = Watchdog::start(LIMIT);
    let output = run_with_files_of(200 << 20, 3, &program("lengths"));
    assert_wrote(&output, "lengths: 3 processes agree");
}

#[test]
fn operations_go_on_while_a_heap_is_full_of_messages() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("full_heap");
    for (processes, file_bytes) in [(2, 256 << 20), (3, 160 << 20), (5, 256 << 20)] {
        let output = run_with_files_of(file_bytes, processes, &program);
        assert_wrote(&output, &format!("full_heap: {processes} processes agree"));
    }
}

#[test]
fn a_message_gets_past_others_that_fill_the_heap() {
    let _watchdog = Watchdog::start(LIMIT);
    let output = run_with_files_of(160 << 20, 3, &program("past_full_heap"));
    assert_wrote(&output, "past_full_heap: 3 processes agree");
}

#[test]
fn members_without_memory_are_told_so_and_nobody_waits_for_them() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("no_memory");
    let ways = [("", 1), ("", 2), ("", 4), ("ring", 4), ("flat", 4), ("butterfly", 2)];
    for (way, processes) in ways {
        let output = run_by(way, processes, &program);
        assert_wrote(&output, &format!("no_memory: {processes} processes agree"));
    }
}

#[test]
fn objects_are_refused_when_there_is_no_memory_for_them() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("many_objects");
    for processes in [1, 2, 4] {
        let output = run(Launcher::Landeck, Library::Ours, processes, &program, &[]);
        assert_wrote(&output, &format!("many_objects: {processes} processes agree"));
    }
}

/// Minutes under a sanitizer, and gigabytes of memory.
#[test]
fn counts_beyond_an_int_work() {
    if std::env::var_os("LANDECK_SOAK").is_none() {
        return skip("counts_beyond_an_int_work", "several GiB are moved in `make soak` alone");
    }
    let _watchdog = Watchdog::start(LIMIT);
    for one_copy in ["never", "64K"] {
        let mut command = support::command(Launcher::Landeck, Library::Ours, 2, &program("large"));
        let output = run_command(command.env("LANDECK_ONE_COPY", one_copy));
        assert_wrote(&output, "large: 2 processes agree");
    }
}

/// The functions that a child made by fork is refused: those that are there between MPI_Init and MPI_Finalize
/// alone.
fn refused_to_children() -> Vec<String> {
    let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(own.join(path)).expect("a file of ours");
    let any_time = read("abi/any-time.txt");
    let is_any_time = |name: &str| any_time.lines().any(|line| line == name);
    let header = read("include/mpi.h");
    let declared = header.lines().filter_map(|line| line.strip_prefix("int MPI_"));
    let named = declared.filter_map(|line| line.split_once('(').map(|(name, _)| name));
    // Those that give no code, and MPI_Abort, which ends the child.
    let gives_no_code = |name: &str| {
        name.ends_with("_toint")
            || name == "Abort"
            || name.starts_with("T_")
            || name.starts_with("DUP_FN")
    };
    let refused = named.filter(|name| !gives_no_code(name)).map(|name| format!("MPI_{name}"));
    refused.filter(|name| !is_any_time(name)).collect()
}

#[test]
fn a_child_made_by_fork_is_refused_and_harms_nobody() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("fork");
    let functions = refused_to_children();
    assert!(functions.len() > 300, "{functions:?}");
    let mut arguments = vec!["all"];
    arguments.extend(functions.iter().map(String::as_str));
    let output = run(Launcher::Landeck, Library::Ours, 2, &program, &arguments);
    assert_wrote(&output, "fork: 2 processes agree");
    let output = run(Launcher::Landeck, Library::Ours, 2, &program, &["session"]);
    assert_wrote(&output, "fork: 2 processes agree");
    if mpich_or_skip("a_child_made_by_fork_is_refused_and_harms_nobody (mpiexec)") {
        let output = run(Launcher::Mpiexec, Library::Ours, 2, &program, &[]);
        assert_wrote(&output, "fork: 2 processes agree");
    }
}

#[test]
fn a_child_made_by_fork_ends_alone_and_says_so() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("fork");
    let ways: [(&[&str], &[&str]); 3] = [
        (
            &["abort"],
            &[
                "(made by fork from rank 0 of 2, pid ",
                "called MPI_Abort with code 3. This process ends alone and the job goes on.",
            ],
        ),
        (&["abort", "256"], &["called MPI_Abort with code 256. This process ends alone"]),
        (
            &["fatal"],
            &[
                "MPI_Barrier failed on pid ",
                "(made by fork from rank 1 of 2, pid ",
                "This process ends alone and the job goes on: errors are fatal unless",
            ],
        ),
    ];
    for (way, words) in ways {
        let output = run(Launcher::Landeck, Library::Ours, 2, &program, way);
        assert_wrote(&output, "fork: 2 processes agree");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(words.iter().all(|words| said.contains(words)), "{said}");
        assert!(!said.contains("is aborted"), "{said}");
    }
}

#[test]
fn a_mistake_names_function_argument_and_value_and_ends_the_job() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("errors");
    let mistakes: [(&str, &[&str]); 13] = [
        ("rank", &["MPI_Send", "dest is 3", "ranks 0 to 2", "MPI_ERR_RANK"]),
        ("tag", &["MPI_Send", "tag is -7", "MPI_ERR_TAG"]),
        ("count", &["MPI_Send", "count is -1", "MPI_ERR_COUNT"]),
        ("buffer", &["MPI_Send", "buf is a null pointer", "MPI_ERR_BUFFER"]),
        ("type", &["MPI_Send", "datatype is 0x200", "MPI_ERR_TYPE"]),
        ("comm", &["MPI_Send", "comm is 0x100", "MPI_ERR_COMM"]),
        ("request", &["MPI_Wait", "request is 0x123456789, which is no handle", "MPI_ERR_REQUEST"]),
        ("stale", &["MPI_Wait", "was used after it was freed", "MPI_ERR_REQUEST"]),
        ("truncate", &["MPI_Wait", "12 bytes", "4", "MPI_ERR_TRUNCATE"]),
        ("op", &["MPI_Allreduce", "bitwise and", "f32", "MPI_ERR_OP"]),
        ("before", &["MPI_Comm_rank", "call MPI_Init first", "MPI_ERR_OTHER"]),
        ("after", &["MPI_Send", "MPI is finalised", "MPI_ERR_OTHER"]),
        ("abort", &["rank 0 of 3", "called MPI_Abort with code 17"]),
    ];
    for (mistake, words) in mistakes {
        let output = run(Launcher::Landeck, Library::Ours, 3, &program, &[mistake]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{mistake}: {output:?}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("nobody noticed"), "{mistake}");
        for word in words {
            assert!(errors.contains(word), "{mistake}: no {word:?} in:\n{errors}");
        }
    }
}

#[test]
fn the_abort_of_a_job_is_said_once_whichever_ranks_abort_it() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("errors");
    // What each rank says of its own, and whether all have the same to say.
    let mistakes = [
        ("all abort", "called MPI_Abort with code 17", true),
        ("all the same", "MPI_Send failed on rank ", true),
        ("each its own", "MPI_Send failed on rank ", false),
    ];
    for (mistake, words, is_same) in mistakes {
        let output = run(Launcher::Landeck, Library::Ours, 4, &program, &[mistake]);
        let errors = String::from_utf8_lossy(&output.stderr);
        // The launcher's report quotes the last lines of a rank.
        let said = |words: &str| {
            errors
                .lines()
                .filter(|line| line.starts_with(|it: char| it != ' ') && line.contains(words))
                .count()
        };
        assert_eq!(said("The job is aborted"), 1, "{mistake}: {errors}");
        let most = if is_same { 1 } else { 4 };
        assert!((1..=most).contains(&said(words)), "{mistake}: {errors}");
    }
}

#[test]
fn an_abort_ends_the_job_whatever_a_failure_means() {
    let _watchdog = Watchdog::start(LIMIT);
    const MPI_ERR_RANK: i32 = 6;
    let program = program("errors");
    for policy in ["notify", "restart"] {
        for (mistake, code) in [("abort", 17), ("rank", MPI_ERR_RANK)] {
            let mut command = Command::new(support::launcher());
            command.args(["run", "-n", "3", "--on-failure", policy]).arg(&program).arg(mistake);
            command.env("LD_LIBRARY_PATH", support::libraries());
            let output = run_command(&mut command);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{policy}, {mistake}: {errors}");
            let said = format!(") ended the job with exit code {code} after ");
            assert!(errors.contains(&said), "{policy}, {mistake}: {errors}");
            assert!(!errors.contains("again"), "{policy}, {mistake}: {errors}");
        }
    }
}

#[test]
fn the_job_ends_at_a_fatal_mistake_also_where_a_session_is_over() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("after_session");
    let endings = [
        ("abort", 3, "called MPI_Abort with code 3"),
        ("mistake", 2, "MPI_ERR_COUNT"),
        ("session", 34, "MPI_ERR_INFO"),
    ];
    for (ending, code, words) in endings {
        let output = run(Launcher::Landeck, Library::Ours, 2, &program, &[ending]);
        assert_eq!(output.status.code(), Some(code), "{ending}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{ending}: {output:?}");
    }
}

#[test]
fn a_session_after_finalize_is_refused_where_another_launcher_has_taken_leave() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "a_session_after_finalize_is_refused_where_another_launcher_has_taken_leave";
    if !mpich_or_skip(test) {
        return;
    }
    let output = run(Launcher::Mpiexec, Library::Ours, 2, &program("after_session"), &["late"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("lets nobody come back"), "{output:?}");
}

#[test]
fn whoever_starts_the_program_chooses_the_first_error_handler() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("initial");
    let program = program.to_string_lossy();
    for name in ["mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"] {
        let variable = format!("LANDECK_MPI_INITIAL_ERRHANDLER={name}");
        let arguments = [&*variable, &*program, name];
        let output = run(Launcher::Landeck, Library::Ours, 2, "env".as_ref(), &arguments);
        assert_wrote(&output, "initial: 2 processes agree");
    }
    let output = run(Launcher::Landeck, Library::Ours, 2, (*program).as_ref(), &[]);
    assert_wrote(&output, "initial: 2 processes agree");
    let arguments = ["LANDECK_MPI_INITIAL_ERRHANDLER=none", &*program];
    let output = run(Launcher::Landeck, Library::Ours, 1, "env".as_ref(), &arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    assert!(errors.contains("is \"none\"; set it to one of mpi_errors_are_fatal"), "{errors}");
}

#[test]
fn an_exit_code_reaches_the_user() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("errors");
    for (mistake, code) in [("abort", 17), ("exit", 23)] {
        let output = run(Launcher::Landeck, Library::Ours, 3, &program, &[mistake]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    }
    if mpich_or_skip("an_exit_code_reaches_the_user (mpiexec)") {
        let output = run(Launcher::Mpiexec, Library::Ours, 2, &program, &["abort"]);
        assert_eq!(output.status.code(), Some(17), "{output:?}");
        // Which code this launcher takes when one process leaves without a word, and the others
        // fail for it, is a matter of time. It must not wait for ever.
        let output = run(Launcher::Mpiexec, Library::Ours, 2, &program, &["exit"]);
        assert!(!output.status.success(), "{output:?}");
    }
}
