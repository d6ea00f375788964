"""Runs a script until it reads its command line, and says which flags it has.

Berth runs this in a container: python3 -c <this file> <options as JSON>. What it
finds goes to standard output, one line of JSON behind MARK for each finding; the
last line counts. The process ends as soon as the script asks for its arguments,
before any training. stubs.py stands in front of this file, in one text.
"""

import inspect
import json
import math
import os
import runpy
import sys
import threading
import traceback

MARK = "\x1eberth-flags "
ASKED = "--berth-flags"  # the only argument of the script: it tells sys.argv[1:] from an empty list


def say(finding):
    finding["stubbed"] = sorted(set(STUBBED))
    os.write(OUT, ("\n" + MARK + json.dumps(finding) + "\n").encode())


def done(finding):
    say(finding)
    os._exit(0)


def scalar(value):
    """A value as JSON has it; None for what has no such form."""
    if hasattr(value, "value") and type(value).__module__ not in ("builtins",) and isinstance(getattr(value, "value"), (str, int, float)):
        value = value.value  # an enum
    if isinstance(value, int) and abs(value) > 1 << 53:
        return None
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if hasattr(value, "__fspath__") and not isinstance(value, Stub):
        return str(value)
    return None


def default_of(flag, value):
    if value is None or value is inspect._empty or isinstance(value, Stub) or type(value).__name__ in ("Sentinel", "UNSET", "DefaultPlaceholder"):
        return
    if callable(value):
        return
    simple = scalar(value)
    if simple is None:
        flag["default_text"] = str(value)[:200]
    else:
        flag["default"] = simple


def converts(kind):
    """What a converter makes of texts: bool, int, float, str, bool_trap or other."""
    if kind is None or kind is str:
        return "str"
    if kind is bool:
        return "bool_trap"  # bool("False") is True
    if kind in (int, float):
        return kind.__name__

    def of(text):
        try:
            return kind(text)
        except BaseException:
            return None

    yes, no = of("true"), of("false")
    if yes is True and no is False:
        return "bool"
    three, half = of("3"), of("0.5")
    if isinstance(half, float):
        return "float"
    if isinstance(three, int) and not isinstance(three, bool):
        return "int"
    if isinstance(three, str):
        return "str"
    return "other"


def choices_of(values):
    try:
        found = [scalar(v) for v in list(values)[:100]]
    except TypeError:
        return []
    return [v for v in found if v is not None]


def from_argparse(parser, command=""):
    import argparse

    groups = {}
    for number, group in enumerate(parser._mutually_exclusive_groups, 1):
        for action in group._group_actions:
            groups[id(action)] = number
    flags = []
    for action in parser._actions:
        kind = type(action).__name__
        if kind in ("_HelpAction", "_VersionAction") or action.dest == "help" or action.help is argparse.SUPPRESS:
            continue
        if kind == "_SubParsersAction":
            for name, sub in action.choices.items():
                flags += from_argparse(sub, name)
            continue
        flag = {"names": list(action.option_strings), "dest": action.dest, "type": "str", "form": "value", "help": action.help or "",
                "required": bool(getattr(action, "required", False)), "command": command, "group": groups.get(id(action), 0)}
        default = action.default
        if kind == "_StoreTrueAction":
            flag.update(form="true", type="bool")
        elif kind == "_StoreFalseAction":
            flag.update(form="false", type="bool")
        elif kind == "BooleanOptionalAction":
            flag.update(form="pair", type="bool", negative=[n for n in action.option_strings if n.startswith("--no-")][:1],
                        names=[n for n in action.option_strings if not n.startswith("--no-")])
        elif kind == "_CountAction":
            flag.update(form="count")
        elif kind in ("_StoreConstAction", "_AppendConstAction"):
            flag.update(form="const")
        elif kind in ("_AppendAction", "_ExtendAction") or action.nargs not in (None, "?"):
            flag.update(form="list", type=converts(action.type))
        else:
            flag["type"] = converts(action.type)
            if isinstance(default, str) and action.type not in (None, str):
                try:
                    default = action.type(default)
                except BaseException:
                    default = None
        if action.nargs in ("?", "*"):
            flag["required"] = False
        if action.choices is not None:
            flag["choices"] = choices_of(action.choices)
        if default is not argparse.SUPPRESS:
            default_of(flag, default)
        try:
            flag["help"] = flag["help"] % dict(vars(action), prog="")
        except BaseException:
            pass
        flags.append(flag)
    return flags


