//! Numbers -> their sum without rounding, so that it is the same in any order, and in parts that are added up: the mean and the
//! deviation of a job in shares are those of one process. Takes finite numbers; a sum is at most 140 words of 32 bits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Bits of a word.
const BITS: i32 = 32;

/// Bits of the significand of an `f64`, and its least exponent.
const DIGITS: i32 = 53;
const LEAST: i32 = -1074;

/// A sum of numbers, or of their squares.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sum {
    /// By number of the word, how often there is 2^(32 × that number). A number adds less than 2^85 to a word: none overflows.
    words: BTreeMap<i32, i128>,
}

impl Sum {
    /// Adds a finite number.
    pub fn add(&mut self, number: f64) {
        let (significand, exponent) = parts(number);
        self.put(significand.into(), exponent);
    }

    /// Adds the square of a finite number.
    pub fn add_square(&mut self, number: f64) {
        let (significand, exponent) = parts(number);
        let square = i128::from(significand) * i128::from(significand);
        self.put(square & ((1 << DIGITS) - 1), 2 * exponent);
        self.put(square >> DIGITS, 2 * exponent + DIGITS);
    }

    /// Adds another sum.
    pub fn join(&mut self, other: &Sum) {
        for (at, word) in &other.words {
            *self.words.entry(*at).or_default() += word;
        }
    }

    /// The sum divided by `count`.
    pub fn mean(&self, count: u64) -> f64 {
        let (number, exponent) = self.carried().number();
        scaled(number / count as f64, exponent)
    }

    /// The deviation of `count` numbers whose sum this is and whose squares add up to `squares`.
    pub fn deviation(&self, squares: &Sum, count: u64) -> f64 {
        let (sum, mut distance) = (self.carried(), Sum::default());
        for (at, word) in &squares.carried().words {
            *distance.words.entry(*at).or_default() += word * i128::from(count as u32);
            *distance.words.entry(at + 1).or_default() += word * i128::from(count >> BITS);
        }
        for (at, word) in &sum.words {
            for (of, by) in &sum.words {
                let product = word * by;
                *distance.words.entry(at + of).or_default() -= product & i128::from(u32::MAX);
                *distance.words.entry(at + of + 1).or_default() -= product >> BITS;
            }
        }
        let (number, exponent) = distance.carried().number();
        // The exponent is that of a word, and even.
        scaled(number.max(0.0).sqrt() / count as f64, exponent / 2)
    }

    /// Adds `times` × 2^`exponent`; `times` has at most 54 bits.
    fn put(&mut self, times: i128, exponent: i32) {
        if times != 0 {
            *self.words.entry(exponent.div_euclid(BITS)).or_default() += times << exponent.rem_euclid(BITS);
        }
    }

    /// The same sum with words of 32 bits, all of the sign of the sum: there is one such form.
    fn carried(&self) -> Sum {
        let (mut words, mut carry, mut next) = (BTreeMap::new(), 0, i32::MIN);
        let mut queue: BTreeMap<i32, i128> = self.words.clone();
        while let Some((at, word)) = queue.pop_first() {
            let word = word + if at == next { std::mem::take(&mut carry) } else { 0 };
            let (low, high) = (word & i128::from(u32::MAX), word >> BITS);
            words.insert(at, low);
            next = at + 1;
            carry = high;
            // A negative sum ends in a word of -1, which is not carried on.
            if carry != 0 && !queue.contains_key(&next) {
                if queue.is_empty() && carry == -1 {
                    words.insert(next, -1);
                    break;
                }
                queue.insert(next, 0);
            }
        }
        let sum = Sum { words };
        match sum.words.last_key_value() {
            Some((_, last)) if *last < 0 => {
                let opposite = Sum { words: sum.words.iter().map(|(at, word)| (*at, -word)).collect() };
                let carried = opposite.carried();
                Sum { words: carried.words.into_iter().map(|(at, word)| (at, -word)).collect() }
            }
            _ => sum,
        }
    }

