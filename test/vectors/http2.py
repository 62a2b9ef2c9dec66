# Makes http2.json: field blocks and frames as the packages hpack and hyperframe of PyPI write them.
#
#   python3 -m venv /tmp/venv && /tmp/venv/bin/pip install hpack hyperframe && /tmp/venv/bin/python test/vectors/http2.py
#
# Text in the file is latin1: each character is a byte.

import json
import os
import random
from functools import partial

import hpack
import hyperframe
from hpack.hpack import Encoder
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.table import HeaderTable
from hyperframe import frame as f

pick = random.Random(9113)
huffman = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)

NAMES = [
    ":method", ":path", ":scheme", ":authority", ":status", "accept", "accept-encoding", "cookie", "set-cookie",
    "user-agent", "x-a", "x-request-id", "content-type", "authorization", "x-" + "long" * 12, "via", "etag",
]
VALUES = [
    "", "GET", "POST", "/", "/index.html", "https", "200", "404", "gzip, deflate", "a=b; c=d", "text/html; charset=utf-8",
    "\xe9\xff\x80", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "x" * 140, "{}[]<>\\^~`|", "\t a",
]


def text(count):
    return "".join(chr(pick.randrange(256)) for _ in range(count))


def field():
    name = pick.choice(NAMES)
    value = pick.choice(VALUES) if pick.random() < 0.8 else text(pick.randrange(20))
    return [name, value]


def conversation():
    encoder = Encoder()
    blocks = []
    for _ in range(1 + pick.randrange(6)):
        if pick.random() < 0.2:
            # The package forgets a size update when it is told the same size twice.
            sizes = pick.sample([0, 64, 200, 1000], 1 + pick.randrange(2)) + pick.choice([[], [4096]])
            for size in sizes:
                encoder.header_table_size = size
        fields = [field() for _ in range(pick.randrange(8))]
        if fields and pick.random() < 0.3:
            fields += [list(pick.choice(fields)) for _ in range(3)]
        given = [(n.encode("latin1"), v.encode("latin1"), pick.random() < 0.1) for n, v in fields]
        block = encoder.encode(given, huffman=pick.random() < 0.6)
        blocks.append({"hex": block.hex(), "fields": fields, "table": encoder.header_table._current_size})
    return blocks


def frames():
    made = []

    def add(frame, **expected):
        made.append({"hex": frame.serialize().hex(), "type": type(frame).__name__, "stream": frame.stream_id, **expected})

    for _ in range(6):
        stream = 2 * pick.randrange(2**30) + 1
        data = text(pick.choice([0, 1, 5, 40])).encode("latin1")
        last = pick.random() < 0.5
        pad = pick.choice([None, 0, 1, 9])
        flags = (["END_STREAM"] if last else []) + ([] if pad is None else ["PADDED"])
        add(f.DataFrame(stream, data, flags=flags, pad_length=pad or 0), data=data.hex(), last=last,
            padding=0 if pad is None else pad + 1)
        priority = pick.random() < 0.5
        more = ["END_HEADERS"] + (["PRIORITY"] if priority else [])
        add(f.HeadersFrame(stream, data, flags=flags + more, pad_length=pad or 0, depends_on=2 if priority else 0,
                           stream_weight=9 if priority else 0, exclusive=priority and last),
            block=data.hex(), last=last)
        add(f.PriorityFrame(stream, depends_on=0, stream_weight=3, exclusive=True))
        code = pick.randrange(2**32)
        add(f.RstStreamFrame(stream, error_code=code), code=code)
        settings = {key: pick.randrange(2**16) for key in pick.sample(range(1, 9), 3)}
        add(f.SettingsFrame(0, settings=settings), settings=[list(item) for item in settings.items()])
        opaque = text(8).encode("latin1")
        add(f.PingFrame(0, opaque), opaque=opaque.hex(), ack=False)
        add(f.PingFrame(0, opaque, flags=["ACK"]), opaque=opaque.hex(), ack=True)
        add(f.GoAwayFrame(0, last_stream_id=stream, error_code=code, additional_data=data), last_stream=stream, code=code,
            debug=data.hex())
        add(f.WindowUpdateFrame(pick.choice([0, stream]), window_increment=stream), increment=stream)
    add(f.SettingsFrame(0, flags=["ACK"]), ack=True)
    return made


strings = [text(pick.randrange(40)) for _ in range(100)] + VALUES
result = {
    "by": f"hpack {hpack.__version__}, hyperframe {hyperframe.__version__}",
    "codes": [[code, length] for code, length in zip(REQUEST_CODES, REQUEST_CODES_LENGTH)],
    "staticTable": [[name.decode(), value.decode()] for name, value in HeaderTable.STATIC_TABLE],
    "strings": [[s, huffman.encode(s.encode("latin1")).hex()] for s in strings],
    "conversations": [conversation() for _ in range(90)],
    "frames": frames(),
}
rows = ",\n".join(
    f' "{key}": ' + (json.dumps(value) if isinstance(value, str) else "[\n  " + ",\n  ".join(map(partial(json.dumps, separators=(',', ':'), ensure_ascii=False), value)) + "\n ]")
    for key, value in result.items()
)
with open(os.path.join(os.path.dirname(__file__), "http2.json"), "w", encoding="utf8") as file:
    file.write("{\n" + rows + "\n}\n")
