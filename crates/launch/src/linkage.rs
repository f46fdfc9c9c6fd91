//! The libraries that a program is linked with, and its machine. If one of the libraries is another implementation's MPI
//! library, the program's processes cannot join a job.
//!
//! Reads the dynamic section of an ELF file of this host's kind. Scripts, static programs and damaged files count as
//! linked with no known library.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The limits of tables and names; a program that runs has no longer ones.
const PROGRAM_HEADERS_MAX: u16 = 1024;
const DYNAMIC_BYTES_MAX: u64 = 64 * 1024;
const NAME_BYTES_MAX: usize = 256;

const FILE_HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const DYNAMIC_ENTRY_BYTES: usize = 16;

/// The magic number, 64 bits, and this host's byte order.
const MAGIC: [u8; 6] =
    [0x7f, b'E', b'L', b'F', 2, if cfg!(target_endian = "little") { 1 } else { 2 }];
/// Where a file says its byte order (1 is little), and its machine.
const BYTE_ORDER_AT: usize = 5;
const MACHINE_AT: usize = 18;
/// The numbers of machines, with their names.
const MACHINES: [(u16, &str); 10] = [
    (3, "x86"),
    (8, "mips"),
    (20, "powerpc"),
    (21, "powerpc64"),
    (22, "s390x"),
    (40, "arm"),
    (62, "x86_64"),
    (183, "aarch64"),
    (243, "riscv64"),
    (258, "loongarch64"),
];
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;

/// The beginnings of the names of other implementations' libraries, with the implementations. Libraries of the
/// standard's binary interface are called `libmpi_abi`.
const FOREIGN: [(&str, &str); 10] = [
    ("libmpi.so.12", "MPICH or Intel MPI"),
    ("libmpi.so.40", "Open MPI"),
    ("libmpi.so", "another MPI"),
    ("libmpi_mpifh", "Open MPI"),
    ("libmpi_usempi", "Open MPI"),
    ("libmpi_cxx", "Open MPI"),
    ("libmpich", "MPICH"),
    ("libmpicxx.so", "MPICH or Intel MPI"),
    ("libmpicxx-", "MPICH"),
    ("libmpifort.so", "MPICH or Intel MPI"),
];

/// The MPI library of another implementation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignMpi {
    /// The name in the program, such as `libmpi.so.40`.
    pub library: String,
    /// The implementation, as far as the name tells it.
    pub implementation: &'static str,
}

/// The MPI library of another implementation that a program is linked with directly, if there is one.
pub(crate) fn foreign_mpi(program: &Path) -> Option<ForeignMpi> {
    needed(program)?.into_iter().find_map(|library| {
        let (_, implementation) = FOREIGN.iter().find(|(start, _)| library.starts_with(start))?;
        Some(ForeignMpi { library, implementation })
    })
}

/// The hint for a file that the kernel does not recognise as a program.
pub(crate) fn why_not_executed(program: &Path) -> String {
    let file = fs::metadata(program).ok().filter(|data| data.is_file());
    let file = file.and_then(|_| File::open(program).ok());
    let start = file.and_then(|file| read(&file, 0, MACHINE_AT + 2));
    let Some(start) = start.filter(|start| start.starts_with(&MAGIC[..4])) else {
        return "; a script begins with a line like #!/bin/sh".to_owned();
    };
    let number = [start[MACHINE_AT], start[MACHINE_AT + 1]];
    let is_little = start[BYTE_ORDER_AT] == 1;
    let number = if is_little { u16::from_le_bytes(number) } else { u16::from_be_bytes(number) };
    let name = MACHINES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name);
    match name {
        Some(std::env::consts::ARCH) => "; the file is damaged, or not whole".to_owned(),
        _ => {
            let name = name.map_or_else(|| format!("machine number {number}"), str::to_owned);
            let own = std::env::consts::ARCH;
            format!("; it is a program for {name}, and this host is {own}: compile it for {own}")
        }
    }
}

/// The libraries that a program names; `None` if that cannot be told.
fn needed(program: &Path) -> Option<Vec<String>> {
    // Opening a named pipe would wait for its writer.
    if !fs::metadata(program).ok()?.is_file() {
        return None;
    }
    Elf::open(File::open(program).ok()?)?.needed()
}

