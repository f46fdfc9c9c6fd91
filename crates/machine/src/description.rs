//! The description of a virtual machine.
