//! A number -> the bin between sorted edges that it falls into, by table.
//! The table is indexed by the leading bits of the number itself, so a look-up costs the same at any scale and is exact.

/// Bits of an `f32` below those that index the table.
const DROPPED: u32 = 16;

/// Sorted edges `e0 < e1 < …`: `n + 1` of them make the bins `0..n`.
#[derive(Debug, Clone, PartialEq)]
pub struct Bins {
    edges: Vec<f64>,
    /// By leading bits of the magnitude of a negative number: how many edges are surely at or below it.
    below: Vec<u16>,
}

impl Bins {
    /// Bins between `edges`; `None` unless they are 2 to 65 535, finite, and strictly increasing.
    pub fn new(edges: Vec<f64>) -> Option<Self> {
        let sorted = edges.windows(2).all(|pair| pair[0] < pair[1]) && edges.iter().all(|edge| edge.is_finite());
        if !sorted || edges.len() < 2 || edges.len() > usize::from(u16::MAX) {
            return None;
        }
        let slots = (f32::INFINITY.to_bits() >> DROPPED) as usize + 1;
        let mut below = vec![0u16; slots];
        let (mut count, mut edge) = (0u16, edges.iter().take_while(|edge| **edge < 0.0).peekable());
        for slot in (0..slots).rev() {
            below[slot] = count;
            while edge.next_if(|edge| place(**edge) == slot).is_some() {
                count += 1;
            }
        }
        Some(Bins { edges, below })
    }

    /// How many bins there are.
    pub fn count(&self) -> usize {
        self.edges.len() - 1
    }

    /// The edges.
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// The bin of `value`: edges at or below it, less one, within `0..count`. NaN counts as below all.
    pub fn bin(&self, value: f64) -> u16 {
        let at_or_below = if value < 0.0 {
            let start = usize::from(self.below[place(value)]);
            start + self.edges[start..].iter().take_while(|edge| **edge <= value).count()
        } else if self.edges.last().is_some_and(|last| *last <= value) {
            // Fitted edges end with 0, so that this is the usual case.
            self.edges.len()
        } else {
            self.edges.partition_point(|edge| *edge <= value)
        };
        at_or_below.clamp(1, self.count()) as u16 - 1
    }
}

/// The slot of a negative number; larger magnitudes have larger slots.
fn place(value: f64) -> usize {
    ((-value as f32).to_bits() >> DROPPED) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_definition(edges: &[f64], value: f64) -> u16 {
        let count = edges.iter().filter(|edge| **edge <= value).count() as i64 - 1;
        count.clamp(0, edges.len() as i64 - 2) as u16
    }

    proptest! {
        #[test]
        fn the_table_agrees_with_the_definition(
            mut edges in prop::collection::vec(prop_oneof![-5e3..1.0f64, -1e-6..1e-6f64, Just(-0.0)], 2..40),
            values in prop::collection::vec(prop_oneof![-6e3..2.0f64, -1e-5..1e-5f64, -1e300..1e300f64], 50),
        ) {
            edges.sort_unstable_by(f64::total_cmp);
            edges.dedup();
            let Some(bins) = Bins::new(edges.clone()) else { return Ok(()) };
            for value in values.into_iter().chain(edges.iter().copied()).chain(edges.iter().map(|e| e.next_down())) {
                prop_assert_eq!(bins.bin(value), by_definition(&edges, value), "{}", value);
            }
        }
    }

    #[test]
    fn ends_clip_and_wrong_edges_are_refused() {
        let bins = Bins::new(vec![-5000.0, -1000.0, -200.0, -20.0, 0.0]).unwrap();
        let values = [f64::NEG_INFINITY, -5000.1, -5000.0, -1000.0, -20.0, -1e-300, 0.0, 7.0, f64::INFINITY, f64::NAN];
        assert_eq!(values.map(|value| bins.bin(value)), [0, 0, 0, 1, 3, 3, 3, 3, 3, 0]);
        for edges in [vec![], vec![0.0], vec![0.0, 0.0], vec![1.0, 0.0], vec![0.0, f64::NAN], vec![0.0, f64::INFINITY]]
        {
            assert!(Bins::new(edges.clone()).is_none(), "{edges:?}");
        }
    }
}
