# SPDX-License-Identifier: Apache-2.0
"""Workdirs under a layer: the command changes what it likes, and the host's files stay as they are."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict

from harness import host, paths, trees
from harness.bounds import BOUND
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE, check_answer, finish, read_until
from harness.workspace_case import CHANGES, WorkspaceCase, fingerprint

@on_ways(NAMESPACE, LANDLOCK)
class HostFiles(WorkspaceCase):
    """Layer or copy: nothing that a command does reaches them."""

    def test_what_the_host_changes_meanwhile_is_not_the_commands(self) -> None:
        process, status = self.start_status("--cow", *self.sh("echo ready; read line"), stdin=subprocess.PIPE)
        assert process.stdout
        read_until(process.stdout, b"ready")
        (self.work / ".envrc").write_text("export PATH\n")
        done = finish(process, b"go\n")
        result = check_answer(done, status.read())
        self.assertEqual((result["exit_code"], result["risky"]), (0, []), result)
        # What may be written besides the layer is looked at as ever.
        (self.base / "other").mkdir()
        result = self.json("--cow", "--rw", str(self.base / "other"), *self.sh(f"echo x > {self.base}/other/.envrc"))
        self.assertEqual([item["path"] for item in result["risky"]], [str(self.base / "other/.envrc")], result)

    def test_the_hosts_files_never_change(self) -> None:
        self.fill(self.work)
        before = fingerprint(self.work)
        result = self.json("--cow", *self.sh(CHANGES + "cat changed over tree/again swap/a hard2; test ! -e removed; test ! -e tree/a"))
        self.assertEqual(
            (result["exit_code"], result["stdout"]), (0, "changed\nmore\nover\nagain\nswap/b\nhard1\nthrough\n"), result
        )
        self.assertEqual(fingerprint(self.work), before)
        layer = self.layer(result)
        self.assertEqual(layer["path"], str(self.work))
        self.assertEqual(layer["kind"], "overlay" if self.way is NAMESPACE else "copy")
        self.assertEqual([path.name for path in self.stores()], [layer["id"]])
        self.assertGreater(layer["added"] * layer["modified"] * layer["deleted"] * layer["bytes"], 0, layer)

    def test_what_changed_nothing_leaves_nothing(self) -> None:
        self.fill(self.work)
        layer = self.layer(self.json("--cow", *self.sh("cat changed tree/a/b > /dev/null; ls -lR > /dev/null")))
        self.assertEqual([layer[key] for key in ("id", "added", "modified", "deleted", "bytes")], [None, 0, 0, 0, 0])
        self.assertEqual(self.stores(), [])

    def test_the_command_line_says_where_changes_are(self) -> None:
        said = self.jar("--cow", *self.sh("echo x > new")).stderr.decode()
        self.assertRegex(said, r"1 added, 0 modified, 0 deleted: in the workspace [a-z-]+, not in .*; see `belljar diff [a-z-]+`")
        self.assertNotIn("workspace", self.jar("-q", "--cow", *self.sh("echo x > new")).stderr.decode())
        self.assertNotIn("in the workspace", self.jar("--cow", *self.sh("true")).stderr.decode())

    def test_a_named_one_goes_on(self) -> None:
        self.fill(self.work)
        first = self.json("--workspace", "attempt", *self.sh("echo one >> changed; rm removed; mkdir d"))
        second = self.json("--workspace", "attempt", *self.sh("cat changed; ls -d removed d; rmdir d; echo two >> changed"))
        self.assertEqual(second["stdout"], "changed\none\nd\n", second)
        self.assertEqual(self.layer(first)["id"], self.layer(second)["id"])
        third = self.json("--workspace", self.layer(first)["id"], *self.sh("cat changed; ls"))
        self.assertEqual(third["stdout"].splitlines()[:3], ["changed", "one", "two"])
        self.assertEqual(len(self.stores()), 1)
        self.assertEqual((self.work / "changed").read_text(), "changed\n")

    def test_a_name_belongs_to_a_directory(self) -> None:
        other = self.directory("other")
        here = self.layer(self.json("--workspace", "name", *self.sh("echo here > f")))
        there = self.layer(self.json("--workspace", "name", "-C", other, *self.sh("test ! -e f; echo there > f")))
        self.assertNotEqual(here["id"], there["id"])
        done = self.jar("--workspace", here["id"], "-C", other, *self.sh("true"))
        self.assert_failed(done, "another directory", str(self.work))

    def test_one_writer_at_a_time(self) -> None:
        holder = self.start("--workspace", "name", *self.sh("echo up; exec sleep 1000"))
        assert holder.stdout
        self.assertEqual(holder.stdout.readline(), b"up\n")
        self.assert_failed(self.jar("--workspace", "name", *self.sh("true")), "in use")
        holder.send_signal(signal.SIGKILL)
        holder.communicate(timeout=BOUND)

    def test_a_plan_makes_nothing(self) -> None:
        done = self.belljar("plan", "--cow", "--", "true")
        self.assertEqual(done.status, 0, done)
        self.assertIn(b"layer" if self.way is NAMESPACE else b"copy", done.stdout)
        self.assertFalse((self.home / ".local").exists())

    def test_a_failed_start_leaves_nothing(self) -> None:
        self.assertEqual(self.jar("--cow", "--", "/nonexistent").status, 127)
        self.assertEqual(self.stores(), [])



class Layers(WorkspaceCase):
    """What overlays are like, and what is made of it."""

    def test_a_store_that_is_used_again_shows_nothing_of_the_last_command(self) -> None:
        """Attributes of the directory itself are no changes, so this store is put by."""
        code = "import os; print(os.listxattr('.')); os.setxattr('.', 'user.trace', b'x'); open('f', 'w').close(); os.unlink('f')"
        for _ in range(3):
            result = self.json("--cow", "--", sys.executable, "-c", code)
            self.assertEqual((result["stdout"], self.layer(result)["id"]), ("[]\n", None), result)
        self.assertEqual([path.name for path in (self.home / ".local/state/belljar/ws").iterdir()], [".spare"])
        self.assertEqual(self.layer(self.json("--cow", *self.sh("echo x > f")))["added"], 1)
        self.assertEqual(len(self.stores()), 1)

    def test_protected_files_stay_read_only(self) -> None:
        for name in (".git/hooks", ".vscode"):
            (self.work / name).mkdir(parents=True)
        (self.work / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (self.work / ".git/config").write_text("[core]\n")
        script = (
            "for f in .git/hooks/pre-commit .git/config .vscode/tasks.json; do echo x > $f; done; mv .git gone; rm -r .vscode; "
            "echo fine > .git/index; ls"
        )
        for _ in range(2):  # and the next time, too, over what the first run left
            result = self.json("--workspace", "name", *self.sh(script))
            self.assertNotIn("gone", result["stdout"], result)
            self.assertEqual(list((self.work / ".git/hooks").iterdir()), [])
        upper = self.stores()[0] / "upper"
        self.assertEqual(sorted(os.path.relpath(path, upper) for path in upper.rglob("*")), [".git", ".git/index"])

    def test_what_an_unprotected_run_removed_stops_no_protected_one(self) -> None:
        (self.work / ".git/hooks").mkdir(parents=True)
        (self.work / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (self.work / ".envrc").write_text("x\n")
        first = self.json("--workspace", "n", "--no-protect", *self.sh("rm -r .git/hooks .envrc; mkdir .envrc; ln -s / .git/hooks"))
        self.assertEqual(first["exit_code"], 0, first)
        second = self.json("--workspace", "n", *self.sh("test -L .git/hooks; test -d .envrc"))
        self.assertEqual(second["exit_code"], 0, second)

    def test_hidden_files_stay_hidden(self) -> None:
        (self.work / "d").mkdir()
        (self.work / "d/secret").write_text("secret\n")
        script = "cat d/secret; mv d e; cp -r d f; rm -rf d; cat e/secret f/secret d/secret; grep -rs secret . ; true"
        for _ in range(2):
            result = self.json("--workspace", "name", "--hide", "d/secret", *self.sh(script))
            self.assertNotIn("secret\n", result["stdout"], result)

    def test_renaming_a_directory(self) -> None:
        """As root it is one call; an ordinary user gets EXDEV, and mv copies."""
        self.fill(self.work)
        code = "import os\ntry:\n os.rename('tree', 'wood')\nexcept OSError as e:\n print(e.errno)"
        result = self.json("--cow", "--", sys.executable, "-c", code, self.marker)
        self.assertEqual(result["stdout"], "" if os.geteuid() == 0 else "18\n", result)
        result = self.json("--cow", *self.sh("mv tree wood; cat wood/a/b; test ! -e tree"))
        self.assertEqual((result["exit_code"], result["stdout"]), (0, "tree/a/b\n"), result)

    def test_modes_and_owners(self) -> None:
        (self.work / "f").write_text("x")
        result = self.json("--cow", *self.sh("touch new; chmod 640 f; stat -c '%u %g %a' . f new"))
        ids = "0 0" if os.geteuid() == 0 else f"{os.geteuid()} {os.getegid()}"
        self.assertEqual(result["stdout"], f"{ids} 755\n{ids} 640\n{ids} 644\n")
        upper = self.stores()[0] / "upper"
        self.assertEqual({(path.lstat().st_uid, path.lstat().st_gid) for path in upper.iterdir()}, {(os.geteuid(), os.getegid())})

    def test_other_directories_have_layers_of_their_own(self) -> None:
        cache = self.home / ".cache/tool"
        cache.mkdir(parents=True)
        (cache / "old").write_text("old\n")
        before = fingerprint(cache)
        result = self.json("--cow", "--cow-dir", "~/.cache/tool", *self.sh("cd ~/.cache/tool && cat old && echo new > new && rm old"))
        self.assertEqual((result["exit_code"], result["stdout"]), (0, "old\n"), result)
        self.assertEqual(fingerprint(cache), before)
        layer = self.layer(result)
        self.assertEqual((layer["id"], len(layer["dirs"])), (None, 1), layer)
        self.assertEqual([layer["dirs"][0][key] for key in ("path", "added", "deleted")], [str(cache), 1, 1])
        done = self.jar("--cow-dir", "/nonexistent", *self.sh("true"))
        self.assert_failed(done, "/nonexistent", "layer")

    def test_a_repository_around_the_workdir_is_read_only(self) -> None:
        (self.work / ".git").mkdir()
        (self.work / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (self.work / "sub").mkdir()
        result = self.json("--cow", "-C", "sub", *self.sh("echo x > ../.git/index; echo y > ../f; echo z > g; ls"))
        self.assertEqual(result["stdout"], "g\n", result)
        self.assertEqual([path.name for path in (self.work / ".git").iterdir()], ["HEAD"])
        self.assertIn("git", [note["name"] for note in result["notes"]])

    def test_a_layer_from_before_the_host_was_started_again(self) -> None:
        """It may be incomplete if the host crashed; nobody else can tell."""
        first = self.json("--workspace", "name", *self.sh("echo x > f"))
        again = self.json("--workspace", "name", *self.sh("cat f"))
        self.assertEqual((first["notes"], again["notes"], again["stdout"]), ([], [], "x\n"))
        (self.stores()[0] / "lock").write_text("01234567-89ab-cdef-0123-456789abcdef\n")
        after = self.json("--workspace", "name", *self.sh("cat f"))
        self.assertEqual(after["stdout"], "x\n")
        self.assertIn("restarted after", after["notes"][0]["why"])
        self.assertEqual(self.json("--workspace", "name", *self.sh("true"))["notes"], [])

    def test_git_works_as_ever(self) -> None:
        script = (
            "git init -q . && git add -A && git commit -qm one && git checkout -qb branch && echo 1 >> changed && "
            "git commit -qam two && git checkout -q - && git merge -q branch && git stash list && git status --short && git log --oneline"
        )
        self.fill(self.work)
        self.env.update(GIT_AUTHOR_NAME="n", GIT_AUTHOR_EMAIL="e", GIT_COMMITTER_NAME="n", GIT_COMMITTER_EMAIL="e")
        result = self.json("--cow", *self.sh(script))
        self.assertEqual((result["exit_code"], len(result["stdout"].splitlines())), (0, 2), result)
        self.assertFalse((self.work / ".git").exists())


class Places(WorkspaceCase):
    """On which file systems it is, and what is mounted in it."""

    def there(self, prepare: str, script: str, *options: str, status: int = 0) -> Dict[str, Any]:
        """The result of a run with a layer over `$D/w`, in a mount namespace that `prepare` has changed."""
        flags = ["-m"] if os.geteuid() == 0 else ["-Urm", "--map-current-user", "--keep-caps"]
        words = [paths.belljar(), "run", "--json", "--cow", "-C", str(self.base / "w"), *options, *self.sh(script)]
        code = (
            "import ctypes, os, sys\n"
            "def drop():\n ctypes.CDLL(None).prctl(47, 4, 0, 0, 0)\n"  # ambient capabilities, which --keep-caps sets
            f"os.chdir({str(self.base)!r}); rc = os.system({prepare!r})\n"
            f"assert rc == 0; drop(); os.execv({words[0]!r}, {words!r})"
        )
        done = subprocess.run(
            ["unshare", *flags, sys.executable, "-c", code], capture_output=True, env=self.env, timeout=BOUND, check=False
        )
        self.assertEqual(done.returncode, status, done)
        result: Dict[str, Any] = json.loads(done.stdout)
        return result

    def test_a_tmpfs(self) -> None:
        """Its store is elsewhere, where no jar that is shown the tmpfs can reach it."""
        shm = Path(tempfile.mkdtemp(prefix="bjt-", dir="/dev/shm"))
        self.addCleanup(trees.remove, shm)
        shm.chmod(0o755)
        self.fill(shm)
        before = fingerprint(shm)
        result = self.json("--cow", "-C", shm, *self.sh(CHANGES + "ls -a /dev/shm"))
        self.assertEqual(result["exit_code"], 0, result)
        self.assertNotIn("belljar-ws", result["stdout"])
        self.assertEqual(fingerprint(shm), before)
        self.assertEqual(self.layer(result)["kind"], "overlay")

    def overlay_on(self, target: str) -> str:
        """A command that mounts one there, whose lower part is `l`."""
        for name in ("w", "l", "u", "k", target):
            (self.base / name).mkdir(exist_ok=True)
        return f"mount -t overlay -o lowerdir=l,upperdir=u,workdir=k{'' if os.geteuid() == 0 else ',userxattr'} o {target}"

    def test_an_overlay_below(self) -> None:
        """As in Docker: it can be the lower part, not the upper one. Root has no ids of its own there, and so other marks."""
        prepare = self.overlay_on("w")
        (self.base / "l/f").write_text("low\n")
        (self.base / "l/d").mkdir()
        (self.base / "l/d/old").touch()
        result = self.there(prepare, "cat f; echo x >> f; cat f; stat -f -c %T .; rm -r d; mkdir d; touch d/new; ls d")
        self.assertEqual(result["stdout"], "low\nlow\nx\noverlayfs\nnew\n", result)
        self.assertEqual([result["workspace"][key] for key in ("kind", "added", "modified", "deleted")], ["overlay", 1, 1, 1])

    @unittest.skipUnless(os.geteuid() == 0, "needs:root who has no ids of its own there")
    def test_a_named_one_goes_on_over_an_overlay(self) -> None:
        before = f"cd w && {paths.belljar()} run -q --workspace name -- /bin/sh -c 'echo x >> more' && cd .."
        result = self.there(f"{self.overlay_on('w')} && {before}", "echo x >> more; cat more", "--workspace", "name")
        self.assertEqual(result["stdout"], "x\nx\n", result)

    @unittest.skipUnless(os.geteuid() == 0, "needs:root whose layers have marks of two kinds")
    def test_a_layer_with_marks_of_the_other_kind_is_not_mounted(self) -> None:
        """What was removed in it would be there again."""
        prepare = self.overlay_on("shown")
        (self.base / "w/d").mkdir()
        (self.base / "w/d/old").touch()
        self.json("-C", self.base / "w", "--workspace", "name", *self.sh("rm -r d; mkdir d"))
        result = self.there(prepare, "ls d", "--workspace", "name", "--ro", str(self.base / "shown"), status=125)
        self.assertIn("does not mount now", result["error"]["message"])
        self.assertEqual(self.there(prepare, "ls d", "--workspace", "name")["stdout"], "")

    def test_something_is_mounted_in_it(self) -> None:
        """Root's layer shows what lies below the mount; others get a copy, with what is in the mount."""
        (self.base / "w/inner").mkdir(parents=True)
        (self.base / "w/f").write_text("f\n")
        result = self.there("mount -t tmpfs t w/inner && echo in > w/inner/g", "cat f; echo x >> f; ls inner")
        self.assertEqual(result["stdout"], "f\n" if os.geteuid() == 0 else "f\ng\n", result)
        self.assertEqual(result["workspace"]["kind"], "overlay" if os.geteuid() == 0 else "copy", result)
        self.assertIn(str(self.base / "w/inner"), json.dumps(result["notes"]))
        self.assertEqual((self.base / "w/f").read_text(), "f\n")

    @unittest.skipUnless(os.geteuid() == 0, "takes a group that the user namespace does not know")
    def test_a_group_that_the_jar_does_not_know(self) -> None:
        """Such files can be read and removed; writing them fails, and a note says why."""
        for path in (self.base, self.work, self.home):
            os.chown(path, 65534, 65534)
        for name in ("f", "g"):
            (self.work / name).write_text("x\n")
            os.chown(self.work / name, 65534, 12345)
            (self.work / name).chmod(0o664)
        os.chown(self.work, 65534, 12345)
        words = [paths.belljar(), "run", "--json", "--cow", *self.sh("cat f; rm g; echo y >> f; echo new > new; ls")]
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--groups=65534,12345", *words],
            capture_output=True,
            cwd=self.work,
            env=self.env,
            timeout=BOUND,
            check=False,
        )
        result = json.loads(done.stdout)
        self.assertEqual(result["stdout"], "x\nf\nnew\n", done)
        self.assertIn("12345", json.dumps(result["notes"]))


