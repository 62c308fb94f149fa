//! Small columns in, every tensor of every pass compared by hand; nothing is read from disk.

use gristmill_runtime::runtime::cast::Cast;
use gristmill_stages::stage::pair::{Pairing, classes, offsets, pairs};

use super::*;

fn numbers(values: impl IntoIterator<Item = i64>) -> Arc<dyn Held> {
    Arc::new(values.into_iter().flat_map(i64::to_le_bytes).collect::<Vec<u8>>())
}

fn column(rows: &[u8], row_bytes: usize) -> Column {
    Column { rows: Arc::new(rows.to_vec()), row_bytes }
}

fn listed(values: &[i64], each: usize) -> Steps {
    Steps::Listed { numbers: numbers(values.iter().copied()), each }
}

fn rows(column: Column, steps: Steps, cast: Cast) -> Piece {
    Piece::Rows { column, steps, cast, padding: None }
}

fn of(shape: &[usize], pairs: u64, piece: Piece) -> Result<Pairs> {
    Pairs::new(vec![TensorSpec::new("x", Scalar::U8, shape)], vec![PairSet { pairs, pieces: vec![piece] }])
}

/// The tensors of all pairs, in a pass.
fn made(pairs: &Pairs, pass: u64) -> Vec<Vec<u8>> {
    let all: Vec<u64> = (0..pairs.len()).collect();
    let records = pairs.gathered(&all).unwrap();
    let row = |record| Row { record, provenance: Default::default(), bits: pass.into(), sparse: None };
    let rows: Vec<Row<'_>> = records.chunks_exact(8).map(row).collect();
    let mut out: Vec<Vec<u8>> = pairs.outputs().iter().map(|spec| vec![9; rows.len() * spec.row_bytes()]).collect();
    pairs.encode(&rows, &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).unwrap();
    out
}

