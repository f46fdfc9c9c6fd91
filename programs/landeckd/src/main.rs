//! The daemon that connects the hosts of a job. `landeck run --host` starts it; users start it only to join by hand.

#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use ipnet::IpNet;
use landeck_daemon::DaemonRole;
use landeck_daemon::bootstrap::DaemonOptions;
use landeck_launch::hosts_options::{PortRange, network};
use landeck_launch::machine::MachineName;

mod generate;
mod helper;

/// Connects the hosts of a job. `landeck run --host` starts this program by itself.
#[derive(Debug, Parser)]
#[command(name = "landeckd", version)]
struct Arguments {
    /// The part that this daemon plays; for `landeck run`.
    #[arg(long, value_enum)]
    role: Option<NamedRole>,
    /// The descriptor of the socket to the launcher, if it is not standard input; for `landeck run`.
    #[arg(long, requires = "role")]
    launcher_fd: Option<String>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum NamedRole {
    /// The arbiter of a machine that is made for one job.
    Arbiter,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Start on this host for an arbiter elsewhere, which a remote shell connects to both standard streams.
    Bootstrap {
        /// The machine that this host belongs to from now on, until that ends.
        #[arg(long)]
        machine: Option<MachineName>,
        /// The name of this host, if it is not the kernel's.
        #[arg(long)]
        name: Option<String>,
        /// The standard streams belong to the daemons of several hosts, as those of srun do.
        #[arg(long)]
        shared: bool,
        #[command(flatten)]
        port: PortOptions,
    },
    /// Found a machine on this host; for `landeck vm start`.
    Found {
        /// The name of the machine.
        #[arg(long)]
        machine: MachineName,
        /// The time after which a silent host is lost, in milliseconds.
        #[arg(long, value_name = "MS")]
        host_timeout: u64,
        /// Messages between hosts are not encrypted.
        #[arg(long)]
        plain: bool,
        #[command(flatten)]
        port: PortOptions,
    },
    /// Come back to a machine in which this host was before, by its return ticket; the daemon does so by itself once it was lost.
    ///
    /// After the computer was started anew, this command brings it back. It ends with the machine.
    Return {
        /// The name of the machine.
        #[arg(long)]
        machine: MachineName,
    },
    /// Let this host join a machine by a token of its founding host.
    ///
    /// `landeck run --start by-hand` prints this command for each host, with a token that admits one host within 15
    /// minutes. The daemon ends with the job.
    Join {
        /// The address of the founding host, if it is reached at another one than the token says.
        address: Option<SocketAddr>,
        /// The file with the token; `-` is standard input.
        #[arg(long, value_name = "FILE")]
        token_file: PathBuf,
        /// The name of this host in messages.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        port: PortOptions,
    },
    /// Help the own job of a machine on this host; a daemon starts this and writes the load of the host to standard input.
    #[command(hide = true)]
    Helper {
        /// The identity of the job.
        #[arg(long)]
        job: String,
    },
    /// Write the manual pages or the completions of this program.
    #[command(hide = true)]
    Generate {
        /// The kind of files.
        what: generate::What,
        /// The directory.
        directory: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct PortOptions {
    /// The ports that may be used, such as 40000-40100.
    #[arg(long, value_name = "A-B")]
    port_range: Option<PortRange>,
    /// A network that is used first, such as 10.0.0.0/8.
    #[arg(long, value_name = "CIDR", value_parser = network)]
    network: Vec<IpNet>,
}

fn main() -> ExitCode {
    let Arguments { role, launcher_fd, action } = Arguments::parse();
    let role = match (role, action) {
        (Some(NamedRole::Arbiter), None) => DaemonRole::Arbiter { launcher: launcher_fd },
        (None, Some(Action::Bootstrap { machine, name, shared: shares_streams, port })) => {
            let (ports, networks) = (port.port_range, port.network);
            DaemonRole::Bootstrap { machine, name, shares_streams, ports, networks }
        }
        (None, Some(Action::Found { machine, host_timeout, plain: is_plain, port })) => {
            let options = DaemonOptions { host_timeout_ms: host_timeout, is_plain };
            let (ports, networks) = (port.port_range, port.network);
            DaemonRole::Founder { machine, options, ports, networks }
        }
        (None, Some(Action::Return { machine })) => DaemonRole::Return { machine },
        (None, Some(Action::Join { address, token_file, name, port })) => {
            let (ports, networks) = (port.port_range, port.network);
            DaemonRole::Join { address, token_file, name, ports, networks }
        }
        (None, Some(Action::Helper { job })) => return helper::run(&job),
        (None, Some(Action::Generate { what, directory })) => {
            return match generate::write(Arguments::command(), what, &directory) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("landeckd: {}: {error}", directory.display());
                    ExitCode::FAILURE
                }
            };
        }
        _ => {
            let message = "say what to do: `landeckd join --token-file FILE`, or let `landeck run --host` start it";
            Arguments::command().error(clap::error::ErrorKind::MissingSubcommand, message).exit();
        }
    };
    landeck_daemon::run(role)
}
