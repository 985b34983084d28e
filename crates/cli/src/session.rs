//! What every command has at hand: the data folder, the outputs, and the way to the engine.

use std::path::PathBuf;

use taskbell_engine::api_client::ClientError;
use taskbell_engine::data_dir::DataDir;

use crate::engine::Engine;
use crate::failure::Failure;
use crate::outcome::{OUTCOME_UNKNOWN, USAGE};
use crate::term::out::Out;

#[derive(Debug)]
pub struct Session {
    data_dir: Option<PathBuf>,
    pub out: Out,
}

impl Session {
    pub fn new(data_dir: Option<PathBuf>, out: Out) -> Self {
        // An empty variable is as good as none.
        Self { data_dir: data_dir.filter(|path| !path.as_os_str().is_empty()), out }
    }

    pub fn data_dir(&self) -> Result<DataDir, Failure> {
        match &self.data_dir {
            Some(path) => Ok(DataDir::at(path)),
            None => Ok(DataDir::of_platform()?),
        }
    }

    /// The engine that runs on the data folder, proven to be it.
    pub async fn engine(&self) -> Result<Engine, Failure> {
        Ok(Engine::connect(&self.data_dir()?).await?)
    }
}

/// No engine runs on the data folder.
pub const NO_ENGINE: &str = "no_engine";

/// An error and its causes, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let exit = match error.code.as_str() {
            // What was written has to be written otherwise.
            "usage" | "bad_query" | "bad_request" | "note_too_long" => USAGE,
            "outcome_unknown" => OUTCOME_UNKNOWN,
            _ => 1,
        };
        Self::new(error.code.clone(), chain(&error)).with_exit(exit)
    }
}

impl From<taskbell_engine::data_dir::DataDirError> for Failure {
    fn from(error: taskbell_engine::data_dir::DataDirError) -> Self {
        Self::new(error.code(), chain(&error))
    }
}
