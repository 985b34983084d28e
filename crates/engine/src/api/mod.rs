//! The control API: one axum router under `/api/v1/`, the same for the command line, the page and the window.
//!
//! | question | room |
//! |---|---|
//! | the JSON of requests and answers | [`views`] |
//! | the engine's proof before it gets the token | [`proof`] |

pub mod proof;
pub mod views;
