"""
The Python engine: MicroPython, with our port around it and our modules inside.

    edits -> names that the sources use -> generated headers -> compilation -> a module that imports ours only

Upstream's own scripts make the headers; its makefiles, which want a Unix, are not used. The same sources give
the same bytes: nothing of the machine, a folder's place or the time goes in.
"""

from __future__ import annotations

import io
import re
import string
import sys
import tokenize
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from runner.build.c import zig_path
from runner.build.engines.recipe import DebianSource, Recipe, Run
from runner.build.sdk import sdk_root
from runner.errors import BuildFailed

PIN: Final = DebianSource(
    package="micropython",
    version="1.25.0",
    suite="trixie",
    sha256="7b25be99a502f070b2de81dafc08da7051d992325d6e67daa9045a918fffdbea",
)

STACK_BYTES: Final = 448 * 1024
"""
Of the C stack, which lies below all data. Python's recursion may use most of it: see
`guest_sdk/python/port/engine.c`.
"""

_FOLDERS: Final = ("python", "engine", "c/include")

_EXTMOD: Final = ("modbinascii", "modhashlib", "modheapq")
# For processors and systems that an agent does not have.
_LEFT_OUT: Final = re.compile(
    r"(asm|emitn|emitinline|nlr(?!\.c|setjmp\.c)|mod(thread|gc|micropython|errno)|(profile|showbc|repl|persistentcode|"
    r"frozenmod|pystack|nativeglue|objint_longlong|builtinhelp|objringio|ringbuf|stackctrl|pairheap|formatfloat)\.c)"
)
_MAP_FUNCTIONS: Final = (
    "mp_map_init",
    "mp_map_init_fixed_table",
    "mp_map_deinit",
    "mp_map_clear",
    "mp_map_lookup",
    "mp_map_dump",
)
_STEPPED: Final = (
    r'mp_raise_NotImplementedError\(MP_ERROR_TEXT\("only slices with step=1 \(aka None\) are supported"\)\);'
)
# The loop of the interpreter, and what it spends its time in.
_HOT: Final = ("vm", "gc", "map", "obj", "runtime", "objfun", "bc", "qstr")

_FLAGS: Final = (
    "-target", "wasm32-wasi", "-std=gnu11", "-g0", "-DNDEBUG", "-fno-sanitize=undefined",
    "-ffunction-sections", "-fdata-sections",
    # `setjmp` by exceptions of the standard's final form.
    "-mexception-handling", "-mllvm", "-wasm-enable-sjlj", "-mllvm", "-wasm-use-legacy-eh=false",
)  # fmt: skip
_OWN_FLAGS: Final = ("-Wall", "-Wextra", "-Wno-unused-parameter")
_LINK_FLAGS: Final = (
    "-nostartfiles", "-Wl,--no-entry", "-Wl,--gc-sections", "-Wl,--strip-all",
    f"-Wl,-z,stack-size={STACK_BYTES}",
)  # fmt: skip

_CHECK: Final = "ENGINE_CHECK_STACK(512);"
_CHECK_CALL: Final = "ENGINE_CHECK_STACK(256);"
_SLICE_ARRAY: Final = (
    "if (value == MP_OBJ_SENTINEL) return engine_slice(self_in, index_in); "
    "mp_raise_NotImplementedError(NULL);"
)
_NATIVE_TUPLE: Final = (
    "if (mp_obj_is_instance_type(mp_obj_get_type(rhs))) "
    "rhs = mp_obj_cast_to_native_base(rhs, MP_OBJ_FROM_PTR(&mp_type_tuple)); "
    "mp_obj_tuple_t *p = MP_OBJ_TO_PTR(rhs);"
)
_SLICE: Final = (_STEPPED, "return engine_slice(self_in, index);")
# The bytes of a character as they are, from where the next one begins.
_AS_IT_IS: Final = (
    "else if (ch > 0xa0 && ch != 0xad && !(ch >= 0xd800 && ch < 0xe000)) { "
    "int n = ch < 0x800 ? 2 : ch < 0x10000 ? 3 : 4; "
    "print->print_strn(print->data, (const char *)s - n, n); } "
    "else if (ch < 0x100)"
)

