//! Rows that lie here and there in columns -> the columns of one batch, side by side, cast on the way.
//! Every number of a row is checked before anything is written. Starts no thread.

/// What is made of each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cast {
    /// The same bytes.
    Same,
    /// u8 -> f32 from 0 to 1: divided by 255.
    Unit,
    /// u8 -> f32 of the same value.
    Float,
    /// f64 -> f32.
    Single,
}

impl Cast {
    /// Bytes that `bytes` bytes become.
    pub fn widened(self, bytes: usize) -> usize {
        match self {
            Cast::Same => bytes,
            Cast::Unit | Cast::Float => bytes.saturating_mul(4),
            Cast::Single => bytes / 2,
        }
    }

    fn copy(self, from: &[u8], to: &mut [u8]) {
        match self {
            Cast::Same => to.copy_from_slice(from),
            Cast::Unit => spread(from, to, |value| (f32::from(value) / 255.0).to_le_bytes()),
            Cast::Float => spread(from, to, |value| f32::from(value).to_le_bytes()),
            Cast::Single => {
                for (from, to) in from.as_chunks::<8>().0.iter().zip(to.as_chunks_mut::<4>().0) {
                    *to = (f64::from_le_bytes(*from) as f32).to_le_bytes();
                }
            }
        }
    }
}

fn spread(from: &[u8], to: &mut [u8], value: impl Fn(u8) -> [u8; 4]) {
    for (from, to) in from.iter().zip(to.as_chunks_mut::<4>().0) {
        *to = value(*from);
    }
}

/// The number -1: a row of zeros.
const ZEROS: [u8; 8] = (-1i64).to_le_bytes();

/// Rows of one column, and where they go.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The column: rows of equal size, one after another.
    pub rows: &'a [u8],
    /// Numbers of the rows that are wanted, i64, little-endian; -1 for a row of zeros.
    pub numbers: &'a [u8],
    /// Where each of them goes among the rows of the batch, likewise; one after another without it.
    pub places: Option<&'a [u8]>,
}

/// One column of a batch.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// Bytes of a row as it lies in the parts.
    pub row_bytes: usize,
    /// What is made of its elements.
    pub cast: Cast,
    /// Which rows: all places of the column together, each once.
    pub parts: Vec<Part<'a>>,
}

impl Wanted<'_> {
    /// Fills a column.
    ///
    /// Errors: what does not fit, in words; nothing is written then.
    pub fn fill(&self, column: &mut [u8]) -> Result<(), String> {
        let bytes = self.cast.widened(self.row_bytes);
        if bytes == 0 {
            return if column.is_empty() { Ok(()) } else { Err("rows without bytes".into()) };
        }
        let planned = self.plan(column.len() / bytes)?;
        for (part, row, place) in planned {
            let to = &mut column[place * bytes..(place + 1) * bytes];
            match row {
                Some(row) => self.cast.copy(&part.rows[row * self.row_bytes..(row + 1) * self.row_bytes], to),
                None => to.fill(0),
            }
        }
        Ok(())
    }

    /// Which row of which part goes to which place; none for zeros.
    fn plan(&self, places: usize) -> Result<Vec<Planned<'_>>, String> {
        let mut planned = Vec::with_capacity(places);
        let mut taken = vec![false; places];
        for part in &self.parts {
            let rows = part.rows.len() / self.row_bytes;
            let given = part.places.map(numbers);
            if given.is_some_and(|given| given.len() != numbers(part.numbers).len()) {
                return Err("rows and places of different number".into());
            }
            for (nth, row) in numbers(part.numbers).iter().enumerate() {
                let place = given.map_or(nth, |given| index(given[nth]));
                let free = taken.get_mut(place).is_some_and(|taken| !std::mem::replace(taken, true));
                let from = (*row != ZEROS).then(|| index(*row));
                if !free || from.is_some_and(|from| from >= rows) {
                    return Err(format!("row {} of {rows} to place {place} of {places}", i64::from_le_bytes(*row)));
                }
                planned.push((part, from, place));
            }
        }
        if planned.len() < places {
            return Err(format!("{} rows for {places} places", planned.len()));
        }
        Ok(planned)
    }
}