#[test]
fn rows_stand_side_by_side_and_zeros_where_there_is_no_step() {
    let column = column(&[1, 2, 3, 4, 5, 6], 2);
    let pairs = of(&[2, 2], 2, rows(column.clone(), listed(&[2, 0, -1, 1], 2), Cast::Same)).unwrap();
    assert_eq!(made(&pairs, 0), [[5, 6, 1, 2, 0, 0, 3, 4]]);
    let wide = of(&[8], 3, rows(column, Steps::Own, Cast::Float)).unwrap();
    let floats: Vec<f32> = made(&wide, 0)[0].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    assert_eq!(floats, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn sets_stand_one_after_another_and_smaller_rows_are_filled_up() {
    let piece = |bytes: &[u8], from: [usize; 2]| {
        let padding = (from != [2, 3]).then(|| Padding { from: from.to_vec(), to: vec![2, 3], item: 1 });
        PairSet {
            pairs: (bytes.len() / (from[0] * from[1])) as u64,
            pieces: vec![Piece::Rows {
                column: column(bytes, from[0] * from[1]),
                steps: Steps::Own,
                cast: Cast::Same,
                padding,
            }],
        }
    };
    let sets = vec![piece(&[1, 2, 3, 4], [2, 2]), piece(&[1, 2, 3, 4, 5, 6], [2, 3]), piece(&[7, 8, 9], [1, 3])];
    let pairs = Pairs::new(vec![TensorSpec::new("x", Scalar::U8, &[2, 3])], sets).unwrap();
    assert_eq!((pairs.sizes(), pairs.locate(2)), (vec![1, 1, 1], ("data set 2".to_owned(), 0)));
    assert_eq!(made(&pairs, 0), [[1, 2, 0, 3, 4, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0]]);
}

#[test]
fn drawn_steps_are_those_of_the_pairs_of_the_pass() {
    let spans = [0..7, 7..8, 8..13];
    let lengths: Vec<u8> = (0..13).collect();
    for pass in 0..4 {
        let expected = pairs(&spans, Pairing::Uniform { least: 1, most: 3 }, offsets(5, pass));
        let steps = Steps::Before {
            later: numbers(expected.target.iter().map(|step| *step as i64)),
            within: numbers(expected.step.iter().map(|step| *step as i64)),
            range: (1, 3),
            seed: 5,
        };
        let found = of(&[1], expected.target.len() as u64, rows(column(&lengths, 1), steps, Cast::Same)).unwrap();
        let context: Vec<u64> = made(&found, pass)[0].iter().map(|step| u64::from(*step)).collect();
        assert_eq!(context, expected.context);
    }
}

#[test]
fn tiles_are_put_together_in_the_order_of_the_class() {
    let picture = Picture { shape: [1, 6, 6], item: 1 };
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0]].concat();
    let puzzle = Arc::new(Puzzle::new(picture, 2, orders, 3).unwrap());
    let pixels: Vec<u8> = (0..36).collect();
    let tiles = |steps, padding| {
        let (column, puzzle) = (column(&pixels, 36), Arc::clone(&puzzle));
        Piece::Tiles { column, steps, puzzle, cast: Cast::Same, padding }
    };
    let sets =
        vec![PairSet { pairs: 2, pieces: vec![tiles(listed(&[0, 0], 1), None), Piece::Class(Arc::clone(&puzzle))] }];
    let outputs = vec![TensorSpec::new("x", Scalar::U8, &[1, 2, 2]), TensorSpec::new("y", Scalar::I64, &[1])];
    let pairs = Pairs::new(outputs, sets).unwrap();
    for pass in 0..3 {
        let found = made(&pairs, pass);
        for (pair, class) in classes(2, 2, 3, pass).into_iter().enumerate() {
            let expected = [[0, 3, 18, 21], [21, 18, 3, 0]][class as usize];
            assert_eq!((&found[0][4 * pair..4 * pair + 4], found[1][8 * pair]), (&expected[..], class as u8));
        }
    }
    let padding = Padding { from: vec![1, 2, 2], to: vec![1, 2, 3], item: 1 };
    let wider = of(&[1, 2, 3], 1, tiles(listed(&[0], 1), Some(padding))).unwrap();
    assert_eq!(made(&wider, 0)[0][2], 0);
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let three = column(&[1, 2, 3], 1);
    let before = |later: i64, within: i64| Steps::Before {
        later: numbers([later]),
        within: numbers([within]),
        range: (1, 2),
        seed: 0,
    };
    for (pairs, piece, words) in [
        (1, rows(three.clone(), listed(&[3], 1), Cast::Same), "step 3 of 3"),
        (1, rows(three.clone(), listed(&[-2], 1), Cast::Same), "step -2 of 3"),
        (2, rows(three.clone(), listed(&[0], 1), Cast::Same), "1 numbers of steps for 2 pairs"),
        (4, rows(three.clone(), Steps::Own, Cast::Same), "for 4 pairs"),
        (1, rows(three.clone(), before(3, 1), Cast::Same), "step 3 of 3"),
        (1, rows(three.clone(), before(1, 0), Cast::Same), "step 1 of 3"),
        (1, rows(column(&[1, 2, 3], 2), Steps::Own, Cast::Same), "3 bytes of rows of 2"),
        (1, rows(three.clone(), Steps::Own, Cast::Float), "4 bytes for a row of 1"),
    ] {
        let e = of(&[1], pairs, piece).unwrap_err().to_string();
        assert!(e.contains("data set 0, `x`") && e.contains(words), "{e}");
    }
    assert!(
        Pairs::new(Vec::new(), vec![PairSet { pairs: 1, pieces: vec![rows(three, Steps::Own, Cast::Same)] }]).is_err()
    );
    let picture = Picture { shape: [1, 5, 6], item: 1 };
    assert!(Puzzle::new(picture, 2, vec![0, 1, 2, 3], 0).unwrap_err().to_string().contains("too small"));
    let picture = Picture { shape: [1, 6, 6], item: 1 };
    assert!(Puzzle::new(picture, 2, vec![0, 1, 2, 4], 0).unwrap_err().to_string().contains("tile 4 of 4"));
    assert!(Puzzle::new(picture, 2, vec![0, 1, 2], 0).is_err());
}
