//! Valid content, invalid content, and versions that may follow others.

use super::*;
use std::error::Error;
use std::fs;

/// The example in Prometheus' documentation.
const HASH: &str = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

/// A directory with two certificates and their keys.
struct CertificateDir(tempfile::TempDir);

impl CertificateDir {
    fn new() -> Result<CertificateDir, Box<dyn Error>> {
        let dir = tempfile::tempdir()?;
        for name in ["one", "other"] {
            let pair = rcgen::generate_simple_self_signed(vec!["a".into()])?;
            fs::write(dir.path().join(format!("{name}.crt")), pair.cert.pem())?;
            let key = pair.signing_key.serialize_pem();
            fs::write(dir.path().join(format!("{name}.key")), key)?;
        }
        Ok(CertificateDir(dir))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("web.yml")
    }

    fn open(&self, text: &str, flags: &AccessConfig) -> Result<Reloaded<Web>, String> {
        fs::write(self.path(), text).map_err(|error| error.to_string())?;
        open(&self.path(), flags).map_err(|error| error.to_string())
    }
}

const PAIR: &str = "tls_server_config: {cert_file: one.crt, key_file: one.key";

#[test]
fn sections_are_optional_and_paths_count_from_the_file() -> Result<(), Box<dyn Error>> {
    let place = CertificateDir::new()?;
    let indented = |name: &str| -> Result<String, Box<dyn Error>> {
        Ok(fs::read_to_string(place.0.path().join(name))?.replace('\n', "\n    "))
    };
    let inline = format!(
        "tls_server_config:\n  cert: |\n    {}\n  key: |\n    {}\n",
        indented("one.crt")?,
        indented("one.key")?
    );
    let asks = "client_ca_file: other.crt, client_auth_type: RequireAndVerifyClientCert";
    let may_show = "client_ca_file: other.crt, client_auth_type: VerifyClientCertIfGiven";
    let terms = "min_version: TLS12, max_version: TLS12, prefer_server_cipher_suites: false, \
                 curve_preferences: [CurveP256, X25519], \
                 cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]";
    for (text, tls, asks_clients) in [
        (String::new(), false, false),
        ("tls_server_config:\nbasic_auth_users: {}\n".to_owned(), false, false),
        ("tls_server_config: {min_version: TLS13, client_auth_type: ''}".to_owned(), false, false),
        (format!("{PAIR}}}"), true, false),
        (inline, true, false),
        (format!("{PAIR}, {asks}}}"), true, true),
        (format!("{PAIR}, {may_show}}}"), true, false),
        (format!("{PAIR}, client_auth_type: NoClientCert}}"), true, false),
        (format!("{PAIR}, {terms}}}"), true, false),
    ] {
        let web = place.open(&text, &AccessConfig::default())?.current();
        assert_eq!(web.tls.is_some(), tls, "{text}");
        assert_eq!(web.tls.as_ref().is_some_and(|tls| tls.asks_clients), asks_clients, "{text}");
        assert!(web.http2 && web.users.is_none() && web.headers.is_empty(), "{text}");
    }
    let text = format!(
        "http_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: deny\n    \
         Strict-Transport-Security: max-age=60\nbasic_auth_users:\n  anna: {HASH}\n"
    );
    let web = place.open(&text, &AccessConfig::default())?.current();
    let headers: Vec<(&str, &str)> = web
        .headers
        .iter()
        .flat_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    assert_eq!(headers, [("x-frame-options", "deny"), ("strict-transport-security", "max-age=60")]);
    assert!(!web.http2 && web.users.is_some() && web.tls.is_none());
    Ok(())
}

