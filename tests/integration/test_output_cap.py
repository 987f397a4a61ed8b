# SPDX-License-Identifier: Apache-2.0
"""The cap on output: exact to the byte over both streams, without disturbing the command or filling memory."""

from __future__ import annotations

import base64
import os
import re
import time
import unittest
from typing import Dict

from harness import census
from harness.case import JarCase, every_way
from harness.result import Result, check_result, limit_of, parse_line

SIZES = (1, 2, 63, 1000, 4095, 4096, 4097, 65535, 65536, 65537, 102400)
# The program itself, half of it, and far less than the flood.
ENGINE_RSS_KB = 1536


def pattern(stream: str, count: int) -> str:
    """The first bytes that tests/tools/writer.c writes to a stream."""
    first = ord("a" if stream == "stdout" else "A")
    period = "".join(chr(first + i) for i in range(23))
    return (period * (count // 23 + 1))[:count]


class Head(JarCase):
    def check_counts(self, result: Result, stdout: int, stderr: int, cap: int) -> None:
        """Counts, truncation and the entry in limits_hit for a command that wrote so much."""
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0))
        self.assertEqual((result["stdout_bytes"], result["stderr_bytes"]), (stdout, stderr))
        is_over = stdout + stderr > cap
        self.assertEqual(result["truncated"], is_over)
        limit = limit_of(result, "output")
        self.assertEqual(limit is not None, is_over)
        if limit is not None:
            self.assertEqual(limit["limit"], cap)
            self.assertTrue(limit["peak"] is None or limit["peak"] > cap, limit)
        self.assertEqual(len(result["stdout"]) + len(result["stderr"]), min(cap, stdout + stderr))

    def test_one_stream_is_cut_at_the_cap(self) -> None:
        for cap in SIZES:
            for count in (cap - 1, cap, cap + 1, 3 * cap + 7):
                with self.subTest(cap=cap, count=count):
                    words = [f"o:{count}"] if count else []
                    result = self.json("--output", str(cap), "--", self.tool("writer"), *words)
                    self.check_counts(result, count, 0, cap)
                    self.assertEqual(result["stdout"], pattern("stdout", min(cap, count)))

    def test_stderr_is_cut_at_the_cap(self) -> None:
        result = self.json("--output", "1000", "--", self.tool("writer"), "e:5000")
        self.check_counts(result, 0, 5000, 1000)
        self.assertEqual(result["stderr"], pattern("stderr", 1000))

    def test_both_streams_share_the_cap(self) -> None:
        for cap in (1, 7, 1000, 65536, 102400):
            for parts in (["b:200000:4096"], ["o:150000", "e:150000"], ["b:2000:1", "b:200000:70000"]):
                with self.subTest(cap=cap, parts=parts):
                    count = sum(int(part.split(":")[1]) for part in parts if part[0] in "bo")
                    result = self.json("--output", str(cap), "--", self.tool("writer"), *parts)
                    self.check_counts(result, count, count, cap)
                    for stream in ("stdout", "stderr"):
                        self.assertEqual(result[stream], pattern(stream, len(result[stream])))

    def test_both_streams_exactly_at_the_cap(self) -> None:
        result = self.json("--output", "2000", "--", self.tool("writer"), "b:1000:10")
        self.check_counts(result, 1000, 1000, 2000)

    def test_each_stream_can_have_a_cap_of_its_own(self) -> None:
        for caps in ((1000, 7), (0, 5000), (70000, 1)):
            for count in (5000, 100000):
                with self.subTest(caps=caps, count=count):
                    word = f"stdout={caps[0]},stderr={caps[1]}"
                    result = self.json("--output", word, "--", self.tool("writer"), f"b:{count}:1000")
                    for stream, cap in zip(("stdout", "stderr"), caps):
                        self.assertEqual(result[stream], pattern(stream, min(cap, count)))
                    over = {stream: cap for stream, cap in zip(("stdout", "stderr"), caps) if cap < count}
                    limit = limit_of(result, "output") or {}
                    self.assertIn((limit["limit"], limit["peak"]), [(cap, count) for cap in over.values()])
                    self.assertEqual([stream for stream in ("stdout", "stderr") if stream in limit["evidence"]], list(over))
                    self.assertEqual(len([hit for hit in result["limits_hit"] if hit["name"] == "output"]), 1)

    def test_a_stream_below_its_own_cap_loses_nothing(self) -> None:
        result = self.json("--output", "stdout=5000,stderr=5000", "--", self.tool("writer"), "b:5000:10")
        self.assertEqual((result["truncated"], result["limits_hit"]), (False, []))
        self.assertEqual((result["stdout"], result["stderr"]), (pattern("stdout", 5000), pattern("stderr", 5000)))
        done = self.jar("--output", "stdout=3,stderr=none", "--", self.tool("writer"), "b:5000:10")
        self.assertEqual(done.stdout, pattern("stdout", 3).encode())
        self.assertTrue(done.stderr.startswith(pattern("stderr", 5000).encode()), done.stderr[-100:])
        self.assertIn(b"belljar: stdout was cut at 3 bytes", done.stderr)

    def test_a_cap_of_one_stream_can_end_the_run(self) -> None:
        words = ["--output", "stdout=1M,stderr=10", "--overflow", "kill"]
        result = self.json(*words, *self.sh("echo kept; sleep 0.2; echo 12345678901 >&2; sleep 1000"))
        self.assertEqual((result["outcome"], result["stdout"], result["stderr"]), ("output", "kept\n", "1234567890"))

    def test_caps_that_cannot_be_meant_are_refused(self) -> None:
        for word in ("stdout=3", "stdout=3,stdout=3", "stdout=3,stdin=3", "stdout=3,stderr", "stdout=3,stderr=x", "stdout=3,stderr=4,"):
            done = self.jar("--output", word, *self.sh("touch ran"))
            self.assertEqual((done.status, (self.work / "ran").exists()), (125, False), word)
            self.assertIn(b"--output", done.stderr)
        done = self.jar("--json", "--output", "stdout=3,stderr=none", *self.sh("touch ran"))
        self.assertEqual((done.status, (self.work / "ran").exists()), (125, False))

    def test_the_default_of_a_captured_run_is_100k(self) -> None:
        result = self.json("--", self.tool("writer"), "o:200000")
        self.check_counts(result, 200000, 0, 102400)

    def test_sizes_are_1024_based(self) -> None:
        for word, cap in (("1K", 1024), ("2K", 2048), ("1M", 1 << 20)):
            result = self.json("--output", word, "--", self.tool("writer"), "o:2000000")
            self.check_counts(result, 2000000, 0, cap)

    def test_no_output_at_all(self) -> None:
        result = self.json("--output", "0", "--", self.tool("writer"), "o:5000", "e:5000")
        self.check_counts(result, 5000, 5000, 0)
        silent = self.json("--output", "0", "--", "true")
        self.check_counts(silent, 0, 0, 0)

    def test_no_cap_is_an_error_where_output_is_captured(self) -> None:
        done = self.jar("--json", "--output", "none", *self.sh("touch ran"))
        self.assertEqual(done.status, 125, done)
        self.assertFalse((self.work / "ran").exists())

    def test_a_million_small_writes(self) -> None:
        result = self.json("--", self.tool("writer"), "o:1000000:1", timeout=120)
        self.check_counts(result, 1000000, 0, 102400)
        self.assertEqual(result["stdout"], pattern("stdout", 102400))


