"""Attacks over HTTP: paths that leave the API, bodies and queries that no client writes."""

from __future__ import annotations

PATHS = [
    *"""
/../../etc/passwd
/%2e%2e/%2e%2e/etc/passwd
/..%2f..%2fetc%2fpasswd
/%252e%252e/etc/passwd
//etc/passwd
/.//etc/passwd
/api/v1/views/../../../serve/tokens.json
/api/v1/topics/..%2F..%2Fserve%2Ftokens.json
/api/v1/topics/%2e%2e
/api/v1/topics/..
/api/v1/topics/_accounting.totals-job
/api/v1/topics/%00
/api/v1/topics/clicks%00.json
/api/v1/topics/clicks%2F0
/api/v1/topics/clicks/..%2Fclicks/records
/api/v1/topics/C%3A%5CWindows
/api/v1/topics/%5C%5Chost%5Cshare
/api/v1/jobs/..
/api/v1/jobs/%2e%2e%2fserve
/api/v1/jobs/..%2F..%2Fetc
/api/v1/jobs/totals-job%2F..%2Ftotals-job
/api/v1/jobs/%00/health
/api/v1/views/%2e%2e/%2fa
/api/v1/views/totals%2F..%2Ftotals
/api/v1/views/%F0%9F%92%A9
/api/v1/views/totals/%00%00
/api/v1/groups/..%2F..%2Fx/seek
/serve/tokens.json
/.git/config
/.env
/tokens.json
/static/page.js
/page.js/..%2Fx
/page.js%2f..%2fserver.py
/page/../server.py
/openapi.json/x
/openapi.yaml
/docs
/redoc
/admin
/debug
/server-status
/api/v2/views
/API/V1/VIEWS
/api/v1/views/
/api/v1//views
/api/v1/views;/totals
/api/v1/views%3Fx
/api/v1/views%23x
/metrics/../metrics2
/healthz/..%2f
/%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd
/..;/metrics
/%uff0e%uff0e/
/%E2%80%A5/etc
/api/v1/topics/clicks.dead/../clicks/redrive2
""".splitlines()[1:],
    "/api/v1/topics/" + "a" * 5_000,
    "/" + "x/" * 2_000,
    "/api/v1/views/totals/" + "a/" * 500,
]

BODIES = [
    *(
        line.encode()
        for line in """
{
[]
null
1
"x"
{}
NaN
[[]]
{"query": null}
{"query": 1}
{"query": ["select 1"]}
{"letters": 1}
{"letters": [1]}
{"letters": [{}]}
{"letters": [{"partition": "x", "offset": []}]}
{"letters": [{"partition": -1, "offset": -1}]}
{"letters": {"partition": 0}}
{"topic": 1, "to": 2}
{"topic": "clicks", "to": {}}
{"topic": "clicks", "to": -1}
{"topic": "clicks", "to": 1e400}
{"topic": "clicks", "to": 99999999999999999999}
{"topic": "clicks", "to": "beginning", "partition": "x"}
{"topic": "../x", "to": "beginning"}
{"url": "\\ud800"}
{"n": 99999999999999999999999999}
{"url": {"a": [1]}}
[{"url": "/"}, null]
""".splitlines()
    ),
    b"\xff\xfe",
    b'{"a":' * 5_000,
    b"[" * 100_000,
]

QUERIES = [
    *"""
limit=-1
limit=x
limit=99999999999999999999
cursor=x
cursor=eyJ9
cursor=%00
order=,
order=-
order=nothing
epoch=-1
epoch=x
epoch=1&wait=x
epoch=99&wait=nan
epoch=99&wait=-1
epoch=99&wait=-inf
format=exe
views.gt=x
views.in=
views.no=1
url.null=maybe
nothing=1
views=1&views=2
since=x
since=-
since=%7B
since=[]
since={%22a%22:1}
since={%220%22:-5}
since={%220%22:99999999999999999999}
partition=9
partition=-1
offset=-1
offset=99999999999999999999
time=yesterday
time=2026-01-01
time=%00
time=9999-12-31T23:59:59Z
key=%FF
%00=%00
=
&&&
""".splitlines()[1:],
    "a" * 8_000,
]
