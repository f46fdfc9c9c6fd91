//! What launcher and daemon share: process start, guardian, output, signals, joining.
