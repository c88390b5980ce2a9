"""What is shipped is what is on the disk, and importing it loads nothing that is optional."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
CRATE = ROOT / "ffwd/native"
# Ignored by git, and inside the checkout for no other reason than that.
SCRATCH = ROOT / "build/packaging"

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MANIFEST = tomllib.loads((CRATE / "Cargo.toml").read_text(encoding="utf-8"))
VERSION: str = MANIFEST["package"]["version"]


def folder_of(package: str) -> Path:
    """Where a package of the explicit list lies."""
    for name, folder in PROJECT["tool"]["setuptools"]["package-dir"].items():
        if package == name or package.startswith(f"{name}."):
            return ROOT / (folder + package[len(name) :].replace(".", "/"))
    return ROOT / package.replace(".", "/")


def packages_on_disk() -> set[str]:
    """Every folder with Python modules below ffwd/ and adapters/, by its import name."""
    found = set()
    for top, name in (("ffwd", "ffwd"), ("adapters", "ffwd.adapters")):
        for module in (ROOT / top).rglob("*.py"):
            if CRATE in module.parents:
                continue
            below = module.parent.relative_to(ROOT / top).parts
            found.add(".".join((name, *below)))
    return found


def files_to_ship() -> set[str]:
    """The wheel's files as they follow from the disk, without its metadata and binary."""
    found = {"ffwd/py.typed", "ffwd/_native.pyi", "ffwd/view/page.css", "ffwd/view/page.js"}
    # The page of `ffwd play`, and its editor with its licence.
    page = ROOT / "ffwd/play"
    found |= {
        path.relative_to(ROOT).as_posix()
        for path in (*page.iterdir(), *(page / "codemirror").iterdir())
        if path.is_file() and path.suffix != ".py"
    }
    # The model in the box.
    found |= {
        f"ffwd/model/{path.name}" for path in (ROOT / "ffwd/model").iterdir() if path.is_file()
    }
    for package in packages_on_disk():
        folder = package.replace(".", "/")
        found |= {f"{folder}/{module.name}" for module in folder_of(package).glob("*.py")}
    return found


