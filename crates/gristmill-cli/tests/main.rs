//! The real binary, command by command. One program, since each that is linked costs as much as its tests.

mod chess_pack;
mod command;
mod convert;
mod damage;
mod demonstrations;
mod demos;
mod feed;
mod kills;
mod manners;
mod marks;
mod memory;
mod nothing;
mod pack;
mod places;
mod python;
mod real_sample;
mod recovering;
mod round_trip;
mod terminal;
mod tokenizer;
mod tools;
mod top;
mod uncommon;
mod unreadable;
mod usage;
mod values;
