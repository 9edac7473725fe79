"""Packages written by hand: spellings of imports that the random ones do not reach.

``DECIDED`` are answered in full; of ``OPEN`` something stays open, and nothing is answered wrong.
"""

from __future__ import annotations

from textwrap import dedent

from differential.trees import FLAG, LIBRARY, PLATFORMS, ROOT, VARIABLE, Tree


def tree(*open_: str, **modules: str) -> Tree:
    """A package of these modules, of which ``a`` is imported; ``p__q`` is the module ``p.q``."""
    packages = {name.partition("__")[0] for name in modules if "__" in name}
    files = {f"{ROOT}/__init__.py": "", f"{ROOT}/platforms/__init__.py": PLATFORMS}
    files |= {f"{ROOT}/{name}/__init__.py": "" for name in packages}
    for name, text in modules.items():
        path = f"{name}/__init__" if name in packages else name.replace("__", "/")
        files[f"{ROOT}/{path}.py"] = dedent(text).lstrip("\n")
    return Tree(files, [f"{ROOT}.a"], [], open_)


ITSELF = {
    "a module imports from itself, a name that the statement has just bound": tree(
        a="""
        x, y = "x", "y"
        from vllm.a import x as y, y as z
        """
    ),
    "a function imports global names from its own module": tree(
        a="""
        x, y = "x", "y"
        def f():
            global y, z
            from vllm.a import x as y, y as z
        f()
        """
    ),
}

HOOKS = {
    "a module as a base is asked for what stands for it": tree(
        a="""
        from . import b, c, d, e, g, h
        errors = []
        for base in (b, c, d, e, g):
            try:
                class A(base):
                    pass
            except Exception as error:
                errors.append(type(error).__name__)
        class B(h):
            pass
        """,
        b="""
        def __getattr__(name):
            if name in unknown:
                return 1
            raise AttributeError(name)
        """,
        c="""
        def __getattr__(name):
            return name
        """,
        d="""
        def __getattr__(name):
            raise AttributeError(name)
        """,
        e="",
        g="""
        def __mro_entries__(bases):
            return 3
        """,
        h="""
        class Base:
            pass
        def __mro_entries__(bases):
            return (Base,)
        """,
    ),
    "a call that is put off reads what was there when it was made": tree(
        a="""
        y, z = "a", 1
        def act():
            return y
        def both():
            return act(), z
        x = act()
        w = both()
        y, z = "b", 2
        del z
        v = x + "c"
        u = [x, w]
        try:
            x += True
        except TypeError:
            t = w[1] + 1
        s = y
        """
    ),
    "a base that a call gives may be no class": tree(
        a="""
        def act(n):
            return n
        x = act(1)
        try:
            class A(x):
                pass
        except TypeError:
            y = 1
        """
    ),
    "a library is looked up by its name": tree(
        a="""
        import sys
        x = __import__("present_lib.sub").__name__
        y = __import__("vllm.b").__name__
        z = __import__("vllm.b", fromlist=["c"]).__name__
        m = sys.modules["vllm.b"], sys.modules[__name__]
        """,
        b="c = 1",
    ),
    "a hook serves names with underscores around them": tree(
        a="""
        from . import b
        x = b.__version__
        y = hasattr(b, "__other__"), hasattr(b, "__cached__"), hasattr(b, "__annotations__")
        from .b import __author__
        """,
        b="""
        def __getattr__(name):
            if name == "__version__":
                return "1.0"
            if name == "__author__":
                return "somebody"
            raise AttributeError(name)
        """,
    ),
}

HANDLERS = {
    "else and finally of a try run in Python's order": tree(
        a="""
        ok = []
        try:
            import missing_lib.sub
        except ImportError as error:
            ok += ["handler", type(error).__name__, error.name, str(error)]
        else:
            ok.append("else")
        finally:
            ok.append("finally")
        gone = "error" in globals()
        """
    ),
    "a handler looks at which module is missing": tree(
        a="""
        try:
            import missing_lib.sub.deep
        except ModuleNotFoundError as error:
            if error.name not in {"missing_lib", "missing_lib.sub"}:
                raise
            x = f"without {error.name}: {error}"
        """
    ),
    "an exception is raised anew with the text of the first": tree(
        a="""
        try:
            import missing_lib
        except ImportError as error:
            raise RuntimeError("needs it: " + str(error)) from None
        """
    ),
    "an exception of the tree has its own text and class": tree(
        a="""
        class Missing(ImportError):
            pass

        try:
            raise Missing("one")
        except ModuleNotFoundError:
            x = 1
        except ImportError as error:
            x = str(error)
        raise Missing(f"two after {x}")
        """
    ),
    "suppress takes several classes, also from a tuple": tree(
        a="""
        from contextlib import suppress as quiet

        TAKEN = (ImportError, KeyError)
        x = 0
        with quiet(*TAKEN):
            from .b import B
            x = 1
            from .b import Nothing
            x = 2
        """,
        b="class B: pass",
    ),
}

