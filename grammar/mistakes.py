"""The table of mistakes: what people write that is no kernel, what to tell them, and texts that show it.

One row a slug. The words in braces are filled in where the mistake is found: in `tokens` and `literals`, in
`convert` (what the grammar reads only to refuse it), in `check`, and in `diagnose` (what the grammar cannot
read). The tests parse every sample: «…» marks what must be underlined, ‹…› the second place.
"""

from __future__ import annotations

from metaljit.frozen import frozen
from metaljit.source import Diagnostic, Span, SyntaxFault

# Characters of the user's text that a message repeats.
LONGEST_SHOWN = 80


@frozen
class Mistake:
    slug: str
    message: str
    help: str
    samples: tuple[str, ...]
    label: str = ""
    second: str = ""


_TEXT = (
    Mistake(
        "file-too-large",
        "`{name}` has {length:,} characters; a file of kernels has at most {limit:,}",
        "split it over several files",
        (),
    ),
    Mistake(
        "bad-character",
        "{what} means nothing in a kernel",
        "{instead}",
        ("x = a «$» b", "x = «“»1”", "x = a «−» b", "x = 1 «\x00»", "«²» = 1"),
    ),
    Mistake(
        "nested-too-deep",
        "{what} are nested more than {limit} deep here",
        "give the inner part a name of its own",
        ("x = " + "(" * 100 + "«(»",),
    ),
    Mistake(
        "unexpected-indent",
        "this line is indented, but the line before it opens no block",
        "begin it in the same column as the line before",
        ("x = 1\n«    »y = 2", "def f(x):\n    y = x\n«        »return y"),
    ),
    Mistake(
        "missing-indent",
        "the block of `{keyword}` is empty: its lines must be indented",
        "indent the lines of the block, or write `pass`",
        (
            "‹def f(x):›\n«return» x",
            "def f(x):\n    ‹if x:›\n    «return» x",
            "def f(x):\n    ‹while x:›\n        # nothing\n\n«x» = 1",
            "‹def f(x):›«»",
        ),
        second="this opens the block",
    ),
    Mistake(
        "inconsistent-dedent",
        "this line is indented by {columns} columns; the blocks around it begin at {allowed}",
        "begin it in the column of the block that it belongs to",
        ("def f(x):\n    if x:\n        pass\n«      »return x",),
    ),
    Mistake(
        "mixed-indentation",
        "tabs and spaces are mixed so that the indentation depends on the width of a tab",
        "indent with spaces only",
        (
            "def f(x):\n‹        ›y = x\n«\t»return y",
            "def f(x):\n‹\t›if x:\n«        »return y",
            "def f(x):\n‹  ›if x:\n«\t»y = x",
        ),
        second="indented in another way",
    ),
)

_BRACKETS = (
    Mistake(
        "unclosed-bracket",
        "`{opener}` is never closed: {found} cannot stand inside it",
        "write the missing `{closer}`",
        (
            "x = f‹(›a, b\n«y» = 2",
            "x = (1 + ‹[›2, 3\n«def» f(): pass",
            "x = f‹(›1,«»",
            "def f‹(›x:\n    «return» x",
        ),
        second="opened here",
    ),
    Mistake(
        "unmatched-bracket",
        "`{closer}` closes nothing",
        "remove it, or write the bracket that it should close",
        ("x = a«)»", "x = f(1)«]» + 2"),
    ),
    Mistake(
        "mismatched-bracket",
        "`{closer}` cannot close `{opener}`",
        "write `{expected}`",
        ("x = f‹(›a«]»", "x = (a‹[›1«)»"),
        second="opened here",
    ),
)

