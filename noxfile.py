"""Everything that is checked here: ``uv run nox`` runs the default sessions, ``uv run nox -l`` lists all."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import nox
from nox.command import CommandFailed
from rdna_registry import TARGETS

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"
nox.options.error_on_missing_interpreters = True

SERVED = tuple(target.name for target in TARGETS)
nox.options.sessions = ["lint", "typecheck", "tests", *(f"test-{name}" for name in SERVED), "test-gfx942", "build"]

ROOT = Path(__file__).parent
PACKAGES = ("rdna-registry", "octave-quant", "rdna-emulator", "rdna-kernels", "rdna-vllm", "rdna-bench")
# What a test needs of its package beyond the plain installation.
EXTRAS = {"rdna-kernels": ("--extra", "emulator")}
# A test whose id names a target belongs to the session of that target.
NO_TARGET = " and ".join(f"not {name}" for name in SERVED)
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
# Tried in an environment that has nothing but the package: what a user does first.
SMOKE = {
    "rdna-registry": "import rdna_registry as r; print(len(r.variants()), 'entries')",
    "octave-quant": "import octave_quant as o; print(o.signs(8))",
    "rdna-emulator": "import rdna_emulator as e; print(e.Device('gfx1151').target)",
    "rdna-kernels": "import rdna_kernels as k; print(len(k.Catalogue.installed().records), 'builds')",
    "rdna-vllm": "import rdna_vllm as v; print(v.__all__)",
    "rdna-bench": "import rdna_bench.cli",
}


def sync(session: nox.Session, *arguments: str) -> None:
    """Makes the session's environment hold what the lock says, and nothing else."""
    session.run_install(
        "uv", "sync", "--locked", "--no-editable", "--no-default-groups", *arguments,
        env={"UV_PROJECT_ENVIRONMENT": session.virtualenv.location, "UV_PYTHON": session.virtualenv.location},
    )  # fmt: skip


def pytest(session: nox.Session, name: str, *arguments: str) -> None:
    """Runs pytest on two processes at most; a session in which every test is left out by name is no failure."""
    report = ROOT / ".nox" / "reports" / f"{name}.xml"
    workers = str(min(2, os.cpu_count() or 1))
    session.run("pytest", "-n", workers, f"--junitxml={report}", *arguments, *session.posargs, success_codes=[0, 5])


@nox.session
def lint(session: nox.Session) -> None:
    """ruff's rules and layout, and a lock that fits the projects."""
    sync(session, "--only-group", "dev")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("uv", "lock", "--check", external=True)


@nox.session
def typecheck(session: nox.Session) -> None:
    """mypy --strict on each package and its tests."""
    sync(session, "--group", "dev", "--group", "model", "--no-install-workspace")
    failed = []
    # One run for each package: their test folders have modules of the same name.
    for package in PACKAGES:
        folders = [f"packages/{package}/{folder}" for folder in ("src", "tests", "cmake")]
        try:
            session.run("mypy", *(folder for folder in folders if any(Path(folder).glob("**/*.py"))))
        except CommandFailed:
            failed.append(package)
    session.run("mypy", "noxfile.py", "conftest.py", "ci")
    if failed:
        session.error(f"mypy has errors in {', '.join(failed)}")


@nox.session
@nox.parametrize("package", PACKAGES, ids=PACKAGES)
def tests(session: nox.Session, package: str) -> None:
    """The tests of one package beside nothing that it does not need, less those of the GPU targets' sessions."""
    sync(session, "--package", package, "--group", "test", *EXTRAS.get(package, ()))
    pytest(session, package, "-k", NO_TARGET, f"packages/{package}/tests")


def add_target_session(name: str) -> None:
    """Adds the session of one GPU target."""

    def run(session: nox.Session) -> None:
        if name not in SERVED:
            session.skip(f"{name}: no GPU of this kind can be used, and rdna-emulator does not serve it")
        sync(session, "--all-packages", "--all-extras", "--group", "test", "--group", "model")
        pytest(session, name, "-k", name, "packages")

    run.__doc__ = f"Every test that runs kernels of {name}."
    nox.session(name=f"test-{name}")(run)


for name in (*SERVED, "gfx942"):
    add_target_session(name)


@nox.session(name="test-torch")
def test_torch(session: nox.Session) -> None:
    """The tests that need torch; what stands after ``--`` is installed in place of the lock's torch."""
    sync(session, "--all-packages", "--all-extras", "--group", "test")
    if session.posargs:
        session.install(*session.posargs)
    else:
        sync(session, "--all-packages", "--all-extras", "--group", "test", "--group", "torch")
    session.run("pytest", "-k", "torch", "packages")


