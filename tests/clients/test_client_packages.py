# SPDX-License-Identifier: Apache-2.0
"""Package managers through the gate, each with a registry of the test's own that has one package."""

from __future__ import annotations

import json
import os
import subprocess
import unittest
from pathlib import Path
from typing import List

import registries
from harness.internet import SITE_NAME
from harness.site_case import SiteCase
from registries import NAME, VERSION, WORDS

# The first that can do without git for an index.
CARGO_WITH_SPARSE = (1, 68)


def at(label: str) -> str:
    """A name of the site's."""
    return f"{label}.{SITE_NAME}"


class Packages(SiteCase):
    """An installation reaches the hosts of its rules, and the words of the package are there."""

    has_bad_weather = True

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        files = cls.site.folder / "files"
        registries.make_python(files)
        registries.make_node(files, at("tarballs"))
        registries.make_rust(files, at("crates"))
        registries.make_go(files, f"{SITE_NAME}/demo")
        registries.make_java(files)
        registries.make_php(files, at("zips"))

    def install(self, rules: List[str], script: str, *options: object) -> None:
        """The script's last words are the package's."""
        said = self.shell(rules, script, options=options)
        self.assertEqual(said.splitlines()[-1:], [WORDS], self.result)
        self.assertEqual(self.asked_of_site(), sorted(rules))

    def test_pip(self) -> None:
        python = "/usr/bin/python3"
        if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
            self.skipTest("needs:pip of the system's Python")
        self.install(
            [at("py")],
            f"{python} -m pip install -q --disable-pip-version-check --no-cache-dir --index-url https://{at('py')}/simple --target out {NAME} >&2;"
            f" PYTHONPATH=out {python} -c 'import bjt_demo; print(bjt_demo.WORDS)'",
        )

    def test_uv(self) -> None:
        uv, options = self.fetched("python", "bin", "uv")
        self.variables["UV_CACHE_DIR"] = str(self.work / "cache")
        self.install(
            [at("py")],
            f"{uv} pip install -q --python /usr/bin/python3 --index-url https://{at('py')}/simple --target out {NAME} >&2;"
            " PYTHONPATH=out /usr/bin/python3 -c 'import bjt_demo; print(bjt_demo.WORDS)'",
            *options,
        )

    def test_npm(self) -> None:
        npm = self.find("npm")
        (self.work / "package.json").write_text("{}")
        self.install(
            [at("node"), at("tarballs")],
            f"{npm} install --silent --no-audit --no-fund --cache ./cache --registry https://{at('node')}/npm/ {NAME} >&2;"
            f" node -e 'console.log(require(\"{NAME}\"))'",
        )

    def test_pnpm(self) -> None:
        pnpm, options = self.fetched("node", "node_modules", ".bin", "pnpm")
        (self.work / "package.json").write_text("{}")
        self.install(
            [at("node"), at("tarballs")],
            f"{pnpm} add --silent --store-dir ./store --registry https://{at('node')}/npm/ {NAME} >&2;"
            f" node -e 'console.log(require(\"{NAME}\"))'",
            *options,
        )

    def rust(self) -> "tuple[str, List[object]]":
        """The toolchain's own folder: what stands in PATH may only choose one."""
        compiler = self.find("rustc")
        # What stands in PATH looks for it in the home of whoever has installed it.
        env = {**os.environ, "HOME": os.environ.get("BELLJAR_TEST_HOME", os.environ["HOME"])}
        found = subprocess.run([compiler, "--print", "sysroot"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, text=True, check=False)
        folder = found.stdout.strip()
        if found.returncode != 0 or not os.access(f"{folder}/bin/cargo", os.X_OK):
            self.skipTest("needs:cargo beside rustc")
        version = subprocess.run([f"{folder}/bin/cargo", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[1]
        if tuple(map(int, version.split(".")[:2])) < CARGO_WITH_SPARSE:
            self.skipTest("needs:cargo of a version that has registries over HTTPS")
        return f"{folder}/bin", ["--ro", folder] if not folder.startswith("/usr") else []

    def test_cargo(self) -> None:
        folder, options = self.rust()
        self.variables.update(
            CARGO_HOME=str(self.work / "cargo"),
            CARGO_REGISTRIES_SITE_INDEX=f"sparse+https://{at('index')}/cargo/",
        )
        (self.work / "src").mkdir()
        (self.work / "src" / "main.rs").write_text('fn main() { println!("{}", bjt_demo::WORDS); }\n')
        (self.work / "Cargo.toml").write_text(
            '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\n'
            f'[dependencies]\n{NAME} = {{ version = "{VERSION}", registry = "site" }}\n'
        )
        self.install([at("index"), at("crates")], f"PATH={folder}:$PATH cargo -q run", *options)

    def test_go(self) -> None:
        go = self.find("go")
        self.variables.update(
            GOPROXY=f"https://{at('go')}/go", GONOSUMDB="*", GOFLAGS="-mod=mod -modcacherw", GOPATH=str(self.work / "go"),
            GOCACHE=str(self.work / "cache"), GOTOOLCHAIN="local",
        )
        (self.work / "go.mod").write_text("module user\n\ngo 1.16\n")
        (self.work / "main.go").write_text(
            f'package main\n\nimport demo "{SITE_NAME}/demo"\n\nfunc main() {{ print(demo.Words + "\\n") }}\n'
        )
        self.install([at("go")], f"{go} get {SITE_NAME}/demo@v{VERSION} >&2; {go} run . 2>&1")

    def trust_of_java(self) -> List[str]:
        """Java has a file of its own for whom it trusts."""
        keytool = self.find("keytool")
        store = self.work / "trust.jks"
        words = ["-importcert", "-noprompt", "-alias", "test", "-file", self.authority, "-keystore", str(store), "-storepass", "changeit"]
        subprocess.run([keytool, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=changeit"]

    def test_maven(self) -> None:
        maven = self.find("mvn")
        settings = f"<settings><localRepository>{self.work}/repository</localRepository><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf>"
        (self.work / "settings.xml").write_text(f"{settings}<url>https://{at('java')}/maven</url></mirror></mirrors></settings>")
        (self.work / "pom.xml").write_text(
            "<project><modelVersion>4.0.0</modelVersion><parent><groupId>test.site</groupId>"
            f"<artifactId>{NAME}</artifactId><version>{VERSION}</version><relativePath/></parent>"
            "<artifactId>user</artifactId><packaging>pom</packaging></project>"
        )
        self.variables["MAVEN_OPTS"] = " ".join(self.trust_of_java())
        self.shell([at("java")], f"{maven} -q -B -s settings.xml validate", options=["--pids", "2048"])
        self.assertTrue((self.work / "repository" / "test" / "site" / NAME / VERSION / f"{NAME}-{VERSION}.pom").is_file())

    def test_java(self) -> None:
        java = self.find("java")
        (self.work / "Client.java").write_text(
            """
import java.net.*; import java.net.http.*;
class Client { public static void main(String[] urls) throws Exception {
  for (String url : urls) try {
    System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString()).body());
    System.out.print(new String(new URL(url).openStream().readAllBytes()));
  } catch (ConnectException e) { System.out.println("refused"); } } }
"""
        )
        said = self.shell(
            [at("www")],
            f"{java} {' '.join(self.trust_of_java())} Client.java http://{at('www')}/hello https://{at('www')}/hello https://{at('evil')}/",
        )
        self.assertEqual(said.splitlines(), [f"hello from {at('www')}"] * 4 + ["refused"])

    def test_composer(self) -> None:
        composer = self.find("composer")
        repositories = [{"type": "composer", "url": f"https://{at('php')}"}, {"packagist": False}]
        (self.work / "composer.json").write_text(json.dumps({"repositories": repositories, "require": {"test/demo": VERSION}}))
        self.variables.update(COMPOSER_HOME=str(self.work / "composer"), COMPOSER_ALLOW_SUPERUSER="1")
        self.install(
            [at("php"), at("zips")], f"{composer} install -q -n >&2; php -r 'echo (require \"vendor/test/demo/demo.php\"), \"\\n\";'"
        )

    def test_gem(self) -> None:
        gem = self.find("gem")
        source = self.directory("source")
        (source / "demo.rb").write_text(f"WORDS = {WORDS!r}\n")
        (source / "demo.gemspec").write_text(
            f'Gem::Specification.new {{ |s| s.name = "{NAME}"; s.version = "{VERSION}"; s.summary = "x"; s.authors = ["x"];'
            ' s.files = ["demo.rb"]; s.require_paths = ["."] }\n'
        )
        folder = self.site.folder / "files" / "gems" / "gems"
        folder.mkdir(parents=True, exist_ok=True)
        words = [gem, "build", "-q", "demo.gemspec", "-o", str(folder / f"{NAME}-{VERSION}.gem")]
        built = subprocess.run(words, cwd=source, env=self.env, capture_output=True, text=True, check=False)
        made = subprocess.run(
            [gem, "generate_index", "-q", "-d", str(folder.parent)], cwd=source, env=self.env, capture_output=True, text=True, check=False
        )
        if built.returncode or made.returncode:
            self.skipTest(f"needs:generate_index of gem {built.stderr[-200:]} {made.stderr[-200:]}")
        self.install(
            [at("gems")],
            f"{gem} install -q --no-document --clear-sources --source https://{at('gems')}/gems/ -i out {NAME} >&2;"
            f" ruby -I out/gems/{NAME}-{VERSION} -r demo -e 'puts WORDS'",
        )


if __name__ == "__main__":
    unittest.main()
