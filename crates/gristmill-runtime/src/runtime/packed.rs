//! Many small numbers <-> one short text: LEB128 in base64, a byte or two for most; for `#[serde(with = "packed")]`.
//! Refuses what is no such text, and numbers that are too large for their place.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes numbers.
pub fn serialize<T: Copy + Into<u64>, S: Serializer>(numbers: &[T], to: S) -> Result<S::Ok, S::Error> {
    let mut bytes = Vec::with_capacity(2 * numbers.len());
    for &number in numbers {
        let mut rest: u64 = number.into();
        while rest >= 0x80 {
            bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    to.serialize_str(&STANDARD_NO_PAD.encode(bytes))
}

/// Reads them back.
///
/// Errors: no base64, a number that is cut off, or one that does not fit.
pub fn deserialize<'de, T: TryFrom<u64>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    let text = String::deserialize(from)?;
    let bytes = STANDARD_NO_PAD.decode(text).map_err(D::Error::custom)?;
    let mut numbers = Vec::with_capacity(bytes.len());
    let (mut number, mut shift) = (0u64, 0u32);
    for byte in bytes {
        let bits = u64::from(byte & 0x7f);
        let placed = bits.checked_shl(shift).filter(|placed| placed >> shift == bits);
        number |= placed.ok_or_else(|| D::Error::custom("a packed number has more than 64 bits"))?;
        shift += 7;
        if byte & 0x80 == 0 {
            let fits = T::try_from(number).map_err(|_| D::Error::custom(format!("{number} is too large here")))?;
            numbers.push(fits);
            (number, shift) = (0, 0);
        }
    }
    if shift == 0 { Ok(numbers) } else { Err(D::Error::custom("packed numbers are cut off")) }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Wide(#[serde(with = "super")] Vec<u64>);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Narrow(#[serde(with = "super")] Vec<u16>);

    #[test]
    fn numbers_come_back_and_small_ones_are_short() {
        let numbers = Wide(vec![0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX]);
        let text = serde_json::to_string(&numbers).unwrap();
        assert_eq!(serde_json::from_str::<Wide>(&text).unwrap(), numbers);
        assert_eq!(serde_json::from_str::<Wide>("\"\"").unwrap(), Wide(Vec::new()));
        assert_eq!(serde_json::to_string(&Narrow(vec![3; 3000])).unwrap().len(), 4002);
    }

    #[test]
    fn what_is_no_such_text_is_refused() {
        let refused = |text: &str| serde_json::from_str::<Narrow>(&format!("\"{text}\"")).unwrap_err().to_string();
        assert!(refused("!").contains("Invalid symbol"));
        assert!(refused("gA").contains("cut off"));
        assert!(refused("gIAE").contains("65536 is too large"));
        assert!(refused(&"////".repeat(4)).contains("more than 64 bits"));
    }
}
