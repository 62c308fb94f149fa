//! When the rows of a game come, against the batches of a real loader and what an x-ray says of them.

use std::collections::BTreeMap;

use gristmill_engine::config::{EncoderConfig, IndexConfig, LastBatch, MixConfig, Shuffle, Skip};
use gristmill_engine::pipeline::Lookup;
use gristmill_engine::selection::{Filter, Selection};
use gristmill_engine::{IndexLoader, Next};
use gristmill_jobs::when::{By, Fed, Time, Times, Wanted, WhenOptions, when, when_by};
use gristmill_jobs::xray::seen;

use crate::fixture::{Form, open, write_pack};

fn config() -> IndexConfig {
    IndexConfig {
        encoder: EncoderConfig::G2048(Default::default()),
        batch_size: 12,
        epochs: Some(2),
        seed: Some(9),
        ..IndexConfig::default()
    }
}

/// Epoch, batch, rank, row, game and ply.
type Row = (u64, u64, u64, u64, u64, u64);

/// All that the loaders of all ranks feed in two passes, by their x-rays.
fn fed(rows: &Selection, config: &IndexConfig, world_size: u64) -> Vec<Row> {
    let mut found = Vec::new();
    for rank in 0..world_size {
        let loader = IndexLoader::new(rows.input(), IndexConfig { rank, world_size, ..config.clone() }).unwrap();
        let lookup = loader.lookup().unwrap();
        while let Next::Batch(batch) = loader.next("", None).unwrap() {
            let ids = batch.column("run_id").unwrap().bytes().chunks_exact(8);
            let ids: Vec<u64> = ids.map(|id| u64::from_le_bytes(id.try_into().unwrap())).collect();
            let seen = seen(&lookup, std::slice::from_ref(rows), batch.number, None).unwrap();
            assert_eq!(
                seen.iter().map(|row| row.place.game).collect::<Vec<_>>(),
                ids[..batch.rows],
                "the x-ray is true"
            );
            found.extend(
                seen.iter().map(|row| (row.epoch, row.batch, rank, row.row as u64, row.place.game, row.place.ply)),
            );
        }
    }
    found.sort_unstable();
    found
}

/// The same by asking each game when it comes; and how often which rows do not.
fn asked(find: impl Fn(u64) -> Times, games: &[u64]) -> (Vec<Row>, BTreeMap<String, usize>) {
    let (mut found, mut kept) = (Vec::new(), BTreeMap::new());
    for game in games {
        for Time { epoch, batch, row, rank, ply, fed, .. } in find(*game).times {
            match (batch, fed) {
                (Some(batch), Some(Fed::Was | Fed::WillBe) | None) => {
                    found.push((epoch, batch, rank.unwrap_or(0), row.unwrap(), *game, ply));
                }
                _ => *kept.entry(format!("{fed:?}")).or_default() += 1,
            }
        }
    }
    found.sort_unstable();
    (found, kept)
}

#[test]
fn every_row_of_two_passes_is_found_where_the_loader_feeds_it() {
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path(), 40, &Form { shard_rows: Some(64), ..Form::default() });
    let all = open(folder.path()).unwrap();
    let condition = "max_score > 2000 and seed <> 1005";
    let named = all.query(condition, &[]).unwrap();
    let low = all.filter(&Filter { step_index: (Some(3), None), ..Filter::default() }).unwrap();
    let games: Vec<u64> = all.games().to_vec();
    let blocks = Shuffle::Blocks { rows: 16, blocks: 3 };
    let skip = vec![Skip { output: None, first: 2, end: 4 }];
    for (rows, shuffle, apart, last_batch, world_size, skip) in [
        (&all, Shuffle::Rows, true, LastBatch::Keep, 1, Vec::new()),
        (&named, Shuffle::Rows, true, LastBatch::Drop, 2, skip.clone()),
        (&low, blocks, true, LastBatch::Pad, 3, Vec::new()),
        (&named, blocks, false, LastBatch::Keep, 4, skip),
        (&low, Shuffle::Off, false, LastBatch::Drop, 1, Vec::new()),
    ] {
        let config = IndexConfig { shuffle, apart, last_batch, skip, ..config() };
        let expected = fed(rows, &config, world_size);
        let loader = IndexLoader::new(rows.input(), IndexConfig { world_size, ..config.clone() }).unwrap();
        let wanted = |game: u64| Wanted {
            game: game.to_string(),
            epochs: Some(0..2),
            world_size: Some(world_size),
            ..Wanted::default()
        };
        let (found, kept) = asked(|game| when_by(&loader, std::slice::from_ref(rows), &wanted(game)).unwrap(), &games);
        assert_eq!(found, expected, "{config:?}");
        let rest = (2 * rows.rows().len()) as usize - expected.len();
        assert_eq!(kept.values().sum::<usize>(), rest, "what is not fed is named: {kept:?}");
        assert!(config.skip.is_empty() || kept["Some(LeftOut)"] == 24);
        // The state of whatever batch says the same.
        loader.seek(5).unwrap();
        let by = By::State(loader.state().unwrap());
        let options = |game| WhenOptions { pack: folder.path().to_owned(), by: by.clone(), wanted: wanted(game) };
        let of_state = |game| when(&options(game)).unwrap();
        let (found, _) = asked(of_state, &games);
        assert!(expected.iter().all(|row| found.binary_search(row).is_ok()), "{config:?}");
        let one = of_state(games[7]);
        let turned = |time: &Time| time.batch.is_none_or(|batch| batch < 5) || time.fed == Some(Fed::WillBe);
        assert!(one.next_batch == Some(5) && one.times.iter().all(turned), "{one:?}");
    }
}

