"""Runs a script until it reads its command line, and says which flags it has.

Berth runs this in a container: python3 -c <this file> <options as JSON>. What it
finds is one line of JSON behind MARK on standard output. The process ends as soon
as the script asks for its arguments, before any training.
"""

import argparse
import importlib.machinery
import inspect
import json
import math
import os
import runpy
import sys
import threading
import traceback
import types

MARK = "\x1eberth-flags "
ASKED = "--berth-flags"  # the only argument of the script: it tells sys.argv[1:] from a list of the script's own
COPY = "/tmp/berth-script"  # where the script may write beside itself, as in a trial
STUBBED = []  # modules that were made up
TRAINS = ("train", "fit", "run", "main")  # names of the subcommand that trains, best first


class Stub:
    """Stands for any member of a module that the image lacks."""

    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub()

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and inspect.isfunction(args[0]):
            return args[0]  # a decorator
        return Stub()

    def __mro_entries__(self, bases):
        return (object,)

    def __iter__(self):
        return iter(())

    def __getitem__(self, key):
        return Stub()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return False


class StubModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        return "99.0.0" if name == "__version__" else Stub()


class StubFinder:
    """Finds modules that nothing else finds, for the script's own files. It comes last."""

    # Without these there are no flags to find: their absence must be said.
    needed = {"click", "typer", "absl", "simple_parsing", "tyro", "jsonargparse"}

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        frame = sys._getframe(1)
        while frame and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        asks = frame.f_code.co_filename if frame else ""
        if top in self.needed or (top == name and not asks.startswith(COPY + os.sep)) or (top != name and top not in STUBBED):
            return None
        STUBBED.append(top)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StubModule(spec.name)

    def exec_module(self, module):
        pass


def done(finding):
    finding["stubbed"] = sorted(set(STUBBED))
    os.write(OUT, ("\n" + MARK + json.dumps(finding) + "\n").encode())
    os._exit(0)


def default_of(value):
    """A default as JSON, else its text; None without a default."""
    if value is None or value is argparse.SUPPRESS or isinstance(value, Stub) or callable(value) or type(value).__name__ == "Sentinel":
        return None
    plain = isinstance(value, (bool, str)) or isinstance(value, int) and abs(value) <= 1 << 53 or isinstance(value, float) and math.isfinite(value)
    return value if plain else str(value)[:200]


def converts(kind):
    """A converter's result for numbers: float, int, str or bool; none without a converter."""
    if kind is None or kind in (int, float):
        return kind.__name__ if kind else "none"
    for text in ("0.5", "3"):
        try:
            return type(kind(text)).__name__
        except BaseException:
            pass
    return "other"


def with_subcommand(flags, subcommands):
    """Adds the subcommand that trains, by its name or one below it, else the first; then its flags."""

    def rank(item):
        names = [item[0]] + [f["dest"] for f in item[1] if f["form"] == "command"]
        return min(TRAINS.index(name) if name in TRAINS else len(TRAINS) for name in names)

    if subcommands:
        name, more = min(subcommands, key=rank)
        flags.append({"form": "command", "names": [name], "dest": name, "choices": [other for other, _ in subcommands if other != name]})
        flags += more
    return flags


def from_argparse(parser):
    flags, subcommands = [], []
    for action in parser._actions:
        kind = type(action).__name__
        if kind in ("_HelpAction", "_VersionAction") or action.help is argparse.SUPPRESS and not action.required:
            continue
        if kind == "_SubParsersAction":
            named = {}  # a subparser may have several names
            for name, sub in action.choices.items():
                named.setdefault(id(sub), (name, from_argparse(sub)))
            subcommands += named.values()
            continue
        flag = {"names": list(action.option_strings), "dest": action.dest, "type": converts(action.type), "form": "value",
                "help": "" if action.help in (None, argparse.SUPPRESS) else str(action.help).replace("%(default)s", str(action.default)).replace("%%", "%"),
                "required": bool(action.required) and action.nargs not in (0, "?", "*"), "choices": list(map(str, action.choices or ()))[:100]}
        default = action.default
        if isinstance(default, str) and action.type not in (None, str):
            try:
                default = action.type(default)  # as argparse does
            except BaseException:
                pass
        flag["default"] = default_of(default)
        if kind in ("_AppendAction", "_ExtendAction") or action.nargs not in (None, "?", 0):
            flag["form"] = "list"
        elif action.nargs == 0:
            flag["form"] = "switch"
        flags.append(flag)
    return with_subcommand(flags, subcommands)


