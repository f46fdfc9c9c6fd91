//! Control messages: Rust values of one release in postcard's encoding, each with a limit of length.
//!
//! Bytes that come from elsewhere are checked whole: those that are too long, those of another version, those that no value
//! has, and those with more behind them are refused.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A message whose bytes follow from its form as a Rust type alone.
pub trait ControlMessage: Serialize + DeserializeOwned {
    /// The name of such a message in errors.
    const NAME: &'static str;
    /// The length of the longest message, in bytes.
    const BYTES_MAX: usize;
    /// The bytes in front of each message. Where two releases can meet, they have the version in them.
    const MARK: &'static [u8] = &[];

    /// Encodes the message.
    fn encode(&self) -> Vec<u8> {
        // Only a value of unknown length fails, and no message has one.
        let mut bytes = postcard::to_stdvec(self).unwrap_or_default();
        bytes.splice(..0, Self::MARK.iter().copied());
        bytes
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// [`ControlError`] if no process of this release writes such bytes.
    fn decode(bytes: &[u8]) -> Result<Self, ControlError> {
        let (message, length, most) = (Self::NAME, bytes.len(), Self::BYTES_MAX);
        if length > most {
            return Err(ControlError::TooLong { message, length, most });
        }
        let content = bytes.strip_prefix(Self::MARK).ok_or(ControlError::Version { message })?;
        match postcard::take_from_bytes(content) {
            Ok((value, [])) => Ok(value),
            Ok((_, rest)) => Err(ControlError::Trailing { message, length: rest.len() }),
            Err(_) => Err(ControlError::Form { message }),
        }
    }
}

/// The reason why bytes are no control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// They are too long.
    #[error("{message} has {length} bytes, and at most {most} are possible")]
    TooLong {
        /// The name of the message.
        message: &'static str,
        /// The length.
        length: usize,
        /// The largest length.
        most: usize,
    },
    /// They do not begin with the mark of this version.
    #[error("{message} is of another version: use the same version of Landeck on both sides")]
    Version {
        /// The name of the message.
        message: &'static str,
    },
    /// No value has these bytes.
    #[error("{message} has a field that no process of this version writes")]
    Form {
        /// The name of the message.
        message: &'static str,
    },
    /// More bytes stand behind the message.
    #[error("{message} has {length} bytes behind its end")]
    Trailing {
        /// The name of the message.
        message: &'static str,
        /// The number of these bytes.
        length: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
    enum Order {
        Go { far: u32 },
        Stop,
    }

    impl ControlMessage for Order {
        const NAME: &'static str = "an order";
        const BYTES_MAX: usize = 8;
        const MARK: &'static [u8] = b"O\x01";
    }

    #[test]
    fn a_message_survives_its_encoding_and_everything_else_is_refused_by_name() {
        for order in [Order::Go { far: u32::MAX }, Order::Stop] {
            assert_eq!(Order::decode(&order.encode()), Ok(order));
        }
        let message = Order::NAME;
        for (bytes, error) in [
            (&b"O\x02\x01"[..], ControlError::Version { message }),
            (b"", ControlError::Version { message }),
            (b"O\x01", ControlError::Form { message }),
            (b"O\x01\x02", ControlError::Form { message }),
            (b"O\x01\x00\xff\xff", ControlError::Form { message }),
            (b"O\x01\x01\x00", ControlError::Trailing { message, length: 1 }),
            (&[0; 9], ControlError::TooLong { message, length: 9, most: 8 }),
        ] {
            assert_eq!(Order::decode(bytes), Err(error));
            assert!(error.to_string().starts_with("an order "), "{error}");
        }
    }
}
