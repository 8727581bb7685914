"""What the schema tester cannot know: texts that mean something, and bodies of remote write."""

import schemathesis
from hypothesis import strategies as st

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,8}", fullmatch=True)
LABELS = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True)
# Any text in quotes, as PromQL has them; a raw one cannot hold a backquote.
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\\\"\n"), max_size=12
).map(lambda text: f'"{text}"')
EXPRESSIONS = st.sampled_from(['".+"', '"a.*b|c"', '"(?i:up)"', '"[a-z]+[0-9]{2}"', '"^x$"'])


def matcher(parts):
    (name, op), value = parts
    return f"{name}{op}{value}"


# The first one refuses the empty value, so that the whole selector does.
PLAIN = st.tuples(LABELS, TEXTS.filter(lambda text: text != '""')).map(lambda p: f"{p[0]}={p[1]}")
MORE = st.one_of(
    st.tuples(st.tuples(LABELS, st.sampled_from(["=", "!="])), TEXTS),
    st.tuples(st.tuples(LABELS, st.sampled_from(["=~", "!~"])), EXPRESSIONS),
).map(matcher)
INSIDE = st.tuples(PLAIN, st.lists(MORE, max_size=3)).map(lambda p: ",".join([p[0], *p[1]]))
SELECTORS = st.one_of(
    NAMES,
    INSIDE.map(lambda inside: "{" + inside + "}"),
    st.tuples(NAMES, INSIDE).map(lambda p: f"{p[0]}{{{p[1]}}}"),
)
SECONDS = st.floats(-1e15, 1e15).map(repr)
DATES = st.datetimes().map(lambda time: time.isoformat() + "Z").filter(lambda t: t[0] != "0")

QUERIES = st.one_of(
    SELECTORS,
    SELECTORS.map(lambda selector: f"sum by (job) (rate({selector}[5m]))"),
    st.tuples(SELECTORS, SELECTORS).map(lambda both: f"{both[0]} / on (job) {both[1]}"),
    st.floats(-1e15, 1e15).map(repr),
)

schemathesis.openapi.format("series-selector", SELECTORS)
schemathesis.openapi.format("promql", QUERIES)
schemathesis.openapi.format("time-of-sample", st.one_of(SECONDS, DATES))


for message in ["", ";proto=prometheus.WriteRequest", ";proto=io.prometheus.write.v2.Request"]:
    schemathesis.openapi.media_type("application/x-protobuf" + message, st.binary(max_size=200))


def is_empty(value):
    if isinstance(value, (list, dict)):
        return not value or any(map(is_empty, value))
    return value in ("", None)


@schemathesis.hook
def filter_query(_context, query):
    """An empty value says the same as none, as in Prometheus."""
    return not (isinstance(query, dict) and any(map(is_empty, query.values())))