# Of a file: what gives way, as an expression, and to what. Each is found once: the sources are pinned.
_EDITS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    # Maps that keep their order are ours; sets stay upstream's.
    "map.c": ((r"\A", "".join(f"#define {name} upstream_{name}\n" for name in _MAP_FUNCTIONS)),),
    "objdict.c": (
        (
            r"self->map\.is_ordered\) \{\s+cur = self->map\.used - 1;",
            "1) { cur = engine_map_last(&self->map);",
        ),
    ),
    # Exact floats.
    "objfloat.c": ((r"mp_format_float\(", "engine_float_repr("),),
    "objcomplex.c": ((r"\A", "#define mp_format_float engine_float_repr\n"),),
    "mpprint.c": ((r"\A", "#define mp_print_float upstream_print_float\n"),),
    "parsenum.c": ((r"\A", "#define mp_parse_num_decimal upstream_parse_num_decimal\n"),),
    "modbuiltins.c": (
        (r"MICROPY_FLOAT_C_FUN\(nearbyint\)\(val \* mult\) / mult", "engine_round(val, num_dig)"),
    ),
    # Slices with a step, texts as they are, and sizes that do not wrap.
    "objstr.c": (
        (
            r"type = 'g';\s+\}\s+if \(type == 'n'",
            "type = 'g'; if (precision < 0) precision = ENGINE_REPR; } if (type == 'n'",
        ),
        _SLICE,
        (r"vstr_init_len\(&vstr, lhs_len \* n\)", "vstr_init_len(&vstr, engine_times(lhs_len, n))"),
    ),
    "objstrunicode.c": (_SLICE, (r"else if \(ch < 0x100\)", _AS_IT_IS)),
    "objtuple.c": (
        _SLICE,
        (r"mp_obj_new_tuple\(o->len \* n, NULL\)", "mp_obj_new_tuple(engine_times(o->len, n), NULL)"),
        (
            r"mp_obj_tuple_t \*p = MP_OBJ_TO_PTR\(rhs\);",
            _NATIVE_TUPLE,
        ),
        (r"\A", '#include "py/objtype.h"\n'),
        (r"case MP_UNARY_OP_HASH: \{", f"case MP_UNARY_OP_HASH: {{ {_CHECK}"),
    ),
    "objarray.c": (
        (
            _STEPPED,
            _SLICE_ARRAY,
        ),
    ),
    "objlist.c": (
        (r"list_new\(o->len \* n\)", "list_new(engine_times(o->len, n))"),
        (r"mp_quicksort\(self->items, self->items \+ self->len - 1,", "engine_sort(self,"),
        (r"args\.reverse\.u_bool \? mp_const_false : mp_const_true", "args.reverse.u_bool"),
    ),
    "misc.h": (
        (r"m_malloc\(sizeof\(type\) \* \(num\)\)", "m_malloc(engine_times(sizeof(type), (num)))"),
        (r"m_malloc0\(sizeof\(type\) \* \(num\)\)", "m_malloc0(engine_times(sizeof(type), (num)))"),
        (
            r"m_malloc\(offsetof\(obj_type, var_field\) \+ sizeof\(var_type\) \* \(var_num\)\)",
            "m_malloc(offsetof(obj_type, var_field) + engine_times(sizeof(var_type), (var_num)))",
        ),
    ),
    "obj.h": (
        (
            r"\(offsetof\(struct_type, var_field\) \+ sizeof\(var_type\) \* \(var_num\)",
            "(offsetof(struct_type, var_field) + engine_times(sizeof(var_type), (var_num))",
        ),
    ),
    # Exceptions with attributes, and attributes that other types lack.
    "objexcept.h": ((r"mp_obj_tuple_t \*args;", "mp_obj_tuple_t *args; mp_obj_dict_t *attributes;"),),
    "objexcept.c": (
        (r"o_exc->traceback_data = NULL;", "o_exc->traceback_data = NULL; o_exc->attributes = NULL;"),
        (r"(?m)^void mp_obj_exception_print\(", "void upstream_exception_print("),
        (r"(?m)^void mp_obj_exception_attr\(", "void upstream_exception_attr("),
    ),
    "runtime.c": (
        (r"(?m)^void mp_load_method_maybe\(", "void upstream_load_method_maybe("),
        (r"mp_cstack_check\(\);", _CHECK),
        (r"(?m)^(mp_obj_t mp_call_function_n_kw\([^)]*\) \{)", r"\1 " + _CHECK_CALL),
    ),
    # Recursion that is looked at: where values are shown, compared and compiled.
    "obj.c": (
        (r"mp_cstack_check\(\);", _CHECK),
        (r"(?m)^(mp_obj_t mp_obj_equal_not_equal\([^)]*\) \{)", r"\1 " + _CHECK),
    ),
    "compile.c": ((r"(?m)^(static void compile_node\([^)]*\) \{)", r"\1 " + _CHECK),),
}

