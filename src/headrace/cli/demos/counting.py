"""The app of the page view demo."""

from __future__ import annotations

from headrace.api.windows import bounded, tumbling
from headrace.app import App
from headrace.cli.demos import visitors
from headrace.core.settings import Settings

NAME, LIVE, FINAL, TOP = "pageviews", "views_so_far", "views_per_url", "top_urls"


def declare(settings: Settings) -> App:
    """Page views per URL and minute: as they come, the ten most viewed of each minute, and once for all when the minute has ended."""
    app = App(NAME, settings=settings)
    visitors.create(app.log)
    views = app.stream(
        visitors.TOPIC, schema=visitors.COLUMNS, key="url", time="viewed_at", watermark=bounded("10 seconds", idle="30 seconds")
    )
    minutes = views.with_columns(minute="date_trunc('minute', viewed_at)")
    so_far = minutes.group(["url", "minute"], ttl="10 minutes").agg(views="count(*)")
    app.view(LIVE, so_far)
    app.view(TOP, so_far.top(10, by="views", per="minute", rank="rank"))
    app.view(FINAL, views.window(tumbling("1 minute"), by="url").agg(views="count(*)"))
    return app
