//! The finished program against real agents, each on an SDK that nobody here wrote.
