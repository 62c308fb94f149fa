//! The exact byte form in which the producer writes its lines -> a step, several times faster than JSON in general.
//! Whatever differs in a single byte is left to `json`, which gives the same step for what this one accepts.

use std::borrow::Cow;

use super::line::Step;
use crate::g2048::board::CELLS;
use crate::g2048::moves::Move;

/// Digits of an integer part such that with six decimals it stays below 2^53 and the division below is exact.
const WHOLE_DIGITS: usize = 9;

/// Parses the line that `text` starts with, and says how many bytes it took, line end included. `None`: not in the
/// producer's form, which says nothing about whether it is a good line.
pub fn parse_fixed(text: &[u8]) -> Option<(Step<'_>, usize)> {
    let mut rest = text.strip_prefix(b"{\"seed\":")?;
    let seed = integer(&mut rest, 19)?;
    rest = rest.strip_prefix(b",\"step_index\":")?;
    let step_index = u32::try_from(integer(&mut rest, 10)?).ok()?;
    rest = rest.strip_prefix(b",\"max_rank\":")?;
    let max_rank = u8::try_from(integer(&mut rest, 3)?).ok()?;
    rest = rest.strip_prefix(b",\"move\":\"")?;
    let mv = movement(&mut rest)?;
    let valuation = match rest.strip_prefix(b",\"valuation_type\":\"") {
        Some(after) => {
            rest = after;
            Some(Cow::Borrowed(plain_text(&mut rest)?))
        }
        None => None,
    };
    rest = rest.strip_prefix(b",\"valuation\":")?;
    decimal(&mut rest)?;
    rest = rest.strip_prefix(b",\"board\":[")?;
    let ranks = board(&mut rest)?;
    let (mut evs, mut legal) = ([0.0; 4], 0);
    rest = rest.strip_prefix(b",\"branch_evs\":{\"up\":")?;
    branch(&mut rest, Move::Up, &mut evs, &mut legal)?;
    rest = rest.strip_prefix(b",\"left\":")?;
    branch(&mut rest, Move::Left, &mut evs, &mut legal)?;
    rest = rest.strip_prefix(b",\"right\":")?;
    branch(&mut rest, Move::Right, &mut evs, &mut legal)?;
    rest = rest.strip_prefix(b",\"down\":")?;
    branch(&mut rest, Move::Down, &mut evs, &mut legal)?;
    rest = rest.strip_prefix(b"}}")?;
    rest = match rest {
        [] => rest,
        [b'\n', after @ ..] | [b'\r', b'\n', after @ ..] => after,
        _ => return None,
    };
    let step = Step {
        seed: Some(seed),
        step_index: Some(step_index),
        max_rank: Some(max_rank),
        mv,
        valuation,
        ranks,
        evs,
        legal,
        unknown_branch: false,
    };
    Some((step, text.len() - rest.len()))
}

/// A whole number of at most `most` digits, without a leading zero.
fn integer(rest: &mut &[u8], most: usize) -> Option<u64> {
    let (mut value, mut n) = (0u64, 0);
    while let Some(digit) = rest.get(n).map(|c| c.wrapping_sub(b'0'))
        && digit < 10
    {
        if n == most {
            return None;
        }
        value = value * 10 + u64::from(digit);
        n += 1;
    }
    if n == 0 || n > 1 && rest[0] == b'0' {
        return None;
    }
    *rest = &rest[n..];
    Some(value)
}

fn movement(rest: &mut &[u8]) -> Option<Move> {
    let names: [(&[u8], Move); 4] =
        [(b"up\"", Move::Up), (b"left\"", Move::Left), (b"right\"", Move::Right), (b"down\"", Move::Down)];
    let (mv, after) = names.iter().find_map(|(name, mv)| Some((*mv, rest.strip_prefix(*name)?)))?;
    *rest = after;
    Some(mv)
}

/// Text up to the closing quote, in printable ASCII without escapes.
fn plain_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let end = rest.iter().position(|c| !matches!(c, b' '..=b'~') || matches!(c, b'"' | b'\\'))?;
    let text = std::str::from_utf8(&rest[..end]).ok()?;
    *rest = rest[end..].strip_prefix(b"\"")?;
    Some(text)
}

/// A number with exactly six decimals, rounded as a decimal -> binary64 conversion must: both the number of
/// millionths and 10^6 are exact, and a division rounds once.
fn decimal(rest: &mut &[u8]) -> Option<f64> {
    let negative = rest.first() == Some(&b'-');
    let mut digits = &rest[usize::from(negative)..];
    let whole = integer(&mut digits, WHOLE_DIGITS)?;
    digits = digits.strip_prefix(b".")?;
    let fraction = six_digits(*digits.first_chunk()?)?;
    *rest = &digits[6..];
    let value = (whole * 1_000_000 + u64::from(fraction)) as f64 / 1e6;
    Some(if negative { -value } else { value })
}

/// The first six of eight bytes as digits, all at once.
fn six_digits(bytes: [u8; 8]) -> Option<u32> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let text = u64::from_le_bytes(bytes) << 16 | 0x3030;
    let digits = text.wrapping_sub(ZEROS);
    let beyond_nine = digits.wrapping_add(0x7676_7676_7676_7676);
    if (digits | beyond_nine) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let quads = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    Some((quads.wrapping_mul(10_000).wrapping_add(quads >> 32)) as u32)
}

