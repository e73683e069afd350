"""The bytes of streams: events in text, frames, compression, and how a stream is recognised."""

from __future__ import annotations

import gzip
import json
import sys
import time
import zlib

import pytest

from reenact.wire.inflate import inflater
from reenact.wire.streams import assemble, stream_kind
from support.streams import (
    ANTHROPIC_BODY,
    ANTHROPIC_EVENTS,
    BEDROCK_BODY,
    BEDROCK_EVENTS,
    CHAT_BODY,
    CHAT_EVENTS,
    OLLAMA_BODY,
    OLLAMA_EVENTS,
    STREAMS,
    chat_chunk,
    compact,
    frame,
    frames,
    ndjson,
    sse,
)


def content(data: bytes) -> str:
    return assemble(data, "openai").body["choices"][0]["message"]["content"]


class TestText:
    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
    def test_any_line_end(self, end):
        found = assemble(sse(*CHAT_EVENTS, done=True, end=end), None)
        assert (found.body, found.complete, found.problems) == (CHAT_BODY, True, [])

    def test_a_byte_order_mark_comments_ids_and_empty_data(self):
        extra = b"\xef\xbb\xbf: hello\n\nid: 7\nretry: 10\ndata:\n\ndata: \n\n"
        found = assemble(extra + sse(*CHAT_EVENTS, done=True), None)
        assert (found.body, found.problems) == (CHAT_BODY, [])

    def test_no_space_after_the_colon(self):
        assert content(b"data:" + compact(chat_chunk({"content": "a"})) + b"\n\n") == "a"

    def test_an_object_over_several_data_lines(self):
        text = json.dumps(chat_chunk({"content": "a"}), indent=1).encode()
        assert content(b"data: " + text.replace(b"\n", b"\ndata: ") + b"\n\n") == "a"

    def test_blank_lines_that_a_server_forgot(self):
        lines = [b"data: " + compact(chat_chunk({"content": text})) + b"\n" for text in "abc"]
        found = assemble(b"".join(lines) + b"data: [DONE]\n", None)
        assert found.complete
        assert found.body["choices"][0]["message"]["content"] == "abc"

    def test_an_event_line_names_the_type_that_the_data_lacks(self):
        pieces = []
        for event in ANTHROPIC_EVENTS:
            untyped = {key: value for key, value in event.items() if key != "type"}
            pieces.append(
                b"event: " + event["type"].encode() + b"\ndata: " + compact(untyped or {"x": 1}) + b"\n\n"
            )
        assert assemble(b"".join(pieces), "anthropic").body == ANTHROPIC_BODY

    def test_the_last_event_counts_without_its_blank_line(self):
        data = sse(*CHAT_EVENTS, done=True)
        assert assemble(data.rstrip(b"\n"), None).complete

    @pytest.mark.parametrize(
        ("bad", "printed"),
        [
            (b"data: {oops\n\n", "event skipped, not JSON: '{oops'"),
            (b"data: 7\n\n", "event skipped, not an object: '7'"),
            (b"<html>\n", "not an event: the line '<html>'"),
            (b"{oops\n", "event skipped, not JSON: '{oops'"),
            (b"data: " + b"[" * 100_000 + b"\n\n", "event skipped, not JSON: '" + "[" * 60 + "…'"),
        ],
    )
    def test_what_is_no_event_is_skipped_and_reported(self, bad, printed):
        first, *rest = CHAT_EVENTS
        found = assemble(sse(first) + bad + sse(*rest, done=True), None)
        assert found.body == CHAT_BODY
        assert found.problems == [printed]

    def test_bytes_that_are_not_utf8_are_replaced_and_reported(self):
        found = assemble(sse(chat_chunk({"content": "a?b"})).replace(b"?", b"\xff"), None)
        assert found.body["choices"][0]["message"]["content"] == "a\ufffdb"
        assert "not UTF-8" in found.problems[0]

    def test_a_character_cut_between_the_halves_of_its_escape(self):
        halves = [chat_chunk({"content": half}) for half in ("a\ud83c", "\udf0d", "\udf0d")]
        data = b"".join(b"data: " + json.dumps(half).encode() + b"\n\n" for half in halves)
        assert content(data) == "a🌍\udf0d"

    def test_a_cut_is_reported(self):
        assert assemble(sse(*CHAT_EVENTS)[:-20], None).problems[0].startswith('cut off in the event \'{"id"')
        assert assemble(sse(*CHAT_EVENTS) + b"dat", None).problems == ["cut off in the line 'dat'"]

    def test_rubbish_is_a_few_problems_and_not_a_million(self):
        found = assemble(b"rubbish\n" * 100_000, None)
        assert found.body is None
        assert len(found.problems) == 21

    def test_a_bad_line_among_json_lines(self):
        first, *rest = OLLAMA_EVENTS
        found = assemble(ndjson(first) + b'{"message":\n' + ndjson(*rest), "ollama")
        assert (found.body, len(found.problems)) == (OLLAMA_BODY, 1)

    def test_an_array_is_read_up_to_what_is_broken(self):
        data = STREAMS["gemini array"].data.replace(b'"Gr', b'oops"Gr')
        found = assemble(data, "gemini")
        assert found.body["candidates"] and not found.complete
        assert found.problems[0].startswith("cut off or broken after byte")

    def test_nothing_gives_nothing(self):
        for data in (b"", b"\n\n", b"data", b": comment\n\n", b"[", b"[]"):
            found = assemble(data, None)
            assert (found.body, found.complete, found.first_content) == (None, False, None)

    def test_first_content_is_where_the_event_ends(self):
        first, second, *_ = CHAT_EVENTS
        found = assemble(sse(first, second) + b": later\n\n", None)
        assert found.first_content == len(sse(first, second))


