//! A JSON document <-> the same with a checksum of what it says: no matter how it is laid out or in which order its fields
//! stand, so that it may travel through other programs. Knows nothing of what it means.

use serde_json::{Map, Value};
use xxhash_rust::xxh3::Xxh3;

/// The field that holds the checksum.
pub const FIELD: &str = "checksum";

/// Whole numbers up to here are the same with and without a fraction.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The checksum of an object: of all its fields but that of the checksum itself, as 16 hexadecimal digits.
pub fn checksum(document: &Map<String, Value>) -> String {
    let mut hash = Xxh3::new();
    object(document, Some(FIELD), &mut hash);
    format!("{:016x}", hash.digest())
}

/// Appends the checksum to the text of an object that has none. Errors: it is no object.
pub fn seal(mut text: String) -> serde_json::Result<String> {
    let sum = checksum(&serde_json::from_str(&text)?);
    let end = text.trim_end().len().saturating_sub(1);
    text.truncate(end);
    if !text.trim_end().ends_with('{') {
        text.push(',');
    }
    text.push_str(&format!("\"{FIELD}\":\"{sum}\"}}"));
    Ok(text)
}

/// Takes the checksum out of an object and compares it; whether there was one.
///
/// Errors: text, where it is that of something else.
pub fn unseal(document: &mut Map<String, Value>) -> Result<bool, String> {
    let Some(said) = document.remove(FIELD) else { return Ok(false) };
    let found = checksum(document);
    match said == Value::String(found.clone()) {
        true => Ok(true),
        false => Err(format!("its checksum is {said}, that of what it says \"{found}\": {DAMAGED}")),
    }
}

/// The error for a document that was changed.
pub const DAMAGED: &str = "it was damaged or changed; take another copy of it, or an earlier one";

fn write(value: &Value, hash: &mut Xxh3) {
    match value {
        Value::Object(fields) => object(fields, None, hash),
        Value::Array(items) => {
            hash.update(b"[");
            for (i, item) in items.iter().enumerate() {
                hash.update(if i > 0 { b"," } else { b"" });
                write(item, hash);
            }
            hash.update(b"]");
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            // Adding 0 makes 0 of the negative one.
            Some(whole) if whole.fract() == 0.0 && whole.abs() < EXACT => {
                hash.update(format!("{:.0}", whole + 0.0).as_bytes());
            }
            _ => hash.update(number.to_string().as_bytes()),
        },
        other => hash.update(other.to_string().as_bytes()),
    }
}

fn object(fields: &Map<String, Value>, without: Option<&str>, hash: &mut Xxh3) {
    let mut fields: Vec<_> = fields.iter().filter(|(name, _)| Some(name.as_str()) != without).collect();
    fields.sort_unstable_by_key(|(name, _)| *name);
    hash.update(b"{");
    for (i, (name, value)) in fields.into_iter().enumerate() {
        hash.update(if i > 0 { b"," } else { b"" });
        hash.update(Value::String(name.clone()).to_string().as_bytes());
        hash.update(b":");
        write(value, hash);
    }
    hash.update(b"}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_checksum_is_of_what_is_said_and_not_of_how() {
        let sealed = seal(r#"{"b":[1,2.5,-0.0,1e300],"a":{"ü":null,"x":"\n"}}"#.into()).unwrap();
        assert_eq!(unseal(&mut map(&sealed)), Ok(true));
        let sum = map(&sealed)[FIELD].clone();
        let other =
            format!(r#"{{ "checksum": {sum}, "a": {{"x": "\u000a", "\u00fc": null}}, "b": [1.0, 25e-1, 0, 1e+300]}}"#);
        assert_eq!(unseal(&mut map(&other)), Ok(true));
        assert_eq!(unseal(&mut map("{}")), Ok(false));
        assert_eq!(unseal(&mut map(&seal("{}".into()).unwrap())), Ok(true));
        for (from, to) in [("2.5", "2.25"), ("null", "0"), ("\"a\"", "\"c\""), ("[1,", "[")] {
            let said = unseal(&mut map(&sealed.replacen(from, to, 1))).unwrap_err();
            assert!(said.contains("take another copy"), "{said}");
        }
    }

    #[test]
    fn what_a_changed_byte_says_is_never_taken() {
        let sealed = seal(r#"{"a":[12,{"b":"cd"}],"e":true,"f":0.125}"#.into()).unwrap();
        let same = {
            let mut map = map(&sealed);
            unseal(&mut map).unwrap();
            map
        };
        for at in 0..sealed.len() {
            for byte in 0..128u8 {
                let mut bytes = sealed.clone().into_bytes();
                bytes[at] = byte;
                let Ok(Value::Object(mut found)) = serde_json::from_slice(&bytes) else { continue };
                if let Ok(true) = unseal(&mut found) {
                    assert_eq!(found, same, "byte {at} as {byte}");
                }
            }
        }
    }
}
