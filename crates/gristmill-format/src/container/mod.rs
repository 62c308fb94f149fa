//! How bytes are boxed (gzip, tar): knows no game.
