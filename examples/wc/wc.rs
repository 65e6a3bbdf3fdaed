// Counts lines, words, bytes and characters, as the command wc does:
//   wc [-l] [-w] [-c] [-m] [-L] [--top N] [FILE...]
// -L is the length of the longest line in characters; --top lists the N most frequent words of all
// files together. Without names, or for "-", it reads standard input.
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::exit;

#[derive(Default, Clone)]
struct Counts {
    lines: u64,
    words: u64,
    chars: u64,
    bytes: u64,
    longest: u64,
}

#[derive(Default)]
struct Options {
    lines: bool,
    words: bool,
    chars: bool,
    bytes: bool,
    longest: bool,
    top: usize,
    names: Vec<String>,
}

fn usage(message: &str) -> ! {
    eprintln!("wc: {}\nusage: wc [-l] [-w] [-c] [-m] [-L] [--top N] [FILE...]", message);
    exit(2)
}

fn parse_options() -> Options {
    let mut options = Options::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--top" {
            let number = args.next().unwrap_or_else(|| usage("--top needs a number"));
            options.top =
                number.parse().unwrap_or_else(|e| usage(&format!("--top {}: {}", number, e)));
        } else if arg.starts_with('-') && arg.len() > 1 {
            for letter in arg.chars().skip(1) {
                match letter {
                    'l' => options.lines = true,
                    'w' => options.words = true,
                    'm' => options.chars = true,
                    'c' => options.bytes = true,
                    'L' => options.longest = true,
                    other => usage(&format!("no option -{}", other)),
                }
            }
        } else {
            options.names.push(arg);
        }
    }
    if !(options.lines || options.words || options.chars || options.bytes || options.longest) {
        options.lines = true;
        options.words = true;
        options.bytes = true;
    }
    options
}

fn count(
    input: impl Read,
    frequencies: Option<&mut BTreeMap<String, u64>>,
) -> io::Result<Counts> {
    let mut counts = Counts::default();
    let mut reader = BufReader::new(input);
    let mut line = Vec::new();
    let mut frequencies = frequencies;
    while reader.read_until(b'\n', &mut line)? > 0 {
        counts.bytes += line.len() as u64;
        let text = String::from_utf8_lossy(&line);
        counts.chars += text.chars().count() as u64;
        let mut length = text.chars().count() as u64;
        if text.ends_with('\n') {
            counts.lines += 1;
            length -= 1;
        }
        counts.longest = counts.longest.max(length);
        for word in text.split_whitespace() {
            counts.words += 1;
            if let Some(map) = frequencies.as_mut() {
                let bare: String =
                    word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
                if !bare.is_empty() {
                    *map.entry(bare).or_insert(0) += 1;
                }
            }
        }
        line.clear();
    }
    Ok(counts)
}

fn print(counts: &Counts, options: &Options, name: Option<&str>) {
    let columns = [
        (options.lines, counts.lines),
        (options.words, counts.words),
        (options.chars, counts.chars),
        (options.bytes, counts.bytes),
        (options.longest, counts.longest),
    ];
    let mut row: String = columns.iter().filter(|c| c.0).map(|c| format!("{:8}", c.1)).collect();
    if let Some(name) = name {
        row.push(' ');
        row.push_str(name);
    }
    println!("{}", row);
}

fn main() {
    let options = parse_options();
    let mut frequencies = BTreeMap::new();
    let mut total = Counts::default();
    let mut failed = false;
    let names = if options.names.is_empty() { vec!["-".to_string()] } else { options.names.clone() };
    for name in &names {
        let map = if options.top > 0 { Some(&mut frequencies) } else { None };
        let result = match name.as_str() {
            "-" => count(io::stdin(), map),
            path => File::open(path).and_then(|file| count(file, map)),
        };
        match result {
            Ok(counts) => {
                total.lines += counts.lines;
                total.words += counts.words;
                total.chars += counts.chars;
                total.bytes += counts.bytes;
                total.longest = total.longest.max(counts.longest);
                print(&counts, &options, options.names.first().map(|_| name.as_str()));
            }
            Err(error) => {
                eprintln!("wc: {}: {:?}", name, error.kind());
                failed = true;
            }
        }
    }
    if names.len() > 1 {
        print(&total, &options, Some("total"));
    }
    let mut by_frequency: Vec<_> = frequencies.into_iter().collect();
    by_frequency.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    for (word, times) in by_frequency.iter().take(options.top) {
        println!("{:8} {}", times, word);
    }
    io::stdout().flush().unwrap();
    exit(failed as i32);
}
