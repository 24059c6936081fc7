//! Prints the explanation of a capture as JSON.
fn main() {
    let path = std::env::args().nth(1).expect("file");
    let mut file = explanation::CaptureFile::open(std::fs::File::open(path).expect("open")).expect("capture");
    let found = explanation::Connections::read(&mut file, |_| true).expect("read");
    let report = explanation::report::CaptureReport::of(&file, &found);
    println!("{}", serde_json::to_string(&report).expect("json"));
}
