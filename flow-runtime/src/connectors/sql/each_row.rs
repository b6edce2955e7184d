//! A statement for each row.

use tokio::sync::OnceCell;

use super::{
    buffer::{Columns, RowBuffer},
    error::{Fault, SqlError},
    handle::Staged,
    placeholder::Template,
    transaction::Transaction,
    url::Backend,
    work::{Failure, How, Internal, Work},
};

/// How many rows are decoded at once.
pub(super) const CHUNK: usize = 4096;

/// Runs a statement for each record, see [`execute`](super::execute).
#[derive(Clone, Debug)]
pub struct EachRow {
    text: String,
    template: OnceCell<Template>,
}

impl EachRow {
    pub(super) fn new(text: String) -> Self {
        EachRow { text, template: OnceCell::new() }
    }

    async fn template(&self, backend: Backend) -> Result<&Template, SqlError> {
        self.template.get_or_try_init(async || Template::parse(backend, &self.text)).await
    }
}

impl Work for EachRow {
    type Buffer = RowBuffer;
    const FOREIGN: bool = true;

    fn buffer(&self, backend: Option<Backend>) -> RowBuffer {
        let params = backend.and_then(|backend| Template::parse(backend, &self.text).ok()).map(|t| t.params);
        RowBuffer::new(Columns::Unnamed(params), self.place(), backend)
    }

    fn place(&self) -> String {
        format!("statement `{}`", self.text)
    }

    async fn check(&self, internal: &mut Internal<'_>) -> Result<(), SqlError> {
        let template = self.template(internal.0.backend()).await?;
        #[cfg(feature = "postgres")]
        if let Some(postgres) = internal.0.as_postgres() {
            postgres.parameter_types(template).await.map_err(|error| {
                SqlError::Setup(format!("{} cannot be prepared: {}", self.place(), SqlError::from(error)))
            })?;
        }
        let _ = template;
        Ok(())
    }

    async fn apply(&self, tx: &mut Transaction, staged: &Staged, _: How) -> Result<(), Failure> {
        let template = self.template(tx.backend()).await?;
        if staged.width < template.params {
            return Err(SqlError::Setup(format!(
                "{} takes {} parameters, and the rows that the checkpoint holds have {} values",
                self.place(),
                template.params,
                staged.width
            ))
            .into());
        }
        #[cfg(feature = "sqlite")]
        if let Some(sqlite) = tx.connection.as_sqlite() {
            return Ok(sqlite.each_row(template, staged).await?);
        }
        if staged.width == 0 {
            for row in 0..staged.rows as usize {
                tx.run_template(template, &[]).await.map_err(|error| Fault::at(row..row + 1, error))?;
            }
            return Ok(());
        }
        for chunk in staged.chunks(CHUNK)? {
            let (start, rows) = chunk?;
            for i in 0..rows.len() {
                let row = start + i;
                tx.run_template(template, rows.row(i))
                    .await
                    .map_err(|error| Fault::at(row..row + 1, error))?;
            }
        }
        Ok(())
    }
}
