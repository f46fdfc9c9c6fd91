//! Allocations of Slurm, PBS, LSF and SGE.

use super::text;
use landeck_hostfile::allocation::{current, from_names, from_sge, from_slurm, is_inside};
use landeck_hostfile::{Allocation, AllocationError, BatchSystem};
use proptest::prelude::*;

fn slurm(nodes: &str, tasks: &str) -> String {
    let tasks = (!tasks.is_empty()).then_some(tasks);
    from_slurm(nodes, tasks).map_or_else(|error| error.to_string(), |hosts| text(&hosts))
}

/// The forms of the manual pages of `sbatch` and `scontrol`.
#[test]
fn nodes_of_slurm_are_expanded() {
    for (nodes, tasks, wanted) in [
        ("lx05", "", "lx05:1"),
        ("n[1-3]", "2(x3)", "n1:2,n2:2,n3:2"),
        ("n[1-3,07-09],m5", "2(x3),1(x4)", "n1:2,n2:2,n3:2,n07:1,n08:1,n09:1,m5:1"),
        ("tux[0-1,3]", "72,4(x2)", "tux0:72,tux1:4,tux3:4"),
        ("r[1-2]n[08-10]", "", "r1n08:1,r1n09:1,r1n10:1,r2n08:1,r2n09:1,r2n10:1"),
        ("n[1,2]-ib,n3", "", "n1-ib:1,n2-ib:1,n3:1"),
        ("n[9-11]", "", "n9:1,n10:1,n11:1"),
        ("n[099-101]", "", "n099:1,n100:1,n101:1"),
        ("10.0.0.[1-2]", "4,4", "10.0.0.1:4,10.0.0.2:4"),
    ] {
        assert_eq!(slurm(nodes, tasks), wanted, "{nodes}");
    }
}

#[test]
fn wrong_nodes_of_slurm_are_refused() {
    for (nodes, tasks, wanted) in [
        ("n[1-3", "", "entry 1: \"n[1-3\": ranges are wanted in the brackets"),
        ("a,n[3-1]", "", "entry 2: \"n[3-1]\": ranges are wanted"),
        ("n[]", "", "entry 1: \"n[]\": ranges are wanted"),
        ("n[a-b]", "", "entry 1: \"n[a-b]\": ranges are wanted"),
        ("n[1-9999999999999999999]", "", "entry 1: \"n[1-9999999999999999999]\": ranges"),
        ("n[0-65535]", "", "entry 1: the list has more than 65,535 hosts"),
        ("n[0-65534],m", "", "entry 2: the list has more than 65,535 hosts"),
        ("n[0-999999]a[0-999999]b[0-999999]c[0-999999]", "", "entry 1: the list has more"),
        ("n[1-2]]", "", "entry 1: \"n1]\" cannot be the name"),
        ("-[1-2]", "", "entry 1: \"-1\" cannot be the name"),
        ("", "", "entry 1: the name of a host is missing"),
        ("n[1-3]", "2(x2)", "there are 2 numbers of slots for 3 hosts; as many are needed"),
        ("n[1-3]", "2(x3", "\"2(x3\": numbers of slots are wanted, as in 2(x3),1"),
        ("n1", "0", "\"0\": numbers of slots are wanted"),
        ("n1", "2(x0)", "\"2(x0)\": numbers of slots are wanted"),
        ("n1", "2(x65535),1", "the list has more than 65,535 hosts"),
    ] {
        let error = slurm(nodes, tasks);
        assert!(error.starts_with(wanted), "{nodes} {tasks}: {error}");
    }
    let long = format!("{}[1-65535]", "n".repeat(300));
    assert!(slurm(&long, "").contains("cannot be the name of a host"));
}

#[test]
fn files_of_hosts_are_read() {
    let names = |file: &str| text(&from_names(file).unwrap());
    assert_eq!(names("n1\nn1\nn2\n\nn1\n"), "n1:3,n2:1");
    assert!(from_names("n1\nn2 x\n").unwrap_err().to_string().starts_with("line 2: \"n2 x\""));
    assert!(from_names("\n").is_err());
    let sge = "node01 4 all.q@node01 UNDEFINED\nnode02 2 all.q@node02 <NULL>\n";
    assert_eq!(text(&from_sge(sge).unwrap()), "node01:4,node02:2");
    let error = from_sge("node01\n").unwrap_err().to_string();
    assert!(error.starts_with("line 1: \"\": a number of slots is wanted"), "{error}");
}