#[test]
fn what_is_wrong_or_not_done_is_named() -> Result<(), Box<dyn Error>> {
    let place = CertificateDir::new()?;
    for (text, said) in [
        ("tls_server_confg: {}".to_owned(), "web.yml:1:1: tls_server_confg: there is no such key"),
        (
            "tls_server_config: {cert_fil: a}".to_owned(),
            ":1:21: tls_server_config.cert_fil: there is no",
        ),
        (
            "basic_auth_users: {a: b}\nbasic_auth_users: {a: b}".to_owned(),
            ":2:1: the key basic_auth_users is",
        ),
        (
            "basic_auth_users: {anna: hunter2}".to_owned(),
            "basic_auth_users.anna: the bcrypt hash is damaged",
        ),
        ("basic_auth_users: [hunter2]".to_owned(), "basic_auth_users: expected lines"),
        ("http_server_config: {http2: maybe}".to_owned(), ".http2: expected true or false"),
        (
            "http_server_config: {headers: {Server: a}}".to_owned(),
            "Server cannot be set; supported headers: ",
        ),
        (
            "http_server_config: {headers: {X-Frame-Options: allow}}".to_owned(),
            "X-Frame-Options: expected one of deny, sameorigin",
        ),
        ("rate_limit: {burst: 1}".to_owned(), "rate_limit: not supported: use --max-connections"),
        (
            "tls_server_config: {key_file: one.key}".to_owned(),
            "tls_server_config.cert_file: neither cert_file nor cert",
        ),
        (
            "tls_server_config: {cert_file: one.crt}".to_owned(),
            "tls_server_config.key_file: neither key_file nor key",
        ),
        (
            "tls_server_config: {cert: a, key: hunter2}".to_owned(),
            "tls_server_config.cert: it holds no",
        ),
        (
            "tls_server_config: {cert_file: one.crt, key: hunter2}".to_owned(),
            "web.yml: tls_server_config.key: it holds no private key",
        ),
        (
            "tls_server_config: {cert_file: one.crt, key_file: other.key}".to_owned(),
            "cannot be used",
        ),
        (
            "tls_server_config: {cert_file: no.crt, key_file: one.key}".to_owned(),
            "no.crt cannot be read",
        ),
        (
            format!("{PAIR}, client_ca_file: other.crt}}"),
            "client_auth_type: it must verify clients if",
        ),
        (
            format!("{PAIR}, client_auth_type: RequireAndVerifyClientCert}}"),
            "client_auth_type: it must verify clients if",
        ),
        (
            format!("{PAIR}, client_auth_type: RequireAnyClientCert}}"),
            "RequireAnyClientCert is not supported",
        ),
        (format!("{PAIR}, client_auth_type: Any}}"), "expected NoClientCert, "),
        (format!("{PAIR}, client_allowed_sans: [a]}}"), "client_allowed_sans: not supported"),
        (format!("{PAIR}, min_version: TLS10}}"), "min_version: TLS10 is not supported"),
        (format!("{PAIR}, min_version: SSL3}}"), "min_version: expected TLS12 or TLS13"),
        (format!("{PAIR}, min_version: TLS13, max_version: TLS12}}"), "min_version: it is higher"),
        (
            format!("{PAIR}, cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]}}"),
            "cipher_suites[0]: \"TLS_RSA_WITH_AES_128_CBC_SHA\" is not supported; supported",
        ),
        (format!("{PAIR}, curve_preferences: [CurveP521]}}"), "\"CurveP521\" is not supported"),
        ("tls_server_config: {cert_file: &a [*a]}".to_owned(), "an alias stands for what it is"),
    ] {
        match place.open(&text, &AccessConfig::default()) {
            Ok(_) => panic!("{text} is taken"),
            Err(error) => {
                assert!(error.contains(said) && !error.contains("hunter2"), "{text}: {error}");
            }
        }
    }
    let none = AccessConfig::default();
    let tls = super::super::TlsFiles { certificate: "a".into(), key: "b".into(), client_ca: None };
    let flags = AccessConfig { tls: Some(tls), ..none.clone() };
    let error = place.open(&format!("{PAIR}}}"), &flags).err().unwrap_or_default();
    assert!(
        error.contains("tls_server_config in ") && error.contains("--tls-cert-file"),
        "{error}"
    );
    let users = format!("basic_auth_users: {{anna: {HASH}}}");
    let flags = AccessConfig { read_credentials: Some("a".into()), ..none };
    let error = place.open(&users, &flags).err().unwrap_or_default();
    assert!(error.contains("basic_auth_users in ") && error.contains("--read-cred"), "{error}");
    assert!(place.open(&format!("{PAIR}}}"), &flags).is_ok(), "one says this and the other that");
    Ok(())
}

/// An editor may truncate the file before it writes it.
#[test]
fn protection_ends_only_when_a_reload_is_asked_for() -> Result<(), Box<dyn Error>> {
    let place = CertificateDir::new()?;
    let whole = format!("{PAIR}}}\nbasic_auth_users: {{anna: {HASH}}}\n");
    let web = place.open(&whole, &AccessConfig::default())?;
    let is_whole = || {
        let web = web.current();
        web.tls.is_some() && web.users.is_some()
    };
    for text in ["", "basic_auth_users: {}\n", &whole.replace("basic_auth_users", "# "), "{"] {
        fs::write(place.path(), text)?;
        web.refresh(Web::may_follow);
        assert!(is_whole(), "{text:?}");
    }
    fs::write(place.path(), format!("{whole}http_server_config: {{http2: false}}\n"))?;
    web.refresh(Web::may_follow);
    assert!(is_whole() && !web.current().http2);
    // The certificate is a separate file, and a change of it is noticed, too.
    let before = web.current();
    for extension in ["crt", "key"] {
        let path = |name: &str| place.0.path().join(format!("{name}.{extension}"));
        fs::copy(path("other"), path("one"))?;
    }
    web.refresh(Web::may_follow);
    assert!(is_whole() && !Arc::ptr_eq(&before, &web.current()));
    fs::write(place.path(), "")?;
    web.read_again()?;
    assert!(!is_whole());
    Ok(())
}
