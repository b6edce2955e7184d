//! What a future gives: a value, or a result that may be an error.

use std::{future::Future, marker::PhantomData};

use crate::error::BoxError;

/// Tells the two kinds of futures apart by what they give: `Answering::of(&future).kind()` is [`Fallible`] where that is
/// a `Result`, and [`Certain`] otherwise. Method lookup tries the former first, since it needs no auto-reference.
#[derive(Debug)]
pub struct Answering<O>(PhantomData<fn() -> O>);

impl<O> Answering<O> {
    /// Of this future.
    #[inline(always)]
    pub fn of<F: Future<Output = O>>(_: &F) -> Self {
        Answering(PhantomData)
    }
}

/// See [`Answering`].
#[derive(Clone, Copy, Debug)]
pub struct Fallible;

/// See [`Answering`].
#[derive(Clone, Copy, Debug)]
pub struct Certain;

/// See [`Answering`].
pub trait AnswerFallible {
    /// Its kind.
    fn kind(self) -> Fallible;
}

impl<T, E: Into<BoxError>> AnswerFallible for Answering<Result<T, E>> {
    #[inline(always)]
    fn kind(self) -> Fallible {
        Fallible
    }
}

/// See [`Answering`].
pub trait AnswerPlain {
    /// Its kind.
    fn kind(self) -> Certain;
}

impl<T> AnswerPlain for &Answering<T> {
    #[inline(always)]
    fn kind(self) -> Certain {
        Certain
    }
}

impl Fallible {
    /// The future with the error that all have.
    ///
    /// # Errors
    /// The future's.
    #[inline(always)]
    pub async fn answer<T, E: Into<BoxError>, F: Future<Output = Result<T, E>>>(
        self,
        future: F,
    ) -> Result<T, BoxError> {
        future.await.map_err(Into::into)
    }
}

impl Certain {
    /// The future, which never fails.
    ///
    /// # Errors
    /// None.
    #[inline(always)]
    pub async fn answer<T, F: Future<Output = T>>(self, future: F) -> Result<T, BoxError> {
        Ok(future.await)
    }
}
