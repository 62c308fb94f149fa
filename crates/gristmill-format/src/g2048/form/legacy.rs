//! Values of branches -> as legacy packs have them: within a step, from 0 to 1. Whatever the scale was, it is lost.

/// The largest value of a branch that was not chosen.
const BELOW_ONE: f32 = 1.0 - f32::EPSILON;

/// The values of one step between the lowest and the highest of its legal branches: the chosen one is exactly 1, others
/// stay below it, illegal ones are 0; 0.5 where all are equal.
pub fn normalised(values: [f32; 4], legal: u8, chosen: u8) -> [f32; 4] {
    let is_legal = |i: usize| legal >> i & 1 == 1;
    let of_legal = || (0..4).filter(|i| is_legal(*i)).map(|i| values[i]);
    let (least, most) = (of_legal().fold(f32::INFINITY, f32::min), of_legal().fold(f32::NEG_INFINITY, f32::max));
    [0, 1, 2, 3].map(|i| {
        if !is_legal(i) {
            0.0
        } else if i == usize::from(chosen) {
            1.0
        } else if of_legal().count() == 1 {
            BELOW_ONE
        } else if least == most {
            0.5
        } else {
            let share = (f64::from(values[i]) - f64::from(least)) / (f64::from(most) - f64::from(least));
            (share as f32).clamp(0.0, BELOW_ONE)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shares_of_the_step() {
        assert_eq!(normalised([-4.0, -2.0, 9.0, 0.0], 0b1011, 3), [0.0, 0.5, 0.0, 1.0]);
        assert_eq!(normalised([3.0, 3.0, 3.0, 0.0], 0b0111, 1), [0.5, 1.0, 0.5, 0.0]);
        assert_eq!(normalised([5.0, 7.0, 0.0, 0.0], 0b0011, 0), [1.0, BELOW_ONE, 0.0, 0.0]);
        assert_eq!(normalised([5.0; 4], 0b0100, 255), [0.0, 0.0, BELOW_ONE, 0.0]);
        assert_eq!(normalised([5.0; 4], 0, 2), [0.0; 4]);
        assert_eq!(normalised([f32::MIN, f32::MAX, 0.0, 0.0], 0b0111, 1), [0.0, 1.0, 0.5, 0.0]);
    }
}
