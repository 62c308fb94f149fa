//! Formats through their public face: vectors, documents, damaged bytes. One program, since each that is linked costs as
//! much as its tests.

mod binpack;
mod bullet;
mod chess_board;
mod chess_compact;
mod chess_document;
mod chess_game;
mod chess_pack_document;
mod chess_pgn;
mod chess_rescore;
mod chess_sample;
mod chess_syzygy;
mod chess_vectors;
mod container_gzip;
mod container_pickle;
mod container_tar;
mod container_vector;
mod corpus_replay;
mod g2048;
mod g2048_encode;
mod katago;
mod nnue;
mod packed_trajectories;
mod pickle_vectors;
mod records;
mod source_conformance;
