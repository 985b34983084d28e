//! The gateway of the finished program against requests that no honest client sends.

mod hostile;
mod strangers;
mod support;
mod upstream;
