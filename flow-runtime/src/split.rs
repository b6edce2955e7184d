//! Several outputs of an operator.

/// Which of two outputs a record takes, as the closure of `.split(..)` decides.
///
/// The outputs may be of different types, and records may borrow as anywhere in a chain.
///
/// ```
/// use flow::{Split2, pipeline, testing::{Harness, Input, Output}};
///
/// #[pipeline]
/// fn by_size(orders: Input<(u64, u64)>, large: Output<(u64, u64)>, rest: Output<u64>) {
///     let orders = source(orders);
///     let (above, below) = orders.split(|(id, total)| {
///         if total > 100 { Split2::First((id, total)) } else { Split2::Second(id) }
///     });
///     above.sink(large);
///     below.sink(rest);
/// }
///
/// let mut test = Harness::new();
/// let (orders, large, rest) = (test.input(), test.output(), test.output());
/// test.start(by_size(orders.clone(), large.clone(), rest.clone()))?;
/// orders.push((1, 50));
/// orders.push((2, 500));
/// test.finish()?;
/// assert_eq!((large.take(), rest.take()), (vec![(2, 500)], vec![1]));
/// # Ok::<_, flow::Error>(())
/// ```
///
/// An output that nobody reads is `_` in the tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split2<A, B> {
    /// To the first output.
    First(A),
    /// To the second output.
    Second(B),
}

/// Which of three outputs a record takes; see [`Split2`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split3<A, B, C> {
    /// To the first output.
    First(A),
    /// To the second output.
    Second(B),
    /// To the third output.
    Third(C),
}

/// Which of four outputs a record takes; see [`Split2`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split4<A, B, C, D> {
    /// To the first output.
    First(A),
    /// To the second output.
    Second(B),
    /// To the third output.
    Third(C),
    /// To the fourth output.
    Fourth(D),
}

macro_rules! choices {
    ($($Choice:ident $choice:ident $Split:ident<$($t:ident),+> $words:literal)*) => { $(
        /// What the closure of `.split(..)` returns where a tuple names so many outputs.
        #[diagnostic::on_unimplemented(
            message = "`{Self}` does not choose among as many outputs as the tuple names",
            label = "this closure chooses among another number of outputs",
            note = $words
        )]
        pub trait $Choice<$($t),+> {
            /// Itself.
            fn choice(self) -> $Split<$($t),+>;
        }

        #[diagnostic::do_not_recommend]
        impl<$($t),+> $Choice<$($t),+> for $Split<$($t),+> {
            #[inline(always)]
            fn choice(self) -> Self {
                self
            }
        }

        /// For generated code: says of what kind a choice has to be.
        #[inline(always)]
        pub fn $choice<$($t),+>(chosen: impl $Choice<$($t),+>) -> $Split<$($t),+> {
            chosen.choice()
        }
    )* };
}
choices! {
    Choice2 choice_of_2 Split2<A, B> "return a `flow::Split2` from the closure for two names"
    Choice3 choice_of_3 Split3<A, B, C> "return a `flow::Split3` from the closure for three names"
    Choice4 choice_of_4 Split4<A, B, C, D> "return a `flow::Split4` from the closure for four names"
}