/// The allocation in an environment of these variables, where a file's content is its path.
fn found(variables: &[(&str, &str)]) -> Result<Option<Allocation>, AllocationError> {
    let variable = |name: &str| {
        variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
    };
    current(variable, |path| match path {
        "gone" => Err("there is no such file".to_owned()),
        text => Ok(text.replace('+', "\n")),
    })
}

#[test]
fn an_allocation_is_found_in_the_environment() {
    for (variables, system, wanted) in [
        (
            &[("SLURM_JOB_NODELIST", "n[1-2]"), ("SLURM_TASKS_PER_NODE", "3(x2)")][..],
            BatchSystem::Slurm,
            "n1:3,n2:3",
        ),
        (&[("SLURM_NODELIST", "n1")], BatchSystem::Slurm, "n1:1"),
        (&[("PBS_NODEFILE", "a+b+a")], BatchSystem::Pbs, "a:2,b:1"),
        (&[("LSB_DJOB_HOSTFILE", "a+a")], BatchSystem::Lsf, "a:2"),
        (&[("PE_HOSTFILE", "a 2 q x+b 1 q x")], BatchSystem::Sge, "a:2,b:1"),
        (&[("PE_HOSTFILE", "a 2"), ("SLURM_JOB_NODELIST", "n7")], BatchSystem::Slurm, "n7:1"),
    ] {
        let allocation = found(variables).unwrap().unwrap();
        assert_eq!((allocation.system, text(&allocation.hosts).as_str()), (system, wanted));
        assert!(is_inside(|name| variables.iter().any(|(other, _)| *other == name)));
    }
    assert_eq!(found(&[("HOME", "/root"), ("PBS_NODEFILE", "")]), Ok(None));
    assert!(!is_inside(|name| name == "SLURM_TASKS_PER_NODE"));
}

#[test]
fn a_wrong_allocation_names_its_variable_and_the_cure() {
    for (variables, wanted) in [
        (
            &[("SLURM_JOB_NODELIST", "n[")][..],
            "SLURM_JOB_NODELIST, which Slurm sets: entry 1: \"n[\": ranges are wanted",
        ),
        (
            &[("SLURM_JOB_NODELIST", "n"), ("SLURM_TASKS_PER_NODE", "1,1")],
            "SLURM_TASKS_PER_NODE, which Slurm sets: there are 2 numbers",
        ),
        (
            &[("PBS_NODEFILE", "gone")],
            "gone, which PBS names in PBS_NODEFILE, cannot be read: there",
        ),
        (&[("PE_HOSTFILE", "a")], "a, which SGE names in PE_HOSTFILE: line 1: "),
    ] {
        let error = found(variables).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}");
        assert!(error.ends_with("--host localhost"), "{error}");
    }
}

proptest! {
    /// Expansion agrees with a model that makes every name with two loops.
    #[test]
    fn two_ranges_agree_with_two_loops(
        (a, b) in (0_u64..30, 0_u64..9),
        (c, d) in (0_u64..120, 0_u64..9),
        width in 1_usize..5,
    ) {
        let mut wanted = Vec::new();
        for first in a..=a + b {
            for second in c..=c + d {
                wanted.push(format!("x{first}y{second:0width$}z:1"));
            }
        }
        let nodes = format!("x[{a}-{}]y[{c:0width$}-{}]z", a + b, c + d);
        prop_assert_eq!(slurm(&nodes, ""), wanted.join(","));
    }

    /// No text makes the parsers fail otherwise than with a short error.
    #[test]
    fn any_text_is_answered(nodes in "[a1\\[\\],\\-0-9]{0,60}", tasks in "[0-9(x),]{0,30}") {
        for result in [from_slurm(&nodes, Some(&tasks)), from_slurm(&nodes, None), from_sge(&nodes)] {
            match result {
                Ok(hosts) => prop_assert!(!hosts.is_empty()),
                Err(error) => prop_assert!(error.to_string().len() < 500),
            }
        }
    }
}
