//! Sides of games with a test side and in folds: a run of one is verified from its ledger, which says which side it was.

use std::sync::Arc;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::{EncoderConfig, IndexConfig};
use gristmill_engine::selection::Selection;
use gristmill_engine::selection::sides::Keys;
use gristmill_engine::store::Residence;
use gristmill_engine::{IndexLoader, Next};
use gristmill_plans::verify_run::{Against, VerifyRunOptions, verify_run};

use crate::fixture::{input, packed};

#[test]
fn a_run_of_a_side_is_verified_from_what_its_ledger_says() {
    let (games, folder) = (input(), tempfile::tempdir().unwrap());
    let pack = folder.path().join("pack");
    packed(games.path(), &pack, |_| {}).unwrap();
    let all = Selection::all(Arc::new(ChunkPack::open(&pack, Residence::Mapped).unwrap()));
    let keys: Keys = all.games().iter().map(|game| (*game, game / 2)).collect();
    let mut sides = Vec::new();
    for keys in [None, Some(&keys)] {
        let mut games = Vec::new();
        for side in all.split_three(0.3, 0.3, 2, keys).unwrap() {
            games.extend_from_slice(side.games());
            sides.push(side);
        }
        games.sort_unstable();
        assert_eq!(games, all.games(), "each game is on one side");
        let mut own = Vec::new();
        for (others, fold) in all.folds(2, 1, keys).unwrap() {
            own.extend_from_slice(fold.games());
            assert!(fold.games().iter().all(|game| !others.games().contains(game)));
            assert_eq!(others.games().len() + fold.games().len(), all.games().len());
            sides.extend([others, fold]);
        }
        own.sort_unstable();
        assert_eq!(own, all.games(), "each game is in one fold");
    }
    // A step called `slice` counts games here, as it did before frames had one of their own.
    let some = [all.slice(5, 31), all.slice_games(1, 4).unwrap(), all.slice_games(1, 9).unwrap().slice(3, 40)];
    assert_eq!((some[0].rows().len(), some[1].games(), some[2].rows().len()), (26, &[1, 2, 3][..], 37));
    assert!(some[1].is_whole().unwrap() && !some[2].is_whole().unwrap());
    let steps = some.each_ref().map(|some| serde_json::to_string(&some.recipe().steps).unwrap());
    assert_eq!(
        steps,
        [
            r#"[{"frames":{"from":5,"to":31}}]"#,
            r#"[{"slice":{"from":1,"to":4}}]"#,
            r#"[{"slice":{"from":1,"to":9}},{"frames":{"from":3,"to":40}}]"#
        ]
    );
    sides.extend(some);
    for (number, side) in sides.into_iter().enumerate() {
        let ledger = folder.path().join(format!("{number}.ledger"));
        let config = IndexConfig {
            encoder: EncoderConfig::Chess,
            batch_size: 16,
            seed: Some(5),
            epochs: Some(1),
            threads: Some(1),
            ledger: Some(ledger.clone()),
            ..IndexConfig::default()
        };
        let loader = IndexLoader::new(side.input(), config).unwrap();
        while let Next::Batch(_) = loader.next("", None).unwrap() {}
        drop(loader);
        let options = VerifyRunOptions { ledgers: vec![ledger], against: Against::Pack(pack.clone()), max_rows: 10 };
        let said = verify_run(&options, &mut |_, _| ()).unwrap();
        assert!(said.ok, "{said:?}");
    }
}
