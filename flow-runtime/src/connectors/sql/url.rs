//! Which database: chosen by URL.

use std::{fmt, path::Path};

use super::error::SqlError;

/// Where a database is, with the password that leads there. Made from a string.
///
/// | URL | database | feature |
/// |---|---|---|
/// | `sqlite:path`, `sqlite://path`, a path that ends in `.db`, `.sqlite` or `.sqlite3` | SQLite | `sqlite` |
/// | `postgres://user:password@host/database`, `postgresql://..` | PostgreSQL | `postgres` |
/// | `mysql://user:password@host/database`, `mariadb://..` | MariaDB and MySQL | `mysql` |
///
/// The password is shown by neither `Debug` nor `Display`, and is taken out of what a driver says.
///
/// ```
/// use flow_runtime::connectors::sql::DatabaseUrl;
///
/// let url = DatabaseUrl::from("postgres://ada:secret@db.example.org/words");
/// assert_eq!(url.to_string(), "postgres://ada:***@db.example.org/words");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// SQLite, bundled.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MariaDB and MySQL.
    Mysql,
}

impl Backend {
    /// The cargo feature that brings its driver.
    #[must_use]
    pub fn feature(self) -> &'static str {
        match self {
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
            Backend::Mysql => "mysql",
        }
    }

    fn enabled(self) -> bool {
        match self {
            Backend::Sqlite => cfg!(feature = "sqlite"),
            Backend::Postgres => cfg!(feature = "postgres"),
            Backend::Mysql => cfg!(feature = "mysql"),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Sqlite => "SQLite",
            Backend::Postgres => "PostgreSQL",
            Backend::Mysql => "MariaDB or MySQL",
        })
    }
}

/// A URL that was understood: what the driver is given.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) backend: Backend,
    /// A path for SQLite, else a URL.
    pub(super) address: String,
}

impl DatabaseUrl {
    /// The kind of database it leads to, whether or not its feature is on. `None` when it is not understood.
    #[must_use]
    pub fn backend(&self) -> Option<Backend> {
        let url = self.0.as_str();
        match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => Some(Backend::Sqlite),
            Some("postgres" | "postgresql") => Some(Backend::Postgres),
            Some("mysql" | "mariadb") => Some(Backend::Mysql),
            _ if url.contains("://") => None,
            _ => match Path::new(url).extension()?.to_str()? {
                "db" | "sqlite" | "sqlite3" => Some(Backend::Sqlite),
                _ => None,
            },
        }
    }

    pub(super) fn target(&self) -> Result<Target, SqlError> {
        let backend = self.backend().ok_or_else(|| SqlError::UnknownUrl { url: self.to_string() })?;
        if !backend.enabled() {
            return Err(SqlError::FeatureOff { url: self.to_string(), backend });
        }
        let address = match backend {
            Backend::Sqlite => self.sqlite_path()?,
            Backend::Postgres => self.with_defaults(&[
                // A server that is gone without a word must not hold a committer for hours.
                ("keepalives_idle", "30"),
                ("keepalives_interval", "10"),
                ("keepalives_retries", "3"),
                ("application_name", "flow"),
            ])?,
            Backend::Mysql => {
                let url = self.with_defaults(&[("tcp_keepalive", "30000")])?;
                match url.strip_prefix("mariadb:") {
                    Some(rest) => format!("mysql:{rest}"),
                    None => url,
                }
            }
        };
        Ok(Target { backend, address })
    }

    fn sqlite_path(&self) -> Result<String, SqlError> {
        let path = self.0.strip_prefix("sqlite:").unwrap_or(&self.0);
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.contains(":memory:") || path.contains("mode=memory") {
            return Err(SqlError::InMemory { url: self.to_string() });
        }
        Ok(path.to_owned())
    }

    fn with_defaults(&self, defaults: &[(&str, &str)]) -> Result<String, SqlError> {
        let mut url = url::Url::parse(&self.0)
            .map_err(|cause| SqlError::InvalidUrl { url: self.to_string(), cause: cause.to_string() })?;
        let missing: Vec<_> =
            defaults.iter().filter(|(name, _)| !url.query_pairs().any(|(given, _)| given == *name)).collect();
        if !missing.is_empty() {
            url.query_pairs_mut().extend_pairs(missing);
        }
        Ok(url.into())
    }

    /// Which database it leads to, whoever connects: for comparing, and for messages.
    pub(super) fn database(&self) -> String {
        let Ok(url) = url::Url::parse(&self.0) else { return self.to_string() };
        let (kind, port) = match self.backend() {
            Some(Backend::Postgres) => ("postgres", 5432),
            Some(Backend::Mysql) => ("mysql", 3306),
            _ => return self.to_string(),
        };
        let (host, port) = (url.host_str().unwrap_or("localhost"), url.port().unwrap_or(port));
        format!("{kind}://{host}:{port}{}", url.path())
    }

    /// Takes out of a text what must not be shown: drivers like to quote the URL that they were given.
    pub(super) fn redact(&self, text: &str) -> String {
        let mut text = text.replace(&self.0, &self.to_string());
        if let Ok(target) = self.target() {
            text = text.replace(&target.address, &self.to_string());
        }
        let Ok(url) = url::Url::parse(&self.0) else { return text };
        let visible = self.to_string();
        for secret in secrets(&url) {
            // One that is also the name of the user or the database tells nothing, and would garble the message.
            if !secret.is_empty() && !visible.contains(&secret) {
                text = text.replace(&secret, "***");
            }
        }
        text
    }
}

