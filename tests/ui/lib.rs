//! Nothing but a home for the cases beside it: `pass` compiles, and in `fail` each file is one mistake.
