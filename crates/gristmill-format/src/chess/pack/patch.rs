//! Two records -> where they differ, and back: runs of bytes, each with its distance from the one before.
//! Costs nothing where they agree.

use gristmill_bytes::error::{Error, Kind, Result};

use super::cursor::{Cursor, put_varint};

/// Equal bytes between two differences that are worth a run of their own.
const GAP: usize = 3;

/// Writes what turns `predicted` into `actual`, of the same length; `false` and nothing where they are equal.
pub(super) fn write(predicted: &[u8], actual: &[u8], out: &mut Vec<u8>) -> bool {
    let mut end = 0;
    let mut at = 0;
    let any = out.len();
    while let Some(first) = (at..actual.len()).find(|i| predicted[*i] != actual[*i]) {
        let mut last = first;
        while let Some(next) = (last + 1..actual.len().min(last + 2 + GAP)).find(|i| predicted[*i] != actual[*i]) {
            last = next;
        }
        put_varint((first - end) as u32, out);
        put_varint((last - first) as u32, out);
        out.extend_from_slice(&actual[first..=last]);
        end = last + 1;
        at = end;
    }
    out.len() > any
}

/// Applies the rest of `from` to `record`.
///
/// Errors: `Corrupt` for a run past the end of the record, `Truncated`.
pub(super) fn apply(from: &mut Cursor<'_>, record: &mut [u8]) -> Result<()> {
    let mut end = 0usize;
    while !from.is_over() {
        let first = end.saturating_add(from.varint()? as usize);
        let len = (from.varint()? as usize).saturating_add(1);
        let place = first.checked_add(len).and_then(|behind| record.get_mut(first..behind)).ok_or_else(|| {
            let detail = format!("a correction of {len} bytes at byte {first} of a record");
            Error::new(Kind::Corrupt, detail).at_byte(from.at() as u64)
        })?;
        place.copy_from_slice(from.take(len)?);
        end = first + len;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_difference_comes_back(
            record in prop::collection::vec(any::<u8>(), 1..300),
            edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        ) {
            let mut actual = record.clone();
            edits.iter().for_each(|(at, byte)| actual[at.index(record.len())] = *byte);
            let mut bytes = Vec::new();
            prop_assert_eq!(write(&record, &actual, &mut bytes), record != actual);
            let mut patched = record.clone();
            apply(&mut Cursor::new(&bytes), &mut patched).unwrap();
            prop_assert_eq!(patched, actual);
        }

        #[test]
        fn nothing_is_written_behind_the_record(bytes in prop::collection::vec(any::<u8>(), 0..30)) {
            let _ = apply(&mut Cursor::new(&bytes), &mut [0; 9]);
        }
    }
}