_LITERALS = (
    Mistake(
        "unterminated-string",
        "this string has no closing `{quote}`",
        "write `{quote}` where it ends",
        ("x = «'»abc", 'x = f(«"»abc)\ny = 1', 'def f(x):\n    «"""»Document.\n    return x'),
    ),
    Mistake(
        "bad-escape",
        "`{escape}` is no character",
        'write `\\\\` for a backslash, or `r"…"` for a raw string',
        (r'x = «"\x1"»', r'x = «"\N{no such name}"»', r'x = «"\U99999999"»', r'x = "a" «"\u12"»'),
    ),
    Mistake(
        "bad-number",
        "`{found}` is no number",
        "write digits, such as `1_000`, `0xff`, `0.5` or `1e-3`",
        ("x = «1__0»", "x = «0x»", "x = «0b12»", "x = «1e»", "x = «3px»", "x = «1.2.3»", "x = «0xfg»"),
    ),
    Mistake(
        "number-suffix",
        "`{found}`: a number has no suffix, it takes the type of what it meets",
        "write `{number}`, or name the type, such as `f16({number})`",
        ("x = «1.0f»", "x = «2h»", "x = «0xffu»", "x = «1UL»", "x = «1e-3f»"),
    ),
    Mistake(
        "leading-zero",
        "`{found}`: a decimal number does not begin with 0",
        "write `{number}`, or `0o{number}` if it is octal",
        ("x = «007»",),
    ),
    Mistake(
        "long-number",
        "this number has {digits} characters; at most {limit} are read",
        "write it in fewer digits",
        ("x = «" + "1" * 500 + "»",),
    ),
    Mistake(
        "no-complex",
        "complex numbers are not in the language",
        "keep the two parts apart",
        ("x = «2j»", "x = 1 + «.5J»"),
    ),
    Mistake(
        "no-bytes",
        "byte strings are not in the language",
        "write a tuple of numbers",
        ('x = «b"abc"»', "x = «Rb'a'»"),
    ),
    Mistake(
        "no-f-string",
        "formatted strings are not in the language",
        'to see a value, write `print("x is", x)`',
        ('def f(x):\n    print(«f"x is {x}"»)', "x = «rf'{x}'»", "x = «t'a'»"),
    ),
)

_REFUSED_EXPRESSIONS = (
    Mistake(
        "no-slice",
        "slices are not in the language: a kernel says what one element is",
        "index one element, or slice the array before the call",
        ("x = a[«1:n»]", "x = a[i, «:»]", "x = a[«::2»]", "x = a[«:-1», 0]", "x = a[«i:j:k»]"),
    ),
    Mistake(
        "no-list-index",
        "a list is no index: a kernel reads one element at a time",
        "write the indices without brackets of their own, `a[i, j]`",
        ("x = a[«[i, j]»]", "x = a[0, «[i, j]»]"),
    ),
    Mistake(
        "no-list-comprehension",
        "list comprehensions are not in the language",
        "reduce with a generator, such as `sum(… for … in …)`, or fill a `local_array` in a loop",
        ("x = «[a for a in b]»", "x = f(«[a * 2 for a in b if a]»)"),
    ),
    Mistake(
        "no-dict-or-set",
        "{what} is not in the language",
        "use a tuple, which may be indexed",
        (
            "x = «{1: 2}»",
            "x = «{1, 2}»",
            "x = f(«{}»)",
            "x = «{a for a in b}»",
            "x = «{a: (1, 2) for a in b}» + 1",
        ),
    ),
    Mistake(
        "no-lambda",
        "`lambda` is not in the language",
        "write a function with `def` and call it by its name",
        ("x = «lambda» y: y", "x = f(«lambda»: 1)"),
    ),
    Mistake(
        "no-walrus",
        "`:=` is not in the language",
        "assign on a line of its own",
        ("def f(x):\n    if (y «:=» x) > 0: return y", "x «:=» 1", "x = f(y «:=» 1)"),
    ),
    Mistake(
        "no-yield",
        "`yield` is not in the language: a kernel returns once",
        "write `return`",
        ("def f(x):\n    «yield» x", "x = («yield»)"),
    ),
    Mistake(
        "no-keywords-argument",
        "`**` does not unpack arguments here",
        "write each argument as `name=value`",
        ("x = f(«**options»)", "x = f(1, «**a.b», c=2)"),
    ),
    Mistake(
        "no-ellipsis",
        "`...` is not in the language",
        "write each index; a pack, `f32[*S]`, stands for any number of axes",
        ("x = a[«...», 0]", "def f(): «...»"),
    ),
    Mistake(
        "c-operator",
        "`{found}` is C's, not Python's",
        "write {instead}",
        (
            "x = a «&&» b",
            "x = a «||» b",
            "x = «!»a",
            "x = a «?» b : c",
            "x = a «<>» b",
            "i«++»",
            "def f(i):\n    i«--»\n",
            "x = f(i«++»)",
            "x = «++i»",
            "x = a - «--b»",
        ),
    ),
    Mistake(
        "missing-else",
        "a conditional expression needs its `else`",
        "write `a if condition else b`",
        ("x = a if b«»", "x = f(a if b«)»", "x = (a if b«,» c)"),
        label="`else` is missing here",
    ),
    Mistake(
        "missing-comma",
        "found {found} right after {before}: a comma or an operator is missing",
        "write `,` between them",
        ("x = f(a «b»)", "x = (1 «2»)", "x = a[i «j»]", "x = [1, 2 «3»]", 'x = f("a" «b»)'),
    ),
    Mistake(
        "missing-operator",
        "found {found} right after {before}: an operator is missing",
        "write the operator between them",
        (
            "x = a «b»",
            "x = 2 «n»",
            "x = f(a) «b»",
            'def f(x):\n    print «"x"»',
            "def f(x):\n    if x «y»: pass",
        ),
    ),
    Mistake(
        "single-equals",
        "`=` assigns, and nothing can be assigned inside an expression",
        "compare with `==`",
        (
            "def f(x):\n    if x «=» 1: pass",
            "def f(x):\n    while (x «=» 1): pass",
            "def f(x):\n    return x «=» 1",
            "x = a if b «=» 1 else c",
            "x = f(a.b «=» 1)",
            "x = a[i «=» 1]",
            "def f(x):\n    assert x «=» 1",
        ),
    ),
    Mistake(
        "generator-not-alone",
        "a generator stands alone inside brackets of its own",
        "write `sum(… for … in …)`, and reduce before you go on: `max(max(… for … in …), 3)`",
        (
            "x = sum(a for a in b«,» 1)",
            "x = f(1, a «for» a in b)",
            "x = a «for» a in b",
            "x = (1, a «for» a in b)",
        ),
    ),
    Mistake(
        "repeated-keyword",
        "the argument `{name}` is given twice",
        "remove one of them",
        ("x = f(‹a=1›, b=2, «a=3»)",),
        second="given here first",
    ),
    Mistake(
        "positional-after-keyword",
        "an argument without a name follows one with a name",
        "give it a name too, or write it first",
        ("x = f(‹a=1›, «b»)", "x = f(1, a=1, ‹b=2›, «(3)»)"),
        second="this one has a name",
    ),
    Mistake(
        "quoted-text",
        "an expression in quotes must be one plain string, without prefix or backslash",
        "write it as one string on one line",
        ('def f(x: «r"f32[N]"»): pass', 'def f(x: «"f32" "[N]"»): pass', 'def f(x: «"f32\\x5bN]"»): pass'),
    ),
)

