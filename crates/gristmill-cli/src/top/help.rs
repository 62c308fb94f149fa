//! What the live view shows and which keys it knows, as lines of text. Draws nothing.

/// The lines, none wider than a terminal of 80 columns.
pub(super) const LINES: [&str; 17] = [
    " q  Ctrl-C    quit                   ?  Esc   this help, and back",
    " left right   one stream, or all     up down  scroll; also Page, Home and End",
    " c            more or fewer chips    l        a larger log, or none",
    " p  space     hold the picture still",
    "",
    " The second line: positions a second of the last second, memory of the process,",
    " and who waits. `trainer waits`: for this share of the time a batch was wanted",
    " and not ready, and lacked this: storage, decode, encode, a free core, ...",
    " `loader waits`: batches are ready before they are wanted: the trainer limits.",
    "",
    " Stages stand as the trainer sees them: what it takes from first, files last.",
    " LOAD     threads busy, of those that may be",
    " ITEMS/S  given in the last second",
    " TOTAL    given since the start",
    " FILL     how full, or the rate of the last seconds",
    " A red zero: the trainer waits for that output, and nothing comes.",
    " Yellow: something was dropped, is bad, or has ended.",
];