/// A part of the file that is mapped into memory.
struct ElfPart {
    kind: u32,
    offset: u64,
    address: u64,
    bytes: u64,
}

/// A program's file with its table of parts.
struct Elf {
    file: File,
    parts: Vec<ElfPart>,
}

impl Elf {
    fn open(file: File) -> Option<Elf> {
        let header = read(&file, 0, FILE_HEADER_BYTES)?;
        let (table, size, count) =
            (u64_at(&header, 32)?, u16_at(&header, 54)?, u16_at(&header, 56)?);
        let is_known = header.starts_with(&MAGIC) && usize::from(size) == PROGRAM_HEADER_BYTES;
        if !is_known || count > PROGRAM_HEADERS_MAX {
            return None;
        }
        let table = read(&file, table, usize::from(count) * PROGRAM_HEADER_BYTES)?;
        let parts = table.chunks_exact(PROGRAM_HEADER_BYTES).map(part).collect::<Option<_>>()?;
        Some(Elf { file, parts })
    }

    fn needed(&self) -> Option<Vec<String>> {
        let dynamic = self.parts.iter().find(|part| part.kind == PT_DYNAMIC)?;
        let bytes =
            read(&self.file, dynamic.offset, dynamic.bytes.min(DYNAMIC_BYTES_MAX) as usize)?;
        let entries = bytes.chunks_exact(DYNAMIC_ENTRY_BYTES);
        let entries: Vec<(u64, u64)> = entries
            .map(|entry| Some((u64_at(entry, 0)?, u64_at(entry, 8)?)))
            .collect::<Option<_>>()?;
        let entries = || entries.iter().take_while(|(tag, _)| *tag != DT_NULL);
        let (_, strings) = entries().find(|(tag, _)| *tag == DT_STRTAB)?;
        let strings = self.offset_of(*strings)?;
        let names = entries().filter(|(tag, _)| *tag == DT_NEEDED);
        names.map(|(_, at)| self.name_at(strings.checked_add(*at)?)).collect()
    }

    /// The place in the file of a given address in memory.
    fn offset_of(&self, address: u64) -> Option<u64> {
        let loaded = self.parts.iter().filter(|part| part.kind == PT_LOAD);
        let inside = |part: &ElfPart| {
            let at = address.checked_sub(part.address).filter(|at| *at < part.bytes)?;
            part.offset.checked_add(at)
        };
        loaded.filter_map(inside).next()
    }