def python(code: str, *options: str, cwd: Path, paths: tuple[Path, ...] = ()) -> str:
    """What a fresh interpreter prints."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(command: str, target: Path, *, cwd: Path) -> Path:
    """Run one setuptools command into an empty folder; the file that it made.

    The folders for intermediate files are new too: setuptools ships what it finds in an old one.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    environment = dict(os.environ, CARGO_TARGET_DIR=str(CRATE / "target"))
    done = subprocess.run(
        [
            sys.executable,
            "setup.py",
            "--quiet",
            "egg_info",
            f"--egg-base={target}",
            *(["build", f"--build-base={target / 'build'}"] if command == "bdist_wheel" else []),
            command,
            f"--dist-dir={target}",
        ],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = (path for path in target.iterdir() if path.suffix in {".gz", ".whl"})
    return made


@pytest.fixture(scope="module")
def sdist() -> Path:
    """The source distribution of this tree, unpacked."""
    archive = build("sdist", SCRATCH / "sdist", cwd=ROOT)
    unpacked = SCRATCH / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(archive) as tar:
        if sys.version_info >= (3, 12):
            tar.extractall(unpacked, filter="data")
        else:
            tar.extractall(unpacked)
    return unpacked / f"ffwd-{VERSION}"


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    """The wheel that is built from the source distribution, and so proves that one complete.

    Cargo takes over the dependencies that it compiled for the checkout, but not the crate, whose
    place is another; so a file that is missing makes this fail.
    """
    return build("bdist_wheel", SCRATCH / "wheel", cwd=sdist)


def test_the_package_list_is_the_disk() -> None:
    """An unlisted package works in an editable install and is missing from the wheel."""
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages_on_disk()


def test_every_package_is_one() -> None:
    """A folder without `__init__.py` would be a namespace package, open to others."""
    for package in packages_on_disk():
        assert (folder_of(package) / "__init__.py").is_file(), package


def test_the_sdist_has_the_sources(sdist: Path) -> None:
    """Without the crate nobody can use it; what cargo built of it and fuzzing are left out."""
    shipped = {path.relative_to(sdist).as_posix() for path in sdist.rglob("*") if path.is_file()}
    left_out = {CRATE / "target", CRATE / "fuzz"}
    crate = {
        path.relative_to(ROOT).as_posix()
        for path in CRATE.rglob("*")
        if path.is_file() and left_out.isdisjoint(path.parents)
    }
    assert {"ffwd/native/Cargo.lock", "ffwd/native/crates/engine/src/lib.rs"} <= crate
    modules = {
        (folder_of(package) / module.name).relative_to(ROOT).as_posix()
        for package in packages_on_disk()
        for module in folder_of(package).glob("*.py")
    }
    needed = {"LICENSE", "README.md", "pyproject.toml", "setup.py", "MANIFEST.in"}
    needed |= {"CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md"}
    needed |= {f"ffwd/model/{name}" for name in ("model.safetensors", "tokenizer.json")}
    assert (crate | modules | needed | {"ffwd/py.typed", "ffwd/_native.pyi"}) <= shipped
    assert not [path for path in shipped if path.startswith("ffwd/native/fuzz/")]
    assert not [path for path in shipped if "/target/" in path or path.endswith((".so", ".pyc"))]


def test_the_wheel_is_the_disk(wheel: Path) -> None:
    """Nothing is missing and nothing else, such as the Rust sources, is in it."""
    assert re.fullmatch(rf"ffwd-{re.escape(VERSION)}-cp310-abi3-\w+\.whl", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
        (licence,) = (name for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    binary = {name for name in shipped if re.fullmatch(r"ffwd/_native(\.abi3)?\.(so|pyd)", name)}
    assert len(binary) == 1, sorted(shipped)
    assert shipped - binary == files_to_ship()
    # Other compilers make it some percent larger or smaller.
    assert wheel.stat().st_size < 6 << 20


def test_the_wheel_needs_numpy_only(wheel: Path) -> None:
    """What an engine's user pays for."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    requirements = [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist")]
    always = [line for line in requirements if "extra ==" not in line]
    assert len(always) == 1
    assert always[0].startswith("numpy")
    assert f"Version: {VERSION}" in lines


def test_the_wheel_works_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """Unpacked elsewhere, with nothing of the checkout in reach, it is imported from there."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    report = python(
        "import ffwd, ffwd.grammar, ffwd.tokenizer, ffwd.adapters, json\n"
        "print(json.dumps([ffwd.__version__, ffwd._native.__file__, ffwd.adapters.__file__]))",
        cwd=tmp_path,
        paths=(tmp_path,),
    )
    version, native, adapters = json.loads(report)
    assert version == VERSION
    assert Path(native).parent == tmp_path / "ffwd"
    assert Path(adapters) == tmp_path / "ffwd/adapters/__init__.py"
    trial = (ROOT / ".ci/try_wheel.py").read_text(encoding="utf-8")
    code = f"__file__ = {str(ROOT / '.ci/try_wheel.py')!r}\n{trial}"
    assert "100 documents" in python(code, cwd=tmp_path, paths=(tmp_path,))


def test_maskbench_of_a_checkout_takes_the_installed_package(wheel: Path, tmp_path: Path) -> None:
    """Where the checkout's sources are not compiled; and says so where nothing is installed."""
    installed, checkout = tmp_path / "installed", tmp_path / "checkout"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    shutil.copytree(
        ROOT / "ffwd", checkout / "ffwd", ignore=shutil.ignore_patterns("native", "_native.*[!i]")
    )
    shutil.copytree(ROOT / "maskbench", checkout / "maskbench")
    code = "import maskbench.engines.ffwd, ffwd\nprint(ffwd._native.__file__)"
    found = python(code, cwd=checkout, paths=(installed,))
    assert Path(found.strip()).parent == installed / "ffwd"
    code = "try:\n    import maskbench\nexcept ModuleNotFoundError as error:\n    print(error)"
    # Without the packages that are installed for this interpreter.
    said = python(code, "-S", cwd=checkout)
    assert "are not compiled: run `pip install ffwd`" in said


OPTIONAL = ("torch", "transformers", "tokenizers", "llguidance", "xgrammar", "jsonschema_rs")
OPTIONAL += ("prometheus_client", "click", "starlette", "uvicorn", "pydantic")


@pytest.mark.parametrize(
    "module",
    ["ffwd", "ffwd.cli", "ffwd.grammar", "ffwd.streaming", "ffwd.tokenizer", "ffwd.adapters"],
)
def test_an_import_loads_nothing_optional(module: str, tmp_path: Path) -> None:
    """Also where the optional packages are installed, as they are here."""
    report = python(
        f"import sys\nimport {module}\nprint(*(name.partition('.')[0] for name in sys.modules))",
        cwd=tmp_path,
    )
    loaded = set(report.split())
    assert "ffwd" in loaded
    assert loaded.isdisjoint(OPTIONAL), loaded & set(OPTIONAL)
    # NumPy takes most of a tenth of a second, and only masks and GGUF need it.
    assert "numpy" not in loaded or module == "ffwd.cli"


def test_optional_packages_can_be_seen(tmp_path: Path) -> None:
    """The check above can fail: it sees a package that is loaded."""
    report = python("import sys\nimport tokenizers\nprint(*sys.modules)", cwd=tmp_path)
    assert "tokenizers" in report.split()


def as_version(text: str) -> tuple[int, ...]:
    """`1.85` and `1.85.0` are one version."""
    parts = [int(part) for part in text.split("-")[0].split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


def test_the_toolchain_floor_holds_for_every_dependency() -> None:
    """`rust-version` is a promise; a dependency that needs more would break it."""
    floor = as_version(MANIFEST["workspace"]["package"]["rust-version"])
    done = subprocess.run(
        [
            "cargo",
            "metadata",
            "--locked",
            "--format-version=1",
            "--all-features",
            f"--manifest-path={CRATE / 'Cargo.toml'}",
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    packages = json.loads(done.stdout)["packages"]
    assert len(packages) > 5
    above = {
        f"{package['name']} {package['version']} needs {package['rust_version']}"
        for package in packages
        if package["rust_version"] is not None and as_version(package["rust_version"]) > floor
    }
    assert not above


_PRETEND = """
import runpy, setuptools, sys, sysconfig
setuptools.setup = lambda **given: print(given)
told = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: {without_lock} if name == "Py_GIL_DISABLED" else told(name)
sys.version_info = (*{version}, *sys.version_info[2:])
runpy.run_path("setup.py", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("without_lock", "version", "options"),
    [(0, (3, 11), {"py_limited_api": "cp310"}), (1, (3, 14), {}), (1, (3, 13), None)],
)
def test_wheels_of_free_threaded_interpreters(
    without_lock: int, version: tuple[int, int], options: dict[str, str] | None
) -> None:
    """One a version, for there is no stable ABI; those that pyo3 lacks are refused at once."""
    done = subprocess.run(
        [sys.executable, "-c", _PRETEND.format(without_lock=without_lock, version=version)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if options is None:
        assert done.returncode == 1
        assert done.stderr.startswith("ffwd supports free-threaded CPython from 3.14 on")
        assert "with python3.14t" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert ast.literal_eval(done.stdout) == {
        "version": VERSION,
        "options": {"bdist_wheel": options},
    }


def test_the_readme_names_the_two_commands() -> None:
    """The commands that the README begins with are targets of the Makefile, and CI runs one."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"^make (\w+)", readme, re.MULTILINE)[:2]
    assert commands == ["demo", "test"]
    for target in commands:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert re.search(r"^make .*\btest$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