def from_click(command):
    flags = []
    for param in getattr(command, "params", []):
        if param.name in ("help", "version", "install_completion", "show_completion") or getattr(param, "hidden", False):
            continue
        kind = getattr(param.type, "name", "text")
        switch = getattr(param, "is_flag", False) or getattr(param, "count", False)
        flag = {"names": [n for n in param.opts if n.startswith("-")], "dest": param.name, "help": getattr(param, "help", "") or "",
                "form": "switch" if switch else "list" if getattr(param, "multiple", False) or param.nargs != 1 else "value",
                "type": {"integer": "int", "integer range": "int", "float": "float", "float range": "float", "boolean": "bool"}.get(kind, "str"),
                # a flag not passed is prompted for, also with a default, and a trial has no input
                "required": not switch and (bool(param.required) or bool(getattr(param, "prompt", None)) and getattr(param, "prompt_required", True)),
                "choices": list(map(str, getattr(param.type, "choices", None) or ()))[:100], "default": default_of(param.default)}
        flags.append(flag)
    return with_subcommand(flags, [(name, from_click(sub)) for name, sub in (getattr(command, "commands", None) or {}).items()])


def from_absl(values):
    own = {id(f) for f in values.get_key_flags_for_module(sys.argv[0])}
    for module, flags in values.flags_by_module_dict().items():
        file = getattr(sys.modules.get(module), "__file__", None) or ""
        if module in (sys.argv[0], "__main__") or os.path.abspath(file).startswith(COPY + os.sep):
            own |= {id(f) for f in flags}
    found = {}
    for item in (values[name] for name in values):
        if id(item) not in own or id(item) in found:
            continue
        kind = item.flag_type()
        flag = {"names": ["--" + item.name], "dest": item.name, "help": item.help or "",
                "form": "list" if "multi" in kind or "list" in kind else "switch" if kind == "bool" else "value",
                "type": kind if kind in ("int", "float", "bool") else "str", "default": default_of(item.default),
                "choices": list(map(str, getattr(item.parser, "enum_values", None) or ())),
                "required": any("must have a value other than None" in (v.message or "") for v in item.validators)}
        found[id(item)] = flag
    return list(found.values())


def hook_argparse():
    def asking(name):
        def asked(self, args=None, *rest, **kwargs):
            if args is not None and ASKED not in args:
                done({"ended": "the script parses a list of its own: let it call parse_args() without arguments"})
            done({"framework": "argparse", "flags": from_argparse(self), "more": name == "parse_known_args" and not self.add_help})

        return asked

    for name in ("parse_args", "parse_known_args", "parse_intermixed_args"):
        setattr(argparse.ArgumentParser, name, asking(name))


def hook_click():
    import click

    for name in ("BaseCommand", "Command", "Group", "MultiCommand"):
        kind = click.core.__dict__.get(name)
        if kind is not None and "main" in kind.__dict__:
            kind.main = lambda self, *args, **kwargs: done({"framework": "click", "flags": from_click(self)})


def hook_typer():
    import typer.main

    typer.main.Typer.__call__ = lambda self, *args, **kwargs: done({"framework": "typer", "flags": from_click(typer.main.get_command(self))})


def hook_absl():
    import absl.app
    import absl.flags

    absl.app.run = lambda *args, **kwargs: done({"framework": "absl", "flags": from_absl(absl.flags.FLAGS)})
    absl.flags.FlagValues.__call__ = lambda self, *args, **kwargs: done({"framework": "absl", "flags": from_absl(self)})


def trouble(error):
    """The useful part of an exception: its message, and the place in the user's files."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(COPY + os.sep):
            place = "%s:%d" % (os.path.relpath(frame.filename, COPY), frame.lineno or 0)
    if isinstance(error, SyntaxError) and (error.filename or "").startswith(COPY + os.sep):
        place = "%s:%d" % (os.path.relpath(error.filename, COPY), error.lineno or 0)
    return {"error": "%s%s: %s" % (place and place + ": ", type(error).__name__, str(error)[:2000]),
            "missing": (getattr(error, "name", None) or "").partition(".")[0] if isinstance(error, ImportError) else ""}


def main():
    options = json.loads(sys.argv[1])
    limit = threading.Timer(options["limit"], os._exit, [0])  # when no process is left to stop the container
    limit.daemon = True
    limit.start()
    try:
        os.makedirs(COPY)
        for name in os.listdir(options["directory"]):
            os.symlink(os.path.join(options["directory"], name), os.path.join(COPY, name))
        os.chdir(COPY)
        sys.argv = [os.path.join(COPY, options["script"]), ASKED]
        sys.path[0] = COPY
        for hook in (hook_argparse, hook_click, hook_typer, hook_absl):
            try:
                hook()
            except ImportError:
                pass
        if options["stub"]:
            sys.meta_path.append(StubFinder())
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as error:
        done({"ended": "the script ended with exit code %s before it asked for its flags" % (error.code,)})
    except BaseException as error:
        found = trouble(error)
        if options["stub"] and found["missing"]:
            STUBBED.append(found["missing"])
        done(found)
    done({"ended": "the script ended before it asked for its flags"})


OUT = os.dup(1)
os.dup2(2, 1)  # the script's output cannot crowd out the findings
main()
