# SPDX-License-Identifier: Apache-2.0
"""Jar: files made, moved, removed, packed and watched; every method and its _async twin."""

from __future__ import annotations

import asyncio
import errno
import inspect
import io
import os
import signal
import tarfile
import threading
import unittest
from typing import Any, Callable, List

import belljar
from package_case import PackageCase, open_fds, tearDownModule  # noqa: F401


def archive(*members: tarfile.TarInfo, data: bytes = b"") -> bytes:
    """A tar archive; each regular member holds the same data."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", encoding="utf-8", errors="surrogateescape") as tar:
        for member in members:
            member.size = len(data) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, **more: Any) -> tarfile.TarInfo:
    """One of it."""
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in more.items():
        setattr(info, key, value)
    return info


class FilesCase(PackageCase):
    """A jar with a private work directory."""

    def setUp(self) -> None:
        super().setUp()
        self.jar = belljar.Jar(workdir=None, timeout=None)
        self.addCleanup(self.jar.close)

    def refused(self, number: int, use: Callable[[], object], *names: str) -> None:
        """OSError with this errno, and the names in it."""
        with self.assertRaises(OSError) as caught:
            use()
        error = caught.exception
        self.assertEqual(error.errno, number, error)
        self.assertEqual(tuple(filter(None, (error.filename, error.filename2))), names)

    def names(self, path: str = ".") -> List[str]:
        """All below a directory."""
        return [info.name for info in self.jar.list_files(path, recursive=True)]


class Operations(FilesCase):
    """One by one."""

    def test_mkdir(self) -> None:
        jar = self.jar
        jar.mkdir("a")
        self.refused(errno.EEXIST, lambda: jar.mkdir("a"), "a")
        self.refused(errno.ENOENT, lambda: jar.mkdir("b/c"), "b/c")
        jar.mkdir("b/c", parents=True)
        jar.mkdir("b/c", parents=True)
        self.assertEqual(self.names(), ["a", "b", "b/c"])
        with self.assertRaises(FileExistsError):
            jar.mkdir("a")
        with self.assertRaises(OSError) as caught:
            jar.mkdir("/usr/new")
        self.assertIn(caught.exception.errno, (errno.EROFS, errno.EACCES))

    def test_stat_and_exists(self) -> None:
        jar = self.jar
        jar.write_file("file", "12345", mode=0o640)
        jar.run("ln -s file link; ln -s absent broken; mkfifo fifo", shell=True, check=True)
        info = jar.stat("file")
        self.assertEqual((info.name, info.type, info.size, info.mode), ("file", "file", 5, 0o640))
        self.assertEqual(info, belljar.FileInfo("file", "file", 5, 0o640, info.mtime))
        (listed,) = [entry for entry in jar.list_files() if entry.name == "file"]
        self.assertAlmostEqual(listed.mtime, info.mtime, places=3)
        self.assertEqual([jar.stat(name).type for name in (".", "link", "broken", "fifo", "/")], ["dir", "symlink", "symlink", "other", "dir"])
        self.assertEqual([jar.exists(name) for name in ("file", "link", "broken", "absent", "file/x", "x" * 300)], [True, True, False, False, False, False])
        self.assertEqual((jar.stat("link", follow=True).type, jar.stat("link", follow=True).size), ("file", 5))
        with self.assertRaises(FileNotFoundError):
            jar.stat("broken", follow=True)
        with self.assertRaises(FileNotFoundError):
            jar.stat("absent")
        with self.assertRaises(ValueError):
            jar.stat("a\0b")

    def test_remove(self) -> None:
        jar = self.jar
        jar.run("mkdir -p tree/a/b keep; echo x > tree/a/b/c; ln -s ../keep tree/link; echo y > keep/file; ln -s keep link", shell=True, check=True)
        self.refused(errno.ENOTEMPTY, lambda: jar.remove("tree"), "tree")
        jar.remove("tree", recursive=True)
        jar.remove("link", recursive=True)
        self.assertEqual(self.names(), ["keep", "keep/file"])
        self.refused(errno.ENOENT, lambda: jar.remove("tree", recursive=True), "tree")
        jar.remove("keep/file")
        jar.remove("keep")
        self.assertEqual(self.names(), [])

    def test_rename(self) -> None:
        jar = self.jar
        jar.write_file("a", "a")
        jar.write_file("d/b", "b", parents=True)
        jar.rename("a", "d/b")
        self.assertEqual((jar.read_file("d/b"), self.names()), (b"a", ["d", "d/b"]))
        self.refused(errno.ENOENT, lambda: jar.rename("x", "y"), "x", "y")
        self.refused(errno.EINVAL, lambda: jar.rename("d", "d/e"), "d", "d/e")

    def test_parts_of_a_file(self) -> None:
        jar = self.jar
        jar.write_file("file", bytes(range(100)))
        self.assertEqual(jar.read_file("file", offset=10), bytes(range(10, 100)))
        self.assertEqual(jar.read_file("file", offset=10, length=5), bytes(range(10, 15)))
        self.assertEqual(jar.read_file("file", length=0), b"")
        self.assertEqual(jar.read_file("file", offset=1000), b"")
        self.assertEqual(jar.read_file("file", max_bytes=5, offset=90, length=5), bytes(range(90, 95)))
        self.refused(errno.EFBIG, lambda: jar.read_file("file", max_bytes=5, offset=90), "file")
        jar.run(["truncate", "-s", "1T", "huge"], check=True)
        self.assertEqual(jar.read_file("huge", offset=(1 << 40) - 3), bytes(3))
        for wrong in ({"offset": -1}, {"length": -1}, {"max_bytes": -1}):
            with self.assertRaises(ValueError):
                jar.read_file("file", **wrong)

    def test_any_name(self) -> None:
        jar = self.jar
        for name in ("new\nline", os.fsdecode(b"\xff\x80"), " ", "-rf", "$(id)", "\u202e", "x" * 255):
            jar.write_file(f"{name}/{name}", "x", parents=True)
            self.assertEqual(jar.stat(f"{name}/{name}").size, 1)
            jar.rename(f"{name}/{name}", f"{name}/other")
            self.assertEqual([info.name for info in jar.list_files()], [name])
            jar.remove(name, recursive=True)

    def test_the_workdir_of_the_host(self) -> None:
        with belljar.Jar() as jar:
            jar.write_file("made/here", "x", parents=True)
            self.assertEqual((self.work / "made/here").stat().st_uid, os.getuid())
            jar.remove("made", recursive=True)
            self.assertEqual(os.listdir(self.work), [])
            # What is beside it the jar does not have, or has of its own.
            for use in (
                lambda: jar.mkdir(f"{self.base}/new"), lambda: jar.write_file(f"{self.base}/a/b", "", parents=True),
                lambda: jar.remove(str(self.base), recursive=True),
            ):  # fmt: skip
                try:
                    use()
                except OSError:
                    pass
        self.assertEqual(os.listdir(self.base), ["work"])

    def test_every_method_has_its_twin(self) -> None:
        for name in ("read_file", "write_file", "list_files", "mkdir", "stat", "exists", "remove", "rename", "export_tar", "import_tar",
                     "watch", "connect", "processes", "kill", "usage"):  # fmt: skip
            plain, twin = getattr(belljar.Jar, name), getattr(belljar.Jar, f"{name}_async")
            self.assertTrue(inspect.iscoroutinefunction(twin), name)
            self.assertEqual(inspect.signature(plain), inspect.signature(twin), name)

    def test_twins(self) -> None:
        async def work() -> None:
            async with await belljar.Jar.open_async(workdir=None) as jar:
                await jar.write_file_async("a/b", os.urandom(9 << 20), parents=True)
                self.assertEqual(len(await jar.read_file_async("a/b")), 9 << 20)
                await jar.mkdir_async("d")
                await jar.rename_async("a", "c")
                self.assertEqual((await jar.stat_async("c/b")).size, 9 << 20)
                data = (await jar.export_tar_async("c")).read()
                await jar.import_tar_async(data, "e")
                self.assertEqual([info.name for info in await jar.list_files_async(recursive=True)], ["c", "c/b", "d", "e", "e/b"])
                await asyncio.gather(*(jar.mkdir_async(f"many/{number}", parents=True) for number in range(100)))
                self.assertEqual(len(await jar.list_files_async("many")), 100)
                await jar.remove_async("many", recursive=True)
                self.assertFalse(await jar.exists_async("many"))
                with self.assertRaises(FileNotFoundError):
                    await jar.remove_async("many")

        asyncio.run(work())

    def test_opening_in_a_loop_holds_nothing_up_and_can_be_cancelled(self) -> None:
        async def work() -> None:
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            counting = asyncio.ensure_future(count())
            jars = await asyncio.gather(*(belljar.Jar.open_async(workdir=None) for _ in range(5)))
            self.assertGreater(turns, 5)
            for jar in jars:
                self.assertEqual((await jar.run_async(["echo", "up"])).stdout, "up\n")
                jar.close()
            with self.assertRaises(belljar.PolicyError):
                await belljar.Jar.open_async(memory="much")
            opening = asyncio.ensure_future(belljar.Jar.open_async(workdir=None))
            await asyncio.sleep(0)
            opening.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await opening
            counting.cancel()

        asyncio.run(work())

    def test_nothing_leaks(self) -> None:
        def use() -> None:
            jar = self.jar
            jar.write_file("a/b", "x", parents=True)
            for wrong in (lambda: jar.mkdir("a"), lambda: jar.read_file("a"), lambda: jar.connect(9), lambda: jar.watch("absent")):
                with self.assertRaises(OSError):
                    wrong()
            jar.export_tar().close()
            with jar.export_tar() as out:
                out.read(1)
            jar.watch().close()
            with self.assertRaises(ValueError):
                jar.import_tar(archive(member("x"), member("y", tarfile.SYMTYPE)))
            jar.remove("a", recursive=True)

        use()
        before = len(open_fds())
        for _ in range(20):
            use()
        self.assertEqual(len(open_fds()), before)


class Archives(FilesCase):
    """tar, out and in."""

    def test_a_tree_goes_out_and_in_again(self) -> None:
        jar = self.jar
        content = os.urandom(1_000_001)
        odd = os.fsdecode(b"odd\n\xff")
        jar.write_file("t/a/file", content, mode=0o754, parents=True)
        jar.write_file(f"t/{odd}/empty", "", parents=True)
        jar.mkdir("t/" + "long" * 60)
        with jar.export_tar("t") as out:
            data = out.read()
        with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as tar:
            self.assertEqual(tar.getnames(), ["a", "a/file", "long" * 60, odd, f"{odd}/empty"])
            self.assertEqual(tar.getmember("a/file").mode, 0o754)
        jar.import_tar(data, "u/v")
        self.assertEqual(self.names("u/v"), self.names("t"))
        self.assertEqual((jar.read_file("u/v/a/file"), jar.stat("u/v/a/file").mode), (content, 0o754))
        jar.import_tar(jar.export_tar("t/a/file"), "one")
        self.assertEqual(self.names("one"), ["file"])
        self.assertEqual(jar.run(["tar", "cf", "back.tar", "-C", "t", "."]).returncode, 0)
        jar.import_tar(jar.read_file("back.tar"), "w")
        self.assertEqual(self.names("w"), self.names("t"))

    def test_a_huge_hole_goes_out_as_a_hole(self) -> None:
        """Its zeros would take hours."""
        self.jar.run("truncate -s 1T huge; printf middle | dd of=huge bs=1 seek=1000000000 conv=notrunc", shell=True, check=True)
        data = self.jar.export_tar().read()
        self.assertLess(len(data), 1 << 20)
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            (member,) = tar
            content = tar.extractfile(member)
            assert content
            content.seek(999_999_998)
            self.assertEqual((member.name, member.size, content.read(10)), ("huge", 1 << 40, b"\0\0middle\0\0"))
        with self.assertRaisesRegex(ValueError, "sparse"):
            self.jar.import_tar(data, "in")

    def test_links_go_out_as_links_and_nothing_else_that_is_special(self) -> None:
        self.jar.run("ln -s /etc/passwd link; mkfifo fifo; echo x > file; ln file hard", shell=True, check=True)
        with tarfile.open(fileobj=io.BytesIO(self.jar.export_tar().read())) as tar:
            found = {info.name: (info.issym(), info.linkname, info.size) for info in tar}
        self.assertEqual(found, {"file": (False, "", 2), "hard": (False, "", 2), "link": (True, "/etc/passwd", 0)})

    def test_what_could_do_harm_is_refused_on_the_way_in(self) -> None:
        jar = self.jar
        sparse = member("x", tarfile.GNUTYPE_SPARSE)
        for wrong in (
            member("/tmp/x"), member("../x"), member("a/../../x"), member("a/.."), member("x", tarfile.SYMTYPE, linkname="/etc"),
            member("x", tarfile.LNKTYPE, linkname="ok"), member("x", tarfile.FIFOTYPE), member("x", tarfile.CHRTYPE), member("x", tarfile.BLKTYPE), sparse,
        ):
            with self.assertRaises(ValueError, msg=wrong.name):
                jar.import_tar(archive(member("ok"), wrong, member("later")), "in")
            self.assertEqual(self.names("in"), ["ok"], wrong)
        with self.assertRaises(tarfile.ReadError):
            jar.import_tar(b"this is no archive" * 100)
        jar.import_tar(archive(member("set", mode=0o6755), member("dir", tarfile.DIRTYPE, mode=0o2755)), "bits")
        self.assertEqual((jar.stat("bits/set").mode, jar.stat("bits/dir").mode), (0o755, 0o755))

    def test_links_that_are_there_already_lead_an_archive_nowhere_outside(self) -> None:
        outside = self.base / "outside"
        outside.mkdir()
        jar = self.jar
        jar.run(f"ln -s {outside} out; mkdir in; ln -s {outside}/file in/file; ln -s /usr/share usr", shell=True, check=True)
        for name in ("out/file", "in/file", "usr/file"):
            with self.assertRaises(OSError, msg=name):
                jar.import_tar(archive(member(name), data=b"x"))
        self.assertEqual(os.listdir(outside), [])

    def test_the_jars_limits_hold_for_an_archive(self) -> None:
        data = archive(*(member(f"f{number}") for number in range(30)), data=bytes(1 << 20))
        with belljar.Jar(disk="8M") as jar:
            self.refused(errno.ENOSPC, lambda: jar.import_tar(data), "./f8")
            self.assertEqual(len(os.listdir(self.work)), 8)
        with belljar.Jar(file_size="512K") as jar:
            self.refused(errno.EFBIG, lambda: jar.import_tar(data, "d"), "d/f0")
        with belljar.Jar(workdir=None, memory="64M", tmpfs=["/small:4M"]) as jar:
            self.refused(errno.ENOSPC, lambda: jar.import_tar(data, "/small"))

    def test_a_file_with_smaller_holes_goes_out_as_it_is_read(self) -> None:
        self.jar.run(["truncate", "-s", "60M", "file"], check=True)
        with self.jar.export_tar() as out:
            self.assertEqual(len(out.read(5 << 20)), 5 << 20)

    def test_a_file_that_shrinks_meanwhile_leaves_the_archive_whole(self) -> None:
        self.jar.write_file("file", os.urandom(3 << 20))
        with self.jar.export_tar() as out:
            data = out.read(2 << 20)
            self.jar.write_file("file", b"")
            data += out.read()
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            self.assertEqual([info.size for info in tar], [3 << 20])

    def test_a_file_object_is_read_piece_by_piece(self) -> None:
        class Endless(io.RawIOBase):
            given = 0

            def readable(self) -> bool:
                return True

            def readinto(self, buffer: Any) -> int:
                self.given += len(buffer)
                return len(buffer)

        endless = Endless()
        header = member("zeroes", size=1 << 40).tobuf()
        source = io.BufferedReader(endless)
        joined = io.BytesIO(header)

        class Joined:
            def read(self, size: int) -> bytes:
                return joined.read(size) or source.read(size)

        with belljar.Jar(workdir=None, memory="64M", tmpfs=["/small:4M"]) as jar:
            self.refused(errno.ENOSPC, lambda: jar.import_tar(Joined(), "/small"))  # type: ignore[arg-type]
        self.assertLess(endless.given, 32 << 20)


class Watching(FilesCase):
    """What happens, as it happens."""

    def test_events(self) -> None:
        jar = self.jar
        with jar.watch() as watch:
            jar.run("mkdir d; echo x > f; mv f g; rm g; echo y > d/below", shell=True, check=True)
            jar.write_file("end", "")
            seen = []
            for event in watch:
                if event.name == "end":
                    break
                seen.append((event.name, event.type, event.is_dir))
        self.assertEqual(
            seen,
            [("d", "created", True), ("f", "created", False), ("f", "modified", False), ("f", "closed", False), ("f", "moved_from", False),
             ("g", "moved_to", False), ("g", "deleted", False)],
        )  # fmt: skip

    def test_it_ends_with_the_jar_and_with_what_is_watched(self) -> None:
        jar = self.jar
        jar.mkdir("d")
        watch = jar.watch("d")
        jar.remove("d")
        self.assertEqual([event.type for event in watch][-1:], ["deleted"])
        self.assertEqual(list(watch), [])
        watch = jar.watch()
        timer = threading.Timer(0.1, jar.close)
        timer.start()
        list(watch)
        timer.join()

    def test_closing_wakes_whoever_waits(self) -> None:
        before = len(open_fds())
        watch = self.jar.watch()
        timer = threading.Timer(0.1, watch.close)
        timer.start()
        self.assertEqual(list(watch), [])
        timer.join()
        watch.close()
        self.assertEqual(list(watch), [])

        async def work() -> None:
            watch = await self.jar.watch_async()
            waiting = asyncio.ensure_future(self.drain(watch))
            await asyncio.sleep(0.05)
            watch.close()
            await asyncio.wait_for(waiting, 60)

        asyncio.run(work())
        self.assertEqual(len(open_fds()), before)

    def test_in_a_loop(self) -> None:
        async def work() -> None:
            async with await belljar.Jar.open_async() as jar:
                watch = await jar.watch_async()
                await jar.write_file_async("file", "")
                async for event in watch:
                    self.assertEqual((event.name, event.type), ("file", "created"))
                    break
                pending = asyncio.ensure_future(asyncio.wait_for(self.drain(watch), 60))
                await asyncio.sleep(0.05)
            await pending

        asyncio.run(work())

    @staticmethod
    async def drain(watch: belljar.Watch) -> None:
        """To the end."""
        async for _ in watch:
            pass


class Attacks(FilesCase):
    """A jar that changes everything meanwhile."""

    def swapping(self, script: str) -> belljar.Process:
        """A command in the jar that goes on until it is closed."""
        process = self.jar.spawn(["/bin/sh", "-c", f"echo up; while :; do {script}; done", self.marker])
        assert process.stdout is not None
        self.assertEqual(process.stdout.readline(), b"up\n")
        return process

    def test_links_swapped_in_during_remove_rename_and_parents(self) -> None:
        outside = self.base / "outside"
        (outside / "sub").mkdir(parents=True)
        (outside / "sub" / "precious").write_text("x")
        jar = self.jar
        jar.mkdir("other")
        jar.write_file("other/precious", "x")
        swap = f"mkdir -p d/sub; echo > d/sub/f; mv d x; ln -s {outside} d; rm -f d; ln -s other d; rm -f d; mv x d; ln -sfn ../other d/sub/l"
        with self.swapping(swap):
            for turn in range(150):
                for use in (
                    lambda: jar.remove("d", recursive=True), lambda: jar.write_file(f"d/sub/new{turn}", "y", parents=True),
                    lambda: jar.rename("d/sub", f"moved{turn}"), lambda: jar.mkdir("d/sub/a/b/c", parents=True),
                ):
                    try:
                        use()
                    except OSError:
                        pass
        self.assertEqual(os.listdir(outside), ["sub"])
        self.assertEqual((outside / "sub" / "precious").read_text(), "x")
        self.assertTrue(jar.exists("other/precious"))

    def test_a_tree_that_is_moved_away_while_it_is_removed(self) -> None:
        jar = self.jar
        jar.write_file("keep/file", "x", parents=True)
        with self.swapping("mkdir -p t/a/b/c/d; touch t/a/b/c/d/f; mv t/a/b keep/b; rm -rf keep/b"):
            for _ in range(200):
                try:
                    jar.remove("t", recursive=True)
                except OSError as error:
                    self.assertIn(error.errno, (errno.ENOENT, errno.ESTALE, errno.ENOTEMPTY))
        self.assertEqual(jar.read_file("keep/file"), b"x")

    def test_a_removal_that_never_ends_can_be_given_up(self) -> None:
        jar = self.jar
        with self.swapping("mkdir -p t; touch t/1 t/2 t/3 t/4 t/5 t/6 t/7 t/8; mkdir -p t/d/e"):

            async def work() -> None:
                for _ in range(20):
                    try:
                        await asyncio.wait_for(jar.remove_async("t", recursive=True), 0.02)
                    except (OSError, asyncio.TimeoutError):
                        pass

            asyncio.run(work())
        self.assertEqual(jar.run(["echo", "alive"]).stdout, "alive\n")

    def test_a_signal_ends_the_waiting(self) -> None:
        class Enough(Exception):
            pass

        def on_alarm(number: int, frame: object) -> None:
            raise Enough

        jar = self.jar
        before = signal.signal(signal.SIGALRM, on_alarm)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        with self.swapping("mkdir -p t; touch t/1 t/2 t/3 t/4 t/5 t/6 t/7 t/8"):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with self.assertRaises(Enough):
                while True:
                    try:
                        jar.remove("t", recursive=True)
                    except OSError:
                        pass
        self.assertEqual(jar.run(["echo", "alive"]).stdout, "alive\n")

    def test_many_files_and_deep_trees(self) -> None:
        jar = self.jar
        make = "import os\nos.mkdir('many')\nfor n in range(30_000): open(f'many/{n}', 'w').close()"
        # Deeper than a path can name and than there are descriptors. A Landlock domain pays for each level at each step, so the
        # time grows with the square of the depth.
        deep = "import os\nfor n in range(2_000): os.mkdir('deep'); os.chdir('deep')"
        jar.run(["python3", "-c", make], check=True)
        jar.run(["python3", "-c", deep], check=True)
        self.assertEqual(len(jar.list_files("many")), 30_000)
        self.refused(errno.E2BIG, lambda: jar.list_files(recursive=True), ".")
        with self.assertRaises(OSError) as caught:
            jar.export_tar("deep").read()
        self.assertEqual(caught.exception.errno, errno.E2BIG)
        others = threading.Thread(target=jar.run, args=(["true"],))
        others.start()
        jar.remove("many", recursive=True)
        jar.remove("deep", recursive=True)
        others.join()
        self.assertEqual(jar.list_files(), [])

    def test_a_jar_that_is_closed_meanwhile(self) -> None:
        jar = self.jar
        jar.run(["python3", "-c", "import os\nos.mkdir('many')\nfor n in range(20_000): open(f'many/{n}', 'w').close()"], check=True)
        timer = threading.Timer(0.01, jar.close)
        timer.start()
        try:
            while True:
                jar.remove("many", recursive=True)
                jar.mkdir("many")
        except (belljar.EngineError, OSError):
            pass
        timer.join()


if __name__ == "__main__":
    unittest.main()
