// Files and folders by std::fs: made, read, changed, renamed, listed, removed, and the errors.
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

fn kind<T: std::fmt::Debug>(result: io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{:?}", value),
        Err(error) => format!("{:?}", error.kind()),
    }
}

fn listing(folder: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let file_type = entry.file_type()?;
        let mark = if file_type.is_dir() { "/" } else if file_type.is_symlink() { "@" } else { "" };
        names.push(format!("{}{}", entry.file_name().to_string_lossy(), mark));
    }
    names.sort();
    Ok(names)
}

fn whole_files() -> io::Result<()> {
    println!("given {:?}", fs::read_to_string("given.txt")?);
    fs::write("a.txt", "first\nsecond\n")?;
    println!("read {:?}", fs::read("a.txt")?.len());
    println!("copy {}", fs::copy("a.txt", "b.txt")?);
    let mut file = OpenOptions::new().append(true).open("b.txt")?;
    file.write_all(b"third\n")?;
    drop(file);
    for (number, line) in BufReader::new(File::open("b.txt")?).lines().enumerate() {
        println!("{}: {}", number, line?);
    }
    println!("length {} {}", fs::metadata("a.txt")?.len(), fs::metadata("b.txt")?.len());
    Ok(())
}

fn positions() -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open("seek.bin")?;
    file.write_all(&(0..=255).collect::<Vec<u8>>())?;
    println!("at {}", file.stream_position()?);
    println!("seek {}", file.seek(SeekFrom::Start(10))?);
    file.write_all(b"XYZ")?;
    println!("back {}", file.seek(SeekFrom::Current(-5))?);
    let mut bytes = [0; 6];
    file.read_exact(&mut bytes)?;
    println!("read {:?}", bytes);
    println!("end {}", file.seek(SeekFrom::End(-2))?);
    let mut rest = Vec::new();
    println!("rest {} {:?}", file.read_to_end(&mut rest)?, rest);
    println!("past the end {:?}", file.seek(SeekFrom::Start(300))?);
    file.write_all(b"!")?;
    println!("length {}", file.metadata()?.len());
    file.set_len(20)?;
    file.rewind()?;
    rest.clear();
    file.read_to_end(&mut rest)?;
    println!("cut {:?}", rest);
    println!("before the start {}", kind(file.seek(SeekFrom::Current(-100))));
    file.sync_all()?;
    Ok(())
}

fn large() -> io::Result<()> {
    let mut out = BufWriter::new(File::create("large.txt")?);
    for i in 0..20_000 {
        writeln!(out, "line {}", i)?;
    }
    out.flush()?;
    drop(out);
    let mut sum = 0u64;
    let mut lines = 0;
    for line in BufReader::with_capacity(1000, File::open("large.txt")?).lines() {
        sum += line?[5..].parse::<u64>().unwrap();
        lines += 1;
    }
    println!("large {} {} {}", fs::metadata("large.txt")?.len(), lines, sum);
    fs::remove_file("large.txt")
}

fn folders() -> io::Result<()> {
    fs::create_dir("d")?;
    fs::create_dir_all("d/e/f")?;
    println!("again {}", kind(fs::create_dir("d")));
    fs::write("d/one", "1")?;
    fs::write("d/e/two", "22")?;
    fs::write("d/e/f/three", "333")?;
    println!("list {:?}", listing("d")?);
    println!("is {} {} {}", Path::new("d").is_dir(), Path::new("d/one").is_file(), Path::new("d/none").exists());
    println!("not empty {}", fs::remove_dir("d/e").is_err());
    fs::rename("d/one", "d/e/moved")?;
    fs::rename("d/e", "g")?;
    println!("moved {:?} {:?} {:?}", listing("d")?, listing("g")?, fs::read_to_string("g/f/../moved")?);
    fs::rename("g/moved", "g/two")?;
    println!("replaced {:?} {:?}", listing("g")?, fs::read_to_string("g/two")?);
    fs::remove_dir_all("g")?;
    fs::remove_dir_all("d")?;
    println!("gone {}", kind(fs::read_dir("d").map(|_| ())));
    Ok(())
}

// More entries than one reading of a folder gives, removed while it is being read.
fn many() -> io::Result<()> {
    fs::create_dir("many")?;
    for i in 0..300 {
        fs::write(format!("many/file{:03}", i), "")?;
    }
    let names = listing("many")?;
    println!("many {} {} {}", names.len(), names[0], names[299]);
    fs::remove_dir_all("many")?;
    println!("gone {}", kind(fs::read_dir("many").map(|_| ())));
    Ok(())
}

fn errors() {
    println!("missing {}", kind(File::open("none").map(|_| ())));
    println!("missing folder {}", kind(fs::write("none/x", "")));
    println!("exclusive {}", kind(OpenOptions::new().write(true).create_new(true).open("a.txt").map(|_| ())));
    println!("read a folder {}", fs::read(".").is_err());
    println!("through a file {}", fs::read("a.txt/x").is_err());
    println!("write to what is read {}", File::open("a.txt").and_then(|mut f| f.write(b"x")).is_err());
    println!("remove nothing {}", kind(fs::remove_file("none")));
    println!("a nul {}", kind(File::open("a\0b").map(|_| ())));
    println!("short {}", kind(File::open("a.txt").and_then(|mut f| f.read_exact(&mut [0; 100]))));
    println!("not text {}", kind(fs::write("bad", [0xff, 0xfe]).and_then(|_| fs::read_to_string("bad"))));
}

fn paths() {
    let path = PathBuf::from("/a/b/../c.tar.gz");
    println!("{:?} {:?} {:?} {:?}", path.file_name(), path.file_stem(), path.extension(), path.parent());
    println!("{:?} {}", path.components().count(), path.with_extension("zip").display());
    println!("{} {:?}", Path::new("x").join("y").join("/z").display(), Path::new("a/b").strip_prefix("a"));
}

fn main() -> io::Result<()> {
    if std::env::args().any(|arg| arg == "many") {
        return many();
    }
    whole_files()?;
    positions()?;
    large()?;
    folders()?;
    errors();
    paths();
    fs::remove_file("bad")?;
    println!("left {:?}", listing(".")?);
    Ok(())
}
