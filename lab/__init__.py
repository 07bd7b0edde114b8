"""What the applications share to run an experiment: commands, run folders, training, tables, figures."""

from importlib.metadata import PackageNotFoundError, version


def _refuse_py_pde() -> None:
    # py-pde installs a top-level package `pde` too; whichever comes first on the path hides the other, and
    # two installed wheels overwrite each other's files. Better one sentence now than a puzzle later.
    try:
        found = version("py-pde")
    except PackageNotFoundError:
        return
    raise ImportError(
        f"py-pde {found} is installed here, and its package has the same name, pde, as this suite's. "
        "Use an environment of its own for one of them, or run: pip uninstall py-pde"
    )


_refuse_py_pde()
