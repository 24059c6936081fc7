//! Runs a shell over an emulated path: `shell '{"rate": "20Mbit/s", "delay": "30ms"}' [COMMAND ...]`.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use emulation::shell;
    let mut arguments = std::env::args().skip(1);
    let keys: network::PathConfig = serde_json::from_str(&arguments.next().ok_or("name a path's keys")?)?;
    let read = &mut |file: &str| std::fs::read_to_string(file).map_err(|error| error.to_string());
    let path = keys.links(read).map_err(|problems| problems[0].to_string())?;
    let command = match arguments.next() {
        Some(program) => {
            let mut command = std::process::Command::new(program);
            command.args(arguments);
            command
        }
        None => shell::default_command(),
    };
    let options = shell::ShellOptions::new(path, foundation::Streams::new(1, 0), command);
    let report = shell::run(options, &mut || None)?;
    eprintln!("{}", serde_json::to_string_pretty(&report)?);
    std::process::exit(report.code);
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("emulated networks need Linux");
}
