//! Looking for messages, and taking them.
