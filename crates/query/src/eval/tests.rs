//! Vectorised against row-by-row evaluation.
