//! Row numbers as types. They stay inside the engine; outside, agents and tasks go by name.

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};

macro_rules! key {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub i64);

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                self.0.to_sql()
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                value.as_i64().map(Self)
            }
        }
    };
}

key!(
    /// A row of `agents`.
    AgentKey
);
key!(
    /// A row of `tasks`.
    TaskKey
);
key!(
    /// A row of `clients`.
    ClientKey
);
key!(
    /// A row of `registrations`.
    RegistrationKey
);
key!(
    /// A row of `callbacks`.
    CallbackKey
);
key!(
    /// A row of `targets`.
    TargetKey
);
key!(
    /// A row of `client_push_configs`.
    ConfigKey
);
key!(
    /// A row of `client_secrets`.
    SecretKey
);
key!(
    /// A row of `deliveries`.
    DeliveryKey
);