/// The passwords in a URL, as written and as meant.
fn secrets(url: &url::Url) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(password) = url.password() {
        found.push(password.to_owned());
        found.extend(
            url::form_urlencoded::parse(format!("p={}", password.replace('+', "%2B")).as_bytes())
                .map(|(_, plain)| plain.into_owned()),
        );
    }
    found.extend(url.query_pairs().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.into_owned()));
    found
}

fn is_secret(parameter: &str) -> bool {
    let parameter = parameter.to_ascii_lowercase();
    parameter.contains("pass") || parameter.contains("secret") || parameter.contains("token")
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.contains("://") {
            // A path. But a URL that lacks its slashes may hold a password too.
            return match (self.0.split_once(':'), self.0.contains('@')) {
                (Some((scheme, _)), true) => write!(f, "{scheme}:***"),
                (None, true) => f.write_str("***"),
                (_, false) => f.write_str(&self.0),
            };
        }
        match url::Url::parse(&self.0) {
            Ok(mut url) => {
                if url.password().is_some() && url.set_password(Some("***")).is_err() {
                    return write!(f, "{}://***", url.scheme());
                }
                if url.query_pairs().any(|(name, _)| is_secret(&name)) {
                    let pairs: Vec<_> = url
                        .query_pairs()
                        .map(|(name, value)| {
                            let value = if is_secret(&name) { "***".into() } else { value };
                            (name.into_owned(), value.into_owned())
                        })
                        .collect();
                    url.query_pairs_mut().clear().extend_pairs(pairs);
                }
                f.write_str(url.as_str())
            }
            Err(_) => {
                let scheme = self.0.split_once("://").map_or("", |(scheme, _)| scheme);
                write!(f, "{scheme}://***")
            }
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({self})")
    }
}

impl From<&str> for DatabaseUrl {
    fn from(url: &str) -> Self {
        DatabaseUrl(url.to_owned())
    }
}

impl From<String> for DatabaseUrl {
    fn from(url: String) -> Self {
        DatabaseUrl(url)
    }
}

impl From<&String> for DatabaseUrl {
    fn from(url: &String) -> Self {
        DatabaseUrl(url.clone())
    }
}

impl From<&Path> for DatabaseUrl {
    fn from(path: &Path) -> Self {
        DatabaseUrl(format!("sqlite:{}", path.display()))
    }
}

