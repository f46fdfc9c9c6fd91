//! Endpoints, driven by hand and by threads: one test program, whose modules are linked once.

mod areas;
mod chunks;
mod copied_sends;
mod counting;
mod counting_network;
mod endpoints;
mod full_heap;
mod heap_return;
mod joint_contexts;
mod leaving;
mod meeting;
mod one_copy;
mod placed_parts;
mod put_back;
mod revocation;
mod seen;
mod stored;
mod succession;
mod windows;
