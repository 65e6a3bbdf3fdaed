// Strings, characters, parsing and formatting: every flag of format! and what people write.
use std::fmt;
use std::str::FromStr;

struct Point { x: f64, y: f64 }

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if f.alternate() {
            write!(f, "Point at {} / {}", self.x, self.y)
        } else if let Some(precision) = f.precision() {
            write!(f, "({:.*}, {:.*})", precision, self.x, precision, self.y)
        } else {
            f.pad("point")
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
#[allow(dead_code)]
enum Shape { Unit, Tuple(i32, &'static str), Named { a: Option<u8>, b: Vec<f32> } }

#[derive(Debug, PartialEq)]
struct Version(u32, u32);

impl FromStr for Version {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (major, minor) = text.split_once('.').ok_or_else(|| format!("no dot in {:?}", text))?;
        let number = |s: &str| s.parse::<u32>().map_err(|e| format!("{}: {}", s, e));
        Ok(Version(number(major)?, number(minor)?))
    }
}

fn numbers() {
    println!("[{:5}] [{:<5}] [{:^5}] [{:>5}] [{:05}] [{:+}] [{:*^9}]", 42, 42, 42, 42, -42, 42, 42);
    println!("{:x} {:X} {:o} {:b} {:#x} {:#010b} {:e} {:E}", 255, 255, 8, 5, 255, 5, 1234.5, 0.00012);
    println!("{} {} {} {}", i8::MIN, u64::MAX, i128::MIN, u128::MAX);
    println!("{} {} {} {} {}", 1.0, 0.1 + 0.2, 1e21, 1e-7, f32::MAX);
    println!("{:?} {:?} {:?} {:?} {}", 1.0, 1e16, 1e-5, f64::MIN_POSITIVE, f64::EPSILON);
    println!("{} {} {} {:?}", f64::NAN, f64::INFINITY, -f64::INFINITY, -0.0);
    println!("{:.3} {:8.2}| {:<8.2}| {:+.1} {:.0} {:.0}", 2.0f64.sqrt(), 3.14159, 2.5, 1.25, 1.5, 2.5);
    let (width, precision) = (12, 4);
    println!("{:width$.precision$}| {:>1$}| {:.*}", 1.0 / 3.0, 7, 3, 2.0 / 3.0);
    println!("{:p}", std::ptr::null::<u8>());
}

fn debug() {
    let shapes = [Shape::Unit, Shape::Tuple(-1, "a\"b"), Shape::Named { a: Some(3), b: vec![1.5, -0.0] }];
    println!("{:?}", shapes);
    println!("{:#?}", shapes[2]);
    println!("{:?} {:?} {:?}", 'a', '\n', "tab\t nul\0 bell\u{7} é \u{200b} 🦀");
    println!("{:02x?} {:?} {:?}", [1u8, 171, 255], (1, "x", [(); 2]), Some(Err::<(), _>("e")));
    println!("{} {:.2} {:#} [{:>8}] [{:-<8}]", Point { x: 1.0, y: 2.5 }, Point { x: 1.0, y: 2.5 },
             Point { x: 1.0, y: 2.5 }, Point { x: 0.0, y: 0.0 }, Point { x: 0.0, y: 0.0 });
    println!("{{}} {0} {1} {0} {name}", 1, 2, name = "n");
}

fn strings() {
    let s = "Grüße, 世界! 🦀 ﬁn";
    println!("{} bytes {} chars {:?}", s.len(), s.chars().count(), s.char_indices().nth(3));
    println!("{} | {} | {}", s.to_uppercase(), s.to_lowercase(), s.chars().rev().collect::<String>());
    println!("{:?} {:?} {:?}", s.find("世"), s.find('x'), s.rfind(char::is_whitespace));
    println!("{:?}", s.split(|c: char| !c.is_alphabetic()).filter(|w| !w.is_empty()).collect::<Vec<_>>());
    println!("{:?}", "a,b,,c,".split(',').collect::<Vec<_>>());
    println!("{:?} {:?}", "a,b,,c".splitn(2, ',').collect::<Vec<_>>(), "a=b=c".rsplit_once('='));
    println!("{:?}", " \t trim me \n".trim());
    println!("{} {} {}", "abc".repeat(3), "banana".replace("an", "AN"), "banana".replacen('a', "o", 2));
    println!("{:?} {:?}", "prefix-x".strip_prefix("prefix-"), "x".strip_suffix("y"));
    println!("{:?}", "line one\nline two\r\n\nend".lines().collect::<Vec<_>>());
    println!("{}", "straße" < "strasse");
    let mut t = String::with_capacity(4);
    for c in ('a'..='e').chain(['é', '✓']) {
        t.push(c);
    }
    t.insert_str(2, "--");
    t.truncate(9);
    println!("{}", t);
    println!("{:?} {}", t.pop(), t);
    t.retain(|c| c != '-');
    t += "+more";
    println!("{}", t);
    println!("{:?} {}", t.drain(..2).collect::<String>(), t);
    println!("{:?}", String::from_utf8(vec![0xff, 0x41]).map_err(|e| e.utf8_error().valid_up_to()));
    println!("{}", String::from_utf8_lossy(&[0x41, 0xc3, 0x28, 0xe2, 0x82, 0x42]));
    println!("{:?} {:?}", "é".bytes().collect::<Vec<_>>(), "𝄞".encode_utf16().collect::<Vec<_>>());
    println!("{:?} {:?}", 'ß'.to_uppercase().collect::<String>(), '９'.is_numeric());
    println!("{} {}", "tab\t\"q\"".escape_debug(), "é".escape_unicode());
}

fn parsing() {
    println!("{:?} {:?} {:?}", "42".parse::<u8>(), "-7".parse::<i64>(), "+5".parse::<i32>());
    println!("{:?} {:?}", "256".parse::<u8>().map_err(|e| e.to_string()), "".parse::<i32>().map_err(|e| e.to_string()));
    println!("{:?} {:?}", "x1".parse::<i32>().map_err(|e| e.to_string()), "1.5e3".parse::<f64>());
    println!("{:?} {:?} {:?}", "nan".parse::<f64>().map(f64::is_nan), "-inf".parse::<f32>(), "1e400".parse::<f64>());
    println!("{:?} {:?}", "0.1".parse::<f32>().map(|f| f.to_bits()), "2.2250738585072011e-308".parse::<f64>().map(f64::to_bits));
    println!("{:?} {:?}", "true".parse::<bool>(), "yes".parse::<bool>().is_err());
    println!("{:?} {:?}", i32::from_str_radix("-zz", 36), u8::from_str_radix("12", 2).map_err(|e| e.to_string()));
    println!("{:?} {:?} {:?}", "1.22".parse::<Version>(), "1".parse::<Version>(), "1.x".parse::<Version>());
    println!("{:?} {:?}", char::from_digit(11, 16), 'f'.to_digit(16));
}

fn main() {
    numbers();
    debug();
    strings();
    parsing();
}
