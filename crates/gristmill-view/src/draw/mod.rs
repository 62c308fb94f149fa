//! Numbers and boards -> SVG. Positions are attributes and colours are classes of the style sheet, so that a page needs no style
//! of its own.

pub(crate) mod bands;
pub(crate) mod bars;
pub(crate) mod board;
pub(crate) mod curves;
pub(crate) mod spark;
pub(crate) mod tiles;