    /// The number times 2 to a power that a carried sum is, from its highest words: of about 1 to 2^96.
    fn number(&self) -> (f64, i32) {
        let mut words = self.words.iter().rev().skip_while(|(_, word)| **word == 0).peekable();
        let Some((top, _)) = words.peek().copied() else { return (0.0, 0) };
        // Four words hold more than the 53 bits of the result.
        let whole = words.take_while(|(at, _)| top - **at < 4);
        let number = whole.map(|(at, word)| (*word as f64, BITS * (at - top + 2)));
        let mut number: Vec<(f64, i32)> = number.collect();
        number.reverse();
        (number.into_iter().map(|(word, exponent)| scaled(word, exponent)).sum(), BITS * (top - 2))
    }
}

/// The significand of a finite number, with its sign, and the power of two that it is multiplied by.
fn parts(number: f64) -> (i64, i32) {
    let bits = number.to_bits();
    let (exponent, low) = ((bits >> 52 & 0x7ff) as i32, (bits & ((1 << 52) - 1)) as i64);
    let (significand, exponent) = if exponent == 0 { (low, LEAST) } else { (low | 1 << 52, exponent - 1 + LEAST) };
    (if number.is_sign_negative() { -significand } else { significand }, exponent)
}

/// A number times 2 to a power that may be out of the range of `f64`, where the product is not.
fn scaled(number: f64, exponent: i32) -> f64 {
    let half = exponent / 2;
    number * 2f64.powi(half) * 2f64.powi(exponent - half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::seed::Key;

    fn both(numbers: &[f64]) -> (f64, f64) {
        let (mut sum, mut squares) = (Sum::default(), Sum::default());
        for number in numbers {
            sum.add(*number);
            squares.add_square(*number);
        }
        let count = numbers.len() as u64;
        (sum.mean(count), sum.deviation(&squares, count))
    }

    #[test]
    fn mean_and_deviation_of_known_numbers() {
        assert_eq!(both(&[1.0, 2.0, 3.0, 6.0]), (3.0, 3.5f64.sqrt()));
        assert_eq!(both(&[-0.25]), (-0.25, 0.0));
        assert_eq!(both(&[-3.0, -5.0]), (-4.0, 1.0));
        assert_eq!(both(&[0.0, -0.0]), (0.0, 0.0));
        assert_eq!(both(&[1e16, 1.0, -1e16]).0, 1.0 / 3.0);
        // A large mean, a small deviation: nothing cancels.
        assert_eq!(both(&[1e15, 1e15 + 1.0, 1e15 + 2.0, 1e15 + 1.0]), (1e15 + 1.0, 0.5f64.sqrt()));
        assert_eq!(both(&[f64::MAX, f64::MAX]), (f64::MAX, 0.0));
        assert_eq!(both(&[f64::MAX, -f64::MAX]), (0.0, f64::MAX));
        let least = f64::from_bits(1);
        assert_eq!(both(&[least, least]), (least, 0.0));
    }

    #[test]
    fn a_sum_is_the_same_in_any_order_and_in_any_parts() {
        for case in 0..300 {
            let mut draws = Key::new(case, "sums").at(0);
            let mut numbers: Vec<f64> =
                (0..1 + draws.below(40)).map(|_| f64::from_bits(draws.below(u64::MAX))).collect();
            numbers.retain(|number| number.is_finite());
            let of = |numbers: &[f64]| {
                let (mut sum, mut squares) = (Sum::default(), Sum::default());
                numbers.iter().for_each(|number| (sum.add(*number), squares.add_square(*number)).0);
                (sum, squares)
            };
            let count = numbers.len().max(1) as u64;
            let results =
                |(sum, squares): &(Sum, Sum)| (sum.mean(count).to_bits(), sum.deviation(squares, count).to_bits());
            let whole = results(&of(&numbers));
            let middle = draws.below(numbers.len() as u64 + 1) as usize;
            let (mut first, second) = (of(&numbers[middle..]), of(&numbers[..middle]));
            first.0.join(&second.0);
            first.1.join(&second.1);
            assert_eq!(results(&first), whole, "case {case}");
            numbers.reverse();
            assert_eq!(results(&of(&numbers)), whole, "case {case}");
        }
    }
}
