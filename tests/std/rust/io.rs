// Readers and writers: standard streams, cursors, adapters, buffering, copying.
use std::io::{self, prelude::*, BufReader, BufWriter, Cursor, LineWriter, SeekFrom};

// Gives one byte at a time and is interrupted before each: what read_exact and copy must bear.
struct Slow { bytes: Vec<u8>, at: usize, interrupt: bool }

impl Read for Slow {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.interrupt = !self.interrupt;
        if self.interrupt {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "again"));
        }
        match (self.bytes.get(self.at), to.first_mut()) {
            (Some(byte), Some(place)) => {
                *place = *byte;
                self.at += 1;
                Ok(1)
            }
            _ => Ok(0),
        }
    }
}

// Takes at most three bytes, then is full.
struct Narrow { taken: Vec<u8>, room: usize }

impl Write for Narrow {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let count = from.len().min(3).min(self.room);
        self.room -= count;
        self.taken.extend_from_slice(&from[..count]);
        Ok(count)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn stdin() -> io::Result<()> {
    let mut line = String::new();
    println!("read_line {} {:?}", io::stdin().read_line(&mut line)?, line);
    let mut two = [0; 2];
    io::stdin().lock().read_exact(&mut two)?;
    println!("read_exact {:?}", two);
    let mut until = Vec::new();
    io::stdin().lock().read_until(b';', &mut until)?;
    println!("read_until {:?}", String::from_utf8_lossy(&until));
    for line in io::stdin().lock().lines().take(2) {
        println!("line {:?}", line?);
    }
    let mut rest = String::new();
    println!("rest {} {:?}", io::stdin().read_to_string(&mut rest)?, rest);
    println!("end {} {:?}", io::stdin().read_line(&mut line)?, line);
    Ok(())
}

fn adapters() -> io::Result<()> {
    let mut cursor = Cursor::new(b"0123456789".to_vec());
    cursor.seek(SeekFrom::Start(4))?;
    cursor.write_all(b"xy")?;
    cursor.set_position(2);
    let mut text = String::new();
    Read::by_ref(&mut cursor).take(5).read_to_string(&mut text)?;
    println!("take {:?} left {}", text, cursor.position());
    let mut chained = Read::chain(&b"ab"[..], &b"cd"[..]);
    text.clear();
    Read::read_to_string(&mut chained, &mut text)?;
    println!("chain {:?} bytes {:?}", text, Read::bytes(&b"xyz"[..]).map(|b| b.unwrap()).sum::<u8>());
    println!("split {:?}", BufReader::new(&b"a-b-c"[..]).split(b'-').map(|p| p.unwrap()).collect::<Vec<_>>());
    let mut out = Vec::new();
    println!("copy {}", io::copy(&mut Slow { bytes: b"interrupted".to_vec(), at: 0, interrupt: false }, &mut out)?);
    println!("{:?}", String::from_utf8_lossy(&out));
    println!("copy {} {}", io::copy(&mut io::repeat(7).take(1000), &mut io::sink())?, io::empty().read(&mut [0; 3])?);
    Ok(())
}

fn buffers() -> io::Result<()> {
    let mut narrow = Narrow { taken: vec![], room: 12 };
    narrow.write_all(b"twelve bytes")?;
    println!("{:?}", String::from_utf8_lossy(&narrow.taken));
    println!("full {:?}", narrow.write_all(b"!").map_err(|e| e.kind()));
    let mut writer = BufWriter::with_capacity(8, Narrow { taken: vec![], room: 100 });
    write!(writer, "{}-{:03}", "abc", 7)?;
    println!("buffered {:?} {}", writer.buffer().len(), writer.get_ref().taken.len());
    writer.write_all(b"more than eight")?;
    writer.flush()?;
    println!("flushed {:?}", String::from_utf8_lossy(&writer.get_ref().taken));
    let mut lines = LineWriter::new(Vec::new());
    lines.write_all(b"one\ntwo")?;
    println!("line {:?}", String::from_utf8_lossy(lines.get_ref()));
    let mut reader = BufReader::with_capacity(4, &b"abcdefgh"[..]);
    println!("fill {:?}", reader.fill_buf()?.len());
    reader.consume(3);
    println!("left {:?}", reader.buffer());
    let mut array = [0u8; 4];
    let mut slice = &mut array[..];
    println!("slice {:?} {:?}", slice.write(b"abcdef")?, array);
    Ok(())
}

fn main() -> io::Result<()> {
    stdin()?;
    adapters()?;
    buffers()?;
    print!("no newline, ");
    io::stdout().flush()?;
    io::stdout().write_all(b"bytes \xff\xfe\n".get(..6).unwrap())?;
    // It may take less than all, so what it took is finished by hand.
    let parts = b"in parts\n";
    let took = io::stdout().lock().write_vectored(&[io::IoSlice::new(&parts[..3]), io::IoSlice::new(&parts[3..])])?;
    io::stdout().write_all(&parts[took..])?;
    eprintln!("to standard error: {}", 1);
    let error = io::Error::new(io::ErrorKind::Other, "our own");
    eprintln!("{} {:?} {}", error, error.kind(), io::Error::from(io::ErrorKind::NotFound));
    Ok(())
}
