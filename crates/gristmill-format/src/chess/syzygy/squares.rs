//! The numberings of squares that Syzygy tables are indexed by: the triangle, pairs of kings, pawns by file.
//! Built by the compiler; knows no table.

/// The most men of one kind in a group.
const MOST: usize = 7;

/// `BINOMIAL[k][n]`: how many ways there are to choose k of n.
pub(super) static BINOMIAL: [[u64; 65]; MOST] = binomials();

const fn binomials() -> [[u64; 65]; MOST] {
    let mut table = [[0; 65]; MOST];
    let mut n = 0;
    while n < 65 {
        table[0][n] = 1;
        let mut k = 1;
        while k < MOST && n > 0 {
            table[k][n] = table[k - 1][n - 1] + table[k][n - 1];
            k += 1;
        }
        n += 1;
    }
    table
}

/// How far a square lies above the long diagonal from a1: negative below it.
pub(super) const fn above_diagonal(square: u8) -> i8 {
    (square / 8) as i8 - (square % 8) as i8
}

/// Reflects over the long diagonal from a1.
pub(super) const fn across_diagonal(square: u8) -> u8 {
    square % 8 * 8 + square / 8
}

/// Number of a square of the triangle a1-d1-d4: first the six below the diagonal, then the four on it. 10 outside.
pub(super) static TRIANGLE: [u8; 64] = triangle();

const fn triangle() -> [u8; 64] {
    let mut table = [10; 64];
    let (mut next, mut square) = (0, 0);
    while square < 64 {
        if square % 8 < 4 && above_diagonal(square) < 0 {
            table[square as usize] = next;
            next += 1;
        }
        square += 1;
    }
    let mut i = 0;
    while i < 4 {
        table[9 * i] = 6 + i as u8;
        i += 1;
    }
    table
}

/// Number of a square below the diagonal, by ranks, 0 to 27; its mirror image has the same. 28 on it.
pub(super) static BELOW: [u8; 64] = below();

const fn below() -> [u8; 64] {
    let mut table = [28; 64];
    let (mut next, mut square) = (0, 0);
    while square < 64 {
        if above_diagonal(square) < 0 {
            table[square as usize] = next;
            table[across_diagonal(square) as usize] = next;
            next += 1;
        }
        square += 1;
    }
    table
}

/// Placements of two kings, up to symmetry.
pub(super) const KING_PAIRS: usize = 462;

/// Number of a pair of kings, the first by its number in the triangle; [`KING_PAIRS`] where they touch or where a
/// symmetry leads to another pair.
pub(super) static KINGS: [[u16; 64]; 10] = kings();

const fn kings() -> [[u16; 64]; 10] {
    let mut table = [[KING_PAIRS as u16; 64]; 10];
    let mut code = 0;
    // Pairs that are both on the diagonal are numbered last.
    let mut on_diagonal = false;
    loop {
        let mut first = 0;
        while first < 10 {
            let one = square_of_triangle(first);
            let mut two = 0;
            while two < 64 {
                let near = (one / 8).abs_diff(two / 8) < 2 && (one % 8).abs_diff(two % 8) < 2;
                let above = above_diagonal(one) == 0 && above_diagonal(two) > 0;
                let both = above_diagonal(one) == 0 && above_diagonal(two) == 0;
                if !near && !above && both == on_diagonal {
                    table[first as usize][two as usize] = code;
                    code += 1;
                }
                two += 1;
            }
            first += 1;
        }
        if on_diagonal {
            break;
        }
        on_diagonal = true;
    }
    assert!(code as usize == KING_PAIRS);
    table
}

const fn square_of_triangle(number: u8) -> u8 {
    let table = triangle();
    let mut square = 0;
    while table[square as usize] != number {
        square += 1;
    }
    square
}

/// Order of the squares of pawns: files from the edge inwards, ranks upwards; high first. Ranks 2 to 7 only.
pub(super) const fn twist(square: u8) -> u8 {
    let (rank, file) = (square / 8, square % 8);
    let (edge, first) = if file < 4 { (file, 47) } else { (7 - file, 46) };
    first - 12 * edge - 2 * (rank - 1)
}

/// Order of the leading pawn: files from the edge inwards, ranks upwards; low first, and both wings alike.
pub(super) const fn lead(square: u8) -> u8 {
    let (rank, file) = (square / 8, square % 8);
    let edge = if file < 4 { file } else { 7 - file };
    6 * edge + rank - 1
}

/// For k + 1 leading pawns: first index of those whose leading pawn has this [`lead`], within its file.
pub(super) static LEADING: [[u64; 24]; 6] = leading().0;

/// For k + 1 leading pawns: how many placements there are with the leading pawn on this file, counted from the edge.
pub(super) static LEADING_ON_FILE: [[u64; 4]; 6] = leading().1;

const fn leading() -> ([[u64; 24]; 6], [[u64; 4]; 6]) {
    let (mut index, mut sizes) = ([[0; 24]; 6], [[0; 4]; 6]);
    let mut k = 0;
    while k < 6 {
        let (mut sum, mut order) = (0, 0);
        while order < 24 {
            index[k][order] = sum;
            let square = (1 + order % 6) * 8 + order / 6;
            sum += binomials()[k][twist(square as u8) as usize];
            if order % 6 == 5 {
                sizes[k][order / 6] = sum;
                sum = 0;
            }
            order += 1;
        }
        k += 1;
    }
    (index, sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numberings_count_what_they_should() {
        assert_eq!((BINOMIAL[2][64], BINOMIAL[6][64], BINOMIAL[0][0], BINOMIAL[3][2]), (2016, 74_974_368, 1, 0));
        let mut triangle: Vec<_> = TRIANGLE.into_iter().filter(|t| *t < 10).collect();
        triangle.sort_unstable();
        assert_eq!(triangle, (0..10).collect::<Vec<_>>());
        assert_eq!((TRIANGLE[1], TRIANGLE[3], TRIANGLE[0], TRIANGLE[27]), (0, 2, 6, 9));
        assert_eq!((BELOW[1], BELOW[8], BELOW[55], BELOW[9]), (0, 0, 27, 28));
        let mut twists: Vec<_> = (8..56).map(twist).collect();
        assert_eq!((twist(8), twist(15), twist(52)), (47, 46, 0));
        twists.sort_unstable();
        assert_eq!(twists, (0..48).collect::<Vec<_>>());
        // One leading pawn: six ranks a file; two: the other on any square of lower order.
        assert_eq!(LEADING_ON_FILE[0], [6; 4]);
        assert_eq!(LEADING_ON_FILE[1].iter().sum::<u64>(), (0..24).map(|i| 47 - 2 * i).sum::<u64>());
    }
}