_REFUSED_STATEMENTS = (
    Mistake(
        "no-class",
        "classes are not in the language",
        "pass the values as arguments, or as a tuple",
        ("«class» A: pass", "def f(x):\n    «class» A(B):\n        pass"),
    ),
    Mistake(
        "no-exceptions",
        "`{found}` is not in the language: a kernel has no exceptions",
        'check with `assert condition, "message"`',
        (
            "def f(x):\n    «try»:\n        pass",
            "def f(x):\n    «raise» ValueError",
            "«except» A: pass",
            "«finally»: pass",
        ),
    ),
    Mistake(
        "no-with",
        "`with` is not in the language",
        "write its lines without it",
        ("def f(x):\n    «with» a as b:\n        pass",),
    ),
    Mistake(
        "no-match",
        "`match` is not in the language",
        "write `if`, `elif` and `else`",
        (
            "def f(x):\n    «match» x:\n        case 1: pass",
            "def f(x):\n    «match» (x):\n        case 1: pass",
            "def f(x):\n    «match» x, -x:\n        case 1: pass",
        ),
    ),
    Mistake(
        "no-del",
        "`del` is not in the language",
        "remove it: a name ends with its function",
        ("def f(x):\n    «del» x",),
    ),
    Mistake(
        "no-global",
        "`{found}` is not in the language: a kernel changes no names outside itself",
        "return the value, or write it to an `Out` array",
        ("def f(x):\n    «global» a", "def f(x):\n    «nonlocal» a"),
    ),
    Mistake(
        "no-async",
        "`{found}` is not in the language: a kernel already runs beside the host",
        "remove it",
        ("«async» def f(x): pass", "def f(x):\n    y = «await» x", "x = sum(a «async» for a in b)"),
    ),
    Mistake(
        "no-nested-function",
        "`{name}` is defined inside another block",
        "define it at the top level, and pass what it needs",
        ("def f(x):\n    «def g(y):»\n        return y\n    return g(x)", "if x:\n    «def g(y):» return y"),
    ),
    Mistake(
        "no-import-here",
        "an import stands at the top of the file",
        "move it there",
        ("def f(x):\n    «import a.b»\n    return x", "def f(x): «from a import b»"),
    ),
    Mistake(
        "no-import-star",
        "`*` imports names that nobody can see here",
        "name what is imported, `from a import b, c`",
        ("«from a import *»", "«from . import *»", "«from .metaljit import *»", "«from metaljit_x import *»"),
    ),
    Mistake(
        "no-loop-else",
        "a loop has no `else` in this language",
        "set a name before `break` and ask for it after the loop",
        (
            "def f(x):\n    ‹while› x:\n        break\n    «else»:\n        pass",
            "def f(x):\n    ‹for› i in x: pass\n    «else»: pass",
        ),
        second="the loop",
    ),
    Mistake(
        "top-level-statement",
        "only imports, dims, dtypes, constants and functions stand at the top level of a file",
        "{instead}",
        (
            "«if x:»\n    y = 1",
            "x = 1\n«f(x)»",
            "«return 1»",
            "«x: f32 = 1»",
            "«x += 1»",
            'x = 1\n«"doc"»',
            "«pass»",
        ),
    ),
    Mistake(
        "unused-value",
        "this line computes {found} and drops it",
        "assign it to a name, or remove the line",
        (
            "def f(x):\n    «x»",
            "def f(x):\n    «x == 1»",
            "def f(x):\n    «(x, 1)»",
            "«1»",
            "def f(x):\n    «-f(x)»",
        ),
    ),
    Mistake(
        "outside-loop",
        "`{found}` stands outside a loop",
        "remove it, or write `return` to leave the function",
        ("def f(x):\n    «break»", "def f(x):\n    for i in x: pass\n    if x:\n        «continue»"),
    ),
)

