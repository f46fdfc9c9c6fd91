//! Seeded runs of a model group.
