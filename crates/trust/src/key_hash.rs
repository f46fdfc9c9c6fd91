//! The hash by which a host knows the key of another.

use std::fmt;
use std::str::FromStr;

/// The SHA-256 of a public key in its X.509 form (SubjectPublicKeyInfo). Its text is 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyHash(pub [u8; 32]);

/// The error of a text that is no [`KeyHash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the hash of a key is 64 hexadecimal digits")]
pub struct KeyHashError;

impl fmt::Display for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyHash({self})")
    }
}

impl FromStr for KeyHash {
    type Err = KeyHashError;

    fn from_str(text: &str) -> Result<Self, KeyHashError> {
        parse_hex(text).map(Self).ok_or(KeyHashError)
    }
}

/// Reads exactly so many bytes from lower-case hexadecimal digits.
pub(crate) fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_hash_is_the_hash() {
        let hash = KeyHash(std::array::from_fn(|at| u8::try_from(at * 8).unwrap()));
        let text = hash.to_string();
        assert_eq!((text.len(), &text[..8]), (64, "00081018"));
        assert_eq!(text.parse(), Ok(hash));
        for wrong in
            [&text[1..], &text.to_uppercase(), &format!("{text}0"), &text.replace('0', "g")]
        {
            assert_eq!(wrong.parse::<KeyHash>(), Err(KeyHashError), "{wrong}");
        }
        let signed = format!("+{}", &text[1..]);
        assert_eq!(signed.parse::<KeyHash>(), Err(KeyHashError));
    }
}
