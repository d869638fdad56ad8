//! HMAC-SHA256 (RFC 2104), for numbers and fingerprints that tell nothing of a value.

use crate::record::{Error, Result};
use sha2::{Digest, Sha256};

/// Bytes of a block of SHA-256.
const BLOCK: usize = 64;

/// A secret key.
#[derive(Clone)]
pub struct Key {
    inner: Sha256,
    outer: Sha256,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // never what it is made of
        f.write_str("Key")
    }
}

impl Key {
    /// The key made of these bytes, white space at their ends aside.
    ///
    /// # Errors
    /// There are fewer than 16: such a key could be found by trying.
    pub fn new(bytes: &[u8]) -> Result<Key> {
        let bytes = bytes.trim_ascii();
        if bytes.len() < 16 {
            return Err(Error::Usage {
                what: "a salt has 16 bytes or more".to_owned(),
                hint: Some("name a file that does not exist: relay makes it".to_owned()),
            });
        }
        let mut block = [0u8; BLOCK];
        let hashed = Sha256::digest(bytes);
        let key = if bytes.len() > BLOCK { hashed.as_slice() } else { bytes };
        for (to, from) in block.iter_mut().zip(key) {
            *to = *from;
        }
        let begun = |mark: u8| Sha256::new_with_prefix(block.map(|b| b ^ mark));
        Ok(Key { inner: begun(0x36), outer: begun(0x5c) })
    }

    /// The code of a message.
    pub fn mac(&self, message: &[u8]) -> [u8; 32] {
        let inner = self.inner.clone().chain_update(message).finalize();
        self.outer.clone().chain_update(inner).finalize().into()
    }

    /// The first four bytes of the code.
    pub(super) fn mac4(&self, message: &[u8]) -> [u8; 4] {
        let [a, b, c, d, ..] = self.mac(message);
        [a, b, c, d]
    }

    /// The code that stands for a value in reports and lists: 32 hexadecimal digits.
    pub fn fingerprint(&self, value: &[u8]) -> String {
        let code = self.mac(value);
        let hex = super::known::hex(code.get(..16).unwrap_or_default(), false);
        String::from_utf8(hex).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_standard() {
        // RFC 4231, test cases 1, 3 and 6
        let code = |key: &[u8], message: &[u8]| {
            String::from_utf8(super::super::known::hex(&Key::new(key).unwrap().mac(message), false)).unwrap()
        };
        assert!(code(&[0x0b; 20], b"Hi There").starts_with("b0344c61"));
        let three = code(&[0xaa; 20], &[0xdd; 50]);
        assert!(three.starts_with("773ea91e") && three.ends_with("ced565fe"), "{three}");
        let long = code(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First");
        assert!(long.starts_with("60e43159"), "{long}");
        assert!(Key::new(b"short").is_err() && Key::new(b"   fifteen-bytes-  ").is_err());
        assert_eq!(format!("{:?}", Key::new(&[7; 20]).unwrap()), "Key");
    }
}