#[test]
fn options_say_what_a_state_says_and_a_ply_and_a_rank_are_parts_of_it() {
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path(), 20, &Form::default());
    let rows = open(folder.path()).unwrap().query("max_score > 2000", &[]).unwrap();
    let config = IndexConfig { apart: true, ..config() };
    let loader = IndexLoader::new(rows.input(), config.clone()).unwrap();
    let game = rows.games()[2].to_string();
    let ask = |by: By, wanted: Wanted| when(&WhenOptions { pack: folder.path().to_owned(), by, wanted });
    let condition = Some("max_score > 2000".to_owned());
    let by = By::Config { config: Box::new(IndexConfig { epochs: None, ..config }), condition };
    let wanted = Wanted { game: game.clone(), world_size: Some(3), ..Wanted::default() };
    let of_config = ask(by.clone(), wanted.clone()).unwrap();
    let of_state = ask(By::State(loader.state().unwrap()), wanted.clone()).unwrap();
    let without = |mut times: Times| {
        times.next_batch = None;
        times.times.iter_mut().for_each(|time| time.fed = None);
        times
    };
    assert_eq!(without(of_state), of_config);
    assert_eq!((of_config.epochs, of_config.times.len() as u64), ((0, 2), 2 * of_config.plies));
    let of_rank = ask(by.clone(), Wanted { rank: Some(1), ..wanted.clone() }).unwrap().times;
    let own: Vec<Time> = of_config.times.iter().filter(|time| time.rank == Some(1)).cloned().collect();
    assert_eq!(of_rank, own);
    let of_ply = ask(by.clone(), Wanted { ply: Some(4), ..wanted.clone() }).unwrap().times;
    let own: Vec<Time> = of_config.times.into_iter().filter(|time| time.ply == 4).collect();
    assert_eq!((of_ply.len(), &of_ply), (2, &own));
    let left = (0..20).find(|id| !rows.games().contains(id)).unwrap();
    let never = ask(by.clone(), Wanted { game: left.to_string(), ..Wanted::default() }).unwrap();
    assert_eq!((never.selected, never.times.len()), (0, 0));

    let refused = |wanted| ask(by.clone(), wanted).unwrap_err().to_string();
    let named = |name: &str| Wanted { game: name.to_owned(), ..Wanted::default() };
    let text = refused(named("23"));
    assert!(text.contains("no game 23: the pack has 20, from 0 to 19; the nearest is 19"), "{text}");
    assert!(refused(named("17.jsonl")).contains("no game called `17.jsonl`"));
    assert!(refused(Wanted { ply: Some(999), ..named(&game) }).contains("no ply 999"));
    assert!(refused(Wanted { epochs: Some(0..1 << 30), ..named(&game) }).contains("too many for one answer"));
    assert!(refused(Wanted { rank: Some(3), world_size: Some(3), ..named(&game) }).contains("rank 3 of 3"));
}

#[test]
fn orders_without_an_inverse_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path(), 12, &Form::default());
    let rows = open(folder.path()).unwrap();
    let mixed = IndexConfig { mix: Some(MixConfig::default()), ..config() };
    let mixed = IndexLoader::of_several(vec![rows.input(), rows.input()], mixed).unwrap();
    let wanted = Wanted { game: "1".into(), ..Wanted::default() };
    let refused = when_by(&mixed, &[rows.clone(), rows.clone()], &wanted).unwrap_err().to_string();
    assert!(refused.contains("several packs, which are mixed") && refused.contains("xray"), "{refused}");
    let stream = By::State(r#"{"gristmill_state": 4, "of": "stream"}"#.to_owned());
    let refused = when(&WhenOptions { pack: folder.path().to_owned(), by: stream, wanted }).unwrap_err().to_string();
    assert!(refused.contains("of a stream") && refused.contains("verify-run --config"), "{refused}");
    let endless = Lookup::counted(&IndexConfig { epochs: Some(2), ..config() }, 1, 40).unwrap();
    assert_eq!(endless.turn(3, 2).unwrap(), None, "there is no third pass");
    assert_eq!(endless.turn(40, 0).unwrap(), None, "there is no such row");
}
