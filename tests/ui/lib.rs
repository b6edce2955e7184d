//! Nothing but a home for the cases beside it: `right` compiles, and in `fail` each file is one mistake.
