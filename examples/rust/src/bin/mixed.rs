//! One of three programs of one job; this one is Rust. The others are `examples/c/deck/mixed_deck.c`
//! and `mixed_mpi.c`, which say what they do:
//!
//! ```text
//! landeck run -n 1 ./mixed_deck : -n 1 ./mixed_mpi : -n 1 ./mixed
//! ```

#![forbid(unsafe_code)]

use landeck::{Job, Maximum, Message, Sum};

fn main() -> landeck::Result<()> {
    let job = Job::join()?;
    let world = job.world();
    let mut inbox = job.create_mailbox()?;
    world.barrier()?; // from here on the group is there
    let mut member = job.open_group("mixed")?.join(&mut inbox)?;

    member.broadcast(Message::new().pack_text("Rust").pack(&[3i32]))?;
    member.sync()?;
    let mut hellos = 0;
    for _ in 0..world.size() {
        let mut message = inbox.retrieve()?;
        message.unpack_text()?;
        hellos += message.unpack_value::<i32>()?;
    }

    let all = world.all_reduce(3.5f64, Sum)?;
    member.advance()?;
    let greatest = member.world()?.all_reduce(hellos, Maximum)?;
    println!("Rust: hellos {hellos}, all processes {}, the group {greatest}", (10.0 * all) as i32);
    member.leave()?;
    job.leave()
}
