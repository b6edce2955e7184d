//! What the tests of the engine share: a sink that collects, a source that follows a script, and runs that cannot
//! hang.

#![allow(dead_code, unused_imports, reason = "each test binary uses its own part of this")]

mod collect;
mod fuse;
mod records;
mod run;
mod script;
mod storage;

pub(crate) use collect::{Collected, Fault};
pub(crate) use fuse::Fuse;
pub(crate) use records::{deal, halves, random};
pub(crate) use run::{Background, config, often, run, run_with, sorted, start, start_on, within};
pub(crate) use script::{Gate, Script, Scripted};
pub(crate) use storage::{Storage, Trouble};
