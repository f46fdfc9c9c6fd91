//! Bytes in place of a PMI-1 launcher: whatever it answers, the conversation ends, and the error message is short
//! enough for a person.

#![no_main]

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use landeck_joining::pmi::{Client, JobPlace, PmiError};
use libfuzzer_sys::fuzz_target;

/// More bytes than a socket takes at once would need a reader in parallel.
const BYTES_MAX: usize = 64 << 10;

fuzz_target!(|answers: &[u8]| {
    let answers = &answers[..answers.len().min(BYTES_MAX)];
    match conversation(answers) {
        Ok(value) => assert!(value.len() <= answers.len()),
        Err(error) => assert!(error.to_string().len() < 4_000, "{error}"),
    }
});

/// Everything that a process says to a launcher that answers with these bytes and then goes.
fn conversation(answers: &[u8]) -> Result<String, PmiError> {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
    theirs.write_all(answers).expect("they fit into the socket");
    theirs.shutdown(Shutdown::Write).expect("the socket is open");
    let mut client = Client::over(ours, JobPlace { rank: 0, size: 2 })?;
    client.put("landeck-0", "v")?;
    client.fence()?;
    let value = client.get("landeck-0")?;
    client.finalize()?;
    Ok(value)
}
