//! Secrets in URLs, headers and cookies.

use super::{Confidence, Rule};
use crate::filters::redact::detect::web;

/// The rules.
pub(super) const RULES: &[Rule] = &[
    Rule::hand(
        "slack-webhook",
        &["hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"],
        web::hook,
    )
    .from("Slack, incoming webhooks")
    .yes(&["https://hooks.slack.com/services/«T{UP:10}/B{UP:10}/{an:24}»"])
    .no(&["https://hooks.slack.com/services/T{UP:10}/B{UP:10}/xxxxxxxxxxxxxxxxxxxxxxxx"]),
    Rule::hand("discord-webhook", &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"], web::hook)
        .from("Discord, webhook resource")
        .yes(&["https://discord.com/api/webhooks/{n:18}/«{w:68}»"])
        .no(&["https://discord.com/api/webhooks/{n:18}/your_token"]),
    Rule::hand("teams-webhook", &["webhook.office.com/webhookb2/"], web::hook)
        .from("Microsoft Teams, incoming webhooks")
        .yes(&["https://corp.webhook.office.com/webhookb2/«{u}@{u}/IncomingWebhook/{hx:32}/{u}»"])
        .no(&["https://corp.webhook.office.com/webhookb2/"]),
    Rule::hand("discord-bot", &["iscord", "ISCORD"], web::discord)
        .from("Discord, authentication of bots")
        .yes(&["DISCORD_TOKEN=«M{an:25}.{w:6}.{w:38}»", "discord: «M{an:23}.{w:6}.{w:27}»"])
        .no(&["DISCORD_GUILD={n:18}"]),
    Rule::hand("azure-sas", &["sig="], web::shared_access)
        .from("Azure Storage, shared access signatures")
        .yes(&["https://x.blob.core.windows.net/c?sv=2024-08-04&se=2027&sig=«{an:43}%3D»"])
        .no(&["?sig={an:12}", "design={an:43}%3D"]),
    Rule::hand(
        "presigned-url",
        &["X-Amz-Signature=", "X-Amz-Security-Token=", "X-Goog-Signature=", "Signature="],
        web::signed,
    )
    .from("AWS, Signature Version 4 in query strings; Google Cloud Storage and CloudFront, signed URLs")
    .yes(&[
        "https://x.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=«{hx:64}»",
        "?Expires=1&Signature=«{w:200}»&Key-Pair-Id=x",
    ])
    .no(&["Signature={w:60}", "X-Amz-Signature={hx:8}"]),
    Rule::hand(
        "robot-webhook",
        &["oapi.dingtalk.com/robot/send?access_token=", "qyapi.weixin.qq.com/cgi-bin/webhook/send?key="],
        web::robot,
    )
    .from("DingTalk and WeCom, custom robots")
    .yes(&["https://oapi.dingtalk.com/robot/send?access_token=«{hx:64}»"])
    .no(&["https://oapi.dingtalk.com/robot/send?access_token=x"]),
    Rule::hand("zapier-webhook", &["hooks.zapier.com/hooks/catch/"], web::zapier)
        .from("Zapier, webhooks: the number of the account and of the hook")
        .yes(&["https://hooks.zapier.com/hooks/catch/{n:7}/«{lo:7}»/"])
        .no(&["https://hooks.zapier.com/hooks/catch/"]),
    Rule::hand("azure-identifiable", &["JQQJ99"], web::azure)
        .from("Microsoft, security-utilities: identifiable keys of 84 characters")
        .yes(&["{an:52}JQQJ99{an:26}"])
        .no(&["{an:20}JQQJ99{an:26}"]),
    Rule::hand("url-userinfo", &["://"], web::userinfo)
        .from("RFC 3986, 3.2.1: userinfo")
        .yes(&[
            "postgres://app:«{an:18}»@db.internal:5432/x",
            "redis://:«{an:22}»@cache:6379/0",
            "https://deploy:«{an:20}»@git.example.net/x.git",
            "mongodb+srv://svc:«{an:16}»@c.mongodb.net",
        ])
        .no(&[
            "postgres://user:password@localhost/x",
            "https://example.net:8080/@x",
            "ssh://git@example.net:22/x",
            "http://u:${PASS}@h/",
        ]),
    Rule::hand("auth-bearer", &["Bearer ", "bearer ", "BEARER "], web::bearer)
        .from("RFC 6750")
        .yes(&["Authorization: Bearer «{w:40}»", "{\"authorization\":\"bearer «{w:64}»\"}"])
        .no(&["Bearer authentication-is-required", "Bearer $TOKEN", "Bearer your_access_token_here"]),
    Rule::hand("auth-basic", &["Basic ", "basic ", "BASIC "], web::basic)
        .from("RFC 7617")
        .yes(&["Authorization: Basic «{basic}»"])
        .no(&["Basic understanding", "Basic {w:20}"]),
    Rule::hand("cookie-session", &["ookie:", "ookie\"", "ookie\\", "ookie'", "OOKIE:"], web::cookie)
        .sure(Confidence::Medium)
        .from("RFC 6265; names of sessions as frameworks give them")
        .yes(&[
            "Set-Cookie: sessionid=«{an:40}»; Path=/",
            "Cookie: theme=dark; PHPSESSID=«{lo:26}»",
            "\"Cookie\": \"auth_token=«{w:32}»\"",
        ])
        .no(&["Cookie: theme=dark; lang=en", "Set-Cookie: sessionid=; Path=/"]),
];
