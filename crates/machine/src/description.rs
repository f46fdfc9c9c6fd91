//! The description of a virtual machine.

use core::net::IpAddr;

use landeck_wire::word::HostPlace;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {}

#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct DescriptionError {
    pub line: usize,
    pub what: String,
}

impl Description {
    pub fn parse(_: &[u8]) -> Result<Self, Vec<DescriptionError>> {
        Ok(Self {})
    }

    pub fn place(&self, _: &str, _: &[IpAddr]) -> HostPlace {
        HostPlace::default()
    }
}
