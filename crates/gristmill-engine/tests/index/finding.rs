//! When the rows of a game come, against the batches of a real loader and what an x-ray says of them.

use std::collections::BTreeMap;

use gristmill_engine::config::{EncoderConfig, IndexConfig, LastBatch, MixConfig, Shuffle, Skip};
use gristmill_engine::pipeline::Lookup;
use gristmill_engine::selection::{Filter, Selection};
use gristmill_engine::stage::mix::Exhausted;
use gristmill_engine::{IndexLoader, Next};
use gristmill_plans::when::{By, Fed, Time, Times, Wanted, WhenOptions, when, when_by};
use gristmill_plans::xray::seen;

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
        let options =
            |game| WhenOptions { packs: vec![folder.path().to_owned()], by: by.clone(), wanted: wanted(game) };
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
    let ask = |by: By, wanted: Wanted| when(&WhenOptions { packs: vec![folder.path().to_owned()], by, wanted });
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
fn rows_of_mixed_packs_are_found_in_every_batch_that_feeds_them() {
    let folders = [40, 9, 25].map(|games| {
        let folder = tempfile::tempdir().unwrap();
        write_pack(folder.path(), games, &Form { shard_rows: Some(64), ..Form::default() });
        folder
    });
    let packs: Vec<_> = folders.iter().map(|folder| folder.path().to_owned()).collect();
    let rows: Vec<Selection> =
        packs.iter().map(|pack| open(pack).unwrap().query("max_score > 1000", &[]).unwrap()).collect();
    let mut met = 0;
    for (weights, exhausted, length, world_size, apart) in [
        (vec![], Exhausted::Restart, None, 1, true),
        (vec![1.0, 3.0, 0.25], Exhausted::Restart, Some(500), 3, true),
        (vec![1.0, 3.0, 1.0], Exhausted::Stop, None, 2, false),
        (vec![2.0, 1.0, 0.5], Exhausted::Drop, None, 4, true),
        (vec![2.0, 1.0, 0.0], Exhausted::Drop, Some(90), 1, false),
    ] {
        let mix = Some(MixConfig { weights, exhausted, length, ..MixConfig::default() });
        let config = IndexConfig { mix, apart, ..config() };
        let inputs = || rows.iter().map(Selection::input).collect::<Vec<_>>();
        let mut expected = Vec::new();
        for rank in 0..world_size {
            let config = IndexConfig { rank, world_size, ..config.clone() };
            let loader = IndexLoader::of_several(inputs(), config).unwrap();
            let lookup = loader.lookup().unwrap();
            while let Next::Batch(batch) = loader.next("", None).unwrap() {
                expected.extend(seen(&lookup, &rows, batch.number, None).unwrap().into_iter().map(|row| {
                    (row.source.unwrap(), (row.epoch, row.batch, rank, row.row as u64, row.place.game, row.place.ply))
                }));
            }
        }
        expected.sort_unstable();
        let loader = IndexLoader::of_several(inputs(), IndexConfig { world_size, ..config.clone() }).unwrap();
        loader.seek(3).unwrap();
        let by = By::State(loader.state().unwrap());
        let wanted = |source: usize, game: u64| Wanted {
            game: game.to_string(),
            source: Some(source),
            epochs: Some(0..2),
            world_size: Some(world_size),
            ..Wanted::default()
        };
        for (source, one) in rows.iter().enumerate() {
            let games: Vec<u64> = one.games().to_vec();
            let (found, _) = asked(|game| when_by(&loader, &rows, &wanted(source, game)).unwrap(), &games);
            let own = expected.iter().filter(|(of, _)| *of == source).map(|(_, row)| *row);
            assert_eq!(found, own.collect::<Vec<_>>(), "pack {source}: {config:?}");
            met += found.len();
            let wanted = wanted(source, games[2]);
            let of_state = when(&WhenOptions { packs: packs.clone(), by: by.clone(), wanted: wanted.clone() }).unwrap();
            let of_loader = when_by(&loader, &rows, &wanted).unwrap();
            let placed = |times: &Times| times.times.iter().map(|time| (time.batch, time.row)).collect::<Vec<_>>();
            assert_eq!(placed(&of_state), placed(&of_loader));
            assert_eq!((of_state.source, of_state.next_batch), (Some(source), Some(3)));
            let condition = Some("max_score > 1000".to_owned());
            let config = Box::new(IndexConfig { epochs: None, ..config.clone() });
            let by = By::Config { config, condition };
            let of_config = when(&WhenOptions { packs: packs.clone(), by, wanted }).unwrap();
            assert_eq!(placed(&of_config), placed(&of_loader));
        }
        let unnamed = Wanted { game: "1".into(), ..Wanted::default() };
        let refused = when_by(&loader, &rows, &unnamed).unwrap_err().to_string();
        assert!(refused.contains("mixes 3 packs"), "{refused}");
        let refused = when_by(&loader, &rows, &Wanted { source: Some(3), ..unnamed.clone() }).unwrap_err().to_string();
        assert!(refused.contains("no pack 3"), "{refused}");
        let fewer = WhenOptions { packs: packs[..2].to_vec(), by, wanted: unnamed };
        let refused = when(&fewer).unwrap_err().to_string();
        assert!(refused.contains("of 3 packs, and 2 were given"), "{refused}");
    }
    assert!(met > 2000, "{met}");
}

#[test]
fn a_small_pack_that_comes_too_often_is_not_listed_without_end() {
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path(), 2, &Form::default());
    let rows = open(folder.path()).unwrap();
    let mix = Some(MixConfig { length: Some(1 << 40), ..MixConfig::default() });
    let lookup = Lookup::of_several(IndexConfig { mix, ..config() }, 1, vec![rows.input(), rows.input()]).unwrap();
    let wanted = Wanted { game: "1".into(), source: Some(1), epochs: Some(0..1), ..Wanted::default() };
    let refused = gristmill_plans::when::times(&lookup, &[rows.clone(), rows], &wanted).unwrap_err().to_string();
    assert!(refused.contains("too many for one answer"), "{refused}");
}

#[test]
fn orders_without_an_inverse_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path(), 12, &Form::default());
    let wanted = Wanted { game: "1".into(), ..Wanted::default() };
    let stream = By::State(r#"{"gristmill_state": 4, "of": "stream"}"#.to_owned());
    let refused =
        when(&WhenOptions { packs: vec![folder.path().to_owned()], by: stream, wanted }).unwrap_err().to_string();
    assert!(refused.contains("of a stream") && refused.contains("verify-run --config"), "{refused}");
    let endless = Lookup::counted(&IndexConfig { epochs: Some(2), ..config() }, 1, 40).unwrap();
    assert_eq!(endless.turns(3, 1).unwrap().count(), 1);
    assert_eq!(endless.turns(3, 2).unwrap().count(), 0, "there is no third pass");
    assert_eq!(endless.turns(40, 0).unwrap().count(), 0, "there is no such row");
}