_STATEMENTS = (
    Mistake(
        "missing-colon",
        "expected `:` to open the body of `{keyword}`",
        "write `{line}:`",
        (
            "def f(x):\n    if x«»\n        pass",
            "def f(x)«»\n    pass",
            "def f(x) -> f32«»  # comment\n    pass",
            "def f(x):\n    for i in range(3)«»\n        pass",
            "def f(x):\n    while x < 1«»",
            "def f(x):\n    if x: pass\n    else«»\n        pass",
            "def f(x):\n    if x: pass\n    else «return» 1",
            "def f(x):\n    if x «return» 1",
        ),
        label="here",
    ),
    Mistake(
        "else-if",
        "Python joins `else if` into one word",
        "write `elif`",
        ("def f(x):\n    if x: pass\n    «else if» y: pass",),
    ),
    Mistake(
        "else-without-if",
        "no `if` in this column belongs to this `{found}`",
        "indent it as its `if` is",
        (
            "def f(x):\n    «else»:\n        pass",
            "def f(x):\n    if x: pass\n    else: pass\n    «elif» x: pass",
            "«else»: pass",
        ),
    ),
    Mistake(
        "not-a-target",
        "{found} cannot be assigned to",
        "assign to a name or to an element, `a[i]`",
        (
            "«f(x)» = 1",
            "«1» = x",
            "«a + b» = c",
            "a, «(b + c)» = 1",
            "x = «True» = 1",
            "def f(x):\n    «f(x)» += 1",
            "def f(x):\n    «a, b» += 1",
            "def f(x):\n    for «1» in x: pass",
            "x = sum(a for «a + 1» in b)",
            "«-x» = 1",
        ),
    ),
    Mistake(
        "declared-target",
        "only a name can be declared with a type",
        "declare the array where it is made, or assign without a type",
        ("def f(x):\n    «x[0]»: f32 = 1", "def f(x):\n    «x.y»: i32", "def f(x):\n    «a.b[c]»: i32"),
    ),
    Mistake(
        "two-stars",
        "only one target can take the rest",
        "keep one `*`",
        ("‹*a›, «*b» = x",),
        second="this one does",
    ),
    Mistake(
        "keyword-as-name",
        "`{found}` is a word of the language and cannot be a name",
        "choose another name, such as `{found}_`",
        (
            "def «if»(x): pass",
            "x = a.«in»",
            "«or» = 1",
            "x = 1\n«is» += 1",
            "«if» = 1",
            "import «if»",
            "from a import b as «not»",
        ),
    ),
    Mistake(
        "c-declaration",
        "`{found}` begins a declaration in another language",
        "{instead}",
        (
            "«float» x = 1.0",
            "def f(x):\n    «const» y = 1",
            "«kernel» void f(x)",
            "def f(n, «float» x): pass",
            "def f(«device» float* x): pass",
        ),
    ),
    Mistake(
        "c-for",
        "`for` counts over a range",
        "write `for i in range(n):`",
        ("def f(n):\n    «for» (int i = 0; i < n; i += 1):\n        pass",),
    ),
    Mistake(
        "c-block",
        "a block is opened by `:` and indented; braces mean nothing here",
        "write `:`",
        (
            "def f(x) «{»\n    return x\n}",
            "def f(x):\n    if x «{»\n        return x\n    }",
            "def f(x):\n    if x: pass\n    else «{» }",
        ),
    ),
)

