# SPDX-License-Identifier: Apache-2.0
"""One small job for each everyday program: the same shell script must succeed outside and in a default jar.

Each script runs with `sh -eu` in a project directory of its own that holds the case's files. `needs` are programs;
"account" is an entry in the password file, "user" anybody but root. Light cases are part of ./dev test, all of ./dev compat.
"""

from __future__ import annotations

import os
import pwd
import shutil
from dataclasses import dataclass, field
from typing import Dict, Mapping, Optional, Sequence, Tuple


@dataclass(frozen=True)
class Case:
    """A job. `says` must be in its output, each in a line of its own or part of one."""

    name: str
    needs: Tuple[str, ...]
    script: str
    says: Tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    is_light: bool = True
    seconds: int = 60
    package: str = ""


HELLO_C = "#include <stdio.h>\nint main(void) { printf(\"hello from C\\n\"); return 0; }\n"
# Waits for a condition without sleeping longer than needed: wait_for SECONDS COMMAND...
WAIT_FOR = "wait_for() { n=$(($1 * 20)); shift; until \"$@\" >/dev/null 2>&1; do n=$((n - 1)); [ $n -gt 0 ]; sleep 0.05; done; }\n"

CASES: Sequence[Case] = (
    Case(
        "git", ("git",),
        "git init -q -b main .; git config user.name N; git config user.email e@x; echo 1 > a; git add a; git commit -qm one;"
        "git branch b; git checkout -q b; git status --short; git clone -q . copy; git -C copy log --format=%s",
        ("one",), package="git",
    ),
    Case("make", ("make",), "make -j4 --output-sync -s; cat a b", ("for a", "for b"),
         {"Makefile": "all: a b\na b:\n\techo for $@ > $@\n"}, package="make"),
    Case("gcc", ("gcc",), "gcc -O2 -Wall -pipe -o hello hello.c; ./hello", ("hello from C",), {"hello.c": HELLO_C}, package="gcc"),
    Case("gcc without -pipe, with debug information", ("gcc",), "gcc -g3 -c hello.c; gcc -shared -fPIC -o libhello.so hello.c; test -s hello.o",
         (), {"hello.c": HELLO_C}, package="gcc"),
    Case("g++", ("g++",), "g++ -std=c++17 -O1 -o x x.cc; ./x", ("hello from threads 4",),
         {"x.cc": "#include <iostream>\n#include <thread>\n#include <vector>\n#include <atomic>\nint main() { std::atomic<int> n{0};"
                  " std::vector<std::thread> t; for (int i = 0; i < 4; i++) t.emplace_back([&] { n++; }); for (auto &x : t) x.join();"
                  " std::cout << \"hello from threads \" << n << std::endl; }\n"}, is_light=False, package="g++"),
    Case("clang", ("clang",), "clang -O1 -o hello hello.c; ./hello", ("hello from C",), {"hello.c": HELLO_C}, is_light=False, package="clang"),
    Case("gdb on a child", ("gdb", "gcc"),
         "gcc -g -O0 -o prog prog.c; gdb -q -batch -ex 'break inner' -ex run -ex 'print number' -ex backtrace -ex continue ./prog",
         ("$1 = 42", "#1 ", "exited normally"),
         {"prog.c": "int inner(int number) { return number - 42; }\nint main(void) { return inner(42); }\n"}, is_light=False, package="gdb"),
    Case("strace", ("strace",), "strace -f -o trace sh -c 'true & wait'; grep -c execve trace", ("1",), is_light=False, package="strace"),
    Case("AddressSanitizer", ("gcc",),
         "gcc -g -fsanitize=address -o bad bad.c; if ./bad; then exit 1; fi; gcc -fsanitize=address -o hello hello.c; ./hello",
         ("heap-buffer-overflow", "hello from C"),
         {"bad.c": "#include <stdlib.h>\nint main(int c, char **v) { char *p = malloc(4); p[3 + c] = 1; return p[0] + !v; }\n", "hello.c": HELLO_C},
         package="gcc"),
    Case("LeakSanitizer", ("gcc",), "gcc -g -fsanitize=address -o leak leak.c; if ASAN_OPTIONS=detect_leaks=1 ./leak; then exit 1; fi",
         ("detected memory leaks",),
         {"leak.c": "#include <stdlib.h>\nvoid *volatile p;\nint main(void) { p = malloc(100); p = 0; return 0; }\n"}, package="gcc"),
    Case("ThreadSanitizer", ("gcc",), "gcc -g -fsanitize=thread -o race race.c; if ./race; then exit 1; fi", ("data race",),
         {"race.c": "#include <pthread.h>\nint x;\nvoid *f(void *a) { for (int i = 0; i < 1000; i++) x++; return a; }\n"
                    "int main(void) { pthread_t a, b; pthread_create(&a, 0, f, 0); pthread_create(&b, 0, f, 0);"
                    " pthread_join(a, 0); pthread_join(b, 0); return 0; }\n"}, is_light=False, package="gcc"),
    Case("cargo", ("cargo",), "cargo init -q --name x --vcs none; cargo test -q --offline; cargo run -q --offline", ("Hello, world!",),
         is_light=False, seconds=240, package="cargo"),
    Case("go", ("go",), "go mod init example.org/x; go vet ./...; go test ./...; go run .", ("ok", "hello from Go"),
         {"main.go": 'package main\nimport "fmt"\nfunc add(a, b int) int { return a + b }\nfunc main() { fmt.Println("hello from Go") }\n',
          "main_test.go": 'package main\nimport ("net"; "os/exec"; "testing")\nfunc TestAdd(t *testing.T) { if add(1, 2) != 3 { t.Fatal() } }\n'
                          'func TestNet(t *testing.T) { l, err := net.Listen("tcp", "127.0.0.1:0"); if err != nil { t.Fatal(err) }; l.Close() }\n'
                          'func TestExec(t *testing.T) { if err := exec.Command("true").Run(); err != nil { t.Fatal(err) } }\n'},
         is_light=False, seconds=300, package="golang-go"),
    Case("java", ("javac", "java"), "javac Main.java; java -XX:+UseSerialGC Main; java Main", ("hello from Java 4",),
         {"Main.java": 'import java.util.concurrent.*;\npublic class Main { public static void main(String[] a) throws Exception {'
                       ' ExecutorService e = Executors.newFixedThreadPool(4); int n = 0; for (Future<Integer> f : e.invokeAll('
                       'java.util.Collections.<Callable<Integer>>nCopies(4, () -> 1))) n += f.get(); e.shutdown();'
                       ' new ProcessBuilder("true").start().waitFor(); System.out.println("hello from Java " + n); } }\n'},
         is_light=False, seconds=120, package="default-jdk-headless"),
    Case("node with worker threads", ("node",), "node main.js", ("sum 6", "child 0"),
         {"main.js": "const w = require('worker_threads'), c = require('child_process');\n"
                     "if (w.isMainThread) { let s = 0, n = 0; const shared = new SharedArrayBuffer(4); for (const i of [1, 2, 3]) {"
                     " const t = new w.Worker(__filename, {workerData: i}); t.on('message', m => { s += m; if (++n == 3) {"
                     " console.log('sum', s); console.log('child', c.spawnSync('true').status); } }); }"
                     " require('fs').watch('.').close(); require('http').createServer().listen(0, '127.0.0.1', function () { this.close(); });\n"
                     "} else w.parentPort.postMessage(w.workerData);\n"}, package="nodejs"),
    Case("npm test", ("npm", "node"), "npm test; npm pack --silent; ls", ("1 test done", "x-1.0.0.tgz"),
         {"package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "node test.js"}}\n',
          "test.js": "require('assert')(1); console.log('1 test done');\n"}, is_light=False, seconds=120, package="npm"),
    Case("python venv", ("python3",), "python3 -m venv v; v/bin/python -m pip --version; v/bin/python -c 'import sys; print(sys.prefix)'", ("/v",),
         is_light=False, seconds=120, package="python3-venv"),
    Case("python", ("python3",),
         "python3 -c 'import ssl, sqlite3, ctypes, tempfile, socket, subprocess, getpass, platform, pathlib; print(pathlib.Path.home());"
         " print(subprocess.check_output([\"echo\", \"child\"])); tempfile.TemporaryFile(); platform.platform(); ssl.create_default_context()'",
         ("child",), package="python3"),
    Case("pytest", ("pytest",), "pytest -q", ("2 passed",),
         {"test_x.py": "def test_a(tmp_path):\n    (tmp_path / 'x').write_text('x')\ndef test_b(capfd):\n    print('x')\n"}, package="python3-pytest"),
    Case("multiprocessing with shared memory", ("python3",), "python3 main.py", ("pool 285", "shared 7", "queue done", "lock 4"),
         {"main.py": "import multiprocessing as m\nfrom multiprocessing import shared_memory as s\n"
                     "def square(x):\n    return x * x\ndef put(name, q):\n    b = s.SharedMemory(name=name)\n    b.buf[0] = 7\n    b.close()\n"
                     "    q.put('done')\ndef add(v):\n    with v.get_lock():\n        v.value += 1\n"
                     "if __name__ == '__main__':\n    with m.Pool(4) as p:\n        print('pool', sum(p.map(square, range(10))))\n"
                     "    for method in ('fork', 'spawn', 'forkserver'):\n        c = m.get_context(method)\n"
                     "        b = s.SharedMemory(create=True, size=1 << 20)\n        q = c.Queue()\n"
                     "        p = c.Process(target=put, args=(b.name, q))\n        p.start()\n        got = q.get()\n        p.join()\n"
                     "        print('shared', b.buf[0], flush=True)\n        print('queue', got, flush=True)\n        b.close()\n        b.unlink()\n"
                     "    v = m.Value('i', 0)\n    ps = [m.Process(target=add, args=(v,)) for _ in range(4)]\n"
                     "    [p.start() for p in ps]\n    [p.join() for p in ps]\n    print('lock', v.value)\n"}, package="python3"),
    Case("asyncio", ("python3",), "python3 main.py", ("tcp hello", "unix hello", "child 0", "thread 1", "signal"),
         {"main.py": "import asyncio, os, signal\nasync def echo(r, w):\n    w.write(await r.readline())\n    await w.drain()\n    w.close()\n"
                     "async def ask(kind, r, w):\n    w.write(b'hello\\n')\n    print(kind, (await r.readline()).decode().strip())\n    w.close()\n"
                     "async def main():\n    s = await asyncio.start_server(echo, '127.0.0.1', 0)\n"
                     "    await ask('tcp', *await asyncio.open_connection(*s.sockets[0].getsockname()))\n"
                     "    u = await asyncio.start_unix_server(echo, 'sock')\n    await ask('unix', *await asyncio.open_unix_connection('sock'))\n"
                     "    p = await asyncio.create_subprocess_exec('true')\n    print('child', await p.wait())\n"
                     "    print('thread', await asyncio.get_running_loop().run_in_executor(None, lambda: 1))\n"
                     "    e = asyncio.Event()\n    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, e.set)\n"
                     "    os.kill(os.getpid(), signal.SIGUSR1)\n    await e.wait()\n    print('signal')\n"
                     "    s.close()\n    u.close()\nasyncio.run(main())\n"}, package="python3"),
    Case("sqlite", ("python3",),
         "python3 -c 'import sqlite3; c = sqlite3.connect(\"x.db\"); c.execute(\"pragma journal_mode=wal\"); c.execute(\"create table t(a)\");"
         " c.executemany(\"insert into t values(?)\", [(i,) for i in range(1000)]); c.commit(); print(c.execute(\"select sum(a) from t\").fetchone())'",
         ("499500",), package="python3"),
    Case("sqlite3 shell", ("sqlite3",), "sqlite3 x.db 'pragma journal_mode=wal; create table t(a); insert into t values(7); select a from t'", ("7",),
         package="sqlite3"),
    Case("redis", ("redis-server", "redis-cli"),
         WAIT_FOR + "redis-server --port 6399 --bind 127.0.0.1 --unixsocket $PWD/r.sock --dir $PWD --daemonize no > log & "
         "wait_for 10 redis-cli -s r.sock ping; redis-cli -p 6399 set a value-1; redis-cli -s r.sock get a; redis-cli -p 6399 bgsave;"
         "redis-cli -s r.sock shutdown save; wait; test -s dump.rdb",
         ("value-1",), is_light=False, package="redis-server"),
    Case("postgres as an ordinary user", ("initdb", "pg_ctl", "psql", "user", "account"),
         "initdb -D data -A trust -N > /dev/null; mkdir -p $TMPDIR/s; pg_ctl -w -D data -l log -o \"-k $TMPDIR/s -h 127.0.0.1 -p 5499\" start;"
         "psql -h $TMPDIR/s -p 5499 -d postgres -Atc 'create table t(a int); insert into t select generate_series(1, 100); select sum(a) from t';"
         "psql -h 127.0.0.1 -p 5499 -d postgres -Atc \"select 'tcp', count(*) from t\"; pg_ctl -w -D data -m fast stop",
         ("5050", "tcp|100"), is_light=False, seconds=120, package="postgresql"),
    Case("ssh-agent", ("ssh-agent", "ssh-add", "ssh-keygen", "account"),
         "ssh-keygen -q -t ed25519 -N '' -C a-key -f key; eval \"$(ssh-agent -s)\"; ssh-add key; ssh-add -l; ssh-agent -k", ("a-key",),
         package="openssh-client"),
    Case("gpg-agent", ("gpg", "gpg-agent"),
         "gpg --batch --quiet --passphrase '' --quick-generate-key 'T <t@example.org>' default default never; echo text > f;"
         "gpg --batch --quiet --sign f; gpg --batch --verify f.gpg; gpgconf --kill gpg-agent",
         ("Good signature",), is_light=False, package="gnupg"),
    Case("tmux", ("tmux",),
         WAIT_FOR + "tmux -f /dev/null -S $PWD/s new-session -d -x 80 -y 24 'tput cols > out; stty size >> out; exec cat';"
         "wait_for 10 grep -q 24 out; tmux -S $PWD/s send-keys typed-text Enter; wait_for 10 sh -c 'tmux -S $PWD/s capture-pane -p | grep -q typed-text';"
         "tmux -S $PWD/s capture-pane -p; tmux -S $PWD/s kill-server", ("typed-text",), package="tmux"),
    Case("script", ("script",), "script -qec 'test -t 0 && test -t 1 && tty && echo on a terminal' /dev/null < /dev/null; script -qc 'stty -a' x > /dev/null",
         ("/dev/pts/", "on a terminal"), package="bsdutils"),
    Case("headless browser", ("chromium",),
         "chromium --headless --no-sandbox --disable-gpu --user-data-dir=$TMPDIR/c --dump-dom file://$PWD/x.html 2> err || { tail -n 20 err; exit 1; }",
         ("<p>made by 42</p>",), {"x.html": "<body><script>document.body.innerHTML = '<p>made by ' + 6 * 7 + '</p>'</script></body>"},
         is_light=False, seconds=120, package="chromium"),
    Case("GNU parallel", ("parallel",), "seq 20 | parallel --will-cite -k -j4 'echo number {}' | tail -n 1", ("number 20",), package="parallel"),
    Case("xargs -P", ("xargs",), "seq 20 | xargs -P4 -n1 echo number | sort -n | wc -l", ("20",)),
    Case("tar", ("tar", "gzip"),
         "mkdir d; echo x > d/a; ln d/a d/b; ln -s a d/c; chmod 600 d/a; tar czf x.tgz d; mkdir out; tar xzpf x.tgz -C out; test d/a -ef d/b;"
         "test out/d/a -ef out/d/b; test -L out/d/c; cmp d/a out/d/a; stat -c %a out/d/a", ("600",), package="tar"),
    Case("sort with large temporary files", ("sort", "seq"), "seq 400000 | sort -S 256K --parallel=2 -r > out; head -n 1 out; wc -l < out", ("99999", "400000")),
    Case("locale", ("locale",), "locale; LC_ALL=C.UTF-8 locale charmap; printf 'ä' | LC_ALL=C.UTF-8 wc -m", ("UTF-8", "1")),
    Case("id", ("id",), "id; id -u; test \"$(id -u)\" = \"$(stat -c %u .)\"", ()),
    Case("id by name", ("id", "account"), "id -un; whoami; getent passwd $(id -u)", ()),
    Case("ids of others are refused as everywhere", ("python3",), "python3 ids.py", ("chown EPERM", "chgrp EPERM", "setuid EPERM", "setregid EPERM", "own ids well"),
         {"ids.py": "import errno, os\n"
                    "def attempt(name, call):\n    try: call()\n    except OSError as error: print(name, errno.errorcode[error.errno])\n"
                    "    else: print(name, 'well')\n"
                    "other = os.getuid() + 1\n"
                    "attempt('chown', lambda: os.chown('ids.py', other, -1))\n"
                    "attempt('chgrp', lambda: os.chown('ids.py', -1, os.getgid() + 1))\n"
                    "attempt('setuid', lambda: os.setuid(other))\n"
                    "attempt('setregid', lambda: os.setregid(-1, os.getgid() + 1))\n"
                    "os.chown('ids.py', os.getuid(), os.getgid())\nos.setuid(os.getuid())\n"
                    "attempt('own ids', lambda: os.setresuid(-1, os.getuid(), -1))\n"}),
    Case("names of the loopback", ("getent",), "getent hosts ::1; getent hosts 127.0.0.1", ("::1 ", "localhost", "127.0.0.1")),
    Case("df", ("df",), "df . /tmp; df > /dev/null; df -i . > /dev/null; du -sh .", ()),
    Case("ps", ("ps",), "ps aux; ps -ef | grep -c .; top -b -n 1 > /dev/null; free > /dev/null; uptime", ("ps aux",), package="procps"),
    Case("everyday tools", ("awk", "sed", "grep", "find", "xxd"),
         "date > d; mktemp > m; cat m; find . -type f | wc -l; echo abc | sed s/b/x/; echo 1 2 | awk '{ print $1 + $2 }'; nproc; uname -a; hostname;"
         "printf x | xxd; timeout 5 true; nice -n 5 true; nohup true 2> /dev/null; env | wc -l; tty || true; flock lock echo locked", ("axc", "3", "locked")),
    Case("loopback", ("python3",),
         "python3 -m http.server --bind 127.0.0.1 8399 > log 2>&1 & p=$!\n" + WAIT_FOR +
         "wait_for 10 python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:8399/\").read()';"
         "python3 -c 'import socket; socket.create_connection((\"localhost\", 8399)); print(\"by name\")'; kill $p", ("by name",), package="python3"),
    Case("openssl", ("openssl",), "openssl rand -hex 4; echo x | openssl dgst -sha256; openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -subj /CN=x 2> e;"
         "openssl x509 -in c -noout -subject", ("CN = x",), package="openssl"),
    Case("perl", ("perl",), "perl -MPOSIX -MFile::Temp -e 'my $t = File::Temp->new; print {$t} 1; print \"pid $$\\n\"; print `echo child`'", ("child",), package="perl"),
    Case("cmake", ("cmake", "make", "gcc"), "cmake -S . -B build > log; cmake --build build > log; build/hello", ("hello from C",),
         {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nadd_executable(hello hello.c)\n", "hello.c": HELLO_C},
         is_light=False, package="cmake"),
    Case("meson and ninja", ("meson", "ninja", "gcc"), "meson setup b > log; ninja -C b > log; b/hello", ("hello from C",),
         {"meson.build": "project('x', 'c')\nexecutable('hello', 'hello.c')\n", "hello.c": HELLO_C}, is_light=False, package="meson"),
    Case("valgrind", ("valgrind", "gcc"), "gcc -g -o hello hello.c; valgrind --error-exitcode=9 ./hello", ("hello from C",), {"hello.c": HELLO_C},
         is_light=False, package="valgrind"),
    # --- programs with parts in /etc and /var -------------------------------------------------------------------------------
    Case("the host's name", ("hostname",), "test \"$(cat /etc/hostname)\" = \"$(hostname)\"", ()),
    Case("TeX", ("pdflatex", "kpsewhich"), "kpsewhich pdftex.map; pdflatex -interaction=nonstopmode x.tex; head -c 5 x.pdf", ("pdftex.map", "%PDF-"),
         {"x.tex": "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{graphicx}\\begin{document}Hello \\(a^2\\)\\tableofcontents\\end{document}\n"},
         is_light=False, package="texlive-latex-base"),
    Case("ImageMagick", ("convert", "identify"), "convert -size 90x30 -font DejaVu-Sans label:hello x.png; identify x.png; convert x.png x.gif; identify -list policy > /dev/null",
         ("PNG",), is_light=False, package="imagemagick"),
    Case("ghostscript", ("gs",), "gs -q -dNOPAUSE -dBATCH -sDEVICE=png16m -r30 -sOutputFile=x.png x.ps; gs -q -dNOPAUSE -dBATCH -sDEVICE=pdfwrite -sOutputFile=x.pdf x.ps; head -c 5 x.pdf",
         ("%PDF-",), {"x.ps": "%!\n/Times-Roman findfont 20 scalefont setfont 72 72 moveto (hello) show showpage\n"}, is_light=False, package="ghostscript"),
    Case("graphviz", ("dot",), "echo 'digraph { a -> b }' | dot -Tsvg > x.svg; echo 'digraph { a -> b }' | dot -Tpng > x.png; grep -c polygon x.svg", ("2",),
         is_light=False, package="graphviz"),
    Case("fontconfig", ("fc-match", "fc-list"), "fc-match sans; test \"$(fc-list | wc -l)\" -gt 0; fc-cat -r > /dev/null || true", (".ttf",), package="fontconfig"),
    Case("pandoc", ("pandoc",), "printf '# T\\n\\n*x* $a$\\n' | pandoc -s --metadata title=t -o x.html; pandoc x.html -t markdown; pandoc x.html -o x.docx; test -s x.docx", ("# T",),
         is_light=False, package="pandoc"),
    Case("ruby and gems", ("ruby", "gem"), "ruby -rjson -ropenssl -e 'puts JSON.dump([1]); puts Gem.default_dir; abort unless Gem.path.any? { |p| File.directory?(p) }'; gem list --local", ("[1]", "json"),
         is_light=False, package="ruby"),
    Case("php", ("php",), "php -r 'echo json_encode([1]), \"\\n\"; echo php_ini_loaded_file(), \"\\n\"; echo implode(\" \", array_map(\"basename\", explode(\",\\n\", php_ini_scanned_files())));'",
         ("[1]", "php.ini", "ctype.ini"), package="php-cli"),
    Case("lua", ("lua",), "lua -e 'local f = assert(io.popen(\"echo child\")); print(f:read())'", ("child",), package="lua5.4"),
    Case("aspell", ("aspell",), "echo 'a speling' | aspell -l en list; aspell dump dicts | head -n 3", ("speling", "en"), package="aspell-en"),
    Case("ispell", ("ispell",), "echo 'a speling' | ispell -l", ("speling",), is_light=False, package="iamerican"),
    Case("list of words", ("look",), "look colo | head -n 3; grep -c . /usr/share/dict/words", ("colo",), is_light=False, package="wamerican"),
    Case("emacs", ("emacs",), "emacs --batch --eval '(message \"%s %s\" (+ 40 2) user-emacs-directory)' --eval '(message \"start %s\" (featurep (quote debian-startup)))'", ("42",), is_light=False, package="emacs-nox"),
    Case("vim", ("vim",), "echo one > f; vim -es -c '%s/one/two/' -c 'wq' f; cat f; vim --not-a-term -u /etc/vim/vimrc -es -c 'q'", ("two",), package="vim"),
    Case("Haskell", ("ghc", "ghc-pkg"), "ghc-pkg list --global | grep base; ghc -v0 x.hs -o x; ./x", ("base-", "hello from Haskell"), {"x.hs": 'import qualified Data.Map as M\nmain = putStrLn (M.fromList [(1, "hello from Haskell")] M.! 1)\n'},
         is_light=False, seconds=120, package="ghc"),
    Case("OCaml", ("ocamlopt", "ocaml"), "ocamlopt -I +unix unix.cmxa x.ml -o x; ./x; echo 'print_int 7;;' > y.ml; ocaml y.ml", ("hello from OCaml", "7"), {"x.ml": 'let () = ignore (Unix.getpid ()); print_endline "hello from OCaml"\n'},
         is_light=False, package="ocaml-nox"),
    Case("R", ("Rscript",), "Rscript -e 'cat(sum(1:10), \"\\n\"); pdf(\"x.pdf\"); plot(1:3); invisible(dev.off()); cat(nchar(R.home(\"etc\")) > 0, \"\\n\")'; test -s x.pdf", ("55", "TRUE"),
         is_light=False, package="r-base-core"),
    Case("Octave", ("octave-cli",), "octave-cli --eval 'disp(det([2 0; 0 21])); x = 1; save(\"x.mat\", \"x\")'", ("42",), is_light=False, package="octave"),
    Case("gnuplot", ("gnuplot",), "gnuplot -e 'set term png; set output \"x.png\"; plot sin(x)'; gnuplot -e 'set term svg; set output \"x.svg\"; plot cos(x)'; test -s x.png; grep -c '<svg' x.svg", ("1",),
         is_light=False, package="gnuplot-nox"),
    Case("Fortran", ("gfortran",), "printf \"program x\\nprint *, 'hello from Fortran'\\nend program\\n\" > x.f90; gfortran -o x x.f90; ./x", ("hello from Fortran",), is_light=False, package="gfortran"),
    Case("Lisp and Scheme", ("sbcl", "guile"), "sbcl --noinform --eval '(progn (print (* 6 7)) (terpri) (sb-ext:exit))'; guile --no-auto-compile -c '(display (+ 1 2)) (newline)'", ("42", "3"), is_light=False, package="sbcl guile-3.0"),
    Case("Racket", ("racket",), "racket -e '(displayln (* 6 7))'", ("42",), is_light=False, package="racket"),
    Case("Tcl", ("tclsh",), "echo 'puts [exec echo child]; puts [info patchlevel]' | tclsh", ("child",), is_light=False, package="tcl"),
    Case("Erlang and Elixir", ("erl", "elixir"), "erl -noshell -eval 'io:format(\"~p~n\", [6 * 7]), halt().'; elixir -e 'IO.puts(1 + 2)'", ("42", "3"), is_light=False, package="elixir"),
    Case("Mono", ("mcs", "mono"), "mcs x.cs; mono x.exe", ("hello from Mono",), {"x.cs": 'class X { static void Main() { System.Console.WriteLine("hello from Mono"); new System.Xml.XmlDocument(); } }\n'}, is_light=False, package="mono-mcs"),
    Case("Maven, Ant and Gradle", ("mvn", "ant"), "mvn -v; ant -q -f b.xml", ("Maven home", "built"), {"b.xml": '<project default="a"><target name="a"><echo>built</echo></target></project>\n'}, is_light=False, package="maven ant"),
    Case("nginx", ("nginx", "curl"),
         WAIT_FOR + "mkdir t; echo page > x.html; sed -i \"s,@PWD@,$PWD,\" n.conf; nginx -p $PWD/ -e err -c n.conf & "
         "wait_for 10 curl -sf http://127.0.0.1:8398/x.html; curl -si http://127.0.0.1:8398/x.html; kill $(cat pid); wait || true", ("text/html", "page"),
         {"n.conf": "user root root; daemon off; master_process off; pid pid; error_log err; events {}\nhttp { include /etc/nginx/mime.types; access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t;\n"
                    " uwsgi_temp_path t; scgi_temp_path t; server { listen 127.0.0.1:8398; root @PWD@; } }\n"}, is_light=False, package="nginx-light"),
    Case("apache", ("apache2", "curl", "user"),
         WAIT_FOR + "echo page > x.html; sed -i \"s,@PWD@,$PWD,\" a.conf; apache2 -d $PWD -f $PWD/a.conf -X & p=$!; wait_for 10 curl -sf http://127.0.0.1:8397/x.html; curl -si http://127.0.0.1:8397/x.html; kill $p; wait || true", ("text/html", "page"),
         {"a.conf": "Listen 127.0.0.1:8397\nServerName x\nPidFile @PWD@/pid\nErrorLog @PWD@/err\nMutex posixsem\nDocumentRoot @PWD@\nTypesConfig /etc/mime.types\nLoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n"
                    "LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so\nLoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n"}, is_light=False, package="apache2"),
    Case("MariaDB as an ordinary user", ("mariadb-install-db", "mariadbd", "mariadb", "user", "account"),
         WAIT_FOR + "mariadb-install-db --no-defaults --datadir=$PWD/d --auth-root-authentication-method=normal > log 2>&1; mariadbd --no-defaults --datadir=$PWD/d --socket=$PWD/s --skip-networking --pid-file=$PWD/pid > log2 2>&1 & "
         "wait_for 30 mariadb --no-defaults -S $PWD/s -u root -e 'select 1'; mariadb -S $PWD/s -u root -e 'create database x; use x; create table t(a int); insert into t values(1),(41); select sum(a) from t'; kill $(cat pid); wait", ("42",),
         is_light=False, seconds=180, package="mariadb-server"),
    Case("memcached", ("memcached", "user"), WAIT_FOR + "memcached -s $PWD/m -P $PWD/pid & p=$!; wait_for 10 test -S m; python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('m'); s.send(b'version\\r\\n'); print(s.recv(99))\"; kill $p; wait || true", ("VERSION",),
         is_light=False, package="memcached"),
    Case("dpkg's lists", ("dpkg", "dpkg-query"), "dpkg -l coreutils; dpkg -L coreutils | grep bin/ls; dpkg -S /usr/bin/env; dpkg-query -W -f '${Version}\\n' coreutils; dpkg --print-architecture; update-alternatives --query awk", ("ii  coreutils", "/bin/ls", "coreutils: /usr/bin/env"), package="dpkg"),
    Case("a Debian package", ("dpkg-deb", "dpkg-architecture", "dpkg-buildflags", "dpkg-vendor"),
         "mkdir -p p/DEBIAN p/usr/share/x; printf 'Package: x\\nVersion: 1\\nArchitecture: all\\nMaintainer: x <x@x>\\nDescription: x\\n' > p/DEBIAN/control; echo 1 > p/usr/share/x/f;"
         "dpkg-deb --root-owner-group -b p x.deb; dpkg-deb -c x.deb; dpkg-deb -x x.deb out; cat out/usr/share/x/f; dpkg-architecture -qDEB_HOST_ARCH; dpkg-buildflags --get CFLAGS; dpkg-vendor --query vendor", ("root/root", "-O2"), is_light=False, package="dpkg-dev"),
    Case("rpm's lists", ("rpm",), "rpm -qa; rpm --eval '%{_bindir} %{_sysconfdir}'", ("/usr/bin",), is_light=False, package="rpm"),
    Case("manual pages", ("man", "groff"), "printf '.TH X 1\\n.SH NAME\\nx \\\\- a page\\n' > x.1; man -l x.1 | cat; echo text | groff -Tascii; man -w ls; whatis ls || true", ("a page", "text"), is_light=False, package="man-db"),
    Case("file", ("file",), "echo '#!/bin/sh' > x; file x; file --mime-type x", ("shell script", "text/x-shellscript"), package="file"),
    Case("XML and SGML catalogs", ("xsltproc", "xmllint"), "xsltproc --nonet x.xsl x.xml; xmllint --noout --nonet --catalogs x.xml; xmlcatalog /etc/xml/catalog 'http://docbook.sourceforge.net/release/xsl/current/html/docbook.xsl'", ("<p>7</p>", "file://"),
         {"x.xml": "<a>7</a>\n", "x.xsl": '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="html"/><xsl:template match="a"><p><xsl:value-of select="."/></p></xsl:template></xsl:stylesheet>\n'}, is_light=False, package="xsltproc libxml2-utils docbook-xsl"),
    Case("Doxygen and Sphinx", ("doxygen", "sphinx-build"), "doxygen -g D > /dev/null; printf '/** a page */\\nint x;\\n' > x.h; doxygen D > log; test -s html/index.html; mkdir s; touch s/conf.py; echo Title > s/index.rst; sphinx-build -q s o; test -s o/index.html; echo made", ("made",), is_light=False, package="doxygen python3-sphinx"),
    Case("autotools", ("autoreconf", "automake", "gcc"), "autoreconf -i > log 2>&1; ./configure > log; make -s; ./hello", ("hello from C",), {"configure.ac": "AC_INIT([x],[1])\nAM_INIT_AUTOMAKE([foreign])\nAC_PROG_CC\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n", "Makefile.am": "bin_PROGRAMS = hello\nhello_SOURCES = hello.c\n", "hello.c": HELLO_C},
         is_light=False, seconds=120, package="automake"),
    Case("small tools", ("rg", "jq", "shellcheck", "bc"), "echo '{\"a\": [1, 2]}' | jq -c .a; rg -n page x; echo 'echo hi' | shellcheck -s sh -; echo 6*7 | bc", ("[1,2]", "1:a page", "42"), {"x": "a page\n"}, is_light=False, package="ripgrep jq shellcheck bc"),
    Case("Subversion and Mercurial", ("svn", "svnadmin", "hg"), "svnadmin create r; svn checkout -q file://$PWD/r w; echo 1 > w/f; svn add -q w/f; svn commit -q -m one w; svn log -q file://$PWD/r; hg init h; cd h; echo 1 > f; hg add f; hg commit -u u -m two; hg log -T '{desc}\\n'", ("r1 |", "two"),
         is_light=False, package="subversion mercurial"),
    Case("git-lfs", ("git", "git-lfs"), "git init -q .; git lfs install --local; git lfs track '*.bin'; head -c 100 /dev/zero > a.bin; git add .; git -c user.name=n -c user.email=e commit -qm one; git lfs ls-files", ("a.bin",), is_light=False, package="git-lfs"),
    Case("other shells", ("zsh", "fish"), "zsh -ic 'autoload -Uz compinit && compinit -u && print loaded'; fish -c 'echo (math 6 x 7)'", ("loaded", "42"), is_light=False, package="zsh fish"),
    Case("matplotlib", ("/usr/bin/python3",), "/usr/bin/python3 -c 'import matplotlib; matplotlib.use(\"Agg\"); import matplotlib.pyplot as p; p.plot([1, 2]); p.savefig(\"x.png\"); print(matplotlib.matplotlib_fname())'; test -s x.png", ("matplotlibrc",), is_light=False, seconds=120, package="python3-matplotlib"),
    Case("an image of a file system", ("mkfs.ext4",), "truncate -s 8M i; mkfs.ext4 -q i; dumpe2fs -h i 2> /dev/null | grep magic", ("0xEF53",), package="e2fsprogs"),
    Case("archives with others' files", ("python3", "tar", "cp"), "python3 make.py; tar xf x.tar; cat d/f; cp -a d e; cp -p d/f g; cat e/f g; stat -c %a d/f", ("from others", "640"),
         {"make.py": "import io, tarfile\nwith tarfile.open('x.tar', 'w') as tar:\n    for name, kind, text in (('d', tarfile.DIRTYPE, b''), ('d/f', tarfile.REGTYPE, b'from others\\n')):\n"
                     "        item = tarfile.TarInfo(name)\n        item.type, item.mode, item.uid, item.gid, item.size = kind, 0o750 if not text else 0o640, 4711, 4711, len(text)\n"
                     "        tar.addfile(item, io.BytesIO(text))\n"}, package="tar"),
    Case("rsync", ("rsync",), "mkdir a; echo x > a/f; ln -s f a/l; rsync -a a/ b/; rsync -aHAX a/ c/; cat b/l c/f", ("x",), is_light=False, package="rsync"),
)


def lacking(case: Case, env: Mapping[str, str], uid: int) -> Optional[str]:
    """What the case needs and a caller with this environment and uid does not have."""
    for need in case.needs:
        if need == "user":
            if uid == 0:
                return "user: root cannot do it"
        elif need == "account":
            try:
                pwd.getpwuid(uid)
            except KeyError:
                return f"account: uid {uid} has no name"
        elif not find_program(need, env, uid):
            return f"program {need}"
    return None


def find_program(name: str, env: Mapping[str, str], uid: int) -> Optional[str]:
    """As shutil.which() for another user: a program below somebody's closed home does not count."""
    for folder in env.get("PATH", "").split(":"):
        path = os.path.join(folder, name)
        if shutil.which(path) and (uid == os.geteuid() or is_open_to_all(path)):
            return path
    return None


def is_open_to_all(path: str) -> bool:
    """Everybody may enter every directory on the way to where it really is."""
    folder = os.path.dirname(os.path.realpath(path))
    while folder != "/":
        if not os.stat(folder).st_mode & 0o001:
            return False
        folder = os.path.dirname(folder)
    return True


def write_files(case: Case, folder: str) -> Dict[str, str]:
    """Put the case's files into its project directory."""
    for name, content in case.files.items():
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    return dict(case.files)
