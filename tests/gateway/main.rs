//! The gateway of the finished program against requests that no honest client sends.

mod behind;
mod hostile;
mod leaving;
mod strangers;
mod support;
mod upstream;
