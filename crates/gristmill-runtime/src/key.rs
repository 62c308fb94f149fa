//! Source keys -> their order from oldest to newest: runs of digits compare as numbers.
//! Pure comparison; a total order that agrees with equality, so that sorting gives one answer.

use std::cmp::Ordering;

/// Compares names with runs of ASCII digits as numbers of any length: `training.99.gz` before `training.100.gz`.
///
/// Everything else compares byte by byte. Names that differ only in leading zeros are equal as numbers;
/// then the plain bytes decide, so two different names never compare as equal.
pub fn natural_cmp(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a.as_bytes(), b.as_bytes());
    loop {
        match (x.first(), y.first()) {
            (Some(m), Some(n)) if m.is_ascii_digit() && n.is_ascii_digit() => {
                let (left, right) = (digits(&mut x), digits(&mut y));
                let order = left.len().cmp(&right.len()).then_with(|| left.cmp(right));
                if order.is_ne() {
                    return order;
                }
            }
            (Some(m), Some(n)) if m == n => (x, y) = (&x[1..], &y[1..]),
            (None, None) => return a.cmp(b),
            (m, n) => return m.cmp(&n),
        }
    }
}

/// The key of a file: its name without the directory.
pub fn of_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Takes the leading run of digits off `text`; returns it without leading zeros.
fn digits<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (run, rest) = text.split_at(end);
    *text = rest;
    &run[run.iter().position(|&b| b != b'0').unwrap_or(run.len())..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_compare_as_numbers() {
        let sorted = [
            "",
            "1",
            "2",
            "10",
            "game",
            "training.0.gz",
            "training.9.gz",
            "training.099.gz",
            "training.99.gz",
            "training.100.gz",
            "training.18446744073709551615.gz",
            "training.18446744073709551616.gz",
            "training.99999999999999999999999.gz",
            "training.gz",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(natural_cmp(a, b), i.cmp(&j), "{a} against {b}");
            }
        }
    }

    #[test]
    fn keys_are_base_names() {
        assert_eq!(of_name("a/b/training.1.gz"), "training.1.gz");
        assert_eq!(of_name("training.1.gz"), "training.1.gz");
    }

    proptest! {
        #[test]
        fn it_is_a_total_order(a in "[a01./]{0,6}", b in "[a01./]{0,6}", c in "[a01./]{0,6}") {
            prop_assert_eq!(natural_cmp(&a, &b), natural_cmp(&b, &a).reverse());
            prop_assert_eq!(natural_cmp(&a, &b) == Ordering::Equal, a == b);
            if natural_cmp(&a, &b).is_le() && natural_cmp(&b, &c).is_le() {
                prop_assert!(natural_cmp(&a, &c).is_le());
            }
        }
    }
}
