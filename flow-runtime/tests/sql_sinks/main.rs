//! The SQL sinks on real databases. MariaDB and PostgreSQL are started by `tests/services/up`, and found through
//! `eval "$(tests/services/env)"`.

mod database;
mod job;
mod job_kill;
mod prepared;
mod server_kill;
mod suite;

/// Every test of the suite, on every database.
macro_rules! on_every_database {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                crate::suite::$test(&crate::database::Database::sqlite()).await;
            })*
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let _up = crate::database::POSTGRES_UP.read().await;
                crate::suite::$test(&crate::database::Database::postgres()).await;
            })*
        }

        mod mariadb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let _up = crate::database::MARIADB_UP.read().await;
                crate::suite::$test(&crate::database::Database::mariadb()).await;
            })*
        }
    };
}

on_every_database! {
    rows_are_there_after_the_commit_and_once,
    epochs_without_rows_are_skipped,
    a_handle_is_applied_by_another_process,
    an_operator_settles_by_hand,
    an_earlier_attempt_is_fenced,
    a_ledger_ahead_is_refused,
    an_emptied_ledger_is_refused,
    every_process_may_recover,
    a_job_may_be_rescaled,
    an_upsert_keeps_the_last_row,
    an_upsert_may_use_the_ledger,
    a_key_may_have_several_columns,
    many_rows_are_many_batches,
    a_row_that_is_refused_is_named,
    at_least_once_writes_at_once,
    two_committers_share_a_row,
    a_statement_is_run_for_each_record,
    rows_are_looked_up,
    a_closure_gets_batches,
    a_closure_may_use_diesel,
    a_closure_that_fails_writes_nothing,
    a_closure_cannot_end_the_transaction,
    values_of_every_kind,
    a_table_may_be_named_with_its_schema,
    what_does_not_fit_is_refused_at_the_start,
    a_missing_database_is_told_without_its_password,
}

/// Every test of prepared transactions, on the databases that have them.
macro_rules! on_every_server {
    ($($test:ident),* $(,)?) => {
        mod prepared_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let _up = crate::database::POSTGRES_UP.read().await;
                crate::prepared::$test(&crate::database::Database::postgres()).await;
            })*
        }

        mod prepared_mariadb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let _up = crate::database::MARIADB_UP.read().await;
                crate::prepared::$test(&crate::database::Database::mariadb()).await;
            })*
        }
    };
}

on_every_server! {
    rows_are_there_after_the_commit_and_once,
    epochs_without_rows_are_skipped,
    a_dead_process_is_cleaned_up_after,
    a_lost_transaction_is_told,
    a_transaction_in_doubt_may_be_committed_by_hand,
    an_operator_settles_transactions,
    other_jobs_are_left_alone,
    the_next_epoch_does_not_keep_the_former_from_its_commit,
    a_slow_checkpoint_is_waited_for,
    subtasks_that_share_a_row_are_told,
    a_deadlock_makes_the_epoch_be_written_again,
    a_cut_connection_makes_the_epoch_be_written_again,
    an_earlier_attempt_is_fenced,
    an_orphan_that_comes_late_is_rolled_back,
    markers_ahead_are_refused,
    a_job_may_be_rescaled,
    an_upsert_keeps_the_last_row,
    a_row_that_is_refused_is_named,
    a_closure_cannot_end_the_transaction,
    a_closure_may_nest_transactions,
}
