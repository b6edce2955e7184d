//! Process functions for the cases.

use flow::{
    BoxError, KeyedCoProcessFunction, KeyedProcessFunction, ProcessFunction,
    process::{KeyedCoContext, KeyedContext, NoSide, ProcessContext},
};

/// Of numbers, by numbers; the odd ones go aside.
pub struct Evens;

impl KeyedProcessFunction for Evens {
    type Key = u64;
    type In = u64;
    type Out = u64;
    type Side = u64;
    type State = ();

    fn process(&mut self, _: &mut (), n: u64, cx: &mut KeyedContext<'_, Self>) -> Result<(), BoxError> {
        if n % 2 == 0 { cx.emit(n) } else { cx.emit_side(n) }
        Ok(())
    }
}

/// Of numbers, by numbers.
pub struct Same;

impl KeyedProcessFunction for Same {
    type Key = u64;
    type In = u64;
    type Out = u64;
    type Side = NoSide;
    type State = ();

    fn process(&mut self, _: &mut (), n: u64, cx: &mut KeyedContext<'_, Self>) -> Result<(), BoxError> {
        cx.emit(n);
        Ok(())
    }
}

/// Of numbers, without key.
pub struct Plain;

impl ProcessFunction for Plain {
    type In = u64;
    type Out = u64;
    type Side = NoSide;
    type State = ();

    fn process(&mut self, _: &mut (), n: u64, cx: &mut ProcessContext<'_, Self>) -> Result<(), BoxError> {
        cx.emit(n);
        Ok(())
    }
}

/// Of two streams of numbers, by numbers.
pub struct Both;

impl KeyedCoProcessFunction for Both {
    type Key = u64;
    type Left = u64;
    type Right = u64;
    type Out = u64;
    type Side = NoSide;
    type State = ();

    fn process_left(&mut self, _: &mut (), n: u64, cx: &mut KeyedCoContext<'_, Self>) -> Result<(), BoxError> {
        cx.emit(n);
        Ok(())
    }

    fn process_right(&mut self, _: &mut (), n: u64, cx: &mut KeyedCoContext<'_, Self>) -> Result<(), BoxError> {
        cx.emit(n);
        Ok(())
    }
}
