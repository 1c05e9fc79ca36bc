# The importer: the agent's modules, then the library, then what is written in C.

import sys

import _host

from runner_errors import author_lines

# The agent's modules by dotted name, until each is imported.
records = {}

# Names that mean the same to every agent, whatever its own modules are called.
_RESERVED = {"agent": "agent", "agent.test": "agent_test", "agent_test": "agent_test"}


class _Importer:
    """Imports one module at a time, and knows which failed half-way."""

    def find(self, name):
        """The module of a dotted name; it is run if it was not yet. `None` if there is none."""
        name = _RESERVED.get(name, name)
        module = sys.modules.get(name)
        if module is not None:
            return module
        if name in records:
            return self._run(name, records[name])
        package = _host.library(name)
        if package is not None:
            return self._run(name, None, package)
        return _host.built_in(name)

    def _run(self, name, record, package=False):
        module = _host.module(name)
        if record is not None:
            package = record.get("package", False)
            module.__file__ = record["name"]
        if package:
            module.__path__ = name
        try:
            if record is None:
                _host.run_library(module, name)
            else:
                if "lines" in record:
                    author_lines[record["name"]] = record["lines"]
                _host.run(module, record["text"], record["name"])
        except BaseException:
            # The next import begins anew.
            sys.modules.pop(name, None)
            raise
        return module

    def walk(self, name):
        """Imports each package on the way to a module; gives the first and the last."""
        first = module = None
        path = ""
        for part in name.split("."):
            path = path + "." + part if path else part
            parent, module = module, self.find(path)
            if module is None:
                raise _missing(name, path)
            if parent is None:
                first = module
            else:
                setattr(parent, part, module)
        return first, module


def _missing(name, path):
    if path == name and "." not in name:
        return ImportError("module '{}' is not available to an agent".format(name))
    return ImportError("no module named '{}'".format(path))


_importer = _Importer()


def import_module(name):
    """The module of a dotted name."""
    return _importer.walk(name)[1]


def _absolute(name, caller, level):
    """What a relative import means in a package."""
    parts = caller.split(".") if caller else []
    if level > len(parts):
        raise ImportError("a relative import leaves the agent")
    parts = parts[: len(parts) - level + 1]
    if name:
        parts.append(name)
    return ".".join(parts)


def _import(name, package, caller, names, level):
    """What an `import` statement does; `package` is that of the module in which it stands."""
    if level:
        name = _absolute(name, package, level)
    elif name[0] == "u" and _host.library(caller) is not None:
        # Part of the library is written on top of a C module of the same name.
        module = _host.built_in(name[1:])
        if module is not None:
            return module
    first, module = _importer.walk(name)
    if not names:
        return first
    if hasattr(module, "__path__"):
        for wanted in names:
            if wanted != "*" and not hasattr(module, wanted):
                submodule = _importer.find(name + "." + wanted)
                if submodule is not None:
                    setattr(module, wanted, submodule)
    return module


_host.importer(_import)
