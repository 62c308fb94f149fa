//! The target of a request -> the parts of its path and its query, decoded; words -> parts of a URL. Opens nothing.

use std::fmt::Write;

/// What a request asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Parts of the path, without empty ones.
    pub(crate) path: Vec<String>,
    query: Vec<(String, String)>,
}

impl Asked {
    /// What `target` says.
    ///
    /// Errors: what is no path with a query in UTF-8.
    pub(crate) fn parse(target: &str) -> Result<Self, &'static str> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if !path.starts_with('/') {
            return Err("ask for a path that starts with /");
        }
        let whole = |text: &str, plus| decoded(text, plus).ok_or("percent signs of a URL stand before UTF-8 bytes");
        let path = path.split('/').filter(|part| !part.is_empty()).map(|part| whole(part, false));
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((whole(name, true)?, whole(value, true)?))
        });
        Ok(Asked { path: path.collect::<Result<_, _>>()?, query: pairs.collect::<Result<_, &'static str>>()? })
    }

    /// A value of the query; empty where there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.query.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }

    /// A number of the query; 0 for what is none.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.get(name).parse().unwrap_or(0)
    }
}

/// Text with percent signs -> the text; none where it is not UTF-8.
fn decoded(text: &str, plus: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits =
                    std::str::from_utf8(&digits).ok().filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()))?;
                u8::from_str_radix(digits, 16).ok()?
            }
            b'+' if plus => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Text as a part of a path or a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Bytes as the text of a `data:` URL has them.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let all = three.iter().fold(0u32, |all, byte| all << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for i in 0..4 {
            let digit = DIGITS[(all >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= three.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

/// A query of the values that are not empty, with its question mark.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let said = pairs.iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<String> = said.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_queries_are_decoded() {
        let asked = Asked::parse("/game/7//a%2Fb+c?where=a+%3E%201&page=2&flag").unwrap();
        assert_eq!(asked.path, ["game", "7", "a/b+c"]);
        assert_eq!((asked.get("where"), asked.number("page"), asked.number("flag")), ("a > 1", 2, 0));
        assert_eq!(asked.get("none"), "");
        for refused in ["", "game", "http://a/", "/%", "/%4", "/%zz", "/%+1", "/%ff", "/?a=%ff"] {
            assert!(Asked::parse(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn bytes_are_written_in_base64() {
        let told = ["", "f", "fo", "foo", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(told, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYmFy"]);
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn what_is_encoded_comes_back() {
        for text in ["", "a b", "a&b=c?d#e/f", "ü<\"'>%"] {
            let there = query(&[("x", text), ("empty", "")]);
            assert_eq!(Asked::parse(&format!("/{there}")).unwrap().get("x"), text, "{there}");
            assert!(!there.contains("empty"));
        }
    }
}