_FUNCTIONS = (
    Mistake(
        "no-star-parameter",
        "a function takes a fixed number of arguments",
        "name each parameter, or take a tuple",
        ("def f(«*args»): pass", "def f(x, «*args: f32»): pass"),
    ),
    Mistake(
        "no-keywords-parameter",
        "a function takes a fixed number of arguments",
        "name each parameter",
        ("def f(«**options»): pass",),
    ),
    Mistake(
        "no-positional-only",
        "every parameter may be passed by its name",
        "remove the `/`",
        ("def f(x, «/», y): pass",),
    ),
    Mistake(
        "no-type-parameters",
        "a function has no type parameters",
        'declare them above it, `T = dtypes("f16 f32")`',
        ("def f«[»T](x: T): pass",),
    ),
    Mistake(
        "repeated-parameter",
        "two parameters are named `{name}`",
        "rename one of them",
        ("def f(‹x›, y, «x»): pass",),
        second="the first",
    ),
    Mistake(
        "default-order",
        "`{name}` has no default and follows a parameter that has one",
        "give it a default, or write it first",
        ("def f(‹x=1›, «y»): pass", "def f(‹x: f32 = 1›, «y: f32»): pass"),
        second="this one has a default",
    ),
    Mistake(
        "star-alone",
        "`*` says that what follows it is passed by name, and nothing follows",
        "remove it",
        ("def f(x, «*»): pass", "def f(«*»): pass"),
    ),
    Mistake(
        "repeated-star",
        "`*` stands twice among the parameters",
        "remove one of them",
        ("def f(‹*›, x, «*», y): pass",),
        second="the first",
    ),
    Mistake(
        "decorator-without-function",
        "a decorator stands directly above a `def`",
        "write the function below it, or remove it",
        ("‹@kernel›\n«x» = 1", "‹@kernel›«»"),
        second="the decorator",
    ),
    Mistake("not-a-function", "expected a function, found {found}", "decorate a `def`", ()),
)

_REST = (
    Mistake(
        "unexpected-token",
        "found {found} where {expected} was expected",
        "",
        (
            "x = *«»",
            "x = 1 +«»",
            "x = a not «b»",
            "def «(»x): pass",
            "def f(x):\n    for x «:» pass",
            "import a.«»",
            "x = (1,«,»)",
            "«->»",
        ),
    ),
)

MISTAKES = {
    mistake.slug: mistake
    for mistake in (
        *_TEXT,
        *_BRACKETS,
        *_LITERALS,
        *_REFUSED_EXPRESSIONS,
        *_REFUSED_STATEMENTS,
        *_STATEMENTS,
        *_FUNCTIONS,
        *_REST,
    )
}


def fault(slug: str, span: Span | None, *, second: Span | None = None, **words: object) -> SyntaxFault:
    """The error of a row, its words filled in, ready to raise."""
    row = MISTAKES[slug]
    shown = {name: _shortened(word) for name, word in words.items()}
    return SyntaxFault(
        Diagnostic(
            slug,
            row.message.format(**shown),
            span,
            row.label,
            (second, row.second) if second else None,
            row.help.format(**shown),
        )
    )


def _shortened(word: object) -> object:
    if not isinstance(word, str) or len(word) <= LONGEST_SHOWN:
        return word
    quote = "`" if word.endswith("`") else ""
    return f"{word[:LONGEST_SHOWN]}…{quote}"