impl From<&DatabaseUrl> for DatabaseUrl {
    fn from(url: &DatabaseUrl) -> Self {
        url.clone()
    }
}

impl std::str::FromStr for DatabaseUrl {
    type Err = std::convert::Infallible;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        Ok(url.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_or_the_extension_chooses() {
        let backend = |url: &str| DatabaseUrl::from(url).backend();
        for url in ["sqlite:a", "sqlite://a/b", "sqlite:///a/b", "words.db", "/tmp/w.sqlite", "a.sqlite3"] {
            assert_eq!(backend(url), Some(Backend::Sqlite), "{url}");
        }
        assert_eq!(backend("postgres://h/d"), Some(Backend::Postgres));
        assert_eq!(backend("postgresql://h/d"), Some(Backend::Postgres));
        assert_eq!(backend("mysql://h/d"), Some(Backend::Mysql));
        assert_eq!(backend("mariadb://h/d"), Some(Backend::Mysql));
        for url in ["", "words", "oracle://h/d.db", "http://x/y.sqlite"] {
            assert_eq!(backend(url), None, "{url}");
        }
    }

    #[test]
    #[cfg(feature = "sqlite")]
    fn a_path_is_taken_as_it_is() {
        let path = |url: &str| DatabaseUrl::from(url).target().map(|t| t.address).map_err(|e| e.to_string());
        assert_eq!(path("sqlite:a.db").as_deref(), Ok("a.db"));
        assert_eq!(path("sqlite:///var/a b.db").as_deref(), Ok("/var/a b.db"));
        assert_eq!(path("w.sqlite").as_deref(), Ok("w.sqlite"));
        assert!(path("sqlite::memory:").unwrap_err().contains("in memory"));
    }

    #[test]
    fn passwords_are_not_shown() {
        for url in [
            "postgres://ada:hush-hush@h/d",
            "postgres://ada@h/d?password=hush-hush&sslmode=disable",
            "mysql:ada:hush-hush@h/d",
            "ada:hush-hush@h",
            "mariadb://ada:hush-hush@h:99999/d",
            "oracle://ada:hush-hush@h",
        ] {
            let url = DatabaseUrl::from(url);
            for text in
                [url.to_string(), format!("{url:?}"), url.redact(&format!("cannot open {}: no", url.0))]
            {
                assert!(!text.contains("hush"), "{text}");
            }
            if let Err(error) = url.target() {
                assert!(!format!("{error} {error:?}").contains("hush"), "{error}");
            }
        }
        let url = DatabaseUrl::from("postgres://ada:a%2Bb%20c@h/d");
        assert_eq!(url.redact("bad password 'a+b c' in a%2Bb%20c"), "bad password '***' in ***");
    }

    #[test]
    fn the_same_database_is_told() {
        let database = |url: &str| DatabaseUrl::from(url).database();
        assert_eq!(database("mariadb://u:p@h/d?tcp_keepalive=7"), database("mysql://v:q@h:3306/d"));
        assert_eq!(database("postgresql://u:p@h/d"), "postgres://h:5432/d");
        assert_ne!(database("postgres://u:p@h/d"), database("postgres://u:p@h/e"));
    }

    #[test]
    #[cfg(not(feature = "mysql"))]
    fn a_missing_feature_is_named() {
        let error = DatabaseUrl::from("mysql://u:p@h/d").target().map(|t| t.address).unwrap_err();
        assert!(error.to_string().contains("feature `mysql`"), "{error}");
    }

    #[test]
    #[cfg(feature = "mysql")]
    fn mariadb_is_the_drivers_mysql() {
        let target = DatabaseUrl::from("mariadb://u:p@h/d?tcp_keepalive=7").target().map(|t| t.address).ok();
        assert_eq!(target.as_deref(), Some("mysql://u:p@h/d?tcp_keepalive=7"));
    }
}