@every_way
class Truncate(JarCase):
    def test_the_command_is_not_disturbed(self) -> None:
        script = f'"{self.tool("writer")}" o:5000000 e:5000000 b:1000000:1000 && touch finished; exit 6'
        result = self.json("--output", "1000", *self.sh(script))
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 6))
        self.assertTrue((self.work / "finished").exists())
        self.assertEqual((result["stdout_bytes"], result["stderr_bytes"]), (6000000, 6000000))
        self.assertEqual(len(result["stdout"]) + len(result["stderr"]), 1000)

    def test_the_other_stream_is_still_drained_after_the_cap(self) -> None:
        result = self.json("--output", "10", "--", self.tool("writer"), "o:100000", "e:3000000", "o:3000000")
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0))
        self.assertEqual((result["stdout_bytes"], result["stderr_bytes"]), (3100000, 3000000))

    def test_a_run_beyond_the_cap_is_ended_if_asked(self) -> None:
        for part in ("o:0", "e:0", "b:0:1", "b:0:7000"):
            with self.subTest(part=part):
                done, result = self.status(
                    "--json",
                    "--output",
                    "1000",
                    "--overflow",
                    "kill",
                    "--grace",
                    "1000s",
                    "--",
                    self.tool("writer"),
                    part,
                )
                self.assertEqual((done.status, result["outcome"], result["killed"]), (137, "output", True))
                self.assertEqual(len(result["stdout"]) + len(result["stderr"]), 1000)
                self.assertTrue(result["truncated"])

    def test_a_run_at_the_cap_is_not_ended(self) -> None:
        for parts in (["o:1000"], ["b:500:1"], ["e:1000"]):
            result = self.json("--output", "1000", "--overflow", "kill", "--", self.tool("writer"), *parts)
            self.assertEqual((result["outcome"], result["exit_code"], result["limits_hit"]), ("exited", 0, []))

    def test_a_flood_costs_the_engine_no_memory(self) -> None:
        if "BELLJAR_TEST_SANITIZER" in os.environ:
            self.skipTest("a sanitizer needs memory of its own")
        peaks: Dict[int, int] = {}
        with open(self.base / "reply", "wb") as reply:
            process = self.start("--json", "--", self.tool("writer"), "o:209715200", stdout=reply)
            while process.poll() is None:
                for pid in [process.pid, *census.descendants(process.pid)]:
                    if self.is_engine(pid):
                        peaks[pid] = max(peaks.get(pid, 0), self.resident_kb(pid))
                time.sleep(0.005)
        result = check_result(parse_line((self.base / "reply").read_bytes()))
        self.assertEqual((result["outcome"], result["stdout_bytes"]), ("exited", 209715200))
        self.assertTrue(peaks)
        self.assertLess(max(peaks.values()), ENGINE_RSS_KB, peaks)

    @staticmethod
    def is_engine(pid: int) -> bool:
        """The jar's process 1 and other helpers of the engine, not the command."""
        line = census.command_line(pid)
        return "writer" not in line or "belljar" in line.split(" ")[0]

    @staticmethod
    def resident_kb(pid: int) -> int:
        """Memory of a process's own, without the pages of the program's file; 0 where it is gone."""
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
                found = re.search(r"RssAnon:\s+(\d+) kB", status.read())
        except OSError:
            return 0
        return int(found.group(1)) if found else 0


