//! The command as users meet it: arguments in, standard output, standard error and exit code out.

mod bad_input;
mod command;
mod db;
mod lab;
