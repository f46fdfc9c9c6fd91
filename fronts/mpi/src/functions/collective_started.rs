//! Collective operations that go on.
