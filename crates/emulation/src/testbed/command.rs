//! Commands at the hosts of a testbed.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use network::HostId;
use serde::Deserialize;

use crate::emulation::Emulation;
use crate::error::Error;
use crate::terminal::{self, Terminal};

/// The terminal of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TerminalMode {
    /// No terminal.
    #[default]
    None,
    /// The caller's terminal, if standard input is one, until the caller takes it back.
    Lent,
    /// Standard input becomes the controlling terminal of a new session.
    Given,
}

/// A command at a host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandOptions {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The working directory; default the caller's.
    #[serde(default)]
    pub directory: Option<String>,
    /// The environment; default the caller's.
    #[serde(default)]
    pub environment: Option<BTreeMap<String, String>>,
    /// The command's terminal.
    #[serde(default)]
    pub terminal: TerminalMode,
}

/// Starts a command with these standard streams as the leader of a process group.
pub(super) fn run(
    emulation: &Emulation,
    host: HostId,
    options: CommandOptions,
    [input, output, errors]: [OwnedFd; 3],
) -> Result<u32, Error> {
    let Some((program, arguments)) = options.command.split_first() else {
        let message = "empty: write a program and its arguments";
        return Err(foundation::Problem::new("command", message).into());
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(input).stdout(output).stderr(errors);
    if let Some(directory) = options.directory {
        command.current_dir(directory);
    }
    if let Some(environment) = options.environment {
        command.env_clear().envs(environment);
    }
    match options.terminal {
        TerminalMode::None => {
            command.process_group(0);
        }
        TerminalMode::Given => terminal::give(&mut command),
        TerminalMode::Lent => match Terminal::hand_over(&mut command) {
            // The caller waits for the command and takes the terminal back.
            Some(lent) => std::mem::forget(lent),
            None => {
                command.process_group(0);
            }
        },
    }
    let spawned = emulation.spawn_in_host(host, command);
    let child = spawned.map_err(|source| Error::Command {
        name: program.clone(),
        source,
    })?;
    Ok(child.id())
}
