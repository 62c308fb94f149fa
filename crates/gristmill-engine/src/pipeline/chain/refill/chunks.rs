//! Rows that a restored reservoir or cache held, in any order -> the chunks that have them, and the rows of each. A million rows are mostly
//! of a million chunks: a row takes 8 bytes and a chunk 24, and nothing is allocated for each.

/// Branch, source, and number of a chunk in it.
type Place = (u32, u64, u32);

/// Place of a chunk and number of a use, whose row the cache holds.
type Use = (u64, u16);

/// What is to be read again, as a state names it.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Unread {
    /// Of a reservoir: frame and slot.
    rows: Vec<(Place, (u32, u32))>,
    /// Of a cache: use and slot.
    cached: Vec<(Place, (Use, u32))>,
}

impl Unread {
    /// A row of a reservoir: where it is, and the slot for it.
    pub(in crate::pipeline) fn row(&mut self, (branch, source, chunk, frame): (u32, u64, u32, u32), slot: u32) {
        self.rows.push(((branch, source, chunk), (frame, slot)));
    }

    /// A row that a cache held for a use of this chunk, and the slot for it.
    pub(in crate::pipeline) fn cached(&mut self, (branch, source, chunk): Place, of: Use, slot: u32) {
        self.cached.push(((branch, source, chunk), (of, slot)));
    }

    /// What each chunk gives, in the order of branches, sources and chunks.
    pub(in crate::pipeline) fn by_chunk(self) -> Chunks {
        let Unread { mut rows, mut cached } = self;
        rows.sort_unstable();
        cached.sort_unstable();
        let mut places: Vec<Place> = rows.iter().map(|row| row.0).chain(cached.iter().map(|row| row.0)).collect();
        places.sort_unstable();
        places.dedup();
        let mut chunks = Vec::with_capacity(places.len());
        let mut first = [0, 0];
        for place in places {
            let (branch, source, chunk) = place;
            chunks.push(Chunk { branch, source, chunk, first });
            first[0] += number(&rows[first[0] as usize..], place);
            first[1] += number(&cached[first[1] as usize..], place);
        }
        let rows = rows.into_iter().map(|(_, row)| row).collect();
        Chunks { chunks, rows, cached: cached.into_iter().map(|(_, row)| row).collect() }
    }
}

/// How many of the first ones are of a place.
fn number<T>(sorted: &[(Place, T)], place: Place) -> u32 {
    (0..).zip(sorted).find(|(_, of)| of.0 != place).map_or(sorted.len() as u32, |(number, _)| number)
}

/// A chunk, and where its rows begin.
#[derive(Debug)]
struct Chunk {
    source: u64,
    branch: u32,
    chunk: u32,
    first: [u32; 2],
}

/// Chunks that are to be read again, and the rows of each.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Chunks {
    chunks: Vec<Chunk>,
    rows: Vec<(u32, u32)>,
    cached: Vec<(Use, u32)>,
}

impl Chunks {
    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Branch, source and index of a chunk.
    pub(super) fn at(&self, id: u32) -> (usize, u64, u32) {
        let Chunk { source, branch, chunk, .. } = self.chunks[id as usize];
        (branch as usize, source, chunk)
    }

    /// Frame and slot of each row of a reservoir.
    pub(in crate::pipeline) fn rows(&self, id: u32) -> &[(u32, u32)] {
        let [first, end] = self.places(id, 0, self.rows.len());
        &self.rows[first..end]
    }

    /// Use and slot of each row of a cache.
    pub(in crate::pipeline) fn cached(&self, id: u32) -> &[(Use, u32)] {
        let [first, end] = self.places(id, 1, self.cached.len());
        &self.cached[first..end]
    }

    fn places(&self, id: u32, of: usize, all: usize) -> [usize; 2] {
        let first = |chunk: &Chunk| chunk.first[of] as usize;
        [first(&self.chunks[id as usize]), self.chunks.get(id as usize + 1).map_or(all, first)]
    }

    /// Frame and slot of each row of a reservoir, of all chunks.
    pub(in crate::pipeline) fn all_rows(&self) -> &[(u32, u32)] {
        &self.rows
    }

    /// Whether a cache held a row.
    pub(in crate::pipeline) fn has_cached(&self) -> bool {
        !self.cached.is_empty()
    }

    /// Branch and source of each file, once.
    pub(in crate::pipeline) fn files(&self) -> impl Iterator<Item = (usize, u64)> {
        let files = self.chunks.chunk_by(|one, other| (one.branch, one.source) == (other.branch, other.source));
        files.map(|of_file| (of_file[0].branch as usize, of_file[0].source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_chunk_are_together_whatever_held_them() {
        let mut unread = Unread::default();
        assert_eq!(std::mem::take(&mut unread).by_chunk().len(), 0);
        [(1, 5, 0, 9), (0, 7, 2, 4), (0, 7, 2, 1)].into_iter().zip(0..).for_each(|(of, slot)| unread.row(of, slot));
        unread.cached((0, 7, 2), (40, 1), 3);
        unread.cached((0, 6, 3), (41, 0), 4);
        let chunks = unread.by_chunk();
        let found: Vec<_> = (0..3).map(|id| (chunks.at(id), chunks.rows(id).to_vec())).collect();
        let expected = [((0, 6, 3), vec![]), ((0, 7, 2), vec![(1, 2), (4, 1)]), ((1, 5, 0), vec![(9, 0)])];
        assert_eq!(found, expected);
        let cached: [&[(Use, u32)]; 3] = [&[((41, 0), 4)], &[((40, 1), 3)], &[]];
        assert_eq!([0, 1, 2].map(|id| chunks.cached(id)), cached);
        assert_eq!(chunks.files().collect::<Vec<_>>(), [(0, 6), (0, 7), (1, 5)]);
        assert!(chunks.has_cached() && chunks.len() == 3 && chunks.all_rows().len() == 3);
    }
}
