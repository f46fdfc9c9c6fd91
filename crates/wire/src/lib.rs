//! Identities, the message header, and their encoding.
