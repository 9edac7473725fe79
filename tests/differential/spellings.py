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
    "a name that a function binds is its own before it is bound": tree(
        a="""
        x = 1
        def f():
            y = x
            x = 2
            return y
        try:
            f()
        except UnboundLocalError:
            z = 1
        def g(c):
            if c:
                w = 1
            return w
        try:
            g(0)
        except NameError as e:
            v = type(e).__name__
        def h():
            try:
                q = 1
                del q
                return q
            except UnboundLocalError:
                return 3
        k = h()
        def m():
            for x in (): pass
            return x
        try:
            m()
        except UnboundLocalError:
            n = 1
        def o():
            global x
            x = 5
            return x
        o()
        def p():
            def inner():
                nonlocal a
                a = 2
            a = 1
            inner()
            return a
        r = p()
        def s():
            def inner():
                return a
            try:
                inner()
            except NameError as e:
                return type(e).__name__
            a = 1
        t = s()
        def u():
            import os as x
            return x
        u1 = u().name
        def u2():
            try:
                raise ValueError
            except ValueError as x:
                pass
            return x
        try: u2()
        except UnboundLocalError: u3 = 1
        def u4():
            [x for x in (1,)]
            return x
        u5 = u4()
        def u6():
            (x := 4)
            return x
        u7 = u6()
        class A:
            x = x
            y = x
        u8 = A.x
        """
    ),
    "a text of unknown words is a text": tree(
        a="""
        import present_lib
        class A:
            pass
        errors = 0
        try:
            f"{A}" + 1
        except TypeError:
            errors += 1
        try:
            "%s" % present_lib + 1
        except TypeError:
            errors += 1
        try:
            str(present_lib) + 1
        except TypeError:
            errors += 1
        try:
            "{}".format(A) + 1
        except TypeError:
            errors += 1
        try:
            (not present_lib).Foo
        except AttributeError:
            errors += 1
        l = [1]
        m = l
        try:
            l -= [1]
        except TypeError:
            errors += 1
        l *= 2
        l += (3,)
        """
    ),
    "a hook serves names with underscores around them": tree(
        a="""
        from . import b
        x = b.__version__
        y = hasattr(b, "__other__")
        names = ("__cached__", "__annotations__", "__dict__", "__class__", "__spec__", "__file__")
        for name in names:
            getattr(b, name)
        b.__dict__
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

VALUES = {
    "an expression is refused that the types of its values do not support": tree(
        a="""
        from . import module
        def function():
            pass
        class A:
            pass
        class B:
            def __init__(self, x):
                pass
        class E(Exception):
            pass
        said = []
        try:
            function[1]
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            module[0]
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            A[1]
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            E[1]
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            A()[0]
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            [*3]
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            [*A()]
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            {**function}
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            {**[1]}
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            -A()
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            A() + 1
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            A() < A()
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            1 in function
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            1 in A()
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            A()()
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            A(1)
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            A(x=1)
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            B()
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            B(1, 2)
        except TypeError as error:
            said.append(type(error).__name__)
        """,
        module="",
    ),
    "a statement is refused that the types of its values do not support": tree(
        a="""
        from . import module
        def function():
            pass
        class A:
            pass
        class B:
            def __init__(self, x):
                pass
        class E(Exception):
            pass
        said = []
        try:
            for q in 3:
                pass
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            for q in A():
                pass
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            for q in module:
                pass
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            first, second = A()
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            first, second = function
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            with 3:
                pass
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            with A():
                pass
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            with function:
                pass
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            raise A
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            raise A()
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            raise function
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            one = 3
            del one[0]
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            pair = (1, 2)
            del pair[0]
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            pair = (1, 2)
            pair[0] = 3
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            pair = ([], 2)
            pair[0] += [3]
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            function[0] = 1
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            A()[0] = 1
        except TypeError as error:
            said.append(type(error).__name__)
        try:
            one = A()
            one += 1
        except TypeError as error:
            said.append(type(error).__name__)
        """,
        module="",
    ),
    "a class says itself what an item of it is": tree(
        a="""
        class C:
            def __class_getitem__(cls, item):
                return item
        class D:
            @classmethod
            def __class_getitem__(cls, item):
                return cls
        x, y = C[1], D[1]
        class B(D[int]):
            pass
        """
    ),
    "an alias of a class is its base": tree(
        a="""
        from typing import AnyStr, Generic
        class Base(Generic[AnyStr]):
            alpha = 1
        class A(Base[int]):
            pass
        class B(A):
            pass
        """
    ),
    "items of lists, and keys of any kind, are deleted": tree(
        a="""
        def function():
            pass
        x = [1, 2, 3, 4]
        del x[0]
        y = [1, 2, 3, 4]
        del y[1:3]
        z = {function: 1, "b": 2}
        del z[function]
        """
    ),
    "a decorator without effects gives something else": tree(
        a="""
        def nothing(f):
            return None
        def number(f):
            return 3
        def same(f):
            f.tag = 1
            return f
        @nothing
        def f():
            pass
        @number
        def g():
            pass
        @nothing
        class C:
            pass
        @same
        class D:
            pass
        @same
        def h():
            pass
        x = (f is None, g == 3, C is None, D is None, h is None)
        """
    ),
    "methods, lists, instances and lambdas decorate": tree(
        a="""
        class Registry:
            items = {}
            def register(self, name):
                def decorate(function):
                    self.items[name] = function
                    return function
                return decorate
            def plain(self, function):
                self.items["plain"] = function
                return function
            def __call__(self, function):
                self.items["call"] = function
        registry, listed = Registry(), []
        @registry.register("a")
        def f():
            pass
        @registry.plain
        def g():
            pass
        @registry
        def h():
            pass
        @registry.register("c")
        class C:
            pass
        @registry
        class D:
            pass
        @listed.append
        def i():
            pass
        @listed.append
        class E:
            pass
        @lambda function: listed.append(function)
        def j():
            pass
        x = Registry.items
        """
    ),
    "range is iterated over, and the names in it are looked up": tree(
        a="""
        x = [*range(2)]
        y, z = range(2)
        w = [i for i in range(3)]
        try:
            class A:
                one = 1
                two = [one for _ in range(3)]
        except NameError as error:
            v = type(error).__name__
        """
    ),
    "comprehensions are scopes of the functions and comprehensions in them": tree(
        a="""
        x = [[i for _ in (1,)] for i in (1, 2)]
        y = [f() for f in [lambda: i for i in (1, 2)]]
        class A:
            z = [[i for _ in (1,)] for i in (1, 2)]
        z = A.z
        """
    ),
    "methods of a class that a function makes read the function's names": tree(
        a="""
        def make(n):
            class A:
                v = n
                def get(self):
                    return n
                @classmethod
                def of(cls):
                    return n + 1
                def __init_subclass__(cls):
                    cls.w = n
            return A
        A, B = make(1), make(2)
        class C(B):
            pass
        x = (A.v, B.v, A().get(), B().get(), A.of(), B.of(), C.w)
        """
    ),
    "what is iterated over changes": tree(
        a="""
        x = [1, 2, 3]
        for i in x:
            if i == 1:
                x.append(4)
        y = [1, 2, 3, 4]
        for j in y:
            y.remove(j)
        said = []
        d, s = {"a": 1}, {1}
        try:
            for k in d:
                d["b"] = 2
        except RuntimeError as error:
            said.append(type(error).__name__)
        try:
            for k, v in d.items():
                d[v] = 2
        except RuntimeError as error:
            said.append(type(error).__name__)
        try:
            for k in s:
                s.add(2)
        except RuntimeError as error:
            said.append(type(error).__name__)
        for k in d:
            d[k] = 3
        """
    ),
    "an iterator is used where it is made": tree(
        a="""
        d = {"a": 1, "b": 2}
        x = (list(d.keys()), tuple(d.values()), sorted(d.items()), dict(d.items()))
        y = (list(zip("ab", [1, 2])), list(enumerate("ab")), list(reversed([1, 2])))
        z = (",".join(k for k in d), sum(v for v in d.values()), max(len(k) for k in d))
        w = ("a" in d.keys(), [*d.items()], {**dict(zip("ab", [1, 2]))})
        u, t = d.values()
        s = [k for k, _ in d.items()]
        r = []
        r.extend(d.keys())
        """
    ),
    "a walrus in a comprehension binds outside of it": tree(
        a="""
        x = [m := i for i in (1, 2)]
        y = m
        z = any((n := i) > 1 for i in (1, 2, 3))
        w = n
        def f():
            global k
            return [[k := j for j in (1, 2)] for _ in (1,)]
        v = f()
        u = k
        """
    ),
    "objects in a class body are told their names": tree(
        a="""
        class D:
            def __set_name__(self, owner, name):
                owner.seen = name
        class A:
            d = D()
        x = A.seen
        class E:
            def __set_name__(self, owner, name):
                raise ValueError(name)
        try:
            class B:
                e = E()
        except Exception:
            y = 1
        """
    ),
    "a call is refused by its arguments": tree(
        a="""
        def f(a=0, /, **k):
            return k
        def g(a, /):
            return a
        class A:
            pass
        def h():
            class B(A, tag=1):
                pass
        calls = [
            lambda: g(a=1),
            lambda: f(**{"a": 1}, **{"a": 2}),
            lambda: f(**{1: 2}),
            lambda: f(*3),
            lambda: f(**3),
            lambda: len(g),
            lambda: len(i for i in "ab"),
            lambda: list(A()),
            lambda: issubclass(3, int),
            h,
        ]
        said = []
        for call in calls:
            try:
                call()
            except TypeError as error:
                said.append(type(error).__name__)
        x = (f(1, a=2), f(*{"k": 1}), f(**{"b": 1}, c=2))
        """
    ),
    "a metaclass compares its classes, and says what is true of them": tree(
        a="""
        class Meta(type):
            def __eq__(cls, other):
                return True
            def __bool__(cls):
                return False
            def __getitem__(cls, item):
                return item
            __hash__ = type.__hash__
        class A(metaclass=Meta):
            pass
        class B(metaclass=Meta):
            pass
        x = (A == B, A != B, A == 1, A in [1], 1 in (A,))
        y = (bool(A), not A, 1 if A else 2, A or 3)
        z = A[1]
        """
    ),
    "special methods of objects are run": tree(
        a="""
        seen = []
        class A:
            def __setitem__(self, key, value):
                seen.append(key)
            def __delitem__(self, key):
                seen.append("-" + key)
            def __getitem__(self, key):
                seen.append("=" + key)
                return 1
            def __contains__(self, key):
                seen.append("?" + key)
                return True
            def __iadd__(self, other):
                seen.append("+=")
                return self
            def __add__(self, other):
                seen.append("+")
                return 5
            def __len__(self):
                seen.append("len")
                return 1
            def __bool__(self):
                seen.append("bool")
                return False
            def __eq__(self, other):
                seen.append("eq")
                return other == 1
            def __lt__(self, other):
                seen.append("lt")
                return True
            def __neg__(self):
                seen.append("neg")
                return 4
            def __setattr__(self, name, value):
                seen.append(name)
            def __delattr__(self, name):
                seen.append("-" + name)
            def __str__(self):
                seen.append("str")
                return "S"
        a = A()
        a["k"] = 1
        del a["k"]
        a.x = 1
        del a.x
        x = (a["g"], "q" in a, a + 1, bool(a), not a, a == 1, a == 2, a != 1, 1 == a, a < 1, -a)
        y = (str(a), f"{a}", f"<{a!s:>3}>", 1 in [a], a or 3)
        a += 1
        z = list(seen)
        """
    ),
    "values in f-strings are converted and formatted": tree(
        a="""
        x = (f"{3:>5}", f"{3.14159:.2f}", f"{'a'!r:>5}", f"{'é'!a}", f"{2:{'0'}{3}}", f"{1!s}")
        said = []
        for make in (lambda: f"{3:s}", lambda: f"{'a':d}"):
            try:
                make()
            except ValueError as error:
                said.append(type(error).__name__)
        """
    ),
    "a cached function runs once for its arguments": tree(
        a="""
        from functools import cache, lru_cache
        calls, shared, n = [], [], 1
        class A:
            @staticmethod
            @lru_cache(maxsize=None)
            def f(x):
                calls.append(x)
                return x
        @lru_cache(maxsize=None)
        def f(x):
            calls.append(x)
            return [x]
        @cache
        def g():
            return n
        def h():
            return shared
        x = (f(1) is f(1), g() == 1)
        f(2).append(3)
        h().append(4)
        n = 2
        y = (f(2), g() == 1)
        g.cache_clear()
        z = g() == 2
        del f, g
        """
    ),
    "classes are refused by their bases and metaclasses": tree(
        a="""
        class M(type):
            pass
        class N(M):
            pass
        class O(type):
            pass
        class A(metaclass=M):
            pass
        class B(metaclass=N):
            pass
        class C(metaclass=O):
            pass
        class D(A, B):
            pass
        class I(int):
            pass
        x = type(D).__name__ if False else D
        def one():
            class E(A, C):
                pass
        def two():
            class E(bool):
                pass
        def three():
            class E(I, str):
                pass
        def four():
            class E(A, metaclass=O):
                pass
        said = []
        for make in (one, two, three, four):
            try:
                make()
            except TypeError as error:
                said.append(type(error).__name__)
        """
    ),
    "objects are refused that lack what is asked of them": tree(
        a="""
        class Enters:
            def __enter__(self):
                pass
        class Exits:
            def __exit__(self, *args):
                pass
        class Equal:
            def __eq__(self, other):
                return True
        class Never:
            __hash__ = None
        def enter():
            with Enters():
                pass
        def leave():
            with Exits():
                pass
        d = {}
        def store():
            d[Equal()] = 1
        calls = [
            enter,
            leave,
            store,
            lambda: {Equal(): 1},
            lambda: {Never()},
            lambda: [1][enter],
            lambda: isinstance(3, 4),
        ]
        said = []
        for call in calls:
            try:
                call()
            except TypeError as error:
                said.append(type(error).__name__)
        """
    ),
    "what does not rest on the order of a set": tree(
        a="""
        s = {"b", "a", "c"}
        n, lengths = 0, []
        for i in {1, 2}:
            lengths.append(i)
        x = (sorted(s), len(s), {i for i in s}, frozenset(i for i in s), max(s), "a" in s)
        y = (any(i == "a" for i in s), sum(len(i) for i in s), sorted(i + "x" for i in s))
        z = [*{1, 2}]
        """
    ),
    "attributes of constants are values": tree(
        a="""
        x = (1).real + (2).numerator
        """
    ),
}

DECIDED = {**ITSELF, **HOOKS, **HANDLERS, **MODULES, **LOOPS, **MANAGERS, **VALUES}

VALUES_OPEN = {
    "an item of a class may be anything": tree(
        a="""
        from enum import Enum
        from typing import Generic, TypeVar
        T = TypeVar("T")
        class Base(Generic[T]):
            pass
        class Color(Enum):
            RED = 1
        class A(list):
            pass
        x, y, z = Base[int], Color["RED"], A[int]
        w = (Base[int] is Base, Base[int] == Base)
        """
    ),
    "methods are bound anew each time": tree(
        a="""
        class A:
            @classmethod
            def g(cls):
                pass
            @staticmethod
            def h():
                pass
            def f(self):
                pass
        a = A()
        x = (A.g == A.g, A.g is A.g, A.h is A.h, a.f == a.f, a.f is a.f, a.h is A.h)
        y = (A.f is A.f, A.f == A.f, a.g == A.g)
        """
    ),
    "what a class makes may be no instance of it": tree(
        a="""
        class A:
            def __new__(cls):
                return 0
        class B:
            def __new__(cls):
                return None
        x = A()
        y = 5 if x else 6
        z = B() is None
        class D:
            def __get__(self, owner, cls):
                return None
        class C:
            d = D()
        w = C.d is None
        """
    ),
    "an iterator is used up, and a view changes": tree(
        a="""
        g = (i for i in [1, 2])
        x = (list(g), list(g), type(g), bool(i for i in []))
        e = enumerate("ab")
        y = (list(e), list(e))
        d = {"a": 1}
        k = d.keys()
        d["b"] = 2
        z = (list(k), "b" in k, len(k), k & {"a"}, bool({}.keys()))
        """
    ),
    "objects of the tree say which keys are equal": tree(
        a="""
        class A:
            def __eq__(self, other):
                return True
            def __hash__(self):
                return hash("k")
        x = {"k": 1, A(): 2}
        y = {A(), A()}
        z = {"k": 1}
        z[A()] = 2
        w = {a: 1 for a in (A(), A())}
        """
    ),
    "an instance gets an attribute of its own": tree(
        a="""
        class A:
            y = []
            def add(self):
                self.y.append(1)
            def put(self):
                self.y = [3]
        class B:
            z = []
            def __init__(self):
                self.z = [1]
        class C(B):
            def __init__(self):
                super().__init__()
        class D:
            y = []
        a, d = A(), D()
        a.add()
        a.put()
        d.y = [1]
        x = (a.y, A.y, C().z, d.y)
        """
    ),
    "what is called behind the back may change anything": tree(
        a="""
        seen = []
        def f(x):
            seen.append(x)
            return x
        def generator():
            seen.append(1)
            yield 1
        x = list(map(f, [1, 2]))
        a = list(seen)
        y = sorted([1, 2], key=f)
        b = list(seen)
        for q in generator():
            pass
        c = list(seen)
        class A:
            @property
            def p(self):
                seen.append("p")
            def __lt__(self, other):
                seen.append("lt")
                return True
        d = A().p
        e = list(seen)
        g = max([A(), A()])
        h = list(seen)
        """
    ),
    "a metaclass that is a function makes anything": tree(
        a="""
        def meta(name, bases, namespace):
            return 3
        class A(metaclass=meta):
            pass
        x = A
        class B:
            y: int = 3
        z = B.__annotations__
        """
    ),
    "descriptors and metaclasses answer for classes": tree(
        a="""
        class D:
            def __get__(self, owner, cls):
                return (owner, cls)
        class A:
            d = D()
        x = A.d[0] is None and A.d[1] is A
        class Meta(type):
            def __getattr__(cls, name):
                return name
            def __contains__(cls, item):
                return item == 1
        class B(metaclass=Meta):
            y: int
        z = (B.thing, 1 in B, 2 in B)
        """
    ),
    "the order of a set is another in each process": tree(
        a="""
        s = {"b", "a", "c", "d", "e", "f"}
        t, u, v, w = list(s), ",".join(s), str(s), [*s]
        x, y, z = [i for i in s], tuple(i for i in s), "%s" % s
        k = []
        for i in s:
            k.append(i)
            last = i
        p = {"b", "a", "c", "d"}.pop()
        j = []
        j.extend(s)
        """
    ),
    "except* takes parts of a group": tree(
        a="""
        try:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
        except* ValueError as e:
            x = type(e).__name__
        except* TypeError:
            y = 2
        try:
            raise ValueError(1)
        except* ValueError as e:
            z = type(e).__name__
        """
    ),
    "one of several values may be refused": tree(
        VARIABLE,
        a="""
        import os
        v = [1, 2] if os.environ.get("VLLM_SWITCH") else 3
        said = []
        try:
            for q in v:
                pass
            w = 1
        except TypeError:
            w = 2
        try:
            x = [*v]
        except TypeError:
            x = 2
        try:
            a, b = v
        except TypeError:
            z = 2
        try:
            y = 1 in v
        except TypeError:
            y = 2
        try:
            t = len(v)
        except TypeError:
            t = 2
        try:
            v[0] = 9
        except TypeError:
            p = 2
        try:
            del v[0]
        except TypeError:
            o = 2
        """,
    ),
    "a branch changes what is iterated over, and what others hold": tree(
        VARIABLE,
        a="""
        import os
        x = [1, 2]
        held = {"x": x}
        if os.environ.get("VLLM_SWITCH"):
            x.append(3)
        y = held["x"]
        for i in x:
            if os.environ.get("VLLM_SWITCH") and len(x) < 5:
                x.append(3)
        d = {"a": 1}
        try:
            for k in d:
                if os.environ.get("VLLM_SWITCH"):
                    d["b"] = 2
            z = 1
        except RuntimeError:
            z = 2
        """,
    ),
    "special methods ask where the process runs": tree(
        VARIABLE,
        a="""
        import os
        seen = []
        class A:
            def __bool__(self):
                return bool(os.environ.get("VLLM_SWITCH"))
            def __setitem__(self, key, value):
                if os.environ.get("VLLM_SWITCH"):
                    seen.append(key)
            def __eq__(self, other):
                return os.environ.get("VLLM_SWITCH") == other
        a = A()
        a["k"] = 1
        x = (1 if a else 2, a == "1", a != "1")
        def decorate(cls):
            return None if os.environ.get("VLLM_SWITCH") else cls
        @decorate
        class B:
            pass
        y = B is None
        """,
    ),
    "private names are those of their class": tree(
        a="""
        class A:
            __p = 1
            q = __p
        x = A._A__p
        y = hasattr(A, "__p")
        z = A.q
        """
    ),
    "a class may take others for subclasses": tree(
        a="""
        from abc import ABC
        class A(ABC):
            pass
        class B:
            pass
        A.register(B)
        x = issubclass(B, A)
        """
    ),
}

OPEN = {
    **ENDING,
    **VALUES_OPEN,
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
    "a container that something unknown is added to is changed under all its names": tree(
        FLAG,
        a="""
        import present_lib
        l = [1]
        m = l
        l += present_lib.function([2])
        n = m
        d = {1}
        e = d
        if present_lib.FLAG:
            r = {2}
        else:
            r = {3}
        d |= r
        k = len(e)
        """,
    ),
    "one of several lists is added to": tree(
        FLAG,
        a="""
        import present_lib
        a, b = [1], [2]
        if present_lib.FLAG:
            r = a
        else:
            r = b
        r += [5]
        n = len(a), len(b)
        """,
    ),
    "a package imports a module of its own on one branch": tree(
        LIBRARY,
        a="""
        import vllm.p.e
        """,
        p="""
        import importlib.util
        if importlib.util.find_spec("maybe_lib") is not None:
            from . import e
        """,
        p__e="import maybe_lib",
    ),
    "a call that looks at a name of its module leaves it its values": tree(
        FLAG,
        a="""
        import present_lib
        y = 0 if present_lib.FLAG else "other"
        def act():
            if y:
                raise KeyError("from a call")
        act()
        z = y
        """,
    ),
    "a handler deals with what either of two conditions makes raise": tree(
        LIBRARY,
        a="""
        import importlib.util
        try:
            import maybe_lib
            if importlib.util.find_spec("maybe_lib") is not None:
                raise ImportError("there")
            x = 1
        except ImportError:
            from maybe_lib import Thing
            flag = 2
        y = 3
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
