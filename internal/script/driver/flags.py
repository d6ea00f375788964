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
import re
import runpy
import shutil
import sys
import threading
import traceback

MARK = "\x1eberth-flags "
ASKED = "--berth-flags"  # the only argument of the script: it tells sys.argv[1:] from an empty list


COPY = "/tmp/berth-script"  # where the script may write beside itself, as in a trial
OPTIONS = {}


class Arguments(list):
    """The script's command line: what is taken of it can be told from a list of the script's own."""

    def __getitem__(self, key):
        got = list.__getitem__(self, key)
        return Arguments(got) if isinstance(key, slice) else got


def own(args):
    """Whether a script parses a list of its own, not its command line."""
    return args is not None and not isinstance(args, Arguments) and ASKED not in args


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
        if isinstance(simple, str) and os.uname().nodename in simple:
            flag["computed"] = True


def converts(kind):
    """What a converter makes of texts: bool, int, float, str, bool_trap or other; none when there is none."""
    if kind is None:
        return "none"
    if kind is str:
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
        found = [scalar(v) for v, _ in zip(values, range(100))]
    except TypeError:
        return []
    return [v for v in found if v is not None]


def help_of(action):
    """A help as argparse shows it; "100% of it" is text."""
    values = dict(vars(action), prog="")

    def shown(match):
        return "%" if match[0] == "%%" else str(values.get(match[1], match[0]))

    return re.sub(r"%\((\w+)\)[a-z]|%%", shown, str(action.help or ""))


def from_argparse(parser, command=""):
    import argparse

    groups, needed = {}, set()
    for number, group in enumerate(parser._mutually_exclusive_groups, 1):
        for action in group._group_actions:
            groups[id(action)] = number
            if group.required:
                needed.add(id(action))
    flags = []
    if command:
        flags.append({"form": "command", "command": command})
    for action in parser._actions:
        kind = type(action).__name__
        if kind in ("_HelpAction", "_VersionAction") or action.dest == "help":
            continue
        hidden = action.help is argparse.SUPPRESS
        if hidden and not action.required:
            continue
        if kind == "_SubParsersAction":
            seen = set()  # a parser may have several names
            for name, sub in action.choices.items():
                if id(sub) not in seen:
                    seen.add(id(sub))
                    flags += from_argparse(sub, (command + " " + name).strip())
            continue
        flag = {"names": list(action.option_strings), "dest": action.dest, "type": "str", "form": "value", "help": "" if hidden else help_of(action),
                "required": bool(getattr(action, "required", False)), "command": command, "group": groups.get(id(action), 0),
                "group_required": id(action) in needed}
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
        if isinstance(action.choices, range) and len(action.choices) > 100:
            flag.update(min=min(action.choices), max=max(action.choices))
        elif action.choices is not None:
            flag["choices"] = choices_of(action.choices)
        if default is not argparse.SUPPRESS:
            default_of(flag, default)
        flags.append(flag)
    return flags


def from_click(command, path=""):
    flags = [{"form": "command", "command": path}] if path else []
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
        if getattr(param, "prompt", None) and getattr(param, "prompt_required", True) and not getattr(param, "is_flag", False):
            flag["required"] = True  # what is not passed is asked for, also where there is a default, and a trial has no input
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
    asked = []  # each call that read the command line, or a list of the script's own

    def found(parser):
        flags = from_argparse(parser)
        names = [n for f in flags for n in f.get("names", [])]
        return [f for f in before if not set(f.get("names", [])) & set(names)] + flags  # parents=[first] has them again

    def another():
        """Whether the text has more places that parse. Where none comes, the wait ends: the script would train."""
        asked.append(1)
        if len(asked) == 1:
            end = threading.Timer(OPTIONS.get("another", 30), os._exit, [0])
            end.daemon = True
            end.start()
        return len(asked) < OPTIONS.get("parses", 1)

    def parse_args(self, args=None, namespace=None):
        if own(args):  # such as [], the defaults, on purpose
            if not another():
                done({"ended": "own arguments"})
            return parse(self, args, namespace)
        done({"framework": "argparse", "flags": found(self)})

    def parse_known_args(self, args=None, namespace=None, **kwargs):
        if own(args):
            return parse_known(self, args, namespace, **kwargs)
        flags = found(self)
        if not another():
            done({"framework": "argparse", "flags": flags, "more": not self.add_help})
        say({"framework": "argparse", "flags": flags, "more": True})
        for flag in flags:
            if flag not in before:
                before.append(flag)
        try:
            known = parse_known(self, [], namespace, **kwargs)[0]
        except SystemExit:  # a flag of it is required: its defaults must do
            known = argparse.Namespace(**{a.dest: a.default for a in self._actions if a.default is not argparse.SUPPRESS})
        return known, Arguments([ASKED])

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

    def digest(path):
        try:
            with open(path, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()
        except OSError:
            return ""

    differs = ""
    for path in options.get("candidates", []):
        there = digest(path)
        modules = options.get("modules") or {}
        if there == options["sha256"] and all(digest(os.path.join(os.path.dirname(path), m)) == sha for m, sha in modules.items()):
            return path, ""
        if there:
            differs = differs or path
    return "", differs


def copy_of(source, files=5000, size=64 << 20, largest=4 << 20):
    """A directory that the script may write to, as a trial's working directory: small files are copied, others linked."""
    for folder, below, names in os.walk(source):
        target = os.path.join(COPY, os.path.relpath(folder, source))
        os.makedirs(target, exist_ok=True)
        for name in below[:]:
            if os.path.islink(os.path.join(folder, name)) or name in (".git", "__pycache__"):
                below.remove(name)
        linked = [n for n in os.listdir(folder) if n not in below] if files > 0 else os.listdir(folder)
        if files <= 0:
            del below[:]
        for name in linked:
            path, files = os.path.join(folder, name), files - 1
            try:
                length = os.path.getsize(path)
                if files > 0 and os.path.isfile(path) and length <= min(largest, size):
                    shutil.copy(path, os.path.join(target, name))
                    os.chmod(os.path.join(target, name), 0o700)
                    size -= length
                    continue
            except OSError:
                pass
            try:
                if not os.path.lexists(os.path.join(target, name)):
                    os.symlink(path, os.path.join(target, name))
            except OSError:
                pass


def main():
    options = json.loads(sys.argv[1])
    OPTIONS.update(options)
    limit = threading.Timer(options.get("limit", 120), os._exit, [0])
    limit.daemon = True
    limit.start()
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
    place = options.get("directory") or os.getcwd()
    if place != "/" and not os.access(place, os.W_OK):
        copy_of(place)
        os.chdir(COPY)
        if not in_image and path.startswith(place + os.sep):
            path = COPY + path[len(place):]
    here = os.path.dirname(os.path.abspath(path))
    sys.argv = Arguments([path, ASKED])
    sys.path[0] = here
    for hook in (hook_argparse, hook_click, hook_typer, lambda: hook_absl(here)):
        try:
            hook()
        except ImportError:
            pass
    if options.get("stub"):
        sys.meta_path.append(StubFinder(here))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as error:
        done({"ended": "exit %s" % (error.code,)})
    except BaseException as error:
        done(trouble(error, here))
    done({"ended": "end"})


OUT = os.dup(1)
os.dup2(2, 1)  # what the script prints cannot crowd out what is found
main()