# Upstream takes it from the date and a repository.
_VERSION: Final = """\
#define MICROPY_GIT_TAG "v{version}"
#define MICROPY_GIT_HASH "0"
#define MICROPY_BUILD_DATE "2025-01-01"
"""

# Upstream's scripts print what they make.
_PRINT_TO: Final = """\
import runpy, sys
sys.stdout = open(sys.argv[1], "w", encoding="utf-8")
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def compile_engine(sources: Path, scratch: Path, run: Run) -> Path:
    """
    Compile and link the engine.

    Args:
        sources: The unpacked archive. It is edited.
        scratch: Where all that is made goes.
        run: Runs a program.

    Returns:
        The module.
    """
    return _Making(sources, scratch, run).make()


class _Making:
    """
    One compilation.
    """

    def __init__(self, sources: Path, scratch: Path, run: Run) -> None:
        self._upstream = sources
        self._sdk = sdk_root()
        self._port = self._sdk / "python" / "port"
        self._made = scratch / "made"
        self._headers = self._made / "genhdr"
        self._run = run
        self._compiler = [str(zig_path()), "cc"]
        self._flags = [
            *_FLAGS,
            f"-DENGINE_STACK_BYTES={STACK_BYTES}",
            *(f"-ffile-prefix-map={path}=." for path in (sources, self._sdk, scratch)),
            *(
                f"-I{path}"
                for path in (self._port, sources, self._made, *(self._sdk / name for name in _FOLDERS))
            ),
        ]

    def make(self) -> Path:
        """
        All of it.
        """
        self._headers.mkdir(parents=True)
        self._edit()
        upstream, ours = self._upstream_sources(), sorted(self._port.glob("*.c"))
        self._make_headers([*upstream, *ours])
        embedded = self._made / "sources.c"
        embedded.write_text(_embed(self._sdk / "python"), encoding="utf-8")
        objects = [
            *self._compile(upstream, "-w"),
            *self._compile([*ours, embedded, self._sdk / "engine" / "wasi.c"], *_OWN_FLAGS),
        ]
        module = self._made / "python.wasm"
        self._run([*self._compiler, *self._flags, *_LINK_FLAGS, *objects, "-o", str(module)])
        return module

    def _edit(self) -> None:
        for name, edits in _EDITS.items():
            path = self._upstream / "py" / name
            text = path.read_text(encoding="utf-8")
            for pattern, replacement in edits:
                text, count = re.subn(pattern, replacement, text)
                if count != 1:
                    raise BuildFailed(name, f"an edit of it fits {count} times: {pattern}")
            path.write_text(text, encoding="utf-8")

    def _upstream_sources(self) -> list[Path]:
        core = sorted((self._upstream / "py").glob("*.c"))
        return [
            *(path for path in core if not _LEFT_OUT.match(path.name)),
            *(self._upstream / "extmod" / f"{name}.c" for name in _EXTMOD),
        ]

    def _compile(self, sources: Iterable[Path], *flags: str) -> list[str]:
        objects = []
        for source in sources:
            made = self._made / f"{source.parent.name}-{source.stem}.o"
            level = "-O2" if source.stem in _HOT else "-Os"
            self._run([*self._compiler, *self._flags, level, *flags, "-c", str(source), "-o", str(made)])
            objects.append(str(made))
        return objects

    def _make_headers(self, sources: Sequence[Path]) -> None:
        """
        The headers that upstream generates: from the names, modules and roots that the sources speak of.
        """
        (self._headers / "mpversion.h").write_text(_VERSION.format(version=PIN.version), encoding="utf-8")
        everything = self._made / "everything.c"
        everything.write_text("".join(f'#include "{path}"\n' for path in sources), encoding="utf-8")
        expanded = self._preprocess(everything)
        collected = {kind: self._collect(kind, expanded) for kind in ("qstr", "module", "root_pointer")}
        names = self._made / "names.c"
        listed = (self._upstream / "py" / "qstrdefs.h", collected["qstr"])
        # In quotes no name can be taken for a macro.
        names.write_text(
            re.sub(r"^Q\(.*\)", r'"\g<0>"', "".join(path.read_text() for path in listed), flags=re.MULTILINE),
            encoding="utf-8",
        )
        text = self._preprocess(names).read_text(encoding="utf-8")
        wanted = self._made / "names.txt"
        wanted.write_text(re.sub(r'^"(Q\(.*\))"', r"\1", text, flags=re.MULTILINE), encoding="utf-8")
        self._script("makeqstrdata.py", self._headers / "qstrdefs.generated.h", wanted)
        self._script("makemoduledefs.py", self._headers / "moduledefs.h", collected["module"])
        self._script("make_root_pointers.py", self._headers / "root_pointers.h", collected["root_pointer"])

    def _preprocess(self, source: Path) -> Path:
        made = source.with_suffix(".i")
        self._run([*self._compiler, *self._flags, "-DNO_QSTR", "-E", str(source), "-o", str(made)])
        return made

    def _collect(self, kind: str, expanded: Path) -> Path:
        folder, collected = self._made / kind, self._made / f"{kind}.collected"
        folder.mkdir()
        for action in ("split", "cat"):
            self._script("makeqstrdefs.py", self._made / "log.txt", action, kind, expanded, folder, collected)
        return collected

    def _script(self, name: str, output: Path, *arguments: Path | str) -> None:
        script = self._upstream / "py" / name
        self._run([sys.executable, "-c", _PRINT_TO, str(output), str(script), *map(str, arguments)])


def _embed(folder: Path) -> str:
    """
    C source that holds the texts of our modules.
    """
    prelude = [folder / "prelude" / f"{name}.py" for name in PRELUDE]
    library = sorted((folder / "lib").rglob("*.py"))
    rest = sorted(path for path in (folder / "prelude").glob("*.py") if path.stem not in PRELUDE)
    tables = {"prelude": [(path.stem, path) for path in prelude]}
    tables["library"] = [(_dotted(path.relative_to(folder / "lib")), path) for path in library]
    tables["library"] += [(path.stem, path) for path in rest]
    lines = ['#include "engine.h"\n']
    for kind, modules in tables.items():
        lines.append(f"const source engine_{kind}[] = {{\n")
        for name, path in modules:
            text = _without_comments(path.read_text(encoding="utf-8")).encode()
            lines.append(
                f'{{"{name}", {_literal(text)}, {len(text)}, {str(path.stem == "__init__").lower()}}},\n'
            )
        lines.append(f"}};\nconst size_t engine_{kind}_count = {len(modules)};\n")
    return "".join(lines)


PRELUDE: Final = ("runner_errors", "runner_imports", "runner_tasks", "runner_calls", "agent", "runner_engine")
"""
The modules of the prelude, in the order in which they run.
"""


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _without_comments(text: str) -> str:
    """
    The same lines without what the compiler would skip.
    """
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
    return "\n".join(lines) + "\n"


def _literal(text: bytes) -> str:
    plain = frozenset(string.printable.encode()) - frozenset(b'"\\?' + string.whitespace.encode()) | {0x20}
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text) + '"'


RECIPE: Final = Recipe(
    language="python",
    title="Python",
    name=f"MicroPython {PIN.version}",
    source=PIN,
    folders=_FOLDERS,
    compile_engine=compile_engine,
)
