//! Records of any layout -> records as an encoder takes them: which conversion fits a chunk, compiled once a layout.
//! A chunk whose fields cannot become the encoder's is refused as a whole, before any of its rows is planned.

use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::layout::{Conform, Layout};
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result};

/// Conversions that are remembered; a stream of ever new layouts compiles some again.
const REMEMBERED: usize = 16;

/// The conversions of one chain.
#[derive(Debug)]
pub(super) struct Conforms {
    to: Layout,
    known: Mutex<Vec<(Arc<Layout>, Arc<Conform>)>>,
}

impl Conforms {
    /// Conversions to `to`.
    pub(super) fn new(to: &Layout) -> Self {
        Conforms { to: to.clone(), known: Mutex::default() }
    }

    /// Bytes of a record after conversion.
    pub(super) fn size(&self) -> usize {
        self.to.size()
    }

    /// The conversion of a decoded chunk's records.
    ///
    /// Errors: `Unsupported` for a field of another type or shape, `Missing` where no field is shared: data of another
    /// task.
    pub(super) fn of(&self, chunk: &Chunk) -> Result<Arc<Conform>> {
        let Some(layout) = &chunk.layout else {
            return Err(Error::new(Kind::Missing, "a chunk without a layout"));
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |other: &Arc<Layout>| Arc::ptr_eq(other, layout) || **other == **layout;
        if let Some((_, conform)) = known.iter().find(|(other, _)| same(other)) {
            return Ok(Arc::clone(conform));
        }
        let conform = Arc::new(Conform::new(layout, &self.to)?);
        if known.len() == REMEMBERED {
            known.remove(0);
        }
        known.push((Arc::clone(layout), Arc::clone(&conform)));
        Ok(conform)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(descr: &str) -> Chunk {
        Chunk { layout: Some(Arc::new(Layout::parse_descr(descr).unwrap())), ..Chunk::default() }
    }

    #[test]
    fn each_layout_has_its_own_conversion_and_strangers_are_refused() {
        let conforms = Conforms::new(&Layout::parse_descr("[('a', '<u2'), ('b', '|u1')]").unwrap());
        let (narrow, wide) = (chunk("[('a', '<u2')]"), chunk("[('b', '|u1'), ('a', '>u2')]"));
        for _ in 0..2 {
            let mut out = [9; 3];
            conforms.of(&narrow).unwrap().record(&[1, 2], &mut out);
            assert_eq!(out, [1, 2, 0]);
            conforms.of(&wide).unwrap().record(&[7, 1, 2], &mut out);
            assert_eq!(out, [2, 1, 7]);
        }
        assert_eq!(conforms.of(&chunk("[('c', '<u2')]")).unwrap_err().kind(), Kind::Missing);
        assert_eq!(conforms.of(&chunk("[('a', '<f4')]")).unwrap_err().kind(), Kind::Unsupported);
        for i in 0..40 {
            conforms.of(&chunk(&format!("[('a', '<u2'), ('x{i}', '|u1')]"))).unwrap();
        }
        assert!(conforms.known.lock().unwrap().len() <= REMEMBERED);
    }
}
