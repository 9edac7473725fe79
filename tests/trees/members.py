"""What ``hasattr`` says of a class, by how the attribute got there or did not."""

from __future__ import annotations

from textwrap import indent

from trees.minivllm import INIT, Answer, Case, Side, has, lacks

OWN = has("vllm.models.draft.Draft")
LACKS = lacks("vllm.models.draft.Draft")


def body(
    text: str, answer: Answer = OWN, after: str = "", before: str = "", bases: str = ""
) -> Side:  # fmt: skip
    """A class with ``text`` in its body, and ``after`` below it."""
    source = (
        f"from vllm.platforms import current_platform\n{before}\n"
        f"class Draft({bases}):\n    def compute_logits(self, h): ...\n"
        f"{indent(text, '    ')}\n\n{after}\n"
    )
    return Side({INIT: source}, {"else": answer})


def where(text: str, platforms: str, after: str = "", before: str = "") -> Side:
    """The same, where only ``platforms`` have the attribute."""
    side = body(text, LACKS, after, before)
    return Side(side.files, {platforms: OWN, "else": LACKS})


METHOD = "def get_top_tokens(self, h): ..."
OUTSIDE = "def pick(self, h): ..."
CONDITIONAL = f"if {{test}}:\n    {METHOD}"

CASES = (
    Case("a method is there", body(METHOD), twin=body("def get_top_token(self, h): ...", LACKS)),
    Case(
        "an attribute assigned in the class body is there",
        body("get_top_tokens = compute_logits"),
        twin=body("top = compute_logits", LACKS),
    ),
    Case(
        "an annotation without a value is not there",
        body("get_top_tokens: object", LACKS),
        twin=body("get_top_tokens: object = compute_logits"),
    ),
    Case(
        "an attribute set to None is there",
        body("get_top_tokens = None"),
        twin=body("get_top_tokens_ = None", LACKS),
    ),
    Case(
        "a method removed with `= None` is there, one removed with `del` is not",
        body(f"{METHOD}\nget_top_tokens = None"),
        twin=body(f"{METHOD}\ndel get_top_tokens", LACKS),
    ),
    Case(
        "a property is there",
        body("@property\ndef get_top_tokens(self): ..."),
        twin=body("@property\ndef top(self):\n    self.get_top_tokens = 1", LACKS),
    ),
    Case(
        "static and class methods are there, a method of a nested class is not",
        body("@staticmethod\ndef get_top_tokens(h): ..."),
        twin=body(f"class Inner:\n    {METHOD}", LACKS),
    ),
    Case(
        "a slot is there",
        body("__slots__ = ('get_top_tokens',)"),
        twin=body("__match_args__ = ('get_top_tokens',)", LACKS),
    ),
    Case(
        "a single slot given as a string is there",
        body("__slots__ = 'get_top_tokens'"),
        twin=body("__slots__ = 'get_top'", LACKS),
    ),
    Case(
        "an assignment to the class in its module counts",
        body("", after=f"{OUTSIDE}\n\nDraft.get_top_tokens = pick"),
        twin=body("", LACKS, after=f"{OUTSIDE}\n\nDraft.pick = pick"),
    ),
    Case(
        "setattr on the class in its module counts, and its name may be a constant",
        body("", after=f"{OUTSIDE}\nNAME = 'get_top' + '_tokens'\nsetattr(Draft, NAME, pick)"),
        twin=body("", LACKS, after=f"{OUTSIDE}\nNAME = 'top'\nsetattr(Draft, NAME, pick)"),
    ),
    Case(
        "delattr and del on the class count",
        body(METHOD, LACKS, after="delattr(Draft, 'get_top_tokens')"),
        twin=body(METHOD, after="def later():\n    del Draft.get_top_tokens"),
    ),
    Case(
        "an assignment in a function that nothing calls does not count",
        body("", LACKS, after=f"{OUTSIDE}\n\ndef patch():\n    Draft.get_top_tokens = pick"),
        twin=body("", after=f"{OUTSIDE}\n\nfor cls in (Draft,):\n    cls.get_top_tokens = pick"),
    ),
    Case(
        "an assignment in __init__ is one to the instance",
        body("def __init__(self):\n    self.get_top_tokens = 1", LACKS),
        twin=body("def __init__(self):\n    pass\n\nget_top_tokens = 1"),
    ),
    Case(
        "an import in the class body binds there",
        body("from vllm.models.draft.amd import Draft as get_top_tokens"),
        twin=body("from vllm.models.draft.amd import Draft", LACKS),
    ),
    Case(
        "a conditional class body is run under the platform",
        where(CONDITIONAL.format(test="current_platform.is_rocm()"), "rocm"),
        twin=where(CONDITIONAL.format(test="not current_platform.is_rocm()"),
                   "cuda xpu cpu tpu oot"),
    ),
    Case(
        "both branches of a class body may bind it",
        body("if current_platform.is_rocm():\n    get_top_tokens = 1\n"
             "else:\n    get_top_tokens = 2"),
        twin=where("if current_platform.is_rocm():\n    get_top_tokens = 1\nelse:\n    top = 2",
                   "rocm"),
    ),
    Case(
        "a decorator from outside the tree keeps the class",
        body(METHOD, before="import torch\n\n@torch.compiler.disable"),
        twin=body("", LACKS, before="import torch\n\n@torch.compiler.disable"),
    ),
    Case(
        "a decorator of the tree that gives the class back keeps it",
        body(METHOD, before="def same(cls):\n    return cls\n\n@same"),
        twin=body("", LACKS, before="def same(cls):\n    return cls\n\n@same"),
    ),
    Case(
        "a decorator of the tree that adds the method adds it",
        body("", before="def add(cls):\n    cls.get_top_tokens = 1\n    return cls\n\n@add"),
        twin=body("", LACKS, before="def add(cls):\n    cls.top = 1\n    return cls\n\n@add"),
    ),
    Case(
        "a decorator with arguments that adds the method adds it",
        body("", before="def add(name):\n    def inner(cls):\n        setattr(cls, name, 1)\n"
             "        return cls\n    return inner\n\n@add('get_top_tokens')"),
        twin=body("", LACKS, before="def add(name):\n    def inner(cls):\n"
                  "        setattr(cls, name, 1)\n        return cls\n    return inner\n\n"
                  "@add('top')"),
    ),
    Case(
        "a class that only raises NotImplementedError is a stub",
        body("def __init__(self, **kwargs):\n    raise NotImplementedError('CUDA only')",
             Answer("stub", False, "vllm.models.draft.Draft")),
        twin=body("def __init__(self, **kwargs):\n    raise ValueError('CUDA only')", LACKS),
    ),
    Case(
        "a stub may say why, and do something, before it refuses",
        body('def __init__(self, config):\n    """Needs CUDA."""\n    super().__init__()\n'
             "    self.config = config\n    raise NotImplementedError",
             Answer("stub", False, "vllm.models.draft.Draft")),
        twin=body("def __init__(self, config):\n    if config.tied:\n"
                  "        raise NotImplementedError", LACKS),
    ),
    Case(
        "a stub is one through a base as well",
        body("", Answer("stub", False, "vllm.models.draft.Draft"),
             before="class _Refuses:\n    def __init__(self):\n"
                    "        raise NotImplementedError\n\n", bases="_Refuses"),
        twin=body("def __init__(self):\n    pass", LACKS,
                  before="class _Refuses:\n    def __init__(self):\n"
                         "        raise NotImplementedError\n\n", bases="_Refuses"),
    ),
    Case(
        "a class without compute_logits has nothing to reduce",
        Side({INIT: "class Draft:\n    def forward(self): ...\n"},
             {"else": Answer("n/a", False, "vllm.models.draft.Draft", reason="no compute_logits")}),
        twin=Side(
            {INIT: "class Draft:\n    def get_top_tokens(self, hidden_states): ...\n"},
            {"else": OWN},
        ),
    ),
)  # fmt: skip
