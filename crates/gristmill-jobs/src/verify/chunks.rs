//! An opened file -> every check over its chunks and frames.

use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind};

use super::metadata_check::Told;
use super::{Fault, Verification};
use crate::in_order::Hands;
use crate::inputs::Place;
use crate::work::{Decoded, Opened};

/// Buffers that are used again, from file to file.
#[derive(Debug, Default)]
pub(super) struct Hand {
    stored: Vec<u8>,
    chunk: Chunk,
}

/// Checks the part of a file that this process reads.
pub(super) fn verify(file: &Opened, place: Place, keep: usize, hands: &Hands<Hand>, found: &mut Verification) {
    let mut hand = hands.take();
    let begins = place.begins();
    if begins {
        found.files += 1;
        for fault in file.source.faults() {
            found.add(keep, Fault::new(&fault.clone().in_source(&file.path)));
        }
        if file.source.is_empty() && file.source.faults().is_empty() {
            let e = Error::new(Kind::Empty, "there is no chunk in it");
            found.add(keep, Fault::new(&e.in_source(&file.path)));
        }
    }
    let whole = begins && file.kind.verify_whole(file, keep, found);
    let own = (0..file.source.len()).filter(|i| !whole && place.has(file, *i));
    let told = Told::of(file, own.clone());
    for i in own {
        found.chunks += 1;
        if let Err(e) = file.fetch(i, &mut hand.stored) {
            found.add(keep, Fault::new(&e));
            continue;
        }
        if let Err(e) = file.decode(i, &hand.stored, &mut hand.chunk) {
            let salvageable = file.kind.salvageable(file, &hand.stored, &mut hand.chunk);
            found.add(keep, Fault { salvageable, ..Fault::new(&e) });
            continue;
        }
        if let Some(told) = &told {
            told.check(i, &hand.chunk, keep, found);
        }
        let Hand { stored, chunk } = &hand;
        file.kind.verify(&Decoded { file, i, stored, chunk }, keep, found);
    }
    hands.put(hand);
}
