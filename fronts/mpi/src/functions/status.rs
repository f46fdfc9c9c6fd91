//! What a status says.
