//! One 512-byte tar header -> checked fields. Accepts every way that writers terminate numbers and split names.

use super::BLOCK;

/// A header block.
pub type Block = [u8; BLOCK as usize];

/// What the eight bytes of the checksum count for.
const SPACES: u32 = 8 * b' ' as u32;

/// Whether a block is all zeros: the end mark.
pub(super) fn is_zero(block: &Block) -> bool {
    block.iter().all(|&b| b == 0)
}

/// Whether the stored checksum agrees, summed over unsigned bytes or, as old writers did, signed ones.
pub(super) fn checksum_holds(block: &Block) -> bool {
    let field = &block[148..156];
    let Some(stored) = number(field) else { return false };
    // All bytes, the field's own taken for spaces.
    let unsigned = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    if stored == u64::from(unsigned(block) - unsigned(field) + SPACES) {
        return true;
    }
    let signed = |bytes: &[u8]| bytes.iter().map(|byte| i64::from(byte.cast_signed())).sum::<i64>();
    i64::try_from(stored) == Ok(signed(block) - signed(field) + i64::from(SPACES))
}

/// Whether it says `ustar`, as POSIX and GNU headers do and those before them do not.
pub(super) fn has_magic(block: &Block) -> bool {
    &block[257..262] == b"ustar"
}

/// The kind of the member; NUL is an old regular file.
pub(super) fn kind(block: &Block) -> u8 {
    block[156]
}

/// The size field; `None` when it is no number, negative, or beyond 63 bits.
pub(super) fn size(block: &Block) -> Option<u64> {
    number(&block[124..136])
}

/// Whether more GNU sparse map blocks follow this header (`at` = 482) or map block (`at` = 504).
pub(super) fn sparse_continues(block: &Block, at: usize) -> bool {
    block[at] != 0
}

/// The name, with the prefix of POSIX headers in front.
pub(super) fn name(block: &Block) -> String {
    let own = text(&block[..100]);
    let posix = &block[257..263] == b"ustar\0";
    let prefix = if posix { text(&block[345..500]) } else { &[] };
    let joined = if prefix.is_empty() { own.to_vec() } else { [prefix, b"/", own].concat() };
    String::from_utf8_lossy(&joined).into_owned()
}

/// Bytes up to the first NUL.
pub(super) fn text(field: &[u8]) -> &[u8] {
    field.split(|&b| b == 0).next().unwrap_or_default()
}

/// Octal with leading spaces, ended by NUL, space or the end of the field; or base-256 when the top bit is set.
/// An empty field is zero.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let first = u64::from(field[0] & 0x7f);
        let value = field[1..].iter().try_fold(first, |n, &b| n.checked_mul(256)?.checked_add(u64::from(b)))?;
        return (value <= i64::MAX as u64).then_some(value);
    }
    let start = field.iter().position(|&b| b != b' ').unwrap_or(field.len());
    let field = &field[start..];
    let end = field.iter().position(|&b| b == 0 || b == b' ').unwrap_or(field.len());
    field[..end].iter().try_fold(0u64, |n, &b| {
        let digit = b.checked_sub(b'0').filter(|d| *d < 8)?;
        n.checked_mul(8)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_every_spelling() {
        for (field, value) in [
            (&b"00000013014\0"[..], Some(5644)),
            (b"00000013014 ", Some(5644)),
            (b"      13014 ", Some(5644)),
            (b"      13014\0", Some(5644)),
            (b"777777777777", Some(0o777_777_777_777)),
            (b"\0\0\0\0\0\0\0\0\0\0\0\0", Some(0)),
            (b"            ", Some(0)),
            (b"\x80\0\0\0\0\0\0\0\0\0\x16\x0c", Some(5644)),
            (b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", Some(i64::MAX as u64)),
            (b"\x80\0\0\0\x80\0\0\0\0\0\0\0", None),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
            (b"0000001301x\0", None),
            (b"00000000009\0", None),
            (b"-0000000001\0", None),
        ] {
            assert_eq!(number(field), value, "{field:?}");
        }
    }
}
