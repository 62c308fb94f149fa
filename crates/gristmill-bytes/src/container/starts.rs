//! How many frames each chunk has -> the chunk of any frame, found by a step of a table and hardly any search.
//! Pure numbers: takes 16 bytes a chunk at most, and has at least the number 0.

/// The number of the first frame of each chunk, and of all frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Starts {
    first: Vec<u64>,
    /// Frames of a step, as a power of two: no more than chunks have on average.
    shift: u32,
    /// The chunk of the first frame of each step, and the last chunk.
    steps: Vec<u32>,
}

impl Starts {
    /// The chunks that begin at these frames; `first` ascends from 0, and ends with the number of all frames.
    pub(super) fn new(first: Vec<u64>) -> Self {
        let (chunks, frames) = (first.len().saturating_sub(1), first.last().copied().unwrap_or(0));
        let shift = (frames / chunks.max(1) as u64).checked_ilog2().unwrap_or(0);
        let (mut steps, mut chunk) = (Vec::new(), 0);
        for frame in (0..frames).step_by(1 << shift) {
            while first[chunk + 1] <= frame {
                chunk += 1;
            }
            steps.push(chunk as u32);
        }
        steps.push(chunks.saturating_sub(1) as u32);
        Starts { first, shift, steps }
    }

    /// Number of the first frame of chunk `i`, or of all frames for the number of all chunks.
    pub(super) fn get(&self, i: usize) -> Option<u64> {
        self.first.get(i).copied()
    }

    /// All frames.
    pub(super) fn total(&self) -> u64 {
        self.first.last().copied().unwrap_or(0)
    }

    /// The chunk of a frame, and its number there. `None` beyond the last frame.
    pub(super) fn locate(&self, frame: u64) -> Option<(usize, u32)> {
        if frame >= self.total() {
            return None;
        }
        let step = (frame >> self.shift) as usize;
        let (low, high) = (self.steps[step] as usize, self.steps[step + 1] as usize);
        // Most steps meet at most two chunks. The comparison then picks the chunk without a branch.
        let chunk = match high - low {
            0 | 1 => low + usize::from(self.first[low + 1] <= frame),
            _ => low + self.first[low + 1..=high].partition_point(|first| *first <= frame),
        };
        Some((chunk, (frame - self.first[chunk]) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_frame_is_in_the_chunk_that_a_search_finds(
            lengths in prop::collection::vec(prop_oneof![1u64..4, 1u64..300, 2000u64..3000], 0..40),
        ) {
            let mut first = vec![0];
            lengths.iter().for_each(|frames| first.push(first[first.len() - 1] + frames));
            let starts = Starts::new(first.clone());
            prop_assert!(starts.steps.len() <= 2 * lengths.len() + 2);
            for frame in 0..starts.total() {
                let chunk = first.partition_point(|start| *start <= frame) - 1;
                prop_assert_eq!(starts.locate(frame), Some((chunk, (frame - first[chunk]) as u32)));
            }
            prop_assert_eq!(starts.locate(starts.total()), None);
            prop_assert_eq!(starts.get(lengths.len() + 1), None);
        }
    }
}
