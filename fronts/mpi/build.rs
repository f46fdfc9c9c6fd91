//! Gives the library the name under which programs of the standard ABI look for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    // Its threads and exit functions run code of the library: it is never unloaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
