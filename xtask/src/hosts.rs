//! `cargo xtask hosts`: a cluster on this computer in one command, made of network namespaces.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitCode;

use landeck_testing::hosts::{Cable, Families, Hosts, Wish};

/// The hosts, and the command that runs on the first of them.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many hosts: n1, n2 and so on.
    hosts: usize,
    /// Spread them over this many sites, which a router joins unless they are apart.
    #[arg(long, value_name = "K", default_value_t = 1)]
    sites: usize,
    /// Lay a further cable from a host to the network of a site, or to network 0, which belongs to none; as in n2:0. Can be
    /// given several times. The sites are then apart.
    #[arg(long = "cable", value_name = "HOST:NETWORK", value_parser = cable)]
    cables: Vec<Cable>,
    /// Join the sites with no router, so that they meet only in hosts with further cables.
    #[arg(long)]
    apart: bool,
    /// Run an sshd on each host, so that "ssh n2" works without a question (needs root).
    #[arg(long)]
    ssh: bool,
    /// Make all hosts one Slurm cluster, for srun, sbatch and salloc (needs root).
    #[arg(long)]
    slurm: bool,
    /// Start programs in the session of this command, as measurements want it: the scheduler divides processors among
    /// sessions first.
    #[arg(long)]
    one_session: bool,
    /// Limit the rate of each cable, as in 100mbit.
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Hold at most this many bytes for a host in the port that its cable ends in, as a switch with small buffers does.
    #[arg(long, value_name = "BYTES", requires = "rate")]
    port_bytes: Option<u32>,
    /// Set the greatest size of a packet, in bytes.
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u32>,
    /// Give the hosts IPv6 addresses as well.
    #[arg(long)]
    ipv6: bool,
    /// Give the hosts IPv6 addresses alone.
    #[arg(long, conflicts_with = "ipv6")]
    ipv6_only: bool,
    /// Lose this percentage of the packets that each host receives.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    drop: f64,
    /// The command that runs on n1, with its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Options {
    fn wish(&self) -> Wish {
        Wish {
            hosts: self.hosts,
            sites: self.sites,
            cables: self.cables.clone(),
            apart: self.apart,
            ssh: self.ssh,
            slurm: self.slurm,
            one_session: self.one_session,
            rate: self.rate.clone(),
            port_bytes: self.port_bytes,
            mtu: self.mtu,
            families: match (self.ipv6, self.ipv6_only) {
                (_, true) => Families::V6,
                (true, false) => Families::Both,
                (false, false) => Families::V4,
            },
            drop_percent: self.drop,
            routers: false,
            visible: self.command.iter().map(PathBuf::from).collect(),
        }
    }
}

/// Reads a further cable: its host's name, and the number of its network.
fn cable(text: &str) -> Result<Cable, String> {
    let read = || {
        let (host, network) = text.strip_prefix('n')?.split_once(':')?;
        let host = host.parse::<usize>().ok()?.checked_sub(1)?;
        Some(Cable { host, network: network.parse().ok()? })
    };
    read().ok_or_else(|| "a host and a network are wanted, such as n2:0.".to_owned())
}

/// Makes the hosts, runs the command on the first one, and ends as it does.
pub(crate) fn run(options: &Options) -> ExitCode {
    let hosts = match Hosts::new(&options.wish()) {
        Ok(hosts) => hosts,
        Err(why) => {
            eprintln!("xtask hosts: {why}");
            return ExitCode::FAILURE;
        }
    };
    let (program, arguments) = options.command.split_first().expect("the parser wants a command");
    match hosts.command(0, program).args(arguments).status() {
        Ok(status) => {
            let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
            ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("xtask hosts: cannot enter n1: {error}. Install util-linux (nsenter) again.");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cable_is_a_host_and_a_network() {
        assert_eq!(cable("n2:0"), Ok(Cable { host: 1, network: 0 }));
        for wrong in ["", "2:0", "n0:1", "n2", "n2:", "n2:-1", "n:0"] {
            assert!(cable(wrong).is_err(), "{wrong}");
        }
    }
}
