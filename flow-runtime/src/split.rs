//! Several outputs of an operator.

/// Which of two outputs a record takes, as the closure of `.split(..)` decides.
///
/// The outputs may be of different types, and records may borrow as anywhere in a chain.
///
/// ```text
/// let (large, small) = orders.split(|order| {
///     if order.total > 100 { Split2::First(order) } else { Split2::Second(order.id) }
/// });
/// large.sink(..);
/// small.sink(..);
/// ```
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