MODULES = {
    "find_spec of a relative name asks the package": tree(
        a="""
        from importlib.util import find_spec

        x = find_spec(".q", "vllm.p") is not None
        y = find_spec(".other", package="vllm.p") is None
        """,
        p__q="",
    ),
    "import_module of a relative name needs a package": tree(
        a="""
        import importlib

        b = importlib.import_module(".b", __package__)
        try:
            importlib.import_module(".b")
        except TypeError:
            x = 1
        try:
            importlib.import_module("...b", "vllm")
        except ImportError:
            y = 1
        """,
        b="",
    ),
    "what is taken out of sys.modules is run again": tree(
        a="""
        import sys
        from .b import B as first

        sys.modules.pop("vllm.b")
        from .b import B as second

        same = first is second
        """,
        b="class B: pass",
    ),
    "del of an entry of sys.modules leaves the package's attribute": tree(
        a="""
        import sys
        import vllm.b

        del sys.modules["vllm.b"]
        from . import b

        x = "vllm.b" in sys.modules
        y = sys.modules.pop("vllm.b", 7)
        try:
            del sys.modules["vllm.b"]
        except KeyError:
            z = 1
        """,
        b="",
    ),
    "an import meets None in sys.modules": tree(
        a="""
        import sys

        sys.modules["vllm.b"] = None
        try:
            import vllm.b
        except ModuleNotFoundError as error:
            x = str(error)
        """,
        b="",
    ),
    "setdefault puts another module in the place of one that is never run": tree(
        a="""
        import sys
        from . import b

        c = sys.modules.setdefault("vllm.c", b)
        import vllm.c
        """,
        b="",
        c="raise ValueError('never run')",
    ),
    "a module that is replaced by another has the names of that": tree(
        a="""
        from .b import B
        import vllm.b as b

        x = vllm_b = b
        """,
        b="""
        import sys
        from . import c

        sys.modules[__name__] = c
        """,
        c="class B: pass",
    ),
}

LOOPS = {
    "while runs as often as its condition holds": tree(
        a="""
        n = 0
        while n < 3:
            n += 1
        else:
            done = True
        while True:
            n += 1
            if n > 5:
                break
        """
    ),
    "while imports what it counts": tree(
        a="""
        import importlib

        names = ["b", "c"]
        while names:
            name = names.pop()
            globals()[name.upper()] = importlib.import_module(f"vllm.{name}")
        """,
        b="",
        c="",
    ),
    "a class knows its names": tree(
        a="""
        TABLE = {}

        class Base:
            def __init_subclass__(cls):
                TABLE[cls.__name__] = cls.__qualname__

        class A(Base): pass

        x = list(TABLE)
        """
    ),
}

#: Generator functions under ``contextlib.contextmanager``: how they end is no end of who uses them.
MANAGERS = {
    "a manager returns a value after its yield": tree(
        a="""
        import contextlib
        @contextlib.contextmanager
        def manager():
            yield 1
            return 7
        def f():
            with manager():
                pass
            return 5
        x = f()
        with manager():
            y = 1
        z = 2
        """
    ),
    "a manager asks what a call may ask": tree(
        a="""
        import contextlib
        class A:
            one, two, three, four, five = 1, 0, 1, 0, 1
        @contextlib.contextmanager
        def manager(n):
            global seen
            seen = []
            yield 1
            if n.one:
                seen.append(1)
            if n.two:
                seen.append(2)
            return
        with manager(A):
            x = 1
        y = 2
        """
    ),
}

#: What those do that may end early is not followed.
ENDING = {
    "a manager returns from a handler": tree(
        a="""
        import contextlib
        @contextlib.contextmanager
        def manager():
            global late
            late = 0
            try:
                yield 1
            except ValueError:
                return
            late = 1
        with manager():
            raise ValueError
        y = 2
        """
    ),
    "a manager returns in finally": tree(
        a="""
        import contextlib
        @contextlib.contextmanager
        def manager():
            try:
                yield 1
            finally:
                return
        with manager():
            raise ValueError
        y = 2
        """
    ),
    "a manager returns where it does not": tree(
        a="""
        import contextlib
        @contextlib.contextmanager
        def manager(n):
            global seen
            seen = "before"
            yield 1
            if n:
                return
            seen = "after"
        with manager(0):
            x = 1
        y = 2
        """
    ),
}

