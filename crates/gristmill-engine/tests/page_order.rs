//! The vectors on the page about the order against the code that makes the order, each by its name on the page.

use gristmill_engine::runtime::permute::Permutation;
use gristmill_engine::runtime::seed::Key;
use gristmill_engine::stage::gather::{Gather, Order};
use gristmill_engine::stage::pool::{Chance, Pool};
use gristmill_engine::stage::sample::Reservoir;
use gristmill_engine::stage::unpack::Unpack;
use gristmill_engine::stage::weighted::{Weighted, Weights};
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../../docs/format/order.md");
const SEED: u64 = 42;

fn key() -> Key {
    Key::new(SEED, "pool")
}

fn epoch(order: Order) -> Vec<u64> {
    let mut epoch = Gather::new(Key::new(SEED, "gather"), 23, order).epoch(1);
    (0..23).map(|place| epoch.row(place)).collect()
}

fn uses(unpack: Unpack) -> Vec<Vec<u32>> {
    let own = Key::new(SEED, "unpack").of(b"training.1.gz", 0);
    let rows = |use_count| {
        let mut rows = Vec::new();
        unpack.select(own, 10, None, use_count, &mut rows);
        rows
    };
    (0..4).map(rows).collect()
}

fn drawn() -> Vec<u32> {
    let mut pool = Pool::new(key(), 5);
    pool.admit(0, 0..5);
    (0..12).map(|_| pool.draw().unwrap().at.chunk).collect()
}

fn shuffled() -> Vec<u32> {
    let mut reservoir = Reservoir::new(Key::new(SEED, "sample"), 4);
    let mut changes = Vec::new();
    let given: Vec<u32> = (0..10).filter_map(|row| reservoir.offer(row, &mut changes)).collect();
    let left: Vec<u32> = std::iter::from_fn(|| reservoir.drain(&mut changes)).collect();
    [given, left].concat()
}

fn weighted() -> Vec<u64> {
    let games: [&[f32]; 3] = [&[0.0, 1.0, 2.0], &[3.0], &[4.0, 5.0]];
    let chance = |game: &[f32]| Chance::Weight { gamma: 1.0 }.of(game.iter().sum(), 9.0);
    let order = Weighted::new(games.map(|game| (game.len() as u64, chance(game))));
    let row = |number| {
        let mut drawn = order.draw(Key::new(SEED, "weighted"), number);
        let weights = Weights::new(games[drawn.chunk]);
        drawn.by(&weights)
    };
    (0..10).map(row).collect()
}

fn found() -> Value {
    let bits = |n: usize| {
        let mut draws = key().at(7);
        (0..n).map(|_| draws.bits()).collect::<Vec<_>>()
    };
    let below = |m: u64| {
        let mut draws = key().at(7);
        (0..6).map(|_| draws.below(m)).collect::<Vec<_>>()
    };
    let choices: Vec<_> = (0..10).map(|n| key().at(n).weighted(&[0.5, 0.0, 3.0, 1.5])).collect();
    let permuted = |n: u64| {
        let permutation = Permutation::new(key(), n);
        (0..5).map(|i| permutation.apply(i)).collect::<Vec<_>>()
    };
    json!({
        "key": key().value(),
        "key.of(\"epoch\", 3)": key().of(b"epoch", 3).value(),
        "bits of key.at(7)": bits(3),
        "below(1000) of key.at(7)": below(1000),
        "below(12297829382473034411) of key.at(7)": below(12_297_829_382_473_034_411),
        "unit of key.at(7)": key().at(7).unit(),
        "choice(0.5, 0, 3, 1.5) of key.at(0) to key.at(9)": choices,
        "perm(key, 5)": permuted(5),
        "perm(key, 1000000)": permuted(1_000_000),
        "rows 0 to 22, epoch 1": epoch(Order::Shuffled),
        "the same in blocks of 4, 2 together": epoch(Order::Blocks { rows: 4, blocks: 2 }),
        "bits of row 5 in epoch 1": Key::new(SEED, "augment").of(b"epoch", 1).at(5).bits(),
        "three of 10 frames of training.1.gz by unpack, uses 0 to 3": uses(Unpack::Count(3)),
        "0.4 of them, uses 0 to 3": uses(Unpack::Rate(0.4)),
        "a pool of 5 chunks, 12 draws": drawn(),
        "frames 0 to 9 through a reservoir of 4": shuffled(),
        "games of 3, 1 and 2 rows of weights 0 to 5, draws 0 to 9": weighted(),
    })
}

#[test]
fn the_vectors_of_the_page_are_what_the_code_draws() {
    let block = PAGE.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let page: Value = serde_json::from_str(block).unwrap();
    let found = found();
    for (name, value) in page.as_object().unwrap() {
        assert_eq!(found.get(name), Some(value), "{name}");
    }
    assert_eq!(page.as_object().unwrap().len(), found.as_object().unwrap().len(), "each is on the page");
}