def from_click(command, path=""):
    flags = []
    for param in getattr(command, "params", []):
        if param.name in ("help", "version", "install_completion", "show_completion") or getattr(param, "hidden", False):
            continue
        names = sorted(param.opts, key=lambda n: not n.startswith("--"))
        option = type(param).__name__.endswith("Option") or any(n.startswith("-") for n in names)
        kind = getattr(param.type, "name", "text")
        flag = {"names": names if option else [], "dest": param.name, "form": "value", "help": getattr(param, "help", "") or "",
                "required": bool(param.required), "command": path, "short_only": option and not names[0].startswith("--"),
                "type": {"integer": "int", "integer range": "int", "float": "float", "float range": "float", "boolean": "bool"}.get(kind, "str")}
        for bound in ("min", "max"):
            value = getattr(param.type, bound, None)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                flag[bound] = value
        if getattr(param, "count", False):
            flag["form"] = "count"
        elif getattr(param, "multiple", False) or param.nargs != 1:
            flag["form"] = "list"
        elif getattr(param, "is_flag", False):
            plain = kind == "boolean"
            flag.update(form="pair" if param.secondary_opts else "true" if plain else "const", type="bool", negative=list(param.secondary_opts)[:1])
        if hasattr(param.type, "choices"):
            flag["choices"] = choices_of(param.type.choices)
        default_of(flag, param.default)
        flags.append(flag)
    for name, sub in (getattr(command, "commands", None) or {}).items():
        flags += from_click(sub, (path + " " + name).strip())
    return flags


def from_absl(values, here):
    own = {id(f) for f in values.get_key_flags_for_module(sys.argv[0])}
    for module, flags in values.flags_by_module_dict().items():
        file = getattr(sys.modules.get(module), "__file__", None) or ""
        if module in (sys.argv[0], "__main__") or os.path.abspath(file).startswith(here + os.sep):
            own |= {id(f) for f in flags}
    found, seen = [], set()
    for name in values:
        item = values[name]
        if id(item) not in own or id(item) in seen:
            continue
        seen.add(id(item))
        kind = item.flag_type()
        flag = {"names": ["--" + item.name], "dest": item.name, "form": "value", "help": item.help or "", "command": "",
                "type": {"int": "int", "float": "float", "bool": "bool"}.get(kind, "str"),
                "required": any("must have a value other than None" in (v.message or "") for v in item.validators)}
        if "multi" in kind or "list" in kind:
            flag["form"] = "list"
        if getattr(item.parser, "enum_values", None):
            flag["choices"] = choices_of(item.parser.enum_values)
        elif hasattr(item.parser, "enum_class"):
            flag["choices"] = [m.name.lower() for m in item.parser.enum_class]
        for bound, attribute in (("min", "lower_bound"), ("max", "upper_bound")):
            value = getattr(item.parser, attribute, None)
            if value is not None and not isinstance(value, Stub):
                flag[bound] = value
        default_of(flag, getattr(item.default, "name", "").lower() if hasattr(item.parser, "enum_class") and item.default is not None else item.default)
        found.append(flag)
    return found


def hook_argparse():
    import argparse

    parse_known, parse = argparse.ArgumentParser.parse_known_args, argparse.ArgumentParser.parse_args
    before = []  # the flags of parsers that only look for a few, before the real one
    inside = []

    def found(parser):
        return {"framework": "argparse", "flags": before + from_argparse(parser)}

    def parse_args(self, args=None, namespace=None):
        if args is not None and ASKED not in args:  # such as [], the defaults, on purpose
            return parse(self, args, namespace)
        done(found(self))

    def parse_known_args(self, args=None, namespace=None, **kwargs):
        if args is not None and ASKED not in args:
            return parse_known(self, args, namespace, **kwargs)
        if self.add_help:
            done(found(self))
        if not inside:
            end = threading.Timer(20, os._exit, [0])  # no other parser comes
            end.daemon = True
            end.start()
            inside.append(end)
        before.extend(from_argparse(self))
        say({"framework": "argparse", "flags": before})
        return parse_known(self, [], namespace, **kwargs)

    argparse.ArgumentParser.parse_args = parse_args
    argparse.ArgumentParser.parse_known_args = parse_known_args
    argparse.ArgumentParser.parse_intermixed_args = parse_args


