//! How a job is started, watched and ended: its plan, its part on each host, the guardian of that, and the launcher's loop.

mod arbiter;
pub mod events;
pub mod examination;
pub mod gathering;
pub mod guardian;
pub mod hosts_options;
pub mod input;
mod job;
mod linkage;
pub mod machine;
pub mod machine_call;
pub mod machine_hosts;
pub mod messages;
pub mod output;
mod output_files;
pub mod part;
mod parts;
pub mod plan;
pub mod program;
mod record;
pub mod remote_start;
pub mod request;
pub mod spec;
pub mod stacks;
mod starts;
mod terminal;
mod watch;