class Keep(JarCase):
    def keep(self, how: str, cap: int, *parts: str) -> Result:
        result = self.json("--bytes", "--keep", how, "--output", str(cap), "--", self.tool("writer"), *parts)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0))
        return result

    def test_the_head(self) -> None:
        self.assertEqual(self.keep("head", 100, "o:1000")["stdout"], pattern("stdout", 100))

    def test_the_tail(self) -> None:
        for cap in (1, 100, 4096, 65536, 100001):
            for count in (cap - 1, cap, cap + 1, 3 * cap + 5, 300000):
                if count < 1:
                    continue
                with self.subTest(cap=cap, count=count):
                    result = self.keep("tail", cap, f"o:{count}:1000")
                    self.assertEqual(result["stdout"], pattern("stdout", count)[-cap:])
                    self.assertEqual(result["truncated"], count > cap)

    def test_the_tail_of_both_streams(self) -> None:
        result = self.keep("tail", 1000, "b:50000:100")
        self.assertEqual(len(result["stdout"]) + len(result["stderr"]), 1000)
        for stream in ("stdout", "stderr"):
            self.assertTrue(pattern(stream, 50000).endswith(result[stream]))

    def test_the_last_stream_fills_the_tail(self) -> None:
        result = self.json(
            "--keep", "tail", "--output", "1000", *self.sh(f'"{self.tool("writer")}" o:5000; sleep 0.3; echo end >&2')
        )
        self.assertEqual(result["stderr"], "end\n")
        self.assertEqual(result["stdout"], pattern("stdout", 5000)[-996:])

    def test_both_ends(self) -> None:
        for cap in (2, 100, 4096, 65536):
            for count in (cap - 1, cap, cap + 1, 2 * cap, 5 * cap + 3):
                with self.subTest(cap=cap, count=count):
                    result = self.keep("both", cap, f"o:{count}")
                    whole = pattern("stdout", count)
                    if count <= cap:
                        self.assertEqual((result["stdout"], result["truncated"]), (whole, False))
                        continue
                    at = result["elided_at"]["stdout"]
                    self.assertEqual(at, cap // 2)
                    self.assertEqual(result["stdout"], whole[: cap // 2] + whole[-(cap - cap // 2) :])

    def test_both_ends_of_both_streams(self) -> None:
        result = self.keep("both", 1000, "b:50000:64")
        self.assertEqual(len(result["stdout"]) + len(result["stderr"]), 1000)
        for stream in ("stdout", "stderr"):
            at, kept, whole = result["elided_at"][stream], result[stream], pattern(stream, 50000)
            self.assertIsInstance(at, int)
            self.assertTrue(whole.startswith(kept[:at]) and whole.endswith(kept[at:]), kept)

    def test_both_ends_and_the_tail_of_streams_with_caps_of_their_own(self) -> None:
        for how, counts in (("both", (50, 20)), ("tail", (0, 0))):
            word = "stdout=100,stderr=40"
            result = self.json("--bytes", "--keep", how, "--output", word, "--", self.tool("writer"), "b:5000:64")
            for stream, cap, head in zip(("stdout", "stderr"), (100, 40), counts):
                whole = pattern(stream, 5000)
                self.assertEqual(result[stream], whole[:head] + whole[-(cap - head) :])
                if how == "both":
                    self.assertEqual(result["elided_at"][stream], head)

    def test_an_odd_cap_is_kept_to_the_byte(self) -> None:
        result = self.keep("both", 101, "o:1000")
        self.assertEqual(len(result["stdout"]), 101)

    def test_a_stream_that_lost_nothing_says_so(self) -> None:
        result = self.json(
            "--keep", "both", "--output", "100", *self.sh(f'echo e >&2; sleep 0.2; "{self.tool("writer")}" o:1000')
        )
        self.assertEqual(result["stderr"], "e\n")
        self.assertIsNone(result["elided_at"].get("stderr"))
        self.assertIsInstance(result["elided_at"]["stdout"], int)


class Bytes(JarCase):
    def emit(self, data: bytes, *options: str) -> Result:
        (self.work / "data").write_bytes(data)
        result = self.json("--bytes", *options, "--", "cat", "data")
        self.assertEqual((result["exit_code"], result["stdout_bytes"]), (0, len(data)))
        return result

    def test_base64_holds_the_exact_bytes(self) -> None:
        for data in (b"", b"a", b"ab", b"abc", bytes(range(256)) * 10, b"\0" * 1000, b"\xff" * 999, b"\r\n\x1b[0m"):
            with self.subTest(data=data[:10]):
                result = self.emit(data)
                self.assertEqual(base64.b64decode(result["stdout_base64"]), data)
                self.assertEqual(result["stderr_base64"], "")

    def test_without_the_option_there_is_no_base64(self) -> None:
        self.assertNotIn("stdout_base64", self.json("--", "echo", "x"))

    def test_valid_text_stays_as_it_is(self) -> None:
        text = 'é中😀\u2028\ufeff\ufffe "quoted" \\ / \0 \x01\x1f\x7f\x80 \r\n\t\b\f'
        result = self.emit(text.encode())
        self.assertEqual((result["stdout"], result["encoding"]), (text, "utf-8"))

    def test_the_replacement_character_itself_is_no_loss(self) -> None:
        result = self.emit("\ufffd".encode())
        self.assertEqual((result["stdout"], result["encoding"]), ("\ufffd", "utf-8"))

    def test_other_bytes_become_replacement_characters(self) -> None:
        odd = (
            b"\xff",
            b"\x80",
            b"\xc3",
            b"\xe4\xb8",
            b"\xf0\x9f\x98",
            b"\xc0\xaf",
            b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80",
            b"\xf8",
        )
        for bad in odd:
            for before, after in ((b"", b""), (b"a", b"b"), (b"\xc3\xa9", b"\n")):
                with self.subTest(bad=bad, before=before):
                    result = self.emit(before + bad + after)
                    self.assertEqual(result["encoding"], "utf-8-lossy")
                    self.assertRegex(result["stdout"], f"\\A{before.decode()}\ufffd+{after.decode()}\\Z")
                    self.assertEqual(base64.b64decode(result["stdout_base64"]), before + bad + after)

    def test_a_bad_stderr_is_told_too(self) -> None:
        result = self.json(*self.sh("printf 'a\\377' >&2; printf ok"))
        self.assertEqual((result["stdout"], result["stderr"], result["encoding"]), ("ok", "a\ufffd", "utf-8-lossy"))

    def test_a_character_cut_by_the_cap_is_dropped(self) -> None:
        for character in ("é", "中", "😀"):
            whole = (character * 100).encode()
            for cap in range(40, 48):
                with self.subTest(character=character, cap=cap):
                    result = self.emit(whole, "--output", str(cap))
                    self.assertEqual(result["stdout"], character * (cap // len(character.encode())))
                    self.assertEqual((result["encoding"], result["truncated"]), ("utf-8", True))
                    kept = base64.b64decode(result["stdout_base64"])
                    self.assertTrue(whole.startswith(kept) and cap - 4 < len(kept) <= cap, kept)

    def test_a_character_cut_at_the_tail_is_dropped(self) -> None:
        whole = ("中" * 100).encode()
        for cap in range(40, 46):
            result = self.emit(whole, "--output", str(cap), "--keep", "tail")
            self.assertEqual((result["stdout"], result["encoding"]), ("中" * (cap // 3), "utf-8"))

    def test_characters_cut_in_the_middle_are_dropped(self) -> None:
        (self.work / "data").write_text("😀" * 100, encoding="utf-8")
        for cap in range(40, 50, 2):
            result = self.json("--output", str(cap), "--keep", "both", "--", "cat", "data")
            self.assertEqual((set(result["stdout"]), result["encoding"]), ({"😀"}, "utf-8"))
            at = result["elided_at"]["stdout"]
            self.assertEqual(result["stdout"].encode()[:at].decode(), "😀" * (cap // 8))

    def test_a_character_cut_by_the_command_itself_is_a_loss(self) -> None:
        self.assertEqual(self.emit("é".encode()[:1])["encoding"], "utf-8-lossy")


class PassedThrough(JarCase):
    def test_there_is_no_cap_by_default(self) -> None:
        done, result = self.status("--", self.tool("writer"), "o:5000000")
        self.assertEqual((len(done.stdout), result["truncated"], result["limits_hit"]), (5000000, False, []))

    def test_a_cap_holds_over_both_streams(self) -> None:
        for cap in (0, 1, 1000, 65536):
            with self.subTest(cap=cap):
                done, result = self.status("-q", "--output", str(cap), "--", self.tool("writer"), "b:100000:1000")
                self.assertEqual(done.status, 0)
                kept = len(done.stdout) + len(re.findall(rb"(?m)^[A-W]+", done.stderr)[0] if done.stderr else b"")
                self.assertEqual(kept, cap)
                self.assertEqual((result["truncated"], result["stdout_bytes"]), (True, 100000))

    def test_a_run_beyond_the_cap_is_ended_if_asked(self) -> None:
        done, result = self.status("--output", "1000", "--overflow", "kill", "--", self.tool("writer"), "o:0")
        self.assertEqual((done.status, result["outcome"]), (137, "output"))
        self.assertEqual(done.stdout.decode(), pattern("stdout", 1000))


if __name__ == "__main__":
    unittest.main()