def hook_click():
    import click

    def main(self, *args, **kwargs):
        done({"framework": "click", "flags": from_click(self)})

    for name in ("BaseCommand", "Command", "Group", "MultiCommand"):
        kind = click.core.__dict__.get(name)
        if kind is not None and "main" in kind.__dict__:
            kind.main = main


def hook_typer():
    import typer.main

    def call(self, *args, **kwargs):
        done({"framework": "typer", "flags": from_click(typer.main.get_command(self))})

    typer.main.Typer.__call__ = call


def hook_absl(here):
    import absl.app
    import absl.flags

    def run(*args, **kwargs):
        done({"framework": "absl", "flags": from_absl(absl.flags.FLAGS, here)})

    def call(self, *args, **kwargs):
        done({"framework": "absl", "flags": from_absl(self, here)})

    absl.app.run = run
    absl.flags.FlagValues.__call__ = call


def trouble(error, here):
    """What a person needs of an exception: the innermost one, and where in their files."""
    chain = [error]
    while (chain[-1].__cause__ or chain[-1].__context__) not in [None] + chain:
        chain.append(chain[-1].__cause__ or chain[-1].__context__)
    inner = next((e for e in reversed(chain) if isinstance(e, ModuleNotFoundError)), chain[-1])
    place = ""
    for e in chain:
        for frame in traceback.extract_tb(e.__traceback__):
            if os.path.isabs(frame.filename) and frame.filename.startswith(here + os.sep):
                place = "%s:%d" % (os.path.relpath(frame.filename, here), frame.lineno or 0)
    if isinstance(inner, SyntaxError) and (inner.filename or "").startswith(here + os.sep):
        place = "%s:%d" % (os.path.relpath(inner.filename, here), inner.lineno or 0)
    return {"error": {"type": type(inner).__name__, "message": str(inner)[:2000], "place": place,
                      "module": (getattr(inner, "name", None) or "").partition(".")[0] if isinstance(inner, ImportError) else ""}}


def find(options):
    """The script in the image: the file of this content, else one of this name."""
    import hashlib

    differs = ""
    for path in options.get("candidates", []):
        try:
            with open(path, "rb") as file:
                if hashlib.sha256(file.read()).hexdigest() == options["sha256"]:
                    return path, ""
                differs = differs or path
        except OSError:
            pass
    return "", differs


def main():
    options = json.loads(sys.argv[1])
    in_image, differs = find(options)
    path = in_image or options["script"]
    first = {"in_image": in_image, "differs": differs}
    if options.get("source"):
        try:
            with open(path, errors="replace") as file:
                first["source"] = file.read(1 << 20)
        except OSError as error:
            done({"look": first, "error": {"type": type(error).__name__, "message": str(error), "place": "", "module": ""}})
    say({"look": first})
    if not options.get("run", True):
        os._exit(0)
    here = os.path.dirname(os.path.abspath(path))
    sys.argv = [path, ASKED]
    sys.path[0] = here
    for hook in (hook_argparse, hook_click, hook_typer, lambda: hook_absl(here)):
        try:
            hook()
        except ImportError:
            pass
    if options.get("stub"):
        sys.meta_path.append(StubFinder(here))
    limit = threading.Timer(options.get("limit", 120), os._exit, [0])
    limit.daemon = True
    limit.start()
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as error:
        done({"ended": "exit %s" % (error.code,)})
    except BaseException as error:
        done(trouble(error, here))
    done({"ended": "end"})


OUT = os.dup(1)
main()