/// Sixteen numbers of one or two digits, and the closing bracket. Without a branch on what the numbers are.
fn board(rest: &mut &[u8]) -> Option<[u8; CELLS]> {
    // A board has at most 48 bytes, and the branches after it more than 16: a line always has 64 bytes left.
    let window: &[u8; 64] = rest.first_chunk()?;
    let mut ranks = [0; CELLS];
    let (mut at, mut bad) = (0, false);
    for (i, rank) in ranks.iter_mut().enumerate() {
        let first = window[at & 63].wrapping_sub(b'0');
        let second = window[(at + 1) & 63].wrapping_sub(b'0');
        let two = second < 10;
        *rank = if two { first.wrapping_mul(10).wrapping_add(second) } else { first };
        at += 1 + usize::from(two);
        let end = if i + 1 < CELLS { b',' } else { b']' };
        bad |= first > 9 || two & (first == 0) || window[at & 63] != end;
        at += 1;
    }
    *rest = &rest[at..];
    (!bad).then_some(ranks)
}

fn branch(rest: &mut &[u8], mv: Move, evs: &mut [f32; 4], legal: &mut u8) -> Option<()> {
    if let Some(after) = rest.strip_prefix(b"null") {
        *rest = after;
        return Some(());
    }
    evs[mv.index()] = decimal(rest)? as f32;
    *legal |= 1 << mv.index();
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::json::parse_json;
    use super::*;

    const LINE: &str = "{\"seed\":272350805,\"step_index\":7,\"max_rank\":15,\"move\":\"down\",\"valuation_type\":\"search\",\
\"valuation\":-1587.186000,\"board\":[15,13,11,1,14,12,1,0,0,0,0,0,0,0,0,0],\
\"branch_evs\":{\"up\":null,\"left\":0.034000,\"right\":-0.000000,\"down\":-1587.186000}}";

    #[test]
    fn the_producers_form_is_taken_whole() {
        for end in ["", "\n", "\r\n"] {
            let text = format!("{LINE}{end}");
            let (step, used) = parse_fixed(text.as_bytes()).unwrap();
            assert_eq!(used, text.len());
            assert_eq!((step.seed, step.step_index, step.max_rank), (Some(272_350_805), Some(7), Some(15)));
            assert_eq!((step.mv, step.valuation.as_deref(), step.legal), (Move::Down, Some("search"), 0b1110));
            assert_eq!(step.evs.map(f32::to_bits), [0.0, -1587.186, 0.034, -0.0].map(f32::to_bits));
            assert_eq!(step.ranks, [15, 13, 11, 1, 14, 12, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(parse_json(LINE.as_bytes()).unwrap().unwrap(), step);
        }
        let old = LINE.replace("\"valuation_type\":\"search\",", "");
        assert_eq!(parse_fixed(old.as_bytes()).unwrap().0.valuation, None);
    }

    #[test]
    fn a_single_other_byte_is_left_to_json() {
        for (was, is) in [
            ("\"seed\":2", "\"seed\": 2"),
            ("\"seed\":272350805", "\"seed\":0272350805"),
            ("\"seed\":272350805", "\"seed\":27235080512345678901"),
            ("\"step_index\":7", "\"step_index\":null"),
            ("\"step_index\":7", "\"step_index\":4294967296"),
            ("\"max_rank\":15", "\"max_rank\":256"),
            ("down\",", "Down\","),
            ("search", "se\\u0061rch"),
            ("search", "s\u{e9}arch"),
            ("-1587.186000,\"board", "-1587.18600,\"board"),
            ("-1587.186000,\"board", "01587.186000,\"board"),
            ("-1587.186000,\"board", "-1587.186000e1,\"board"),
            ("[15,", "[015,"),
            ("[15,", "[115,"),
            ("[15,", "[-5,"),
            ("[15,", "[,"),
            ("0]", "0,0]"),
            (",0]", "]"),
            ("0.034000", "0.0340000"),
            ("0.034000", "0.03400"),
            ("0.034000", "0.03400a"),
            ("0.034000", ".034000"),
            ("0.034000", "1234567890.034000"),
            ("null", "NULL"),
            ("}}", "}}}"),
            ("}}", "}} "),
            ("}}", "},\"x\":1}"),
        ] {
            let text = LINE.replacen(was, is, 1);
            assert_ne!(text, LINE);
            assert!(parse_fixed(text.as_bytes()).is_none(), "{was} -> {is}");
        }
        for cut in 0..LINE.len() {
            assert!(parse_fixed(&LINE.as_bytes()[..cut]).is_none(), "cut at {cut}");
        }
    }

    #[test]
    fn six_digits_are_digits() {
        assert_eq!(six_digits(*b"123456xx"), Some(123_456));
        assert_eq!(six_digits(*b"000000\xff\xff"), Some(0));
        for at in 0..6 {
            for byte in (0..=255u8).filter(|c| !c.is_ascii_digit()) {
                let mut bytes = *b"99999999";
                bytes[at] = byte;
                assert_eq!(six_digits(bytes), None, "byte {byte} at {at}");
            }
        }
    }
}
