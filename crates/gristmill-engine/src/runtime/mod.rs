//! Machinery that knows no stage and no format.