class Copies(WorkspaceCase):
    """Where no layer can be had."""

    way = LANDLOCK

    def test_everything_is_copied(self) -> None:
        self.fill(self.work)
        os.mkfifo(self.work / "pipe")
        with open(self.work / "sparse", "wb") as file:
            file.truncate(1 << 30)
        (self.work / "mode").chmod(0o751)
        os.utime(self.work / "times", (1000, 2000))
        script = "stat -c '%n %A %s %h' pipe mode hard1 sparse symlink; stat -c %Y times; du -k sparse | cut -f1; readlink symlink; pwd"
        result = self.json("--cow", *self.sh(script))
        lines = result["stdout"].splitlines()
        self.assertEqual(
            lines[:5],
            ["pipe prw-r--r-- 0 1", "mode -rwxr-x--x 5 1", "hard1 -rw-r--r-- 6 2", f"sparse -rw-r--r-- {1 << 30} 1",
             "symlink lrwxrwxrwx 7 1"],
            result,
        )  # fmt: skip
        self.assertEqual((lines[5], lines[7]), ("2000", "changed"))
        self.assertLess(int(lines[6]), 1024)
        self.assertEqual(lines[8], result["workdir"])
        self.assertNotEqual(result["workdir"], str(self.work))
        self.assertIn("copy", json.dumps(result["notes"]))



