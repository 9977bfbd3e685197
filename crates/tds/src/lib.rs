//! ThawDB tds.