@nox.session(python=PYTHONS)
def pythons(session: nox.Session) -> None:
    """All tests with another Python."""
    sync(session, "--all-packages", "--all-extras", "--group", "test")
    pytest(session, f"python-{session.python}", "packages")


@nox.session
def lowest(session: nox.Session) -> None:
    """All tests with the oldest versions that the projects allow."""
    groups = [argument for package in PACKAGES for argument in ("--group", f"packages/{package}/pyproject.toml:test")]
    packages = [f"packages/{package}" for package in PACKAGES]
    session.install("--resolution", "lowest-direct", *packages, *groups)
    pytest(session, "lowest", "packages")


def tried_pythons(session: nox.Session) -> list[str]:
    """The interpreters of the oldest and the newest Python of PYTHONS that this machine has."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = {}
    for version in PYTHONS:
        folders = [str(folder) for folder in pyenv.glob(f"versions/{version}.*/bin")]
        path = os.pathsep.join([*folders, os.environ["PATH"]])
        try:
            command = ("uv", "python", "find", "--system", "--no-project", version)
            output = session.run(*command, env={"PATH": path}, external=True, silent=True)
        except CommandFailed:
            continue
        found[version] = str(output).strip().splitlines()[-1]
    if PYTHONS[0] not in found:
        session.warn(f"there is no Python {PYTHONS[0]} here: {', '.join(found)} stand in for the oldest and newest")
    return list(dict.fromkeys([found[min(found, key=PYTHONS.index)], found[max(found, key=PYTHONS.index)]]))


def try_alone(session: nox.Session, package: str, wheel: Path, interpreter: str) -> None:
    """Installs a wheel beside nothing but what it requires, and runs its smoke test with no compiler in reach."""
    uv = shutil.which("uv") or "uv"
    with tempfile.TemporaryDirectory() as folder:
        environment, constraints = Path(folder) / "environment", Path(folder) / "constraints.txt"
        # The other packages come from the folder alone, whatever an index has under their names.
        siblings = {other: next(wheel.parent.glob(f"{other.replace('-', '_')}-*.whl")) for other in PACKAGES}
        constraints.write_text("".join(f"{other} @ {path.as_uri()}\n" for other, path in siblings.items()))
        session.run(uv, "venv", "--quiet", "--no-project", "--python", interpreter, str(environment), external=True)
        python, path = environment / "bin" / "python", {"PATH": str(environment / "bin")}
        session.run(
            uv, "pip", "install", "--quiet", "--python", str(python), "--only-binary", ":all:",
            "--find-links", str(wheel.parent), "--constraints", str(constraints), str(wheel), env=path, external=True,
        )  # fmt: skip
        session.run(str(python), "-W", "error", "-c", SMOKE[package], env=path, external=True)


@nox.session
def build(session: nox.Session) -> None:
    """Source distribution and wheel of each package, checked; each wheel is installed alone and tried.

    They are built twice, the wheels from the source distributions and then from the tree: the bytes must be the same.
    """
    sync(session, "--only-group", "release")
    session.run("pytest", "--noconftest", "ci")
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    commit_time = session.run("git", "log", "-1", "--format=%ct", external=True, silent=True)
    build_command = ("uv", "build", "--quiet", "--all-packages", "--out-dir")
    epoch = {"SOURCE_DATE_EPOCH": str(commit_time).strip()}
    session.run(*build_command, str(dist), env=epoch, external=True)
    with tempfile.TemporaryDirectory() as folder:
        second = Path(folder)
        session.run(*build_command, str(second), "--sdist", env=epoch, external=True)
        session.run(*build_command, str(second), "--wheel", env=epoch, external=True)
        for file in (*dist.glob(".gitignore"), *second.glob(".gitignore")):
            file.unlink()
        session.run("python", "ci/distributions.py", str(dist), str(second))
    session.run("twine", "check", "--strict", *(str(file) for file in dist.iterdir()))
    session.run("check-wheel-contents", *(str(file) for file in dist.glob("*.whl")))
    for interpreter in tried_pythons(session):
        for package in PACKAGES:
            [wheel] = dist.glob(f"{package.replace('-', '_')}-*.whl")
            try_alone(session, package, wheel, interpreter)


@nox.session
def bench(session: nox.Session) -> None:
    """Counts and modelled figures of one decode launch; arguments after ``--`` go to ``rdna-bench decode``."""
    sync(session, "--all-packages", "--all-extras", "--group", "model")
    session.run("rdna-bench", "decode", *session.posargs)