class Attacks(WorkspaceCase):
    """What a command might try against a layer."""

    def test_nothing_inside_names_the_store(self) -> None:
        result = self.json("--workspace", "name", *self.sh("cat /proc/self/mountinfo /proc/mounts /proc/self/mountstats; env"))
        self.assertNotIn("belljar/ws", result["stdout"])
        self.assertNotIn(str(self.home / ".local"), result["stdout"])

    def test_the_store_cannot_be_seen(self) -> None:
        result = self.json("--cow", "--rw", self.home, *self.sh("echo x > f; ls -a ~/.local/state/belljar/ws; echo x > ~/.local/state/belljar/ws/f"))
        self.assertEqual(result["stdout"], ".\n..\n", result)
        self.assertEqual(len(self.stores()), 1)

    def test_the_workdir_may_not_hold_the_store(self) -> None:
        done = self.jar("--cow", "--rw", self.home, "-C", self.home, *self.sh("true"))
        self.assert_failed(done, "XDG_STATE_HOME")

    def test_forged_marks_have_no_effect(self) -> None:
        """Whiteouts, opaque directories and redirects are made by the kernel alone."""
        (self.work / "d").mkdir()
        (self.work / "d/f").write_text("f\n")
        code = r"""
import os
def attempt(function, *words):
    try:
        function(*words)
        print("done", function.__name__, words[-2:])
    except OSError:
        pass
os.mkdir("new")
for name in ("opaque", "redirect", "whiteout", "metacopy", "origin"):
    for space in ("trusted.overlay.", "user.overlay."):
        for path in ("d", "new", "."):
            attempt(os.setxattr, path, space + name, b"y" if name != "redirect" else b"/../../../../etc")
attempt(os.mknod, "d/f2", 0o20600, os.makedev(0, 0))
attempt(os.mknod, "null", 0o20600, os.makedev(1, 3))
"""
        result = self.json("--workspace", "name", "--", sys.executable, "-c", code, self.marker)
        self.assertNotIn("mknod", result["stdout"], result)
        after = self.json("--workspace", "name", *self.sh("cat d/f; ls new; ls d; ls . | wc -l"))
        self.assertEqual(after["stdout"], "f\nf\n2\n", after)
        # Those that the kernel obeys; of the others a command may have as many as of any attribute.
        obeyed = "trusted.overlay." if os.geteuid() == 0 else "user.overlay."
        upper = self.stores()[0] / "upper"
        for path in (upper, *upper.rglob("*")):
            for name in os.listxattr(path):
                self.assertNotIn(name, (obeyed + "redirect", obeyed + "metacopy", obeyed + "whiteout"), path)

    def test_links_lead_nowhere_new(self) -> None:
        secret = self.base / "secret"
        secret.write_text("secret\n")
        (self.work / "f").write_text("f\n")
        script = f"ln -s {secret} a; ln -s ../../../../../..{secret} b; ln f ../f; cat a b; mkdir m; mount --bind / m; mount -t overlay o m; ls m"
        result = self.json("--cow", *self.sh(script))
        self.assertEqual(result["stdout"], "", result)

    def test_set_id_bits_and_devices_have_no_effect(self) -> None:
        shutil.copy("/usr/bin/id", self.work / "id")
        result = self.json("--cow", *self.sh("chmod 6755 id; ./id -u"))
        self.assertEqual(result["stdout"], "0\n" if os.geteuid() == 0 else f"{os.geteuid()}\n", result)


if __name__ == "__main__":
    unittest.main()
