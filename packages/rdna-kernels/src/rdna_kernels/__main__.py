"""``python -m rdna_kernels build``: builds kernels on this machine, into the user's cache."""

from __future__ import annotations

import argparse
import shutil
import sys

from rdna_registry import (
    BUILDABLE_HEAD_SIZES,
    BUILDABLE_TARGETS,
    DEFAULT_TARGET,
    SERVED_HEAD_SIZES,
    TARGETS,
    Build,
    builds,
)

from rdna_kernels.catalogue import Catalogue
from rdna_kernels.errors import MissingBuildError
from rdna_kernels.user_build import BuildError, build
from rdna_kernels.user_folder import cache_folder, sources_folder, user_folder


def main(arguments: list[str] | None = None) -> int:
    """Exit codes: 0 done, 1 a build failed, 2 bad input."""
    parser = argparse.ArgumentParser(prog="python -m rdna_kernels", description=__doc__)
    command = parser.add_subparsers(required=True).add_parser("build", help="build, list or remove kernels of your own")
    names = [target.name for target in (*TARGETS, *BUILDABLE_TARGETS)]
    command.add_argument("--target", choices=names, default=DEFAULT_TARGET, help="the GPU to build for")
    command.add_argument("--head-size", type=_head_size, help="only this head size, also one that no wheel has")
    command.add_argument("--list", action="store_true", help="list what was built")
    command.add_argument("--clean", action="store_true", help="remove what was built, of every version")
    options = parser.parse_args(arguments)
    if options.clean:
        shutil.rmtree(cache_folder(), ignore_errors=True)
        print(f"removed {cache_folder()}")
        return 0
    sources, folder = sources_folder(), user_folder()
    if folder is None:
        print(f"the sources are not in {sources}: install the rdna-kernels wheel again", file=sys.stderr)
        return 1
    if options.list:
        print(folder, *(f"  {file.parent.name} {file.stem}" for file in sorted(folder.glob("*/*.json"))), sep="\n")
        return 0
    sizes = SERVED_HEAD_SIZES if options.head_size is None else (options.head_size,)
    if options.target not in [target.name for target in TARGETS]:
        print(f"{options.target} is compiled for, but nothing of it was ever run: untested", file=sys.stderr)
    try:
        missing = _missing(Catalogue(Catalogue.installed().folder, folder), options.target, sizes)
        build(sources, folder, missing, options.target, lambda text: print(text, file=sys.stderr, flush=True))
    except (BuildError, MissingBuildError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(missing)} built for {options.target} in {folder}; the others were there")
    return 0


def _missing(catalogue: Catalogue, target: str, head_sizes: tuple[int, ...]) -> list[Build]:
    """The builds that there are not; one whose code object was removed is not there."""
    listed = {record.name for record in catalogue.records if record.target == target}
    wanted = builds(head_sizes=head_sizes)
    return [build for build in wanted if build.name not in listed or not catalogue.file(build.name, target).is_file()]


def _head_size(text: str) -> int:
    try:
        size = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if size not in BUILDABLE_HEAD_SIZES:
        step, most = BUILDABLE_HEAD_SIZES[0], BUILDABLE_HEAD_SIZES[-1]
        reason = "for rows are loaded 16 bytes at a time"
        raise argparse.ArgumentTypeError(f"{size} given; allowed: a multiple of {step} up to {most}, {reason}")
    return size


if __name__ == "__main__":
    sys.exit(main())
