//! The simulated mill: production chains in one thread, from one number, on a disk that fails in every way it knows; what comes
//! out is compared, to the byte, with what the pages say must come. A failure is replayed and shrunk by its number alone.

pub mod boards;
pub mod case;
pub mod chooser;
pub mod coverage;
pub mod crash;
pub mod disk;
pub mod less;
pub mod memory;
pub mod oracle;
pub mod rows;
pub mod run;
pub mod scenario;
pub mod shrink;
pub mod steering;
pub mod world;