    fn name_at(&self, offset: u64) -> Option<String> {
        let mut bytes = [0; NAME_BYTES_MAX];
        let length = self.file.read_at(&mut bytes, offset).ok()?;
        let name = bytes[..length].split(|&byte| byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    }
}

fn part(header: &[u8]) -> Option<ElfPart> {
    Some(ElfPart {
        kind: u32::from_ne_bytes(header.get(..4)?.try_into().ok()?),
        offset: u64_at(header, 8)?,
        address: u64_at(header, 16)?,
        bytes: u64_at(header, 32)?,
    })
}

/// Reads exactly so many bytes of a file.
fn read(file: &File, offset: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut space = vec![0; bytes];
    file.read_exact_at(&mut space, offset).ok()?;
    Some(space)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that names these libraries, and nothing else.
    fn elf(libraries: &[&str]) -> Vec<u8> {
        let mut names = vec![0];
        let mut dynamic = Vec::new();
        let mut entry = |tag: u64, value: u64| {
            dynamic.extend(tag.to_ne_bytes());
            dynamic.extend(value.to_ne_bytes());
        };
        for library in libraries {
            entry(DT_NEEDED, names.len() as u64);
            names.extend(library.bytes().chain([0]));
        }
        let begin = (FILE_HEADER_BYTES + 2 * PROGRAM_HEADER_BYTES) as u64;
        let strings = begin + (libraries.len() as u64 + 2) * DYNAMIC_ENTRY_BYTES as u64;
        let base = 0x40_0000;
        entry(DT_STRTAB, base + strings);
        entry(DT_NULL, 0);
        let mut file = vec![0; begin as usize];
        file.extend(dynamic);
        file.extend(names);
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        put(32, &(FILE_HEADER_BYTES as u64).to_ne_bytes());
        put(54, &(PROGRAM_HEADER_BYTES as u16).to_ne_bytes());
        put(56, &2_u16.to_ne_bytes());
        for (at, kind, offset, address, bytes) in [
            (64, PT_LOAD, 0, base, 1 << 20),
            (120, PT_DYNAMIC, begin, base + begin, strings - begin),
        ] {
            put(at, &kind.to_ne_bytes());
            for (place, value) in [(8, offset), (16, address), (32, bytes)] {
                put(at + place, &u64::to_ne_bytes(value));
            }
        }
        file
    }

    fn of_bytes(name: &str, bytes: &[u8]) -> Option<Vec<String>> {
        let path = std::env::temp_dir().join(format!("landeck-{name}-{}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        let found = needed(&path);
        fs::remove_file(path).unwrap();
        found
    }

    #[test]
    fn the_libraries_of_a_program_are_read() {
        let libraries = ["libm.so.6", "libmpi.so.40", "libc.so.6"];
        assert_eq!(of_bytes("linked", &elf(&libraries)).unwrap(), libraries);
        let own = needed(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.iter().any(|library| library.starts_with("libc.")), "{own:?}");
    }

    #[test]
    fn a_file_that_is_no_program_is_linked_with_nothing() {
        assert_eq!(of_bytes("script", b"#!/bin/sh\n"), None);
        assert_eq!(needed(Path::new("/dev/null")), None);
        let whole = elf(&["libmpi.so.40"]);
        for length in 0..whole.len() {
            let found = of_bytes("cut", &whole[..length]).unwrap_or_default();
            assert!(found.iter().all(|name| "libmpi.so.40".starts_with(name.as_str())), "{length}");
        }
        // Every byte of header and tables is damaged once.
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = of_bytes("damaged", &damaged);
        }
    }

    #[test]
    fn a_program_of_another_machine_is_recognised() {
        let why = |name: &str, bytes: &[u8]| {
            let path = std::env::temp_dir().join(format!("landeck-{name}-{}", std::process::id()));
            fs::write(&path, bytes).unwrap();
            let why = why_not_executed(&path);
            fs::remove_file(path).unwrap();
            why
        };
        let mut foreign = elf(&[]);
        let (number, name) = MACHINES[if std::env::consts::ARCH == "aarch64" { 6 } else { 7 }];
        foreign[MACHINE_AT..MACHINE_AT + 2].copy_from_slice(&number.to_ne_bytes());
        let said = why("foreign", &foreign);
        assert!(
            said.starts_with(&format!("; it is a program for {name}, and this host is")),
            "{said}"
        );
        foreign[BYTE_ORDER_AT] = 2;
        foreign[MACHINE_AT..MACHINE_AT + 2].copy_from_slice(&22_u16.to_be_bytes());
        assert!(why("big", &foreign).contains("a program for s390x"));
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(why("own", &own[..64]).contains("damaged"));
        for script in ["echo 1\n", "", "\x7fELF"] {
            assert!(why("script", script.as_bytes()).contains("#!/bin/sh"), "{script}");
        }
    }

    #[test]
    fn libraries_of_other_implementations_are_known() {
        let of = |name: &str| {
            let known = FOREIGN.iter().find(|(start, _)| name.starts_with(start));
            known.map(|(_, implementation)| *implementation)
        };
        assert_eq!(of("libmpi.so.12"), Some("MPICH or Intel MPI"));
        assert_eq!(of("libmpi.so.40"), Some("Open MPI"));
        assert_eq!(of("libmpi.so.20"), Some("another MPI"));
        assert_eq!(of("libmpich.so.12"), Some("MPICH"));
        assert_eq!(of("libmpi_mpifh-gfortran.so.40"), Some("Open MPI"));
        for name in ["libmpi_abi.so.1", "libmpir.so.23", "libdeck.so.1", "libc.so.6"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
