//! Values that only their name tells: services whose keys have no prefix, and names that say "secret".

use super::Shape::Given;
use super::{Confidence, Rule};
use crate::filters::redact::detect::bytes::Set::{Alnum, AnyHex, Base64, Dotted, Hex, Opaque, Small, Word};

/// The rules.
pub(super) const RULES: &[Rule] = &[
    Rule::named(
        "aws-secret-access-key",
        &["aws_secret", "secretaccesskey", "secret_access_key", "secret-access-key", "awssecret"],
        Base64,
        40,
        40,
    )
    .from("AWS, access keys: 40 characters")
    .yes(&[
        "AWS_SECRET_ACCESS_KEY=«{b64:40}»",
        "\"SecretAccessKey\": \"«{b64:40}»\"",
        "aws_secret_access_key = «{b64:40}»",
    ])
    .no(&[
        "AWS_SECRET_ACCESS_KEY=${SECRET}",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ]),
    Rule::named(
        "aws-session-token",
        &["aws_session_token", "sessiontoken", "security_token", "security-token", "session_token"],
        Opaque,
        100,
        4096,
    )
    .from("AWS, temporary credentials")
    .yes(&["AWS_SESSION_TOKEN=«{b64:300}»"])
    .no(&["AWS_SESSION_TOKEN={hx:20}"]),
    Rule::named(
        "azure-storage-key",
        &["accountkey", "account_key", "storage_key", "sharedaccesskey"],
        Opaque,
        44,
        88,
    )
    .from("Azure Storage, connection strings: base64 of 64 bytes")
    .yes(&["AccountName=x;AccountKey=«{b64:86}==»;EndpointSuffix=core.windows.net"])
    .no(&["AccountKey={an:5}"]),
    Rule::named(
        "azure-openai-key",
        &["azure_openai", "azureopenai", "azure_api", "cognitive", "ocp-apim-subscription"],
        Alnum,
        32,
        84,
    )
    .from("Azure AI services, authentication: 32 hexadecimal digits or 84 letters and digits")
    .yes(&["AZURE_OPENAI_API_KEY=«{hx:32}»", "Ocp-Apim-Subscription-Key: «{an:84}»"])
    .no(&["AZURE_OPENAI_API_KEY={hx:6}"]),
    Rule::named("gcp-service-account", &["private_key_id"], Hex, 40, 40)
        .from("Google Cloud, service account keys")
        .yes(&["\"private_key_id\": \"«{hx:40}»\""])
        .no(&["\"private_key_id\": \"{hx:6}\""]),
    Rule::named("twilio-auth", &["twilio"], AnyHex, 32, 34)
        .from("Twilio, auth tokens")
        .yes(&["TWILIO_AUTH_TOKEN=«{hx:32}»"])
        .no(&["TWILIO_AUTH_TOKEN={hx:6}"]),
    Rule::named("mailgun-named", &["mailgun", "mg_api"], Word, 32, 72)
        .from("Mailgun, API keys since 2023")
        .yes(&["MAILGUN_API_KEY=«{hx:32}-{hx:8}-{hx:8}»"])
        .no(&["MAILGUN_API_KEY={hx:6}"]),
    Rule::named("cloudflare-token", &["cloudflare", "cf_api", "cf_token"], Word, 37, 53)
        .from("Cloudflare, API tokens and global keys")
        .yes(&["CLOUDFLARE_API_TOKEN=«{w:40}»", "cloudflare_api_key: «{hx:37}»"])
        .no(&["CLOUDFLARE_API_TOKEN={w:6}"]),
    Rule::named("heroku-named", &["heroku"], Word, 36, 36)
        .from("Heroku, platform API keys: UUIDs before 2024")
        .yes(&["HEROKU_API_KEY=«{u}»"])
        .no(&["HEROKU_APP={u}"]),
    Rule::named("vercel-named", &["vercel"], Alnum, 24, 24)
        .from("Vercel, tokens before 2025")
        .yes(&["VERCEL_TOKEN=«{an:24}»"])
        .no(&["VERCEL_TOKEN={an:6}"]),
    Rule::named("railway", &["railway"], Word, 36, 36)
        .from("Railway, tokens are UUIDs")
        .yes(&["RAILWAY_TOKEN=«{u}»"])
        .no(&["RAILWAY_PROJECT={u}"]),
    Rule::named("snowflake", &["snowflake", "snowsql"], Opaque, 8, 512)
        .from("Snowflake, connection parameters")
        .yes(&["SNOWFLAKE_PASSWORD=«{an:18}»"])
        .no(&["SNOWFLAKE_PASSWORD=$PASS"]),
    Rule::named("datadog", &["dd_api", "dd_app", "dd-api", "dd-app", "datadog"], Hex, 32, 40)
        .from("Datadog, API and application keys")
        .yes(&["DD_API_KEY=«{hx:32}»", "DD-APPLICATION-KEY: «{hx:40}»"])
        .no(&["DD_API_KEY={hx:6}"]),
    Rule::named("mistral", &["mistral"], Alnum, 32, 32)
        .from("Mistral, API keys")
        .yes(&["MISTRAL_API_KEY=«{an:32}»"])
        .no(&["MISTRAL_API_KEY={an:6}"]),
    Rule::named("cohere", &["cohere", "co_api"], Alnum, 40, 40)
        .from("Cohere, API keys")
        .yes(&["COHERE_API_KEY=«{an:40}»", "CO_API_KEY=«{an:40}»"])
        .no(&["COHERE_API_KEY={an:6}"]),
    Rule::named("together", &["together"], Alnum, 43, 64)
        .from("Together AI, API keys")
        .yes(&["TOGETHER_API_KEY=«{hx:64}»"])
        .no(&["TOGETHER_API_KEY={an:6}"]),
    Rule::named("weaviate", &["weaviate"], Alnum, 32, 64)
        .from("Weaviate Cloud, API keys")
        .yes(&["WEAVIATE_API_KEY=«{an:36}»"])
        .no(&["WEAVIATE_API_KEY={an:6}"]),
    Rule::named("newrelic-license", &["new_relic_license", "newrelic_license"], AnyHex, 36, 40)
        .from("New Relic, license keys")
        .yes(&["NEW_RELIC_LICENSE_KEY=«{hx:40}»"])
        .no(&["NEW_RELIC_LICENSE_KEY={hx:6}"]),
    Rule::named("okta-named", &["okta"], Word, 40, 42)
        .from("Okta, API tokens")
        .yes(&["OKTA_API_TOKEN=«00{w:40}»"])
        .no(&["OKTA_API_TOKEN={w:6}"]),
    Rule::named("wireguard", &["privatekey", "presharedkey"], Opaque, 44, 44)
        .from("wg(8): base64 of 32 bytes")
        .yes(&["[Interface]\nPrivateKey = «{b64:43}=»", "PresharedKey=«{b64:43}=»"])
        .no(&["PublicKey = {b64:43}="]),
    Rule::named(
        "tencent-secret-key",
        &["tencentcloud_secret", "tencent_secret", "cos_secret"],
        Alnum,
        32,
        32,
    )
    .from("Tencent Cloud, SecretKey")
    .yes(&["TENCENTCLOUD_SECRET_KEY=«{an:32}»"])
    .no(&["TENCENTCLOUD_SECRET_KEY={an:6}"]),
    Rule::named(
        "alibaba-secret-key",
        &["alibaba", "aliyun", "accesskeysecret", "access_key_secret"],
        Alnum,
        30,
        30,
    )
    .from("Alibaba Cloud, AccessKey secrets")
    .yes(&["ALIBABA_CLOUD_ACCESS_KEY_SECRET=«{an:30}»"])
    .no(&["ALIBABA_CLOUD_ACCESS_KEY_SECRET={an:6}"]),
    Rule::named("sentry-named", &["sentry_auth"], Small, 64, 64)
        .from("Sentry, auth tokens before 2023")
        .yes(&["SENTRY_AUTH_TOKEN=«{hx:64}»"])
        .no(&["SENTRY_AUTH_TOKEN={hx:6}"]),
    Rule::named("circleci", &["circle_token", "circleci", "circle-token"], Word, 40, 80)
        .from("CircleCI, API tokens")
        .yes(&["CIRCLE_TOKEN=«{hx:40}»"])
        .no(&["CIRCLE_TOKEN={hx:6}"]),
    Rule::named("npm-legacy", &["_authtoken"], Dotted, 20, 400)
        .from("npm, .npmrc: _authToken")
        .yes(&["//registry.example.net/:_authToken=«{an:36}»", "//registry.npmjs.org/:_authToken=«{u}»"])
        .no(&["//registry.npmjs.org/:_authToken=${NPM_TOKEN}"]),
    Rule::given("docker-config-auth", Given)
        .sure(Confidence::High)
        .from("Docker, config.json: auth is base64 of user:password")
        .yes(&[
            "{\"auths\":{\"r.example.net\":{\"auth\":\"«{basic}»\"}}}",
            "//r.example.net/:_auth=«{basic}»",
        ])
        .no(&["\"auth\": \"none\"", "\"auth\": \"{w:24}\""]),
    Rule::given("netrc", Given)
        .from("netrc(5)")
        .yes(&["machine git.example.net login ci password «{an:20}»"])
        .no(&["password policy of this machine", "machine x login y password $PASS"]),
    Rule::given("api-key-header", Given)
        .from("headers of APIs: x-api-key, private-token, x-vault-token and alike")
        .yes(&["x-api-key: «{an:40}»", "PRIVATE-TOKEN: «{an:24}»", "\"X-Auth-Token\": \"«{hx:48}»\""])
        .no(&["x-api-key: your_api_key", "x-api-key: $API_KEY"]),
    Rule::given("auth-header", Given)
        .from("RFC 9110, 11.6.2: a scheme and the credentials")
        .yes(&[
            "Authorization: token «{hx:40}»",
            "\"Authorization\": \"ApiKey «{b64:40}»\"",
            "authorization: «{an:48}»",
        ])
        .no(&["Authorization: Bearer x", "Authorization: required", "Authorization: token $GITHUB_TOKEN"]),
    Rule::given("odbc-jdbc-password", Given)
        .from("ODBC and ADO.NET, connection strings")
        .yes(&["Server=x;Database=y;User Id=sa;Password=«{an:16}»;Encrypt=yes", "Uid=sa;Pwd=«{pw:14}»;"])
        .no(&["Server=x;Password=;Encrypt=yes"]),
    Rule::given("dotenv-secret", Given)
        .from("names of environment variables")
        .yes(&[
            "INTERNAL_API_KEY=«{an:32}»",
            "export DB_PASSWORD=\"«{pw:16}»\"",
            "APP_SECRET=«{hx:64}»",
            "     7→APP_SECRET=«{hx:32}»",
        ])
        .no(&[
            "API_KEY=YOUR_API_KEY_HERE",
            "SECRET=<your-secret>",
            "TOKEN=xxxxxxxxxxxxxxxx",
            "CACHE_KEY={an:32}",
            "MAX_TOKEN=4096",
        ]),
    Rule::given("generic-password", Given)
        .from("names that say password")
        .yes(&[
            "password: \"«{pw:16}»\"",
            "db_password = '«{pw:12}»'",
            "密码是«{pw:16}»",
            "<password>«{pw:16}»</password>",
            "{\\\"password\\\":\\\"«{pw:16}»\\\"}",
        ])
        .no(&[
            "password: string;",
            "password=changeme",
            "password = getpass.getpass()",
            "passwordless=true",
            "password: process.env.DB_PASSWORD",
            "compass: {pw:16}",
        ]),
    Rule::given("generic-secret", Given)
        .from("names that say secret, token or key")
        .yes(&[
            "api_key = \"«{an:40}»\"",
            "client_secret: «{w:40}»",
            "apiKey: '«{hx:32}»'",
            "const token: &str = \"«{an:40}»\";",
            "密钥：«{an:32}»",
            "[\"api_key\", \"«{an:40}»\"]",
        ])
        .no(&[
            "api_key = os.environ[\"API_KEY\"]",
            "cacheKey = \"abcdef-ghijklmno-12\"",
            "spec.secret_name: app-secrets",
            "public_key = \"{an:40}\"",
            "primary_key: {an:40}",
            "monkey: {an:40}",
        ]),
];
