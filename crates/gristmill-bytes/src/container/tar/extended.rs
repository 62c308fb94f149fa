//! What pax (`x`, `g`) and GNU (`L`) headers say about the members after them: name and size.
//! Payloads are bounded before they get here; unknown keywords are passed over.

/// Overrides for the next member; `None` leaves the header's own value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Extended {
    pub(super) path: Option<String>,
    pub(super) size: Option<u64>,
    /// Written by GNU tar as a sparse file: the payload is not the file.
    pub(super) sparse: bool,
}

impl Extended {
    /// Takes in the records of a pax payload: `"<length> <keyword>=<value>\n"`, the length counting itself.
    /// Returns false when they do not add up; what came before the damage is kept.
    pub(super) fn pax(&mut self, mut payload: &[u8]) -> bool {
        while !payload.is_empty() && payload.iter().any(|&b| b != 0) {
            let Some((record, rest)) = cut(payload) else { return false };
            let Some(equals) = record.iter().position(|&b| b == b'=') else { return false };
            let (keyword, value) = (&record[..equals], &record[equals + 1..]);
            match keyword {
                b"path" => self.path = (!value.is_empty()).then(|| String::from_utf8_lossy(value).into_owned()),
                b"size" if value.is_empty() => self.size = None,
                b"size" => match decimal(value) {
                    Some(n) if i64::try_from(n).is_ok() => self.size = Some(n),
                    _ => return false,
                },
                _ => self.sparse |= keyword.starts_with(b"GNU.sparse."),
            }
            payload = rest;
        }
        true
    }

    /// Values here, else those of `under` (the global header).
    pub(super) fn over(self, under: &Extended) -> Extended {
        Extended {
            path: self.path.or_else(|| under.path.clone()),
            size: self.size.or(under.size),
            sparse: self.sparse || under.sparse,
        }
    }
}

/// The first record without its length and newline, and what follows it.
fn cut(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = payload.iter().take(20).position(|&b| b == b' ')?;
    let len = usize::try_from(decimal(&payload[..space])?).ok()?;
    let record = payload.get(space + 1..len)?;
    Some((record.strip_suffix(b"\n")?, &payload[len..]))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_add_up_or_are_refused() {
        let mut one = Extended::default();
        assert!(one.pax(b"13 path=a/bc\n11 mtime=1\n12 size=123\n"));
        assert_eq!((one.path.as_deref(), one.size), (Some("a/bc"), Some(123)));
        for bad in [
            &b"13 path=a/bc"[..],
            b"99 path=a/bc\n",
            b"0 path=a\n",
            b"2 path=a\n",
            b"path=a\n",
            b"99999999999999999999999 path=a\n",
            b"9 patha\n\n",
            b"11 size=-1\n",
            b"28 size=99999999999999999999\n",
        ] {
            assert!(!Extended::default().pax(bad), "{}", String::from_utf8_lossy(bad));
        }
        assert!(Extended::default().pax(b"\0\0\0"));
    }
}
