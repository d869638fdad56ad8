//! Personal data.

use super::Shape::Digits;
use super::{Confidence, Rule};
use crate::filters::redact::detect::{Class, personal};

/// The rules.
pub(super) const RULES: &[Rule] = &[
    Rule::hand("home", &[
            "/Users/", "/users/", "/home/", "\\Users\\", "\\users\\", "\\USERS\\", "\\home\\", "-Users-", "-home-",
            "Users%5C", "Users%5c", "users%5C", "users%5c", "Users%2F", "Users%2f", "home%2F", "home%2f",
        ], personal::home)
        .of(Class::Home)
        .from("macOS, Linux, Windows, WSL: home folders, UNC paths and file URIs; project folders that are named by dashes")
        .yes(&[
            "/Users/«{name}»/src",
            "cd /home/«{name}»\n",
            "C:\\Users\\«{name}»\\x",
            "projects/-Users-«{name}»-src",
            "\"/home/«{name}»/.cargo\"",
            "c:/users/«{name}»/x",
            "\\\\?\\C:\\Users\\«{name} {name}»\\x",
            "C:\\\\Users\\\\«{name}»\\\\x",
            "\\\\server\\share\\Users\\«{name}»\\x",
            "\\\\wsl$\\Ubuntu\\home\\«{name}»\\x",
            "//wsl.localhost/Ubuntu/home/«{name}»/x",
            "vscode-remote://wsl+Ubuntu/home/«{name}»/x",
            "/mnt/c/Users/«{name}»/x",
            "/c/Users/«{name}»",
            "file:///C:/Users/«{name}»/x",
            "file:///c%3A/Users/«{name}»/x",
            "file:///home/«{name}»/x",
            "C%3A%5CUsers%5C«{name}»%5Cx",
            "%2Fhome%2F«{name}»%2Fx",
            "projects/C--Users-«{name}»-src",
            "projects/-mnt-c-Users-«{name}»-src",
            "/var/home/«{name}»/x",
            "/Volumes/Data/Users/«{name}»/x",
            "/home/«jos\u{e9}»/x",
            "/home/«\u{5f20}\u{4f1f}»/x",
        ])
        .no(&[
            "/Users/Shared/x",
            "https://example.net/home/about",
            "src/home/index.ts",
            "/api/users/{name}",
            "App\\Users\\{name}",
            "a-home-{name}",
            "/app/src/home/{name}.ts",
            "/home/$USER/x",
            "/home/<user>/x",
        ]),
    Rule::hand("email", &["@"], personal::email)
        .of(Class::Email)
        .from("RFC 5321")
        .yes(&["<«{name}.{name}@corp.example.net»>", "mail «{name}+x@{name}.io»。"])
        .no(&[
            "git@github.com:x/y",
            "noreply@anthropic.com",
            "icon@2x.png",
            "@scope/pkg@1.2.3",
            "jane@example.com",
            "12+x@users.noreply.github.com",
        ]),
    Rule::hand("host", &[".internal", ".corp", ".local", ".lan", ".intranet", ".home.arpa"], personal::host)
        .of(Class::Host)
        .from("RFC 6762, RFC 8375; ICANN 2024: .internal")
        .yes(&["ssh «{name}-1.internal»", "«db.{name}.corp»:5432"])
        .no(&["java.internal.{name}", "x.localhost", "this.local = 1", "std.internal()"]),
    Rule::given("ip", Digits)
        .of(Class::Ip)
        .sure(Confidence::High)
        .from("RFC 791, RFC 4291")
        .yes(&["from «10.1.20.7» port", "http://«192.168.3.14»:80/", "addr «2001:db8:0:1::8a2e»,"])
        .no(&[
            "127.0.0.1",
            "0.0.0.0",
            "version 1.2.3.4",
            "v1.2.3.4",
            "300.1.1.1",
            "1.2.3.4.5",
            "std::vec::Vec",
            "12:30:45",
        ]),
    Rule::given("phone", Digits)
        .of(Class::Phone)
        .from("ITU-T E.164; numbers of the United States and of China as they are written")
        .yes(&["call «+49 30 1234 5678»", "(«+1-415-555-2671»)", "«(415) 555-2671»", "电话«13812345678»"])
        .no(&["1700000000", "+1", "id 138123456789", "2024-01-31 12:30"]),
    Rule::given("card", Digits)
        .of(Class::Card)
        .sure(Confidence::High)
        .from("ISO/IEC 7812: Luhn")
        .yes(&["«4539 5787 6362 1486»", "«5425233430109903»"])
        .no(&["4539 5787 6362 1487", "1234567812345670", "0000000000000000"]),
    Rule::given("mac", Digits)
        .of(Class::Mac)
        .sure(Confidence::High)
        .from("IEEE 802")
        .yes(&["ether «a4:83:e7:1b:2c:3d» x", "«00-1A-2B-3C-4D-5E»"])
        .no(&["00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "12:30:45", "a4:83:e7:1b:2c:3d:99"]),
];
