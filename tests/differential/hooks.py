"""Module ``__getattr__`` in the spellings that vLLM uses.

What stands before ``====`` is bound at the top level of the module; the rest is the body.
"""

HOOKS = (
    """\
if name == "Lazy":
    from {target} import {name}
    return {name}
{raising}
""",
    """\
if name in ("Lazy", "flag"):
    module = importlib.import_module("{target}")
    return getattr(module, "{name}")
{raising}
""",
    """\
_names = {{"Lazy": "{target}", "b": "{target}"}}
====
if name in _names:
    return getattr(importlib.import_module(_names[name]), "{name}")
{raising}
""",
    """\
_names = {{"Lazy": "{target}"}}
====
if name not in _names:
    {raising}
value = importlib.import_module(_names[name])
globals()[name] = value
return value
""",
    """\
if name in {{"Lazy", "Foo"}}:
    if {cond}:
        return {constant}
    import {target} as module
    return module
{raising}
""",
    """\
if {cond}:
    if name == "Lazy":
        return 5
elif name == "flag":
    return 6
raise AttributeError(name)
""",
    """\
if name in __all__:
    return importlib.import_module("{target}")
{raising}
""",
    """\
try:
    return globals()["_" + name]
except KeyError:
    {raising}
""",
)
