//! Branch values clamped to 0..=1 -> bins of a fixed list of edges: the targets of `binned_ev`.

use gristmill_bytes::error::{Error, Kind, Result};

/// The edges that are used where none are given.
pub const DEFAULT_EDGES: [f64; 11] = [0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1.0];

/// What the edges mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Exactly 0 is the first bin, exactly 1 the last, and between them each `(low, high]` is one: edges + 1 bins.
    #[default]
    SpecialZeroOne,
    /// Each `(low, high]` is a bin, the first one with its lower end: edges - 1 bins.
    Edges,
    /// Each edge is the upper end of a bin: as many bins as edges; what is above the last belongs to it.
    UpperBounds,
    /// As [`Form::UpperBounds`], but with a value at an edge one bin higher, as the reference's code has it.
    UpperBoundsCompat,
}

/// Bins of branch values.
#[derive(Debug, Clone, PartialEq)]
pub struct Binner {
    /// Values are of 32 bits, and so are the edges that they are compared with: what was logged as 0.8 is at the edge 0.8.
    edges: Vec<f32>,
    form: Form,
}

impl Default for Binner {
    fn default() -> Self {
        Binner { edges: DEFAULT_EDGES.map(|edge| edge as f32).to_vec(), form: Form::default() }
    }
}

impl Binner {
    /// A binner of strictly increasing edges within 0..=1, which are rounded to 32 bits.
    ///
    /// Errors: `OutOfRange` for edges that are not, or too few (one for upper bounds, else two), or more than 255.
    pub fn new(edges: Vec<f64>, form: Form) -> Result<Self> {
        let least = if matches!(form, Form::UpperBounds | Form::UpperBoundsCompat) { 1 } else { 2 };
        let rounded: Vec<f32> = edges.iter().map(|edge| *edge as f32).collect();
        let sorted = rounded.windows(2).all(|pair| pair[0] < pair[1]);
        if !sorted || !(least..=255).contains(&edges.len()) || edges.iter().any(|edge| !(0.0..=1.0).contains(edge)) {
            let detail = format!(
                "edges {edges:?}: expected {least} to 255 strictly increasing numbers (of 32 bits) from 0 to 1"
            );
            return Err(Error::new(Kind::OutOfRange, detail));
        }
        Ok(Binner { edges: rounded, form })
    }

    /// How many bins there are.
    pub fn count(&self) -> usize {
        match self.form {
            Form::SpecialZeroOne => self.edges.len() + 1,
            Form::Edges => self.edges.len() - 1,
            Form::UpperBounds | Form::UpperBoundsCompat => self.edges.len(),
        }
    }

    /// The bin of a value, which is first clamped to 0..=1; NaN is taken for 0.
    pub fn bin(&self, value: f32) -> u16 {
        let value = if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
        let below = self.edges.partition_point(|edge| *edge < value);
        let last = self.count() - 1;
        let bin = match self.form {
            Form::SpecialZeroOne if value == 1.0 => last,
            Form::SpecialZeroOne if value > 0.0 => below.clamp(1, last - 1),
            Form::SpecialZeroOne => 0,
            Form::Edges => below.saturating_sub(1).min(last),
            Form::UpperBounds => below.min(last),
            Form::UpperBoundsCompat => self.edges.partition_point(|edge| *edge <= value).min(last),
        };
        bin as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_bins_its_ends_as_documented() {
        let bins = |binner: &Binner, values: &[f32]| values.iter().map(|v| binner.bin(*v)).collect::<Vec<_>>();
        let values = [-3.0, 0.0, 1e-9, 0.5, 0.500_001, 0.999_5, 1.0, 7.0, f32::NAN];
        let default = Binner::default();
        assert_eq!((default.count(), bins(&default, &values)), (12, vec![0, 0, 1, 1, 2, 10, 11, 11, 0]));
        let edges = Binner::new(vec![0.0, 0.5, 1.0], Form::Edges).unwrap();
        assert_eq!((edges.count(), bins(&edges, &values)), (2, vec![0, 0, 0, 0, 1, 1, 1, 1, 0]));
        let bounds = Binner::new(vec![0.5, 0.9], Form::UpperBounds).unwrap();
        assert_eq!((bounds.count(), bins(&bounds, &values)), (2, vec![0, 0, 0, 0, 1, 1, 1, 1, 0]));
        let compat = Binner::new(DEFAULT_EDGES.to_vec(), Form::UpperBoundsCompat).unwrap();
        assert_eq!((compat.count(), bins(&compat, &values)), (11, vec![1, 1, 1, 2, 2, 10, 10, 10, 1]));
    }

    /// Logs say 0.8, rows hold the nearest number of 32 bits, which is above the nearest one of 64.
    #[test]
    fn a_value_at_an_edge_is_in_the_bin_that_ends_there() {
        let default = Binner::default();
        let bounds = Binner::new(DEFAULT_EDGES.to_vec(), Form::UpperBounds).unwrap();
        let compat = Binner::new(DEFAULT_EDGES.to_vec(), Form::UpperBoundsCompat).unwrap();
        let edges = Binner::new(DEFAULT_EDGES.to_vec(), Form::Edges).unwrap();
        for (i, edge) in DEFAULT_EDGES.iter().enumerate().filter(|(i, _)| (1..10).contains(i)) {
            let value = *edge as f32;
            assert_eq!(usize::from(default.bin(value)), i, "{edge}");
            assert_eq!(usize::from(default.bin(value.next_up())), i + 1, "{edge}");
            assert_eq!((usize::from(bounds.bin(value)), usize::from(edges.bin(value))), (i, i - 1), "{edge}");
            assert_eq!(usize::from(compat.bin(value)), (i + 1).min(10), "{edge}");
            assert_eq!(usize::from(compat.bin(value.next_down())), i, "{edge}");
        }
    }

    #[test]
    fn wrong_edges_are_refused() {
        for edges in [vec![], vec![0.5], vec![0.5, 0.5], vec![0.5, 0.5 + 1e-12], vec![0.0, 2.0], vec![f64::NAN, 1.0]] {
            assert!(Binner::new(edges.clone(), Form::Edges).is_err(), "{edges:?}");
        }
    }
}