/// Part, row of it, place.
type Planned<'a> = (&'a Part<'a>, Option<usize>, usize);

fn numbers(bytes: &[u8]) -> &[[u8; 8]] {
    bytes.as_chunks().0
}

/// A number as an index; out of any range where it is below 0.
fn index(bytes: [u8; 8]) -> usize {
    usize::try_from(i64::from_le_bytes(bytes)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: &[i64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn fill(row_bytes: usize, cast: Cast, parts: Vec<Part<'_>>, len: usize) -> Result<Vec<u8>, String> {
        let mut column = vec![9; len];
        Wanted { row_bytes, cast, parts }.fill(&mut column).map(|()| column)
    }

    #[test]
    fn rows_of_several_columns_go_to_their_places() {
        let (first, second) = ([0u8, 1, 2, 3, 4, 5], [10u8, 11, 12, 13]);
        let (two, one) = (bytes(&[2, 0]), bytes(&[1]));
        let (ends, middle) = (bytes(&[2, 0]), bytes(&[1]));
        let parts = vec![
            Part { rows: &first, numbers: &two, places: Some(&ends) },
            Part { rows: &second, numbers: &one, places: Some(&middle) },
        ];
        assert_eq!(fill(2, Cast::Same, parts, 6), Ok(vec![0, 1, 12, 13, 4, 5]));
        let plain = vec![Part { rows: &first, numbers: &two, places: None }];
        assert_eq!(fill(2, Cast::Same, plain, 4), Ok(vec![4, 5, 0, 1]));
        let gap = bytes(&[1, -1]);
        let plain = vec![Part { rows: &first, numbers: &gap, places: None }];
        assert_eq!(fill(2, Cast::Same, plain, 4), Ok(vec![2, 3, 0, 0]));
    }

    #[test]
    fn elements_are_cast() {
        let numbers = bytes(&[0]);
        let part = |rows| vec![Part { rows, numbers: &numbers, places: None }];
        let floats = |found: Vec<u8>| found.as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)).collect::<Vec<f32>>();
        let all: Vec<u8> = (0..=255).collect();
        let unit: Vec<f32> = (0..=255u8).map(|x| f32::from(x) / 255.0).collect();
        assert_eq!(floats(fill(256, Cast::Unit, part(&all), 1024).unwrap()), unit);
        assert_eq!(floats(fill(2, Cast::Float, part(&[7, 255]), 8).unwrap()), [7.0, 255.0]);
        let wide: Vec<u8> = [0.1f64, -2.5e300].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(floats(fill(16, Cast::Single, part(&wide), 8).unwrap()), [0.1, f32::NEG_INFINITY]);
    }

    #[test]
    fn numbers_out_of_range_are_refused_and_no_place_keeps_what_was_there() {
        let rows = [1u8, 2, 3];
        for (numbers, places, len) in [
            (&[3i64][..], None, 1),
            (&[-2], None, 1),
            (&[0, 1], None, 1),
            (&[0], None, 2),
            (&[0, 1], Some(&[0i64, 0][..]), 2),
            (&[0], Some(&[-1]), 1),
            (&[0], Some(&[0, 1]), 1),
        ] {
            let (numbers, places) = (bytes(numbers), places.map(bytes));
            let parts = vec![Part { rows: &rows, numbers: &numbers, places: places.as_deref() }];
            assert!(fill(1, Cast::Same, parts, len).is_err(), "{numbers:?} to {places:?}");
        }
        assert!(fill(0, Cast::Same, Vec::new(), 1).is_err());
        assert_eq!(fill(0, Cast::Same, Vec::new(), 0), Ok(Vec::new()));
    }
}
