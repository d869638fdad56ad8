//! Secrets of files and commands: private keys, netrc, pgpass, Kubernetes, flags.

use super::Shape::Given;
use super::{Confidence, Rule};
use crate::filters::redact::detect::{blocks, shell, tables};

/// The rules.
pub(super) const RULES: &[Rule] = &[
    Rule::hand("pem-private-key", &["-----BEGIN ", "-----END "], blocks::pem)
        .from("RFC 7468; OpenSSH PROTOCOL.key; RFC 9580 (armor)")
        .yes(&["{pem}", "{pem-escaped}", "{pem-twice}", "{pem-crlf}", "{pem-numbered}", "{pem-diff}", "{pem-openssh}", "{pem-cut}", "and «{pem-tail}»"])
        .no(&["-----BEGIN CERTIFICATE-----\n{b64:64}\n{b64:64}\n-----END CERTIFICATE-----", "-----BEGIN PRIVATE KEY----- and so on, and then -----END PRIVATE KEY-----"]),
    Rule::hand("pem-in-base64", &["LS0tLS1CRUdJTi"], blocks::pem_in_base64)
        .from("RFC 7468 in RFC 4648, as environment variables and Kubernetes hold keys")
        .yes(&["TLS=«{pem-base64}»"])
        .no(&["LS0tLS1CRUdJTi{b64:40}"]),
    Rule::hand("putty-key", &["PuTTY-User-Key-File-", "---- BEGIN SSH2 ENCRYPTED"], blocks::putty)
        .from("PuTTY, PPK file format; RFC 4716")
        .yes(&["PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: k\nPublic-Lines: 1\n{b64:64}\nPrivate-Lines: 1\n{b64:48}\nPrivate-MAC: {hx:64}"])
        .no(&["PuTTY-User-Key-File-3 is the first line of a PPK file"]),
    Rule::hand("kubernetes-secret", &["kind: Secret", "kind\": \"Secret", "kind\":\"Secret", "kind\\\":\\\"Secret", "kind\\\": \\\"Secret"], blocks::kubernetes)
        .from("Kubernetes, Secret: data is base64")
        .yes(&["apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ntype: Opaque\ndata:\n  url: «{b64:24}»\n"])
        .no(&["kind: SecretStore\nspec:\n  url: {b64:24}\n", "kind: Secret\nmetadata:\n  name: db-credentials\n"]),
    Rule::hand("seed-phrase", &["mnemonic", "MNEMONIC", "Mnemonic", "seed phrase", "Seed phrase", "SEED_PHRASE", "recovery phrase", "助记词"], blocks::seed)
        .sure(Confidence::Medium)
        .from("BIP 39: 12 to 24 words of three to eight letters")
        .yes(&["mnemonic: \"«{words:12}»\"", "助记词：«{words:24}»"])
        .no(&["mnemonic for the other one that you had before and with it", "mnemonic: {words:9}"]),
    Rule::hand("curl-user", &[" -u ", " -u", " --user ", " --user=", " --proxy-user ", " --auth "], shell::user_flag)
        .sure(Confidence::Medium)
        .from("curl, manual: -u, --user")
        .yes(&["curl -sS -u ci-bot:«{an:20}» https://x.example.net", "curl --user 'ci:«{an:20}»' https://x.example.net"])
        .no(&["docker run -u 1000:1000 x", "git push -u origin main:main", "curl -u \"$USER:$PASS\" x"]),
    Rule::hand("cli-password-flag", &[
            "mysql", "mysqldump", "mysqladmin", "mariadb", "sshpass", "redis-cli", "docker login", "podman login",
            "helm registry login", "mongosh", "mongo", "az login", "ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami", "ldapdelete", "ldappasswd", "7za ", "rar ", "net use ", "unzip ", "zip ", "7z ",
            "keytool", "openssl", "ssh-keygen", "smbclient", "lftp ", "mosquitto_", "ipmitool", "sqlcmd", "bcp ", "xfreerdp",
            "cmdkey", "net user ", "wpa_passphrase ", "htpasswd ", "gh secret set ", "sqlplus ", "impdp ", "expdp ",
            "jdbc:oracle:thin:",
        ], shell::command)
        .sure(Confidence::Medium)
        .from("manuals of mysql, sshpass, redis-cli, docker, ldapsearch(1), zip(1), keytool, openssl(1), az, sqlplus and others")
        .yes(&["mysql -u root -p«{pw:16}» shop", "sshpass -p '«{pw:16}»' ssh x", "redis-cli -h x -a «{an:20}» ping", "docker login -u x -p «{an:24}»", "tool --password «{pw:16}»", "ldapsearch -x -D cn=x -w «{pw:14}»", "zip -P «{pw:12}» x.zip y", "sqlplus app/«{pw:12}»@db", "net user ann «{pw:12}» /add"])
        .no(&["mysql -u root -p shop", "mysql --port 3306", "sshpass -p $PASS ssh x", "tool --password auto"]),
    Rule::hand("cli-password-input", &["sudo -S", "chpasswd", "passwd --stdin", "passwd ", "kinit ", "--password-stdin", "--with-token"], shell::piped)
        .sure(Confidence::Medium)
        .from("sudo(8), chpasswd(8), docker and gh: passwords on standard input")
        .yes(&["echo «{pw:14}» | sudo -S true", "echo 'root:«{pw:14}»' | chpasswd", "sudo -S true <<< '«{pw:14}»'"])
        .no(&["sudo -S true", "echo $PASS | sudo -S true", "cat x | docker login --password-stdin"]),
    Rule::hand("sql-password", &["IDENTIFIED BY", "identified by", "Identified by", " BY '", " PASSWORD ", " password '", "PASSWORD('", "WITH PASSWORD", "with password"], tables::sql)
        .sure(Confidence::Medium)
        .from("MySQL, Oracle, PostgreSQL, SQL Server: CREATE USER, ALTER ROLE, SET PASSWORD")
        .yes(&["CREATE USER a IDENTIFIED BY '«{pw:14}»';", "ALTER ROLE a WITH PASSWORD '«{pw:14}»'", "CREATE LOGIN a WITH PASSWORD = N'«{pw:14}»'"])
        .no(&["IDENTIFIED BY 'password'", "ORDER BY 'name'", "WITH PASSWORD :pw"]),
    Rule::given("password-table", Given)
        .from("tables of Markdown, psql and mysql; CSV exports of password managers")
        .yes(&["| user | password |\n|---|---|\n| a | «{pw:14}» |\n", "name,password\na,«{pw:14}»\n"])
        .no(&["| user | password |\n|---|---|\n| a | changeme |\n", "user, password and token\nx, y\n"]),
    Rule::hand("powershell-secure-string", &["ConvertTo-SecureString"], shell::secure_string)
        .sure(Confidence::Medium)
        .from("PowerShell, ConvertTo-SecureString -AsPlainText")
        .yes(&["ConvertTo-SecureString '«{pw:14}»' -AsPlainText -Force"])
        .no(&["ConvertTo-SecureString $plain -AsPlainText"]),
    Rule::hand("login-call", &["auth=(", "auth = (", "BasicAuth(", "basicAuth(", "basic_auth(", ".auth(", ".login("], shell::pair)
        .sure(Confidence::Medium)
        .from("requests, reqwest, supertest: Basic authentication as two arguments")
        .yes(&["requests.get(u, auth=('a', '«{pw:14}»'))", ".basic_auth(\"a\", Some(\"«{pw:14}»\"))"])
        .no(&["auth=(user, password)", "auth=('user', 'password')"]),
    Rule::hand("router-password", &["enable secret ", "enable password ", " password 0 ", " password 7 ", " secret 0 ", " secret 5 ", " secret 9 ", "snmp-server community "], shell::router)
        .sure(Confidence::Medium)
        .from("Cisco IOS, security command reference")
        .yes(&["username a password 0 «{pw:14}»", "enable secret «{pw:14}»"])
        .no(&["enable secret storage", "snmp-server community public"]),
    Rule::hand("short-password", &["pw:", "pw=", "PW=", "PW:", "Pw:", "pw ="], shell::short)
        .sure(Confidence::Medium)
        .from("names that people shorten")
        .yes(&["pw: «{pw:14}»", "PW=«{pw:14}»"])
        .no(&["pw: yes", "PW=$X"]),
    Rule::hand("go-dsn", &["@tcp(", "@unix("], shell::dsn)
        .from("go-sql-driver/mysql: data source names")
        .yes(&["app:«{pw:14}»@tcp(db:3306)/x"])
        .no(&["app@tcp(db:3306)/x"]),
    Rule::hand("wifi-code", &["WIFI:"], shell::wifi)
        .from("ZXing, barcode contents: wireless networks")
        .yes(&["WIFI:T:WPA;S:Home;P:«{pw:12}»;;"])
        .no(&["WIFI:T:nopass;S:Home;;"]),
    Rule::hand("wifi-profile", &["<keyMaterial>"], shell::element)
        .from("Windows, WLAN profile schema: keyMaterial")
        .yes(&["<keyMaterial>«{pw:12}»</keyMaterial>"])
        .no(&["<keyMaterial></keyMaterial>"]),
    Rule::hand("recovery-codes", &["ecovery code", "ackup code", "ecovery-code", "ackup-code"], tables::codes)
        .sure(Confidence::Medium)
        .from("GitHub, Google: recovery codes of two-factor authentication")
        .yes(&["Recovery codes:\n«{lo:4}7-{lo:5}»\n", "Backup codes: «{d:4}-{d:4}»"])
        .no(&["recovery codes are shown once", "backup code: see wiki"]),
    Rule::hand("pgpass", &[":5432:", ":5433:", ":6432:", ":*:"], shell::pgpass)
        .from("PostgreSQL, the password file")
        .yes(&["db.internal:5432:prod:app:«{an:18}»", "*:*:*:app:«{an:18}»"])
        .no(&["db.internal:5432:prod", "http://x:5432:"]),
    Rule::hand("password-hash", &["$apr1$", "$1$", "$2y$", "$2a$", "$2b$", "$6$", "$5$", "$argon2id$", "$argon2i$"], shell::crypt)
        .sure(Confidence::Medium)
        .from("crypt(5); Apache, password formats")
        .yes(&["admin:«$apr1${an:8}${an:22}»", "x:«$2y$10${an:53}»", "root:«$6${an:16}${an:86}»:19000:"])
        .no(&["$2y$10", "costs $5$ and more"]),
    Rule::hand("docker-identity-token", &["identitytoken", "registrytoken"], shell::identity)
        .from("Docker, config.json")
        .yes(&["\"identitytoken\": \"«{w:64}»\""])
        .no(&["\"identitytoken\": \"\""]),
];