DECIDED = {**ITSELF, **HOOKS, **HANDLERS, **MODULES, **LOOPS, **MANAGERS}

OPEN = {
    **ENDING,
    "a hook that may raise another exception does so where it is only asked": tree(
        FLAG,
        a="""
        from . import b
        x = hasattr(b, "thing")
        """,
        b="""
        import present_lib
        def __getattr__(name):
            if present_lib.FLAG:
                raise ValueError(name)
            return name
        """,
    ),
    "a call may go past its conditions with a variable set": tree(
        VARIABLE,
        a="""
        import os
        def f(x):
            if bool("VLLM_SWITCH" in os.environ):
                if x == 1:
                    return 5
            else:
                return 6
            raise ValueError("no")
        if os.environ.get("VLLM_SWITCH"):
            y = 1
        z = f(2)
        """,
    ),
    "a library that one branch imports may be missing on the other": tree(
        LIBRARY,
        a="""
        import importlib.util
        if importlib.util.find_spec("maybe_lib") is not None:
            y = 1
            import maybe_lib
            raise ValueError("there")
        import maybe_lib
        y
        """,
    ),
    "a branch alone loads a library": tree(
        FLAG,
        a="""
        import sys, present_lib
        if present_lib.FLAG:
            import present_lib.sub
        x = "present_lib.sub" in sys.modules
        y = sys.modules.get("present_lib.sub") is None
        z = sys.modules["present_lib.sub"]
        """,
    ),
    "a handler that may raise has unbound its exception for the next": tree(
        LIBRARY,
        a="""
        try:
            try:
                import missing_lib
            except Exception as error:
                import maybe_lib
        except ImportError:
            x = "error" in globals()
        """,
    ),
    "a base may be a module with a hook": tree(
        VARIABLE,
        a="""
        import os
        from . import b
        class Base:
            pass
        base = b if os.environ.get("VLLM_SWITCH") == "1" else Base
        class A(base):
            pass
        """,
        b="""
        def __getattr__(name):
            if name in unknown:
                return 1
        """,
    ),
    "what a base is asked for may be missing": tree(
        VARIABLE,
        a="""
        from . import b
        try:
            class A(b):
                pass
            x = 1
        except TypeError:
            x = 2
        """,
        b="""
        import os
        class Base:
            pass
        def __getattr__(name):
            if os.environ.get("VLLM_SWITCH") == "1":
                raise AttributeError(name)
            return lambda bases: (Base,)
        """,
    ),
    "rounds of a loop hand something on": tree(
        a="""
        import present_lib

        n, first, made = 0, True, None
        for x in present_lib.function([1, 2, 3]):
            n += 1
            if first:
                first = False
            else:
                made = 1
            if n == 3:
                third = 3
        m = 0
        while m < present_lib.function(3):
            m = m + 1
        """
    ),
    "a branch takes a module out of sys.modules": tree(
        VARIABLE,
        a="""
        import os, sys
        import vllm.b

        if os.environ.get("VLLM_SWITCH"):
            sys.modules.pop("vllm.b")
        x = "vllm.b" in sys.modules
        from vllm.b import B
        """,
        b="class B: pass",
    ),
    "a branch binds a name that globals() is asked for": tree(
        VARIABLE,
        a="""
        import os

        if os.environ.get("VLLM_SWITCH"):
            X = 1
        y = "X" in globals()
        z = globals().get("X", 5)
        w = "nothing" in globals()
        """,
    ),
    "a star import of a library may bring any name": tree(
        a="""
        from . import b

        x = hasattr(b, "Thing")
        y = hasattr(b, "Nothing")
        z = getattr(b, "Nothing", 3)
        """,
        b="from present_lib import *",
    ),
    "a module becomes one of another class": tree(
        a="""
        from . import b

        x = b.anything
        y = hasattr(b, "other")
        """,
        b="""
        import sys, types

        class Serving(types.ModuleType):
            def __getattr__(self, name):
                if name == "other":
                    raise AttributeError(name)
                return name

        sys.modules[__name__].__class__ = Serving
        """,
    ),
    "exec may bind any name": tree(
        a="""
        exec("X = 3")
        y = "X" in globals()
        """
    ),
    "a placeholder raises when it is used": tree(
        a="""
        import importlib

        class Placeholder:
            def __init__(self, name):
                self.name = name

            def __getattr__(self, key):
                importlib.import_module(self.name)
                raise AssertionError("it can be imported")

        missing = Placeholder("missing_lib")
        x = missing.thing
        """
    ),
    "an import by a name that is not known may raise": tree(
        a="""
        import importlib
        import present_lib

        importlib.import_module(present_lib.function("vllm.b"))
        """,
        b="raise ValueError('no')",
    ),
}
