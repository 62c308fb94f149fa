//! Raw 2048 logs streamed into the same encoders that packs are fed to.

use std::path::Path;

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::{DataLoader, Next};
use gristmill_generate::{G2048Generator, G2048Options};

fn logs(folder: &Path) {
    let options = G2048Options {
        folder: folder.to_owned(),
        games: 6,
        first: 0,
        seed: 11,
        depth: 0,
        moves_max: 120,
        level: 1,
        threads: 2,
    };
    let generator = G2048Generator::new(options).unwrap();
    generator.run(&mut |_| ()).unwrap();
}

fn config(folder: &Path, encoder: &str, threads: usize) -> DataLoaderConfig {
    let text = format!(
        "seed = 4\nthreads = {threads}\nindex = \"off\"\noutput = [\"tensors\"]
         [[stage]]\nname = \"files\"\nfile_path_provider = {{ directory = \"{}\", watch = false }}
         [[stage]]\nname = \"load\"\ninput = [\"files\"]\nchunk_source_loader = {{}}
         [[stage]]\nname = \"extract\"\ninput = [\"load\"]\nsimple_chunk_extractor = {{ epochs = 2 }}
         [[stage]]\nname = \"unpack\"\ninput = [\"extract\"]\nchunk_unpacker = {{ position_sampling_rate = 1.0 }}
         [[stage]]\nname = \"tensors\"\ninput = [\"unpack\"]\n
         [stage.tensor_generator]\nbatch_size = 50\nencoder = {{ g2048 = {encoder} }}",
        folder.display()
    );
    DataLoaderConfig::from_toml(&text).unwrap()
}

/// Name and bytes of every tensor of every batch.
fn batches(config: DataLoaderConfig) -> Vec<Vec<(String, Vec<u8>)>> {
    assert_eq!(DataLoaderConfig::from_json(&config.to_json()).unwrap(), config);
    let loader = DataLoader::new(config).unwrap();
    let mut all = Vec::new();
    while let Next::Batch(batch) = loader.next("", None).unwrap() {
        all.push(batch.columns.iter().map(|column| (column.name().to_owned(), column.bytes().to_vec())).collect());
    }
    all
}

#[test]
fn raw_logs_are_encoded_and_augmented_whatever_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    logs(folder.path());
    let turned = "{ target = \"hard_move\", rotate = \"any\", flip = \"any\", dtype = \"u8\" }";
    let one = batches(config(folder.path(), turned, 1));
    assert_eq!(batches(config(folder.path(), turned, 4)), one);
    let rows: usize = one.iter().map(|batch| batch[0].1.len() / 16).sum();
    let names: Vec<&str> = one[0].iter().map(|(name, _)| &**name).collect();
    assert!(rows > 200 && rows.is_multiple_of(2), "{rows} rows in two epochs");
    assert_eq!(names, ["tokens", "branch_values", "move_targets"]);
    let plain = batches(config(folder.path(), "{ target = \"hard_move\", dtype = \"u8\" }", 1));
    assert_ne!(plain, one, "augmented");
    let sorted = |batches: &[Vec<(String, Vec<u8>)>]| -> Vec<Vec<u8>> {
        let boards = batches.iter().flat_map(|batch| batch[0].1.chunks_exact(16));
        let mut boards: Vec<Vec<u8>> = boards
            .map(|board| {
                let mut cells = board.to_vec();
                cells.sort_unstable();
                cells
            })
            .collect();
        boards.sort_unstable();
        boards
    };
    assert_eq!(sorted(&plain), sorted(&one), "the same tiles, only elsewhere");
}

#[test]
fn an_encoder_that_cannot_be_built_names_its_stage() {
    let folder = tempfile::tempdir().unwrap();
    for (encoder, word) in [
        ("{ target = \"tokens\" }", "stage `tensors`, field `tokenizer`"),
        ("{ target = \"binned_ev\", edges = [1.0, 0.5] }", "stage `tensors`, field `edges`"),
    ] {
        let error = DataLoader::new(config(folder.path(), encoder, 1)).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}