class TestFrames:
    def test_the_content_type_says_so_even_if_the_first_frame_is_broken(self):
        data = bytearray(frames(*BEDROCK_EVENTS))
        data[9] ^= 1
        found = assemble(bytes(data), None, "application/vnd.amazon.eventstream")
        assert found.problems == ["bytes that are not a frame at byte 0"]
        assert found.body == BEDROCK_BODY

    def test_a_wrong_checksum_costs_one_frame(self):
        start = len(frames(*BEDROCK_EVENTS[:5]))
        data = bytearray(frames(*BEDROCK_EVENTS))
        data[start + 100] ^= 1
        found = assemble(bytes(data), "bedrock")
        assert found.problems == [f"frame with a wrong checksum at byte {start}"]
        assert found.body["output"]["message"]["content"][1] == {"text": " 🌍"}

    def test_bytes_between_frames_are_passed_over(self):
        start = len(frames(*BEDROCK_EVENTS[:5]))
        data = frames(*BEDROCK_EVENTS[:5]) + b"\0\0junk\0" * 50 + frames(*BEDROCK_EVENTS[5:])
        found = assemble(data, "bedrock")
        assert found.body == BEDROCK_BODY
        assert found.problems == [f"bytes that are not a frame at byte {start}"]

    def test_a_cut_is_reported(self):
        start = len(frames(*BEDROCK_EVENTS[:-1]))
        assert assemble(frames(*BEDROCK_EVENTS)[:-1], None).problems == [
            f"cut off in the frame at byte {start}"
        ]
        assert assemble(frames(*BEDROCK_EVENTS[:-1]) + b"\0\0", None).problems == [
            f"cut off in the frame at byte {start}"
        ]

    @pytest.mark.parametrize(
        ("headers", "payload"),
        [
            ({}, b"{}"),
            ({":event-type": "x"}, b"[]"),
            ({":event-type": "x"}, b"\xff"),
            ({":event-type": "chunk"}, b'{"bytes":7}'),
        ],
    )
    def test_a_frame_without_sense_is_a_problem(self, headers, payload):
        found = assemble(frame(headers, payload) + frames(*BEDROCK_EVENTS), "bedrock")
        assert found.body == BEDROCK_BODY
        assert found.problems == ["frame that cannot be read at byte 0"]

    def test_an_error_message_in_headers(self):
        error = frame({":message-type": "error", ":error-code": "InternalError", ":error-message": "no"}, b"")
        assert assemble(error, "bedrock").error == ("InternalError", "no")

    def test_headers_of_every_type_are_passed_over(self):
        sizes = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
        odd = b"".join(b"\x01h" + bytes([kind]) + b"\x07" * size for kind, size in sizes.items())
        odd += b"\x01b\x06\x00\x02\x07\x07"
        named = b"\x0b:event-type\x07\x00\x0bmessageStop"
        payload = b'{"stopReason":"end_turn"}'
        prelude = (16 + len(odd + named + payload)).to_bytes(4, "big") + len(odd + named).to_bytes(4, "big")
        message = prelude + zlib.crc32(prelude).to_bytes(4, "big") + odd + named + payload
        found = assemble(message + zlib.crc32(message).to_bytes(4, "big"), None)
        assert (found.complete, found.problems) == (True, [])


