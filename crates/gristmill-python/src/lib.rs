//! Python in, engine calls, Python out: the private module under the `gristmill` package.
//! Every function extracts, lets go of the GIL, calls and wraps; no rule about data lives here.

mod array;
mod chess;
mod config;
mod converting;
mod demos;
mod encoding;
mod error;
mod g2048;
mod layout;
mod loader;
mod looking;
mod marking;
mod packing;
mod pairs;
mod places;
mod recorder;
mod rescore;
mod rewriting;
mod selection;
mod shards;
mod source;
mod spare;
mod tokenizer;
mod unpickle;
mod viewing;

/// Large buffers go back to the system when they are freed, so that bounds of memory hold.
#[global_allocator]
static ALLOCATOR: gristmill_engine::runtime::pages::Pages = gristmill_engine::runtime::pages::Pages;

/// The compiled part of the `gristmill` package.
#[pyo3::pymodule(gil_used = false)]
mod _gristmill {
    #[pymodule_init]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        gristmill_engine::sql::ends_when(crate::error::interrupted);
        Ok(())
    }

    #[pymodule_export]
    use crate::array::{Memory, allocate};
    #[pymodule_export]
    use crate::chess::{
        binpack_of, chess_check, chess_encode, chess_fens, chess_layouts, chess_moves, chess_policy_moves, chess_rules,
    };
    #[pymodule_export]
    use crate::config::{
        check_config, config_from_proto_bytes, config_from_textproto, config_from_toml, config_to_proto_bytes,
        config_to_textproto, config_to_toml, overlay_config, place_in_text, preset_lc0, proto_descriptors,
    };
    #[pymodule_export]
    use crate::converting::{convert_demos, convert_rows, convertible, tell_games};
    #[pymodule_export]
    use crate::demos::{Demos, Spill, holds_demos, open_demos};
    #[pymodule_export]
    use crate::encoding::RowEncoding;
    #[pymodule_export]
    use crate::g2048::{g2048_board_eval, g2048_layouts, g2048_pack, g2048_unpack};
    #[pymodule_export]
    use crate::layout::Layout;
    #[pymodule_export]
    use crate::loader::{Loader, checksum_of, is_older, merge_states, saved_steps};
    #[pymodule_export]
    use crate::looking::{examine, generate_2048, generate_chess, metric_families, stats_of_paths, verify_paths};
    #[pymodule_export]
    use crate::packing::{
        checksum_rows, commit_shares, merge_packs, pack_games, recover_folder, shares_of, value_rows,
    };
    #[pymodule_export]
    use crate::pairs::{Counted, Mix, Pairs, class_order, pair_rows, window_rows, write_whole};
    #[pymodule_export]
    use crate::places::{
        MemoryFiles, bucket_counts, clean_place, is_folder, is_local, resolved_place, set_bucket, set_cache,
    };
    #[pymodule_export]
    use crate::recorder::{GameWriter, Recorder, Session};
    #[pymodule_export]
    use crate::rescore::{Rescorer, Tablebase};
    #[pymodule_export]
    use crate::rewriting::rewrite_games;
    #[pymodule_export]
    use crate::selection::{Selection, holds_games, open_pack};
    #[pymodule_export]
    use crate::shards::{ShardFiles, plain_pickle, shard_metadata};
    #[pymodule_export]
    use crate::source::{Source, open_source};
    #[pymodule_export]
    use crate::tokenizer::{fit_tokenizer, read_tokenizer};
    #[pymodule_export]
    use crate::unpickle::unpickle;
    #[pymodule_export]
    use crate::viewing::{Pages, card_of_file, card_of_position, card_of_selection, serve_pages};
}
