//! Stories of one user, driven from outside against the finished program.