class TestTime:
    """A hostile or huge stream costs time in proportion to its size."""

    @pytest.mark.parametrize(
        "make",
        [
            lambda n: sse(*[chat_chunk({"content": "ab"})] * n),
            lambda n: sse(
                *[chat_chunk({"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]})] * n
            ),
            lambda n: sse(*ANTHROPIC_EVENTS[:10], *[ANTHROPIC_EVENTS[9]] * n),
            lambda n: sse(*[{"type": "response.output_item.added", "item": {"type": "message"}}] * n),
            lambda n: sse(
                *[{"type": "response.output_text.annotation.added", "output_index": 0, "annotation": {}}] * n
            ),
            lambda n: sse(
                *({"choices": [{"index": number, "delta": {"content": "a"}}]} for number in range(n))
            ),
            lambda n: sse(
                *({"candidates": [{"index": number, "finishReason": "STOP"}]} for number in range(n))
            ),
            lambda n: frames(*BEDROCK_EVENTS[:6], *[BEDROCK_EVENTS[6]] * n),
            lambda n: frames(*[{"contentBlockDelta": {"delta": {"citation": {"a": 1}}}}] * n),
            lambda n: b"\0" * 150 * n,
            lambda n: b'{"a":\n' * 4 * n,
            lambda n: b"[" * 100 * n,
            lambda n: b"data: {\n" * 4 * n,
            lambda n: b"\r" * 150 * n,
        ],
    )
    def test_ten_times_the_data_takes_about_ten_times_as_long(self, make):
        small, large = make(200), make(2000)

        def seconds(data):
            best = 9.0
            for _ in range(3):
                start = time.process_time()
                assemble(data, None)
                best = min(best, time.process_time() - start)
            return best

        assert seconds(large) < 30 * seconds(small) + 0.02


def unpacked(data, encoding, size=4096):
    """What capture keeps of a body that arrives in pieces, and why no more of it."""
    unpack, found = inflater(encoding), []
    for at in range(0, len(data), size):
        try:
            found.append(unpack(data[at : at + size]))
        except Exception as error:
            return b"".join(found), str(error)
    return b"".join(found), None


class TestCompression:
    DATA = sse(*ANTHROPIC_EVENTS * 20)

    @staticmethod
    def raw_deflate(data):
        packer = zlib.compressobj(wbits=-15)
        return packer.compress(data) + packer.flush()

    @pytest.mark.parametrize("size", [1, 7, 4096])
    @pytest.mark.parametrize("name", ["gzip", "GZIP", "x-gzip", "deflate", "raw", "identity", ""])
    def test_whole(self, name, size):
        packed = {
            "gzip": gzip.compress,
            "x-gzip": gzip.compress,
            "deflate": zlib.compress,
            "raw": self.raw_deflate,
        }.get(name.lower(), bytes)(self.DATA)
        assert unpacked(packed, "deflate" if name == "raw" else name, size) == (self.DATA, None)

    @pytest.mark.parametrize("name", ["gzip", "deflate", "raw"])
    def test_cut_anywhere(self, name):
        pack = {"gzip": gzip.compress, "deflate": zlib.compress, "raw": self.raw_deflate}[name]
        packed = pack(self.DATA)
        for at in range(0, len(packed), 7):
            data, why = unpacked(packed[:at], "deflate" if name == "raw" else name)
            assert why is None
            assert self.DATA.startswith(data)
        assert len(data) > len(self.DATA) / 2

    def test_flushed_pieces_are_all_there_when_cut(self):
        packer = zlib.compressobj(wbits=31)
        sent = packer.compress(sse(CHAT_EVENTS[1])) + packer.flush(zlib.Z_SYNC_FLUSH)
        assert content(unpacked(sent, "gzip")[0]) == "Grüße"

    @pytest.mark.parametrize("size", [1, 7, 4096])
    def test_gzip_members_one_after_another_and_padding(self, size):
        data = gzip.compress(b"a" * 9000) + gzip.compress(b"b") + b"\0\0"
        assert unpacked(data, "gzip", size) == (b"a" * 9000 + b"b", None)

    def test_two_encodings(self):
        assert unpacked(gzip.compress(zlib.compress(b"abc")), "deflate, gzip") == (b"abc", None)

    @pytest.mark.parametrize(("data", "name"), [(b"data: x", "gzip"), (b"\xff\xff data", "deflate")])
    def test_what_is_not_packed_is_refused(self, data, name):
        found, why = unpacked(data, name)
        assert found == b"" and why is not None

    def test_broken_data_gives_what_came_before(self):
        noise = b"".join(zlib.crc32(b"%d" % n).to_bytes(4, "big") for n in range(20_000))
        packed = bytearray(gzip.compress(noise))
        packed[50_000:50_100] = b"\xff" * 100
        data, why = unpacked(bytes(packed), "gzip")
        assert noise.startswith(data[:40_000]) and len(data) > 40_000
        assert why is not None

    def test_a_bomb_is_not_unpacked(self, monkeypatch):
        monkeypatch.setattr("reenact.wire.inflate.MOST", 1 << 20)
        data, why = unpacked(gzip.compress(b"\0" * (20 << 20)), "gzip", 64)
        assert len(data) <= 1 << 20
        assert why == "unpacked no further than 1 MB"

    @pytest.mark.parametrize("name", ["br", "zstd"])
    def test_encodings_of_libraries_that_are_absent(self, name, monkeypatch):
        for module in ("brotli", "brotlicffi", "compression.zstd", "backports.zstd", "zstandard"):
            monkeypatch.setitem(sys.modules, module, None)
        assert inflater(name) is None

    def test_an_unknown_encoding(self):
        assert inflater("rot13") is None
        assert inflater("gzip, rot13") is None


class TestKind:
    @pytest.mark.parametrize(
        ("provider", "url", "content_type", "body", "expected"),
        [
            ("openai", "https://h/v1/chat/completions", "text/event-stream; charset=utf-8", {}, "sse"),
            (
                "bedrock",
                "https://h/model/m/converse-stream",
                "application/vnd.amazon.eventstream",
                {},
                "eventstream",
            ),
            ("bedrock", "https://h/model/m/converse-stream", None, {}, "eventstream"),
            ("anthropic", "https://h/model/m/invoke-with-response-stream", None, {}, "eventstream"),
            ("bedrock", "https://h/model/m/converse-stream", "application/json", {}, None),
            ("ollama", "http://h/api/chat", "application/x-ndjson", {}, "ndjson"),
            ("ollama", "http://h/api/chat", None, {"model": "m"}, "ndjson"),
            ("ollama", "http://h/api/chat", None, {"stream": False}, None),
            ("ollama", "http://h/api/chat", "application/json; charset=utf-8", {}, None),
            ("gemini", "https://h/m:streamGenerateContent?alt=sse", "text/event-stream", {}, "sse"),
            ("gemini", "https://h/m:streamGenerateContent?alt=sse", None, {}, "sse"),
            ("gemini", "https://h/m:streamGenerateContent", "application/json; charset=UTF-8", {}, "json"),
            ("gemini", "https://h/m:generateContent", "application/json; charset=UTF-8", {}, None),
            ("openai", "https://h/v1/chat/completions", "application/json", {"stream": True}, None),
            ("openai", "https://h/v1/chat/completions", "text/plain", {"stream": True}, "sse"),
            ("openai", "https://h/v1/chat/completions", None, {"stream": False}, None),
            (None, None, None, None, None),
        ],
    )
    def test_table(self, provider, url, content_type, body, expected):
        assert stream_kind(provider, url, content_type, body) == expected
