// Prints the SHA-256 of each file named, or of standard input ("-" or no names), in the form of
// the command sha256sum. A file that cannot be read is told on standard error; the exit code is
// then 1 and the others are still summed.
use std::fs::File;
use std::io::{self, Read, Write};

// The first 32 bits of the fractions of the cube roots of the first 64 primes, and of the square
// roots of the first eight: computed, because a table has typing mistakes and this has not.
struct Constants {
    rounds: [u32; 64],
    start: [u32; 8],
}

// floor(2^32 * n^(1/power)) modulo 2^32, by bisection in integers.
fn root_fraction(n: u128, power: u32) -> u32 {
    let target = n << (32 * power);
    let (mut low, mut high) = (0u128, 1u128 << 41);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if middle.pow(power) <= target { low = middle } else { high = middle }
    }
    low as u32
}

impl Constants {
    fn new() -> Constants {
        let mut constants = Constants { rounds: [0; 64], start: [0; 8] };
        let primes = (2u128..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
        for (i, prime) in primes.take(64).enumerate() {
            constants.rounds[i] = root_fraction(prime, 3);
            if i < 8 {
                constants.start[i] = root_fraction(prime, 2);
            }
        }
        constants
    }
}

struct Sha256<'a> {
    constants: &'a Constants,
    state: [u32; 8],
    block: [u8; 64],
    filled: usize,
    length: u64,
}

impl<'a> Sha256<'a> {
    fn new(constants: &'a Constants) -> Self {
        Sha256 { constants, state: constants.start, block: [0; 64], filled: 0, length: 0 }
    }

    fn update(&mut self, mut data: &[u8]) {
        self.length += data.len() as u64;
        while !data.is_empty() {
            let take = data.len().min(64 - self.filled);
            self.block[self.filled..self.filled + take].copy_from_slice(&data[..take]);
            self.filled += take;
            data = &data[take..];
            if self.filled == 64 {
                self.compress();
                self.filled = 0;
            }
        }
    }

    fn compress(&mut self) {
        let mut w = [0u32; 64];
        for (word, bytes) in w.iter_mut().zip(self.block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for i in 16..64 {
            let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
            let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
            w[i] = w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = self.state;
        for i in 0..64 {
            let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = (e & f) ^ (!e & g);
            let t1 = h.wrapping_add(s1).wrapping_add(choice)
                .wrapping_add(self.constants.rounds[i]).wrapping_add(w[i]);
            let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let majority = (a & b) ^ (a & c) ^ (b & c);
            h = g;
            g = f;
            f = e;
            e = d.wrapping_add(t1);
            d = c;
            c = b;
            b = a;
            a = t1.wrapping_add(s0).wrapping_add(majority);
        }
        for (old, new) in self.state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *old = old.wrapping_add(new);
        }
    }

    fn finish(mut self) -> String {
        let bits = self.length * 8;
        self.update(&[0x80]);
        while self.filled != 56 {
            self.update(&[0]);
        }
        self.update(&bits.to_be_bytes());
        self.state.iter().map(|word| format!("{:08x}", word)).collect()
    }
}

fn sum(constants: &Constants, mut from: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new(constants);
    let mut buffer = [0u8; 4096];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(hash.finish()),
            count => hash.update(&buffer[..count]),
        }
    }
}

fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names.push("-".to_string());
    }
    let constants = Constants::new();
    let mut failed = false;
    for name in &names {
        let result = if name == "-" {
            sum(&constants, io::stdin().lock())
        } else {
            File::open(name).and_then(|file| sum(&constants, file))
        };
        match result {
            Ok(digits) => println!("{}  {}", digits, name),
            Err(error) => {
                // The kind, not the system's own words: they differ between hosts.
                let _ = writeln!(io::stderr(), "sha256sum: {}: {:?}", name, error.kind());
                failed = true;
            }
        }
    }
    std::process::exit(failed as i32);
}
