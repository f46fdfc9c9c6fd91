//! Typed data: where the bytes of a message lie in a user's buffer.
