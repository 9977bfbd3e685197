//! ThawDB tsql.
